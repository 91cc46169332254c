package task

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func TestTheLifeOfATask(t *testing.T) {
	d := step1(t, nil, desire(), epoch)
	pending := d.Write.After
	want := &Task{
		GUID: "task-1", Domain: "jobs", Definition: definition(), State: Pending,
		CreatedAt: epoch, UpdatedAt: epoch, ModificationTag: ModificationTag{Epoch: epoch.UnixNano()},
	}
	if !reflect.DeepEqual(pending, want) {
		t.Errorf("desired: %s", toJSON(t, pending))
	}
	if !reflect.DeepEqual(d.Effects, []Effect{{RequestStart, pending}}) || d.ShouldRun {
		t.Errorf("desired: effects %+v", d.Effects)
	}

	d = step1(t, pending, startAlpha, after(time.Second))
	running := d.Write.After
	if running.State != Running || running.CellID != "α" || running.InstanceGUID != "i1" || !d.ShouldRun || d.Effects != nil {
		t.Errorf("started: %s", toJSON(t, running))
	}

	d = step1(t, running, completeAlpha, after(2*time.Second))
	completed := d.Write.After
	if completed.State != Completed || completed.Failed || completed.Result != "42" || completed.CellID != "α" ||
		!completed.FirstCompletedAt.Equal(after(2*time.Second)) {
		t.Errorf("completed: %s", toJSON(t, completed))
	}
	if !reflect.DeepEqual(d.Effects, []Effect{{CallBack, completed}}) {
		t.Errorf("completed: effects %+v", d.Effects)
	}

	d = step1(t, completed, Resolve{}, after(3*time.Second))
	resolving := d.Write.After
	if resolving.State != Resolving || resolving.Result != "42" || d.Effects != nil {
		t.Errorf("resolving: %s", toJSON(t, resolving))
	}

	d = step1(t, resolving, Delete{}, after(4*time.Second))
	if d.Write != (Write{Before: resolving}) || d.Events[0].Kind != Removed {
		t.Errorf("deleted: %+v", d)
	}
}

func TestATaskIsTriedFourTimesByDefault(t *testing.T) {
	for _, test := range []struct {
		name    string
		retries int
		want    int // rejections after which the task is COMPLETED
	}{
		{"default", 0, 4}, {"one retry", 1, 2}, {"no retry", -1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := follow(t, nil, desire())
			for n := 1; ; n++ {
				// By turns no cell is found and a container is not created.
				by := Command(rejected)
				if n%2 == 0 {
					record = follow(t, record, startAlpha)
					by = rejectAlpha
				}
				d, err := Step(record, by, epoch, Policy{MaxRetries: test.retries})
				if err != nil {
					t.Fatal(err)
				}
				record = d.Write.After
				reason := by.(Reject).Reason
				if record.RejectionCount != n || record.RejectionReason != reason || record.CellID != "" || record.InstanceGUID != "" {
					t.Fatalf("rejection %d: %s", n, toJSON(t, record))
				}
				if n < test.want {
					if record.State != Pending || record.Failed || d.Effects != nil {
						t.Fatalf("rejection %d: %s", n, toJSON(t, record))
					}
					continue
				}
				if record.State != Completed || !record.Failed || record.FailureReason != reason {
					t.Fatalf("rejection %d: %s", n, toJSON(t, record))
				}
				if !reflect.DeepEqual(d.Effects, []Effect{{CallBack, record}}) {
					t.Fatalf("rejection %d: effects %+v", n, d.Effects)
				}
				return
			}
		})
	}
}

func TestARejectionOfAnAttemptCountsOnce(t *testing.T) {
	pending := follow(t, nil, desire())
	reject := rejected
	reject.Attempt = pending.Attempt()
	once := follow(t, pending, reject)
	if twice := follow(t, once, reject); twice != once {
		t.Errorf("counted again: %s", toJSON(t, twice))
	}
	if held := follow(t, pending, rejectAlpha); held != pending {
		t.Error("a cell that does not have the task is counted")
	}
}

func TestEveryEndHasItsReasonAndEffects(t *testing.T) {
	tests := []struct {
		name    string
		state   State
		command Command
		at      time.Time
		reason  string
		detail  string
		effects []EffectKind
	}{
		{"cancelled while PENDING", Pending, Cancel{}, epoch, "cancelled", "", []EffectKind{CallBack}},
		{"cancelled while RUNNING", Running, Cancel{}, epoch, "cancelled", "", []EffectKind{CancelOnCell, CallBack}},
		{"failed while PENDING", Pending, Fail{Reason: "no"}, epoch, "no", "no", []EffectKind{CallBack}},
		{"failed while RUNNING", Running, Fail{Reason: "no"}, epoch, "no", "no", []EffectKind{CancelOnCell, CallBack}},
		{"not started", Pending, ExpirePending{}, after(30 * time.Minute), "not started within time limit", "", []EffectKind{CallBack}},
		{"cell gone", Running, CellMissing{CellID: "α"}, epoch, "cell disappeared before completion", "α", []EffectKind{CallBack}},
		{"evacuated", Running, Complete{CellID: "α", InstanceGUID: "i1", Failed: true, FailureReason: ReasonEvacuationTimedOut}, epoch,
			"timed out during cell evacuation", "timed out during cell evacuation", []EffectKind{CallBack}},
		{"ended unheard of", Pending, Complete{CellID: "β", InstanceGUID: "i2", Failed: true, FailureReason: "exit status 1"}, epoch,
			"exit status 1", "exit status 1", []EffectKind{CallBack}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, url := range []string{"", "http://consumer.example"} {
				c := desire()
				c.Definition.CompletionCallbackURL = url
				d := step1(t, recordsOf(t, c)[test.state], test.command, test.at)
				end := d.Write.After
				if end.State != Completed || !end.Failed || end.FailureReason != test.reason || end.Result != "" || !end.FirstCompletedAt.Equal(test.at) {
					t.Errorf("%s", toJSON(t, end))
				}
				if cause := (Cause{Command: test.command.Name(), Detail: test.detail}); d.Events[0].Cause != cause {
					t.Errorf("cause %+v, want %+v", d.Events[0].Cause, cause)
				}
				var kinds []EffectKind
				for _, e := range d.Effects {
					kinds = append(kinds, e.Kind)
				}
				want := test.effects
				if url == "" {
					want = want[:len(want)-1]
				}
				if len(kinds) != len(want) || len(want) > 0 && !reflect.DeepEqual(kinds, want) {
					t.Errorf("effects %v, want %v", kinds, want)
				}
			}
		})
	}
}

func TestAContainerThatEndedUnheardOfIsKept(t *testing.T) {
	end := follow(t, nil, desire(), completeAlpha)
	if end.CellID != "α" || end.InstanceGUID != "i1" || end.Result != "42" {
		t.Error(toJSON(t, end))
	}
}

func TestACancelledContainerIsNamed(t *testing.T) {
	d := step1(t, records(t)[Running], Cancel{}, epoch)
	if e := d.Effects[0]; e.Kind != CancelOnCell || e.Task.CellID != "α" || e.Task.InstanceGUID != "i1" {
		t.Errorf("%+v", e)
	}
}

func TestTimeIsUpAtTheLimitAndNotBefore(t *testing.T) {
	records := records(t)
	rejectedLater := step1(t, records[Pending], rejected, after(time.Minute)).Write.After
	demoted := step1(t, records[Resolving], DemoteResolving{}, after(time.Minute)).Write.After
	tests := []struct {
		name    string
		record  *Task
		command Command
		set     func(p *Policy, d time.Duration)
		since   time.Duration
		limit   time.Duration // by default
	}{
		{"PENDING", records[Pending], RequestAgain{}, func(p *Policy, d time.Duration) { p.StalePending = d }, 0, 30 * time.Second},
		{"PENDING since a rejection", rejectedLater, RequestAgain{}, func(p *Policy, d time.Duration) { p.StalePending = d }, time.Minute, 30 * time.Second},
		{"PENDING for too long", records[Pending], ExpirePending{}, func(p *Policy, d time.Duration) { p.ExpirePending = d }, 0, 30 * time.Minute},
		{"PENDING for too long in spite of a rejection", rejectedLater, ExpirePending{}, func(p *Policy, d time.Duration) { p.ExpirePending = d }, 0, 30 * time.Minute},
		{"COMPLETED", records[Completed], RequestCallback{}, func(p *Policy, d time.Duration) { p.StaleCompleted = d }, 0, 30 * time.Second},
		{"COMPLETED again", demoted, RequestCallback{}, func(p *Policy, d time.Duration) { p.StaleCompleted = d }, time.Minute, 30 * time.Second},
		{"COMPLETED for too long", records[Completed], ExpireCompleted{}, func(p *Policy, d time.Duration) { p.ExpireCompleted = d }, 0, 2 * time.Minute},
		{"first COMPLETED for too long", demoted, ExpireCompleted{}, func(p *Policy, d time.Duration) { p.ExpireCompleted = d }, 0, 2 * time.Minute},
		{"RESOLVING", records[Resolving], DemoteResolving{}, func(p *Policy, d time.Duration) { p.StaleResolving = d }, 0, 30 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check := func(p Policy, at time.Duration, want bool) {
				t.Helper()
				d, err := Step(test.record, test.command, after(at), p)
				if acts := !reflect.DeepEqual(d, Decision{}); acts != want || err != nil {
					t.Errorf("at %v it acts: %v, want %v; error %v", at, acts, want, err)
				}
			}
			check(Policy{}, test.since+test.limit-1, false)
			check(Policy{}, test.since+test.limit, true)
			check(Policy{}, -time.Hour, false)

			var p Policy
			test.set(&p, time.Hour)
			check(p, test.since+time.Hour-1, false)
			check(p, test.since+time.Hour, true)
		})
	}
}

func TestADemotedTaskIsCalledBackAtOnceAndKeepsItsEnd(t *testing.T) {
	resolving := records(t)[Resolving]
	d := step1(t, resolving, DemoteResolving{}, after(time.Minute))
	demoted := d.Write.After
	if demoted.State != Completed || demoted.Result != "42" || !demoted.FirstCompletedAt.Equal(epoch) || !demoted.UpdatedAt.Equal(after(time.Minute)) {
		t.Error(toJSON(t, demoted))
	}
	if !reflect.DeepEqual(d.Effects, []Effect{{CallBack, demoted}}) {
		t.Errorf("effects %+v", d.Effects)
	}
}

func TestTheNextMomentToLookAtATaskIsWhenTimeCallsForSomethingElse(t *testing.T) {
	records := records(t)
	silent := *records[Completed]
	silent.CompletionCallbackURL = ""
	for _, test := range []struct {
		record *Task
		at     time.Duration
		want   time.Duration // 0: never
	}{
		{nil, 0, 0},
		{records[Pending], 0, 30 * time.Second}, {records[Pending], 30 * time.Second, 30 * time.Minute}, {records[Pending], 30 * time.Minute, 0},
		{records[Running], 0, 0},
		{records[Completed], 0, 30 * time.Second}, {records[Completed], time.Minute, 2 * time.Minute}, {records[Completed], 2 * time.Minute, 0},
		{&silent, 0, 2 * time.Minute},
		{records[Resolving], 0, 30 * time.Second}, {records[Resolving], 30 * time.Second, 0},
	} {
		got := NextOverdue(test.record, after(test.at), Policy{})
		if test.want == 0 && !got.IsZero() || test.want != 0 && !got.Equal(after(test.want)) {
			t.Errorf("%+v after %v: %v, want %v", test.record, test.at, got, test.want)
		}
	}
}

func TestOverdueNamesTheMoreFinalCommand(t *testing.T) {
	records := records(t)
	for _, test := range []struct {
		state State
		at    time.Duration
		want  Command
	}{
		{Pending, 0, nil}, {Pending, 30 * time.Second, RequestAgain{}}, {Pending, 30 * time.Minute, ExpirePending{}},
		{Running, 1000 * time.Hour, nil},
		{Completed, 0, nil}, {Completed, 30 * time.Second, RequestCallback{}}, {Completed, 2 * time.Minute, ExpireCompleted{}},
		{Resolving, 0, nil}, {Resolving, 30 * time.Second, DemoteResolving{}},
	} {
		if got := Overdue(records[test.state], after(test.at), Policy{}); got != test.want {
			t.Errorf("%v for %v: %v, want %v", test.state, test.at, got, test.want)
		}
	}
}

func TestAContainerOfAnEarlierTaskIsRefused(t *testing.T) {
	first := follow(t, nil, desire())
	d := step1(t, nil, desire(), after(time.Minute))
	second := d.Write.After
	for _, c := range []Command{
		Start{CellID: "α", InstanceGUID: "i1", Attempt: first.Attempt()},
		Complete{CellID: "α", InstanceGUID: "i1", Attempt: first.Attempt()},
	} {
		if _, err := Step(second, c, after(time.Minute), Policy{}); !errors.Is(err, ErrOtherAttempt) {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
}

func TestAHolderIsACellAndAnInstance(t *testing.T) {
	running := records(t)[Running]
	for _, holder := range []struct{ cell, instance string }{{"α", "i2"}, {"β", "i1"}, {"β", "i2"}} {
		for _, c := range []Command{
			Start{CellID: holder.cell, InstanceGUID: holder.instance},
			Complete{CellID: holder.cell, InstanceGUID: holder.instance},
			Reject{CellID: holder.cell, InstanceGUID: holder.instance, Reason: "r"},
		} {
			if _, err := Step(running, c, epoch, Policy{}); !errors.Is(err, ErrRunningElsewhere) {
				t.Errorf("%s by %v: %v", c.Name(), holder, err)
			}
		}
	}
}

func TestErrorsTellWhatWasRefusedAndWhy(t *testing.T) {
	records := records(t)
	for _, test := range []struct {
		record  *Task
		command Command
		err     error
		text    string
	}{
		{nil, startAlpha, ErrNotFound, `Start: task not found: the task was cancelled and deleted: the cell deletes its reservation`},
		{records[Running], startBeta, ErrRunningElsewhere, `Start task "task-1" (RUNNING): task is running elsewhere: a task runs in one container`},
		{records[Running], Start{CellID: "α", InstanceGUID: "i2"}, ErrRunningElsewhere, `Start task "task-1" (RUNNING): task is running elsewhere: a task runs in one container`},
		{records[Running], rejected, ErrRunningElsewhere, `Reject task "task-1" (RUNNING): task is running elsewhere: only the cell that has the task knows that its work was not begun`},
		{records[Pending], desire(), ErrExists, `Desire task "task-1" (PENDING): task exists already: a guid names one task`},
	} {
		d, err := Step(test.record, test.command, epoch, Policy{})
		if !errors.Is(err, test.err) || err.Error() != test.text || !reflect.DeepEqual(d, Decision{}) {
			t.Errorf("got  %v\nwant %s", err, test.text)
		}
	}
}

func TestReasonsAreCut(t *testing.T) {
	long := strings.Repeat("é", executor.MaxReasonBytes)
	for _, c := range []Command{
		Fail{Reason: long}, Complete{CellID: "α", InstanceGUID: "i1", Failed: true, FailureReason: long},
		Reject{CellID: "α", InstanceGUID: "i1", Reason: long},
	} {
		d, err := Step(records(t)[Running], c, epoch, Policy{MaxRetries: -1})
		if err != nil {
			t.Fatal(err)
		}
		want := executor.CutReason(long)
		if got := d.Write.After.FailureReason; got != want || d.Events[0].Cause.Detail != want {
			t.Errorf("%s keeps %d bytes", c.Name(), len(got))
		}
	}
}

func TestTheLargestResultIsKept(t *testing.T) {
	largest := strings.Repeat("x", MaxResultBytes)
	d := step1(t, records(t)[Running], Complete{CellID: "α", InstanceGUID: "i1", Result: largest}, epoch)
	if got := len(d.Write.After.Result); got != MaxResultBytes {
		t.Errorf("%d bytes of it are kept", got)
	}
	if err := d.Write.After.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTimesAreKeptAsTheyAreStored(t *testing.T) {
	now := time.Now() // monotonic and local
	d := step1(t, nil, desire(), now)
	if got := d.Write.After.CreatedAt; got != executor.Instant(now.UnixNano()) {
		t.Errorf("%#v", got)
	}
}

// foreign is not a command of this package.
type foreign struct{ Command }

func TestBadArgumentsAreRefused(t *testing.T) {
	big := strings.Repeat("x", MaxResultBytes+1)
	long := strings.Repeat("x", executor.MaxGUIDBytes+1)
	badDefinition := desire()
	badDefinition.Definition.MemoryMB = -1
	for _, test := range []struct {
		name    string
		command Command
		now     time.Time
		field   string
	}{
		{"nil", nil, epoch, "command"},
		{"foreign", foreign{}, epoch, "command"},
		{"pointer", &Cancel{}, epoch, "command"},
		{"zero now", Cancel{}, time.Time{}, "now"},
		{"now in 1970", Cancel{}, time.Unix(0, 0), "now"},
		{"now after 2262", Cancel{}, time.Unix(0, math.MaxInt64).Add(1), "now"},
		{"no guid", Desire{Domain: "d", Definition: definition()}, epoch, "task_guid"},
		{"bad guid", Desire{GUID: "a b", Domain: "d", Definition: definition()}, epoch, "task_guid"},
		{"no domain", Desire{GUID: "g", Definition: definition()}, epoch, "domain"},
		{"long domain", Desire{GUID: "g", Domain: long, Definition: definition()}, epoch, "domain"},
		{"bad definition", badDefinition, epoch, "memory_mb"},
		{"start without a cell", Start{InstanceGUID: "i"}, epoch, "cell_id"},
		{"start on a cell of no text", Start{CellID: "\xff", InstanceGUID: "i"}, epoch, "cell_id"},
		{"start without an instance", Start{CellID: "α"}, epoch, "instance_guid"},
		{"completion without a cell", Complete{InstanceGUID: "i"}, epoch, "cell_id"},
		{"completion without an instance", Complete{CellID: "α"}, epoch, "instance_guid"},
		{"failure without a reason", Complete{CellID: "α", InstanceGUID: "i", Failed: true}, epoch, "failure_reason"},
		{"success with a reason", Complete{CellID: "α", InstanceGUID: "i", FailureReason: "r"}, epoch, "failure_reason"},
		{"failure with a result", Complete{CellID: "α", InstanceGUID: "i", Failed: true, FailureReason: "r", Result: "r"}, epoch, "result"},
		{"big result", Complete{CellID: "α", InstanceGUID: "i", Result: big}, epoch, "result"},
		{"result of no text", Complete{CellID: "α", InstanceGUID: "i", Result: "\xff"}, epoch, "result"},
		{"rejection without a reason", Reject{}, epoch, "reason"},
		{"rejection without a cell", Reject{InstanceGUID: "i", Reason: "r"}, epoch, "cell_id"},
		{"rejection without an instance", Reject{CellID: "α", Reason: "r"}, epoch, "instance_guid"},
		{"failing without a reason", Fail{}, epoch, "reason"},
		{"no missing cell", CellMissing{}, epoch, "cell_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, record := range records(t) {
				d, err := Step(record, test.command, test.now, Policy{})
				var invalid *executor.ValidationError
				if !errors.As(err, &invalid) || len(invalid.Fields) != 1 || invalid.Fields[0].Field != test.field {
					t.Fatalf("error %v, want one about %s", err, test.field)
				}
				if !reflect.DeepEqual(d, Decision{}) {
					t.Error("an error comes with a decision")
				}
			}
		})
	}
}

func TestARecordThatBreaksAnInvariantIsNotDecided(t *testing.T) {
	for _, test := range brokenRecords(t) {
		t.Run(test.name, func(t *testing.T) {
			for _, c := range everyCommand {
				d, err := Step(test.record, c, epoch, Policy{})
				var broken *InvariantError
				if !errors.As(err, &broken) || !errors.Is(err, ErrInvariant) || broken.GUID != test.record.GUID || !reflect.DeepEqual(d, Decision{}) {
					t.Errorf("%s: %v", c.Name(), err)
				}
			}
			if c := Overdue(test.record, after(1000*time.Hour), Policy{}); c != nil {
				if _, err := Step(test.record, c, epoch, Policy{}); !errors.Is(err, ErrInvariant) {
					t.Errorf("%s is overdue: %v", c.Name(), err)
				}
			}
		})
	}
	if c := Overdue(nil, epoch, Policy{}); c != nil {
		t.Errorf("%s is overdue where no task is", c.Name())
	}
}

func TestEventsFoldedRebuildTheRecord(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var record, folded *Task
	now := epoch
	var last ModificationTag
	for range 20_000 {
		now = now.Add(time.Duration(1 + random.IntN(int(time.Minute))))
		c := everyCommand[random.IntN(len(everyCommand))]
		if random.IntN(4) == 0 {
			c = rejectAlpha
		}
		d, err := Step(record, c, now, Policy{})
		if err != nil {
			continue
		}
		for _, e := range d.Events {
			if !reflect.DeepEqual(e.Before, folded) {
				t.Fatalf("seed %d: the event of %s skips a version", seed, c.Name())
			}
			folded = e.After
			if folded != nil {
				if !last.SucceededBy(folded.ModificationTag) {
					t.Fatalf("seed %d: the tag %v follows %v", seed, folded.ModificationTag, last)
				}
				last = folded.ModificationTag
			}
		}
		if record = written(record, d); record != folded {
			t.Fatalf("seed %d: the events of %s do not lead to the record", seed, c.Name())
		}
	}
}
