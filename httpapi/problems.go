package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// This file is the table of the errors that travel over HTTP: errors.Is and
// errors.As find the same through a client as in process.

// sentinels are the errors that others wrap, by their names over HTTP.
var sentinels = []struct {
	name   string
	status int
	err    error
}{
	{"cannot_be_claimed", http.StatusConflict, lrp.ErrCannotBeClaimed},
	{"cannot_be_started", http.StatusConflict, lrp.ErrCannotBeStarted},
	{"cannot_be_crashed", http.StatusConflict, lrp.ErrCannotBeCrashed},
	{"cannot_be_failed", http.StatusConflict, lrp.ErrCannotBeFailed},
	{"cannot_be_removed", http.StatusConflict, lrp.ErrCannotBeRemoved},
	{"cannot_be_retired", http.StatusConflict, lrp.ErrCannotBeRetired},
	{"actual_lrp_not_found", http.StatusNotFound, lrp.ErrNotFound},
	{"refused", http.StatusConflict, lrp.ErrRefused},
	{"lrp_invariant", http.StatusInternalServerError, lrp.ErrInvariant},
	{"task_not_found", http.StatusNotFound, task.ErrNotFound},
	{"task_exists", http.StatusConflict, task.ErrExists},
	{"invalid_transition", http.StatusConflict, task.ErrInvalidTransition},
	{"running_elsewhere", http.StatusConflict, task.ErrRunningElsewhere},
	{"other_attempt", http.StatusConflict, task.ErrOtherAttempt},
	{"task_invariant", http.StatusInternalServerError, task.ErrInvariant},
	{"not_found", http.StatusNotFound, storage.ErrNotFound},
	{"exists", http.StatusConflict, storage.ErrExists},
	{"conflict", http.StatusConflict, storage.ErrConflict},
	{"duplicate", http.StatusConflict, storage.ErrDuplicate},
	{"held", http.StatusConflict, storage.ErrHeld},
	{"evacuation_ends", http.StatusConflict, rep.ErrEvacuationEnds},
	{"no_session", http.StatusConflict, executor.ErrNoSession},
	{"no_command", http.StatusBadRequest, executor.ErrNoCommand},
	{"no_user", http.StatusBadRequest, executor.ErrNoUser},
	{"processes", http.StatusConflict, executor.ErrProcesses},
	{"unsupported", http.StatusBadRequest, executor.ErrUnsupported},
	{"no_file", http.StatusNotFound, executor.ErrNoFile},
	{"file_refused", http.StatusConflict, executor.ErrFileRefused},
	{"unsafe_archive", http.StatusBadRequest, executor.ErrUnsafeArchive},
	{"lock_lost", http.StatusConflict, bbs.ErrLockLost},
	{"corrupt", http.StatusInternalServerError, storage.ErrCorrupt},
	{"gone", http.StatusGone, storage.ErrGone},
	{"invalid", http.StatusBadRequest, executor.ErrInvalid},
	{"forbidden", http.StatusForbidden, ErrForbidden},
	{"not_leader", http.StatusServiceUnavailable, bbs.ErrNotLeader},
	{"fenced", http.StatusServiceUnavailable, storage.ErrFenced},
	{"deadline_exceeded", http.StatusGatewayTimeout, context.DeadlineExceeded},
	{"canceled", http.StatusServiceUnavailable, context.Canceled},
}

// nameOf is the name of the sentinel that err is or wraps, or "".
func nameOf(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	return ""
}

// named is the sentinel with that name.
func named(name string) (error, error) {
	for _, s := range sentinels {
		if s.name == name {
			return s.err, nil
		}
	}
	return nil, wire.ErrGarbled
}

// The JSON forms of errors that have none of their own.
type (
	lrpTransition struct {
		ProcessGUID string `json:"process_guid"`
		Index       int    `json:"index"`
		Command     string `json:"command"`
		Reason      string `json:"reason"` // a sentinel's name
		Why         string `json:"why"`
		Absent      bool   `json:"absent,omitempty"`
	}
	taskTransition struct {
		GUID    string      `json:"task_guid,omitempty"`
		State   *task.State `json:"state,omitempty"`
		Command string      `json:"command"`
		Reason  string      `json:"reason"`
		Why     string      `json:"why"`
	}
	refusal struct {
		ProcessGUID string `json:"process_guid"`
		Why         string `json:"why"`
	}
	lrpInvariant struct {
		Key      lrp.Key `json:"key"`
		Presence uint8   `json:"presence"`
		Rule     string  `json:"rule"`
	}
	taskInvariant struct {
		GUID string `json:"task_guid"`
		Rule string `json:"rule"`
	}
	notLeader struct {
		Role    string `json:"role"`
		Leader  string `json:"leader,omitempty"`
		Address string `json:"address,omitempty"`
		Why     string `json:"why,omitempty"`
	}
	notFound struct {
		Key storage.RecordKey `json:"key"`
	}
	exists struct {
		Key storage.RecordKey `json:"key"`
	}
	conflict struct {
		Key    storage.RecordKey `json:"key"`
		Reason string            `json:"reason"`
	}
	duplicate struct {
		RequestID string         `json:"request_id"`
		Cursor    storage.Cursor `json:"cursor"`
	}
	held struct {
		Lease storage.Lease `json:"lease"`
	}
	fenced struct {
		Fence storage.Fence `json:"fence"`
		Epoch int64         `json:"epoch"`
	}
	corrupt struct {
		Key   storage.RecordKey `json:"key"`
		Fault string            `json:"fault"`
	}
	gone struct {
		After  storage.Cursor `json:"after"`
		Extent storage.Extent `json:"extent"`
		Gap    *storage.Gap   `json:"gap,omitempty"`
	}
)

// problems are the kinds of errors, the most specific first.
var problems = &wire.Problems{Kinds: kinds(), Elsewhere: elsewhere}

// elsewhere sends a client to the leader, or to a process that has room.
func elsewhere(err error) (address string, ok bool) {
	var not *bbs.NotLeaderError
	if errors.As(err, &not) {
		return not.Address, true
	}
	var many *problem.TooManyError
	return "", errors.As(err, &many) || errors.Is(err, storage.ErrFenced)
}

func kinds() []wire.Kind {
	example := storage.ActualLRPKey(&lrp.ActualLRP{Key: lrp.Key{ProcessGUID: "web", Index: 2, DefinitionID: "v1"}})
	list := []wire.Kind{
		wire.Typed(wire.Kind{Name: "lrp_transition", Status: http.StatusConflict, Title: "the instance's records do not allow this",
			StatusOf: statusOf,
			Example:  &lrp.TransitionError{ProcessGUID: "web", Index: 2, Command: "Claim", Err: lrp.ErrCannotBeClaimed, Why: "another cell has it", Absent: false}},
			func(e *lrp.TransitionError) lrpTransition {
				return lrpTransition{e.ProcessGUID, e.Index, e.Command, nameOf(e.Err), e.Why, e.Absent}
			},
			func(w lrpTransition) (*lrp.TransitionError, error) {
				err, bad := named(w.Reason)
				return &lrp.TransitionError{ProcessGUID: w.ProcessGUID, Index: w.Index, Command: w.Command, Err: err, Why: w.Why, Absent: w.Absent}, bad
			}),
		wire.Typed(wire.Kind{Name: "task_transition", Status: http.StatusConflict, Title: "the task's state does not allow this",
			StatusOf: statusOf,
			Example:  &task.TransitionError{GUID: "job", State: task.Running, Command: "Resolve", Err: task.ErrInvalidTransition, Why: "it has not ended"}},
			func(e *task.TransitionError) taskTransition {
				w := taskTransition{GUID: e.GUID, Command: e.Command, Reason: nameOf(e.Err), Why: e.Why}
				if e.State != task.Absent {
					w.State = &e.State
				}
				return w
			},
			func(w taskTransition) (*task.TransitionError, error) {
				err, bad := named(w.Reason)
				e := &task.TransitionError{GUID: w.GUID, Command: w.Command, Err: err, Why: w.Why}
				if w.State != nil {
					e.State = *w.State
				}
				return e, bad
			}),
		wire.Same(wire.Kind{Name: "validation", Status: http.StatusBadRequest, Title: "fields are outside their limits",
			Example: &executor.ValidationError{Fields: []executor.FieldError{{Field: "instances", Value: "-1", Limit: "at least 0"}}}},
			func() *executor.ValidationError { return new(executor.ValidationError) }),
		wire.Typed(wire.Kind{Name: "not_leader", Status: http.StatusServiceUnavailable, Title: "another process leads",
			Example: &bbs.NotLeaderError{Role: "bbs", Leader: "bbs-2", Address: "https://bbs-2.example:8889"}},
			func(e *bbs.NotLeaderError) notLeader { return notLeader{e.Role, e.Leader, e.Address, e.Why} },
			func(w notLeader) (*bbs.NotLeaderError, error) {
				return &bbs.NotLeaderError{Role: w.Role, Leader: w.Leader, Address: w.Address, Why: w.Why}, nil
			}),
		wire.Same(wire.Kind{Name: "forbidden", Status: http.StatusForbidden, Title: "the certificate does not allow this",
			Example: &ForbiddenError{"cell-1", "StartLRP", `only cell "cell-2" may say so`}},
			func() *ForbiddenError { return new(ForbiddenError) }),
		wire.Typed(wire.Kind{Name: "refused", Status: http.StatusConflict, Title: "the deployment cannot be changed in this way",
			Example: &lrp.RefusedError{ProcessGUID: "web", Why: `it has no definition "v3"`}},
			func(e *lrp.RefusedError) refusal { return refusal{e.ProcessGUID, e.Why} },
			func(w refusal) (*lrp.RefusedError, error) {
				return &lrp.RefusedError{ProcessGUID: w.ProcessGUID, Why: w.Why}, nil
			}),
		wire.Typed(wire.Kind{Name: "not_found", Status: http.StatusNotFound, Title: "there is no such record",
			Example: &storage.NotFoundError{Key: storage.DeploymentKey("web")}},
			func(e *storage.NotFoundError) notFound { return notFound{e.Key} },
			func(w notFound) (*storage.NotFoundError, error) { return &storage.NotFoundError{Key: w.Key}, nil }),
		wire.Typed(wire.Kind{Name: "exists", Status: http.StatusConflict, Title: "there is such a record already",
			Example: &storage.ExistsError{Key: storage.DeploymentKey("web")}},
			func(e *storage.ExistsError) exists { return exists{e.Key} },
			func(w exists) (*storage.ExistsError, error) { return &storage.ExistsError{Key: w.Key}, nil }),
		wire.Typed(wire.Kind{Name: "conflict", Status: http.StatusConflict, Title: "the record is there, or is not, or has changed",
			Example: &storage.ConflictError{Key: storage.DeploymentKey("web"), Err: storage.ErrExists}},
			func(e *storage.ConflictError) conflict { return conflict{e.Key, nameOf(e.Err)} },
			func(w conflict) (*storage.ConflictError, error) {
				err, bad := named(w.Reason)
				return &storage.ConflictError{Key: w.Key, Err: err}, bad
			}),
		wire.Typed(wire.Kind{Name: "duplicate", Status: http.StatusConflict, Title: "the request was carried out before",
			Example: &storage.DuplicateError{RequestID: "Desire:4711", Cursor: 12}},
			func(e *storage.DuplicateError) duplicate { return duplicate{e.RequestID, e.Cursor} },
			func(w duplicate) (*storage.DuplicateError, error) {
				return &storage.DuplicateError{RequestID: w.RequestID, Cursor: w.Cursor}, nil
			}),
		wire.Typed(wire.Kind{Name: "held", Status: http.StatusConflict, Title: "another owner holds the lease",
			Example: &storage.HeldError{Lease: storage.Lease{Kind: storage.CellLease, Name: "cell-1", Owner: "first run", Epoch: 3, ExpiresAt: time.Unix(1_700_000_000, 0).UTC()}}},
			func(e *storage.HeldError) held { return held{e.Lease} },
			func(w held) (*storage.HeldError, error) { return &storage.HeldError{Lease: w.Lease}, nil }),
		wire.Same(wire.Kind{Name: "no_session", Status: http.StatusConflict, Title: "nobody can work in the container now",
			Example: &executor.SessionError{GUID: "web-0-4f1c", Why: "it is COMPLETED"}},
			func() *executor.SessionError { return new(executor.SessionError) }),
		wire.Same(wire.Kind{Name: "lock_lost", Status: http.StatusConflict, Title: "the lock was acquired again or released",
			Example: &bbs.LockLostError{Name: "router", Epoch: 3}},
			func() *bbs.LockLostError { return new(bbs.LockLostError) }),
		wire.Typed(wire.Kind{Name: "fenced", Status: http.StatusServiceUnavailable, Title: "the leader was replaced",
			Example: &storage.FencedError{Fence: storage.Fence{Kind: storage.LeaderLease, Name: "bbs", Epoch: 3}, Epoch: 4}},
			func(e *storage.FencedError) fenced { return fenced{e.Fence, e.Epoch} },
			func(w fenced) (*storage.FencedError, error) {
				return &storage.FencedError{Fence: w.Fence, Epoch: w.Epoch}, nil
			}),
		wire.Typed(wire.Kind{Name: "corrupt", Status: http.StatusInternalServerError, Title: "a record cannot be decoded", InPlace: true,
			Example: &storage.CorruptError{Key: example, Err: errors.New("no version of ours")}},
			func(e *storage.CorruptError) corrupt { return corrupt{e.Key, e.Err.Error()} },
			func(w corrupt) (*storage.CorruptError, error) {
				return &storage.CorruptError{Key: w.Key, Err: errors.New(w.Fault)}, nil
			}),
		wire.Typed(wire.Kind{Name: "gone", Status: http.StatusGone, Title: "the position is outside the log of events",
			Example: &storage.GoneError{After: 150, Extent: storage.Extent{Oldest: 100, Newest: 1795348800000007}, Gap: &storage.Gap{After: 120, First: 1795348800000000}}},
			func(e *storage.GoneError) gone { return gone{e.After, e.Extent, e.Gap} },
			func(w gone) (*storage.GoneError, error) {
				return &storage.GoneError{After: w.After, Extent: w.Extent, Gap: w.Gap}, nil
			}),
		wire.Typed(wire.Kind{Name: "lrp_invariant", Status: http.StatusInternalServerError, Title: "a record breaks an invariant",
			Example: &lrp.InvariantError{Key: lrp.Key{ProcessGUID: "web", Index: 2, DefinitionID: "v1", Domain: "apps"}, Presence: lrp.Suspect, Rule: "a RUNNING record has a cell"}},
			func(e *lrp.InvariantError) lrpInvariant { return lrpInvariant{e.Key, uint8(e.Presence), e.Rule} },
			func(w lrpInvariant) (*lrp.InvariantError, error) {
				return &lrp.InvariantError{Key: w.Key, Presence: lrp.Presence(w.Presence), Rule: w.Rule}, nil
			}),
		wire.Typed(wire.Kind{Name: "task_invariant", Status: http.StatusInternalServerError, Title: "a record breaks an invariant",
			Example: &task.InvariantError{GUID: "job", Rule: "a task has a domain"}},
			func(e *task.InvariantError) taskInvariant { return taskInvariant{e.GUID, e.Rule} },
			func(w taskInvariant) (*task.InvariantError, error) {
				return &task.InvariantError{GUID: w.GUID, Rule: w.Rule}, nil
			}),
	}
	list = append(list, wire.OwnKinds()...)
	for _, s := range sentinels {
		list = append(list, wire.Plain(wire.Kind{Name: "plain_" + s.name, Status: s.status, Title: strings.ReplaceAll(s.name, "_", " ")}, s.err))
	}
	return list
}

// statusOf is that of the sentinel that is wrapped.
func statusOf(err error) int {
	if errors.Is(err, lrp.ErrNotFound) || errors.Is(err, task.ErrNotFound) {
		return http.StatusNotFound
	}
	return http.StatusConflict
}

// Errors of clients wrap these.
var (
	// ErrNoAnswer: it is unknown whether the call was carried out.
	ErrNoAnswer = wire.ErrNoAnswer
	// ErrUnreachable: no server has received the call.
	ErrUnreachable = wire.ErrUnreachable
	// ErrGarbled: the answer does not fit this call.
	ErrGarbled = wire.ErrGarbled
)

// A ProblemKind is one kind of error that travels over HTTP.
type ProblemKind struct {
	// Type is the problem's type, for example "urn:diego:problem:not_found".
	Type   string
	Status int
	Title  string
	// Example is an error of this kind.
	Example error
}

// ProblemKinds lists all kinds, in the order in which an error is compared with
// them.
func ProblemKinds() (list []ProblemKind) {
	for _, k := range problems.Kinds {
		list = append(list, ProblemKind{problem.TypePrefix + k.Name, k.Status, k.Title, k.Example})
	}
	return list
}

// ProblemBody is the JSON body of the answer for an error.
func ProblemBody(err error) ([]byte, error) { return json.Marshal(problems.Encode(err)) }

// ProblemError restores the error from such a body.
func ProblemError(body []byte) error {
	var p problem.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("%w: %w", ErrGarbled, err)
	}
	return problems.Decode(p)
}

// WriteProblem answers a request that is not a call with an error, in the form
// of those of calls.
func WriteProblem(w http.ResponseWriter, err error) {
	p := problems.Encode(err)
	body, _ := json.Marshal(p) // text and numbers
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
