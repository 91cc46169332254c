package task

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func TestTheJSONFormOfATask(t *testing.T) {
	got := toJSON(t, follow(t, nil, desire(), startAlpha, completeAlpha))
	const want = `{"task_guid":"task-1","domain":"jobs","memory_mb":128,"disk_mb":256,"max_pids":64,` +
		`"root_fs":"preloaded:linux","action":{"run":{"path":"/bin/work","user":"vcap"}},"placement_tags":["gpu"],` +
		`"result_file":"/tmp/result","completion_callback_url":"https://consumer.example/done","annotation":"nightly",` +
		`"metric_tags":{"kind":{"static":"batch"}},"state":"COMPLETED","cell_id":"α","instance_guid":"i1","result":"42",` +
		`"modification_tag":{"epoch":"1770091506000000007","index":2},"created_at":"2026-02-03T04:05:06.000000007Z",` +
		`"updated_at":"2026-02-03T04:05:06.000000007Z","first_completed_at":"2026-02-03T04:05:06.000000007Z"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEveryRecordSurvivesJSON(t *testing.T) {
	rejectedOnce := follow(t, nil, desire(), rejected)
	failed := follow(t, nil, desire(), startAlpha, Cancel{})
	list := []*Task{rejectedOnce, failed}
	for _, record := range records(t) {
		if record != nil {
			list = append(list, record)
		}
	}
	for _, record := range list {
		read := Task{FailureReason: "left over"}
		if err := json.Unmarshal([]byte(toJSON(t, record)), &read); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&read, record) {
			t.Errorf("read %s\nof   %s", toJSON(t, read), toJSON(t, record))
		}
	}
}

func TestTimesThatEarlierReleasesWroteInNanosecondsAreRead(t *testing.T) {
	const times = `"created_at":1770091506000000007,"updated_at":1770091506000000008,"first_completed_at":1770091506000000009}`
	const old = `{"task_guid":"task-1","domain":"jobs","memory_mb":128,"disk_mb":256,"max_pids":64,"root_fs":"preloaded:linux",` +
		`"action":{"run":{"path":"/bin/work","user":"vcap"}},"state":"COMPLETED","modification_tag":{"epoch":"1770091506000000007","index":2},` + times
	var record Task
	if err := json.Unmarshal([]byte(old), &record); err != nil || record.Validate() != nil {
		t.Fatal(err, record.Validate())
	}
	for i, got := range []time.Time{record.CreatedAt, record.UpdatedAt, record.FirstCompletedAt} {
		if want := time.Date(2026, 2, 3, 4, 5, 6, 7+i, time.UTC); got != want {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	var response CallbackResponse
	if err := json.Unmarshal([]byte(`{"task_guid":"task-1","created_at":1770091506000000007}`), &response); err != nil || response.CreatedAt != record.CreatedAt {
		t.Errorf("read %+v, %v", response, err)
	}
}

func TestDefinitionsAreInlineInJSON(t *testing.T) {
	var d Definition
	if err := json.Unmarshal([]byte(`{"memory_mb":7,"root_fs":"a:b","result_file":"/r","action":{"run":{"path":"/p","user":"u"}}}`), &d); err != nil {
		t.Fatal(err)
	}
	if d.MemoryMB != 7 || d.RootFS != "a:b" || d.ResultFile != "/r" || d.Action.Run.Path != "/p" {
		t.Errorf("%+v", d)
	}
}

func TestWhatIsNoTaskIsNotReadOrWritten(t *testing.T) {
	for _, text := range []string{
		`{"state":"pending"}`, `{"state":"INVALID"}`, `{"state":""}`, `{"state":1}`, `{"memory_mb":"much"}`,
		`{"created_at":"2026-02-03 04:05:06"}`, `{"created_at":1.5}`, `[]`, `{`, ``, `{"modification_tag":{"epoch":7}}`,
	} {
		record := Task{GUID: "kept"}
		if err := json.Unmarshal([]byte(text), &record); err == nil {
			t.Errorf("%s is read", text)
		}
		if err := record.UnmarshalJSON([]byte(text)); err == nil || record.GUID != "kept" {
			t.Errorf("%s: error %v, and the record is %+v", text, err, record)
		}
	}
	for name, change := range map[string]func(*Task){
		"state":              func(t *Task) { t.State = Absent },
		"unknown state":      func(t *Task) { t.State = numStates },
		"created_at":         func(t *Task) { t.CreatedAt = time.Unix(-5, 0) },
		"updated_at":         func(t *Task) { t.UpdatedAt = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) },
		"first_completed_at": func(t *Task) { t.FirstCompletedAt = time.Unix(0, 0) },
	} {
		record := *records(t)[Pending]
		change(&record)
		if _, err := json.Marshal(record); !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), name[strings.LastIndex(name, " ")+1:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatesHaveTheirNamesAsText(t *testing.T) {
	for state, want := range map[State]string{Pending: "PENDING", Running: "RUNNING", Completed: "COMPLETED", Resolving: "RESOLVING"} {
		text, err := state.MarshalText()
		if err != nil || string(text) != want {
			t.Errorf("%v: %q, %v", state, text, err)
		}
		var read State
		if err := read.UnmarshalText(text); err != nil || read != state {
			t.Errorf("%s: %v, %v", text, read, err)
		}
	}
	var invalid *executor.ValidationError
	if _, err := Absent.MarshalText(); !errors.As(err, &invalid) {
		t.Error(err)
	}
	state := Running
	for _, text := range []string{"", "running", "no record", "CLAIMED"} {
		err := state.UnmarshalText([]byte(text))
		if !errors.As(err, &invalid) || invalid.Fields[0].Field != "state" || invalid.Fields[0].Value != text || state != Running {
			t.Errorf("%q: %v", text, err)
		}
	}
}
