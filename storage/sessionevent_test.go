package storage_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// session is an event about a program in instance 3 of p, which ended with the
// status 3 unless ended is zero.
func session(ended time.Time) *storage.SessionEvent {
	index := 3
	e := &storage.SessionEvent{
		ID: "s", Kind: storage.SessionExec, ProcessGUID: "p", Index: &index, Domain: "cf-apps", CellID: "cell-1", InstanceGUID: "i",
		Caller: "alice", Command: []string{"sh", "-c", "exit 3"}, BeganAt: at, EndedAt: ended,
	}
	if !ended.IsZero() {
		e.End = "exit status 3"
	}
	return e
}

func TestASessionIsExplained(t *testing.T) {
	for want, change := range map[string]func(*storage.SessionEvent){
		`alice ran sh -c "exit 3": exit status 3`:                               func(*storage.SessionEvent) {},
		`alice runs sh -c "exit 3"`:                                             func(e *storage.SessionEvent) { e.EndedAt, e.End = time.Time{}, "" },
		`somebody without a certificate ran sh "" "\x1b[31m" é: exit status 3`:  func(e *storage.SessionEvent) { e.Caller, e.Command = "", []string{"sh", "", "\x1b[31m", "é"} },
		`alice ran sh -c "exit 3", and the session failed: the client has gone`: func(e *storage.SessionEvent) { e.Failed, e.End = true, "the client has gone" },
		`alice copies to /tmp`: func(e *storage.SessionEvent) {
			e.Kind, e.Command, e.EndedAt = storage.SessionCopyIn, []string{"/tmp"}, time.Time{}
		},
		`alice copied to /tmp`: func(e *storage.SessionEvent) {
			e.Kind, e.Command, e.End = storage.SessionCopyIn, []string{"/tmp"}, "copied"
		},
		`alice copied from /tmp, and that failed: no such file`: func(e *storage.SessionEvent) {
			e.Kind, e.Command, e.Failed, e.End = storage.SessionCopyOut, []string{"/tmp"}, true, "no such file"
		},
		`alice was not allowed to run sh -c "exit 3": forbidden (and 7 more attempts)`: func(e *storage.SessionEvent) { e.Refused, e.Unreported, e.End = true, 7, "forbidden" },
		`alice was not allowed to copy from /tmp: forbidden`: func(e *storage.SessionEvent) {
			e.Kind, e.Command, e.Refused, e.End = storage.SessionCopyOut, []string{"/tmp"}, true, "forbidden"
		},
	} {
		e := session(at.Add(time.Minute))
		if change(e); e.Explain() != want {
			t.Errorf("got  %s\nwant %s", e.Explain(), want)
		}
	}
}

func TestASessionOutsideItsLimitsIsRefused(t *testing.T) {
	for field, change := range map[string]func(*storage.SessionEvent){
		"":              func(*storage.SessionEvent) {},
		"id":            func(e *storage.SessionEvent) { e.ID = "" },
		"kind":          func(e *storage.SessionEvent) { e.Kind = "peek" },
		"process_guid":  func(e *storage.SessionEvent) { e.TaskGUID = "t" },
		"index":         func(e *storage.SessionEvent) { e.Index = nil },
		"domain":        func(e *storage.SessionEvent) { e.Domain = "\x00" },
		"caller":        func(e *storage.SessionEvent) { e.Caller = strings.Repeat("a", 256) },
		"cell_id":       func(e *storage.SessionEvent) { e.CellID = "" },
		"instance_guid": func(e *storage.SessionEvent) { e.InstanceGUID = "" },
		"command":       func(e *storage.SessionEvent) { e.Command = make([]string, storage.MaxSessionTextBytes+1) },
		"end":           func(e *storage.SessionEvent) { e.End = strings.Repeat("a", storage.MaxSessionTextBytes+1) },
		"began_at":      func(e *storage.SessionEvent) { e.BeganAt = time.Time{} },
		"refused":       func(e *storage.SessionEvent) { e.Refused, e.Failed = true, true },
		"unreported":    func(e *storage.SessionEvent) { e.Unreported = 1 },
	} {
		e := session(at.Add(time.Minute))
		change(e)
		var v executor.Validator
		e.Validate(&v)
		var invalid *executor.ValidationError
		if errors.As(v.Err(), &invalid) != (field != "") || field != "" && invalid.Fields[0].Field != field {
			t.Errorf("%q: %v", field, v.Err())
		}
	}
}
