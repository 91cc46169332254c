package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
)

// A SessionEvent says that somebody has begun to work in a container, is done, or
// may not. Both events of a session that began have the same ID; a refused one has
// one event. The cell reports them, and they change no record. It is a plain value.
type SessionEvent struct {
	// ID is unique in the fleet.
	ID string `json:"id"`
	// Kind is SessionExec, SessionCopyIn or SessionCopyOut.
	Kind string `json:"kind"`
	// ProcessGUID and Index are those of an instance, TaskGUID that of a task.
	ProcessGUID string `json:"process_guid,omitempty"`
	Index       *int   `json:"index,omitempty"`
	TaskGUID    string `json:"task_guid,omitempty"`
	Domain      string `json:"domain,omitempty"`
	// CellID and InstanceGUID name the container.
	CellID       string `json:"cell_id"`
	InstanceGUID string `json:"instance_guid"`
	// Caller is the common name of the caller's certificate, or empty if the cell
	// asks for none.
	Caller string `json:"caller,omitempty"`
	// Command is the program with its arguments, or the path of a copy. Of a long
	// one it is the beginning.
	Command []string `json:"command"`
	// BeganAt and EndedAt are by the cell's clock. EndedAt is zero in the event that
	// says that the session has begun.
	BeganAt time.Time `json:"began_at"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	// End says how it ended: "exit status 3", "copied", or why it failed.
	End string `json:"end,omitempty"`
	// Failed is true if the session itself failed: the program did not start, its
	// caller has gone, or not everything was copied.
	Failed bool `json:"failed,omitempty"`
	// Refused is true if nothing began: the caller lacks the role or the domain, or
	// the cell has no room for the session. EndedAt is then BeganAt, and End says why.
	Refused bool `json:"refused,omitempty"`
	// Unreported is how many attempts of the same caller the cell has refused
	// without an event since its last event about that caller. Of a flood of
	// refusals, a cell reports only some.
	Unreported int `json:"unreported,omitempty"`
}

// Kinds of sessions.
const (
	SessionExec    = "exec"
	SessionCopyIn  = "copy_in"
	SessionCopyOut = "copy_out"
)

// The limits of a SessionEvent.
const (
	// MaxSessionTextBytes bounds the command, with a byte for each argument, and
	// the End.
	MaxSessionTextBytes = 2 << 10
	// MaxSessionEvents is how many of them one call reports.
	MaxSessionEvents = 100
)

// Validate reports fields outside their limits.
func (s *SessionEvent) Validate(v *executor.Validator) {
	v.Name("id", s.ID)
	kinds := []string{SessionExec, SessionCopyIn, SessionCopyOut}
	v.Check(slices.Contains(kinds, s.Kind), "kind", s.Kind, "one of "+strings.Join(kinds, ", "))
	if s.TaskGUID != "" {
		v.Name("task_guid", s.TaskGUID)
		v.Check(s.ProcessGUID == "" && s.Index == nil, "process_guid", s.ProcessGUID, "absent, with index, in the event of a task")
	} else {
		v.Name("process_guid", s.ProcessGUID)
		v.Check(s.Index != nil && *s.Index >= 0, "index", s.Index, "that of an instance")
	}
	if s.Domain != "" {
		v.Name("domain", s.Domain)
	}
	if s.Caller != "" {
		v.Name("caller", s.Caller)
	}
	v.Name("cell_id", s.CellID)
	v.Name("instance_guid", s.InstanceGUID)
	size, text := 0, utf8.ValidString(s.End)
	for _, arg := range s.Command {
		size += len(arg) + 1
		text = text && utf8.ValidString(arg)
	}
	v.Check(size <= MaxSessionTextBytes, "command", size, fmt.Sprintf("at most %d bytes", MaxSessionTextBytes))
	v.Check(len(s.End) <= MaxSessionTextBytes, "end", len(s.End), fmt.Sprintf("at most %d bytes", MaxSessionTextBytes))
	v.Check(text, "command", "", "UTF-8, as the end")
	v.Check(!s.BeganAt.IsZero(), "began_at", s.BeganAt, "a time")
	v.Check((s.End == "") == s.EndedAt.IsZero(), "end", s.End, "set together with ended_at, or not at all")
	v.Check(!s.Refused || s.End != "" && !s.Failed, "refused", s.Refused, "with an end that says why, and not failed as well")
	v.Check(s.Unreported >= 0 && (s.Refused || s.Unreported == 0), "unreported", s.Unreported, "at least 0, and only of what was refused")
}

// EventKind is KindSessionBegan, KindSessionEnded or KindSessionRefused.
func (s *SessionEvent) EventKind() string {
	switch {
	case s.Refused:
		return KindSessionRefused
	case s.EndedAt.IsZero():
		return KindSessionBegan
	}
	return KindSessionEnded
}

// Explain describes the event for people, without the name of the instance or
// task: "alice ran ls -l: exit status 0". The text may change.
func (s *SessionEvent) Explain() string {
	who := s.Caller
	who = cmp.Or(who, "somebody without a certificate")
	words := make([]string, len(s.Command))
	for i, word := range s.Command {
		words[i] = word
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == '"' || !unicode.IsPrint(r) }) {
			words[i] = strconv.Quote(word)
		}
	}
	now, then, wish := "runs", "ran", "run"
	switch s.Kind {
	case SessionCopyIn:
		now, then, wish = "copies to", "copied to", "copy to"
	case SessionCopyOut:
		now, then, wish = "copies from", "copied from", "copy from"
	}
	what := strings.Join(words, " ")
	switch {
	case s.Refused:
		more := ""
		if s.Unreported > 0 {
			more = fmt.Sprintf(" (and %d more attempts)", s.Unreported)
		}
		return fmt.Sprintf("%s was not allowed to %s %s: %s%s", who, wish, what, s.End, more)
	case s.EndedAt.IsZero():
		return fmt.Sprintf("%s %s %s", who, now, what)
	case s.Failed && s.Kind == SessionExec:
		return fmt.Sprintf("%s ran %s, and the session failed: %s", who, what, s.End)
	case s.Failed:
		return fmt.Sprintf("%s %s %s, and that failed: %s", who, then, what, s.End)
	case s.Kind == SessionExec:
		return fmt.Sprintf("%s ran %s: %s", who, what, s.End)
	}
	return fmt.Sprintf("%s %s %s", who, then, what)
}

func (s *Subject) session(e *SessionEvent) {
	s.Kind = e.EventKind()
	s.ProcessGUID, s.TaskGUID, s.Domain = e.ProcessGUID, e.TaskGUID, e.Domain
	if e.Index != nil {
		s.Index = *e.Index
	}
	s.CellBefore, s.CellAfter = e.CellID, e.CellID
}
