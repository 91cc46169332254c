package system_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// sessionOf says that alice runs ls in the container of an instance.
func sessionOf(cellID, processGUID string, index int) storage.SessionEvent {
	return storage.SessionEvent{
		ID: "session", Kind: storage.SessionExec, ProcessGUID: processGUID, Index: &index, Domain: "apps", CellID: cellID, InstanceGUID: "i",
		Caller: "alice", Command: []string{"ls"}, BeganAt: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
	}
}

func TestSessionsAreEventsInTheStreamAndInTheTimeline(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.step()
	log, err := s.BBS.Log(s.ctx)
	s.must(err)
	began := sessionOf("cell-1", "web", 1)
	ended := began
	ended.EndedAt, ended.End = began.BeganAt.Add(time.Second), "exit status 3"
	ofTask := storage.SessionEvent{
		ID: "copy", Kind: storage.SessionCopyIn, TaskGUID: "job", CellID: "cell-1", InstanceGUID: "j", Command: []string{"/tmp"}, BeganAt: began.BeganAt,
	}
	s.must(s.BBS.ReportSessions(s.ctx, "cell-1", []storage.SessionEvent{began, ended, ofTask}))
	s.must(s.BBS.ReportSessions(s.ctx, "cell-1", nil))

	events := take(t, s.BBS, log.Newest, storage.EventFilter{CellIDs: []string{"cell-1"}}, 3)
	for i, want := range []string{"session_began", "session_ended", "session_began"} {
		if got := events[i]; got.Subject().Kind != want || got.Session == nil || got.Sequence != log.Newest+storage.Cursor(i)+1 {
			t.Errorf("event %d is %+v, want %s", i, got, want)
		}
	}
	if got := take(t, s.BBS, log.Newest, storage.EventFilter{TaskGUIDs: []string{"job"}}, 1)[0].Session; !slices.Equal(got.Command, ofTask.Command) {
		t.Errorf("of the task: %+v", got)
	}
	for index, want := range [][]string{nil, {"alice runs ls", "alice ran ls: exit status 3"}} {
		list, err := s.BBS.Timeline(s.ctx, "web", index)
		s.must(err)
		var got []string
		for i := range list {
			if e := &list[i]; e.Session != nil {
				got = append(got, e.Text)
			} else if e.Event.Kind == 0 {
				t.Errorf("an entry about nothing: %+v", e)
			}
		}
		if !slices.Equal(got, want) || len(list) <= len(got) {
			t.Errorf("the timeline of web/%d has %q and %d entries", index, got, len(list))
		}
	}

	nobodys := sessionOf("cell-1", "", 0)
	for field, list := range map[string][]storage.SessionEvent{
		"sessions[1].cell_id":      {began, sessionOf("cell-2", "web", 0)},
		"sessions[0].process_guid": {nobodys},
		"sessions":                 slices.Repeat([]storage.SessionEvent{began}, storage.MaxSessionEvents+1),
	} {
		var invalid *executor.ValidationError
		if err := s.BBS.ReportSessions(s.ctx, "cell-1", list); !errors.As(err, &invalid) || invalid.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if after, err := s.BBS.Log(s.ctx); err != nil || after.Newest != log.Newest+3 {
		t.Errorf("what was refused left events: %+v, %v", after, err)
	}
}
