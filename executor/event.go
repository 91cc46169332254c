package executor

import "fmt"

// An EventKind says what happened to the container of an Event (000 §Container
// Events).
type EventKind uint8

// The kinds of events. There is no zero kind.
const (
	ContainerReserved EventKind = iota + 1
	ContainerRunning
	ContainerCompleted
)

// eventKinds says which states are told, and how.
var eventKinds = [...]struct {
	name  string
	state State
}{
	ContainerReserved:  {"container_reserved", Reserved},
	ContainerRunning:   {"container_running", Running},
	ContainerCompleted: {"container_completed", Completed},
}

func (k EventKind) known() bool { return k != 0 && int(k) < len(eventKinds) }

func (k EventKind) String() string {
	if !k.known() {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return eventKinds[k].name
}

// MarshalText fails on a value that is not a kind.
func (k EventKind) MarshalText() ([]byte, error) {
	if !k.known() {
		return nil, unknown("kind", k.String())
	}
	return []byte(eventKinds[k].name), nil
}

// UnmarshalText accepts the three names and nothing else. An error is a
// *ValidationError.
func (k *EventKind) UnmarshalText(text []byte) error {
	for i, e := range eventKinds {
		if i > 0 && e.name == string(text) {
			*k = EventKind(i)
			return nil
		}
	}
	return unknown("kind", string(text))
}

// An Event says that a container was reserved, is running, or has completed. A
// running event is repeated whenever a running container's readiness changes.
// Events only speed up what polling finds anyway: a receiver treats the
// Container as if it had polled it, and may miss any of them.
type Event struct {
	Kind      EventKind `json:"kind"`
	Container Container `json:"container"`
}

// Event returns the event that c's entry into its state makes, or false if that
// state makes none.
func (c Container) Event() (Event, bool) {
	for i, e := range eventKinds {
		if i > 0 && e.state == c.State {
			return Event{Kind: EventKind(i), Container: c}, true
		}
	}
	return Event{}, false
}

// Validate checks the container and that the kind belongs to its state.
func (e Event) Validate(v *Validator) {
	of, ok := e.Container.Event()
	v.Check(ok && of.Kind == e.Kind, "kind", e.Kind, "the kind of the container's state")
	e.Container.Validate(v.In("container"))
}
