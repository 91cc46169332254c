package storage

import (
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// An Event is an entry of the log: exactly one of LRP, Task, Domain,
// Quarantine, Session and Gap is set. Sequence and At are the Store's; in a
// Batch they are ignored.
type Event struct {
	// Sequence numbers are consecutive in the order of commits, except for gaps.
	Sequence Cursor `json:"sequence"`
	// At is when the event was committed, by the Store's clock. It may step
	// back when that clock does; Sequence never does.
	At         time.Time    `json:"at"`
	LRP        *lrp.Event   `json:"lrp,omitempty"`
	Task       *task.Event  `json:"task,omitempty"`
	Domain     *DomainEvent `json:"domain,omitempty"`
	Quarantine *Quarantine  `json:"quarantine,omitempty"`
	// Session says who worked in a container.
	Session *SessionEvent `json:"session,omitempty"`
	// Gap is set only in events that a Store makes. Its First is Sequence.
	Gap *Gap `json:"gap,omitempty"`
}

// A DomainEvent says that a domain became fresh, or fresh for longer.
type DomainEvent struct {
	Domain string `json:"domain"`
	// TTLNanoseconds is how long the domain is fresh; 0 means for ever.
	TTLNanoseconds time.Duration `json:"ttl_nanoseconds"`
}

// Kinds of events besides those of packages lrp and task.
const (
	KindTaskCreated = "task_created"
	KindTaskChanged = "task_changed"
	KindTaskRemoved = "task_removed"
	// KindDomainUpserted is the kind of an Event with a Domain.
	KindDomainUpserted = "domain_upserted"
	// KindQuarantined is the kind of an Event with a Quarantine.
	KindQuarantined = "record_quarantined"
	// KindSessionBegan, KindSessionEnded and KindSessionRefused are the kinds of an
	// Event with a Session.
	KindSessionBegan   = "session_began"
	KindSessionEnded   = "session_ended"
	KindSessionRefused = "session_refused"
	// KindLogGap is the kind of an Event with a Gap.
	KindLogGap = "log_gap"
)

// EventKinds returns all kinds of events, as in [Subject.Kind].
func EventKinds() (list []string) {
	for kind := lrp.InstanceCreated; kind <= lrp.DesiredRemoved; kind++ {
		list = append(list, kind.String())
	}
	return append(list, KindTaskCreated, KindTaskChanged, KindTaskRemoved, KindDomainUpserted, KindQuarantined, KindSessionBegan, KindSessionEnded, KindSessionRefused, KindLogGap)
}

var taskKinds = map[task.EventKind]string{
	task.Created: KindTaskCreated,
	task.Changed: KindTaskChanged,
	task.Removed: KindTaskRemoved,
}

// A Subject is what an event is about, in the form that filters and the columns
// of a database use.
type Subject struct {
	// Kind is the event's kind as text, for example "actual_lrp_crashed".
	Kind string
	// ProcessGUID is empty and Index is −1 if the event is not about a process;
	// Index is −1 for events about a deployment.
	ProcessGUID string
	Index       int
	TaskGUID    string
	Domain      string
	// CellBefore and CellAfter are the cells of the record before and after, or
	// empty.
	CellBefore string
	CellAfter  string
}

// Subject returns what e is about. An Event about nothing has no Kind.
func (e *Event) Subject() Subject {
	s := Subject{Index: -1}
	switch {
	case e.LRP != nil:
		s.lrp(e.LRP)
	case e.Task != nil:
		s.task(e.Task)
	case e.Domain != nil:
		s.Kind, s.Domain = KindDomainUpserted, e.Domain.Domain
	case e.Quarantine != nil:
		s.Kind = KindQuarantined
		switch k := e.Quarantine.Key; k.Kind {
		case ActualLRPRecord:
			s.ProcessGUID, s.Index = k.GUID, k.Index
		case DeploymentRecord:
			s.ProcessGUID = k.GUID
		case TaskRecord:
			s.TaskGUID = k.GUID
		}
	case e.Session != nil:
		s.session(e.Session)
	case e.Gap != nil:
		s.Kind = KindLogGap
	}
	return s
}

func (s *Subject) lrp(e *lrp.Event) {
	s.Kind = e.Kind.String()
	if r := e.Before; r != nil {
		s.ProcessGUID, s.Index, s.Domain, s.CellBefore = r.ProcessGUID, r.Index, r.Domain, r.CellID
	}
	if r := e.After; r != nil {
		s.ProcessGUID, s.Index, s.Domain, s.CellAfter = r.ProcessGUID, r.Index, r.Domain, r.CellID
	}
	if d := e.DeploymentBefore; d != nil {
		s.ProcessGUID, s.Domain = d.ProcessGUID, d.Domain
	}
	if d := e.DeploymentAfter; d != nil {
		s.ProcessGUID, s.Domain = d.ProcessGUID, d.Domain
	}
}

func (s *Subject) task(e *task.Event) {
	s.Kind = taskKinds[e.Kind]
	if t := e.Before; t != nil {
		s.TaskGUID, s.Domain, s.CellBefore = t.GUID, t.Domain, t.CellID
	}
	if t := e.After; t != nil {
		s.TaskGUID, s.Domain, s.CellAfter = t.GUID, t.Domain, t.CellID
	}
}
