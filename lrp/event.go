package lrp

// An EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events about a slot. Instance events tell of single records.
// Group events tell of what a router should know of one definition at one
// index: created adds a route, removed withdraws it (000 §Suspect Cells).
const (
	InstanceCreated EventKind = iota + 1
	InstanceChanged
	InstanceRemoved
	InstanceCrashed
	GroupCreated
	GroupChanged
	GroupRemoved
)

// An Event says what changed. Created events have no Before, removed events
// no After. A crashed event has the record before the crash and the record
// after it; After is nil if the record was removed.
type Event struct {
	Kind   EventKind
	Before *ActualLRP
	After  *ActualLRP
	// Cause is the command that made the change.
	Cause Cause
}
