package task

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// FuzzStep reads its input as commands, one byte for the kind and one for the
// arguments, and follows a task through them.
func FuzzStep(f *testing.F) {
	for _, seed := range [][]byte{
		{0, 0, 4, 0, 5, 0, 2, 0, 3, 0},                    // a whole life
		{0, 0, 6, 0, 6, 0, 6, 0, 6, 0},                    // rejected to the end
		{0, 0, 4, 0, 1, 0, 2, 0, 3, 0, 0, 128, 4, 0},      // the guid is used again
		{0, 0, 4, 1, 6, 1, 4, 1, 10, 1, 11, 0, 13, 255},   // convergence
		{0, 0, 4, 16, 6, 16, 4, 32, 5, 48, 12, 200, 2, 0}, // attempts
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var record, folded *Task
		ended := false
		now := epoch
		for ; len(input) >= 2; input = input[2:] {
			c, wait := commandOf(input[0], input[1], record)
			now = now.Add(wait)
			before := *new(Task)
			if record != nil {
				before = *record
			}
			d, err := Step(record, c, now, Policy{})
			if record != nil && !reflect.DeepEqual(before, *record) {
				t.Fatalf("%s changed what it was given", c.Name())
			}
			if err != nil && !reflect.DeepEqual(d, Decision{}) {
				t.Fatalf("%s: an error comes with a decision", c.Name())
			}
			if d.ShouldRun && ended {
				t.Fatal("a task that was COMPLETED is run")
			}
			record = written(record, d)
			for _, e := range d.Events {
				if e.Before != folded {
					t.Fatalf("the event of %s skips a version", c.Name())
				}
				folded = e.After
			}
			if record != folded {
				t.Fatalf("the events of %s do not lead to the record", c.Name())
			}
			ended = record != nil && (ended || record.State == Completed)
			if record != nil {
				if err := record.Validate(); err != nil {
					t.Fatalf("%s: %v", c.Name(), err)
				}
			}
		}
	})
}

// commandOf makes a command of two bytes, and says how long it waits.
func commandOf(kind, argument byte, record *Task) (Command, time.Duration) {
	cell := cellNames[argument%spaceCells]
	instance := string('a' + rune(argument>>1&3))
	var attempt Attempt
	if record != nil && argument&16 != 0 {
		attempt = record.Attempt()
		attempt.Rejections -= int(argument >> 5 & 1)
	}
	wait := time.Nanosecond
	if argument&128 != 0 {
		wait = time.Duration(argument) * time.Second
	}
	switch everyCommand[int(kind)%len(everyCommand)].(type) {
	case Start:
		return Start{CellID: cell, InstanceGUID: instance, Attempt: attempt}, wait
	case Complete:
		if argument&8 != 0 {
			return Complete{CellID: cell, InstanceGUID: instance, Attempt: attempt, Failed: true, FailureReason: "r"}, wait
		}
		return Complete{CellID: cell, InstanceGUID: instance, Attempt: attempt, Result: "r"}, wait
	case Reject:
		if argument&8 != 0 {
			return Reject{Attempt: attempt, Reason: "r"}, wait
		}
		return Reject{CellID: cell, InstanceGUID: instance, Reason: "r"}, wait
	case CellMissing:
		return CellMissing{CellID: cell}, wait
	}
	return everyCommand[int(kind)%len(everyCommand)], wait
}

// FuzzTaskJSON reads anything as a record. What is read can be written and
// read again, and what is valid can be decided.
func FuzzTaskJSON(f *testing.F) {
	for _, record := range records(f) {
		if record != nil {
			f.Add([]byte(toJSON(f, record)))
		}
	}
	f.Add([]byte(`{"state":"RUNNING"}`))
	f.Add([]byte(`{"task_guid":"g","domain":"d","state":"PENDING","created_at":-1,"updated_at":1,"modification_tag":{"epoch":"1","index":0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var record Task
		if json.Unmarshal(data, &record) != nil {
			return
		}
		invalid := record.Validate()
		for _, c := range everyCommand {
			d, err := Step(&record, c, epoch, Policy{})
			if after := d.Write.After; after != nil && after.broken() != "" {
				t.Errorf("%s breaks an invariant: %s", c.Name(), after.broken())
			}
			if err != nil && !reflect.DeepEqual(d, Decision{}) {
				t.Errorf("%s: an error comes with a decision", c.Name())
			}
		}
		if invalid != nil {
			return
		}
		written, err := json.Marshal(record)
		if err != nil {
			t.Fatalf("what is valid cannot be written: %v", err)
		}
		var read Task
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatal(err)
		}
		if again := toJSON(t, read); again != string(written) {
			t.Errorf("written %s\nread    %s", written, again)
		}
	})
}

// FuzzDefinitionJSON reads anything as a definition. What is valid makes a
// task.
func FuzzDefinitionJSON(f *testing.F) {
	d := definition()
	f.Add([]byte(toJSON(f, d)))
	f.Add([]byte(`{"root_fs":"x:","action":{"try":{"action":{}}},"metric_tags":{"":{}},"annotation":"a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Definition
		if json.Unmarshal(data, &d) != nil {
			return
		}
		invalid := d.Validate()
		decision, err := Step(nil, Desire{GUID: "g", Domain: "d", Definition: d}, epoch, Policy{})
		if (err == nil) != (invalid == nil) {
			t.Fatalf("Validate: %v, Step: %v", invalid, err)
		}
		if err == nil && decision.Write.After.Validate() != nil {
			t.Error(decision.Write.After.Validate())
		}
	})
}
