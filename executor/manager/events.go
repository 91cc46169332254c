package manager

import (
	"context"
	"sync"

	"github.com/diegosdk/diego/executor"
)

// MaxPending is how many containers may have events that a Subscription has not
// delivered yet.
const MaxPending = 10_000

// Errors that end a Subscription.
var (
	// ErrClosed: the Subscription was closed.
	ErrClosed = executor.ErrClosed
	// ErrBehind: nobody took its events, and more than MaxPending containers
	// had some. To catch up, subscribe again and then list.
	ErrBehind = executor.ErrBehind
)

// A Subscription delivers events, in order for each container. If several
// events of a container wait, it delivers only the latest: a slow receiver
// misses states that have passed, but never the last one. It outlives the
// container, so it also delivers the end of one that has been deleted. One
// goroutine at a time may call Poll and Next; Close may be called concurrently
// with them.
type Subscription struct {
	manager *Manager

	mu      sync.Mutex
	order   []string // guids of latest, by their first event that waits
	latest  map[string]executor.Event
	arrived chan struct{} // of capacity 1
	err     error
}

// Subscribe returns a Subscription to the events from now on. To miss nothing,
// subscribe first and then list.
func (m *Manager) Subscribe() executor.Subscription {
	s := &Subscription{manager: m, latest: make(map[string]executor.Event), arrived: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscriptions[s] = struct{}{}
	return s
}

// publish tells all subscribers. It never waits.
func (m *Manager) publish(e executor.Event) {
	for s := range m.subscriptions { // each by itself, so their order means nothing
		if !s.add(e) {
			delete(m.subscriptions, s)
		}
	}
}

// add reports whether the Subscription goes on.
func (s *Subscription) add(e executor.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	guid := e.Container.GUID
	if _, waits := s.latest[guid]; !waits {
		if len(s.order) >= MaxPending {
			s.err, s.order, s.latest = ErrBehind, nil, nil
			s.signal()
			return false
		}
		s.order = append(s.order, guid)
	}
	s.latest[guid] = e
	s.signal()
	return true
}

func (s *Subscription) signal() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Poll returns the next event, or false if none waits. An error says why there
// will never be one: ErrClosed or ErrBehind.
func (s *Subscription) Poll() (executor.Event, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		if s.err != nil {
			s.signal() // for others who wait
		}
		return executor.Event{}, false, s.err
	}
	guid := s.order[0]
	s.order = s.order[1:]
	e := s.latest[guid]
	delete(s.latest, guid)
	if len(s.order) > 0 {
		s.signal()
	}
	return e, true, nil
}

// Next waits for the next event. An error is the context's, ErrClosed or
// ErrBehind.
func (s *Subscription) Next(ctx context.Context) (executor.Event, error) {
	for {
		e, ok, err := s.Poll()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-ctx.Done():
			return executor.Event{}, ctx.Err()
		case <-s.arrived:
		}
	}
}

// Close ends the Subscription. Events that wait are dropped.
func (s *Subscription) Close() {
	s.manager.mu.Lock()
	delete(s.manager.subscriptions, s)
	s.manager.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.order, s.latest = ErrClosed, nil, nil
	}
	s.signal()
}
