package storage

import "context"

// A LeaderOnly is a Store that takes commits of the leading process only. Leads
// fails if this process does not lead. It may be called concurrently with all
// other methods.
type LeaderOnly interface {
	Leads() error
}

// Leads calls s.Leads if s is a [LeaderOnly], and otherwise returns nil: any
// process may commit.
func Leads(s Store) error {
	if l, is := s.(LeaderOnly); is {
		return l.Leads()
	}
	return nil
}

// A Passthrough is a Store with the optional powers of the Store in it: those of
// a [LeaderOnly], a [Recaller], a [Restorer] and a [Waiter]. Embed it to wrap a Store
// and replace some of its methods; a struct that embeds a plain Store loses these
// powers. Its methods may be called at the same time, like those of a Store.
type Passthrough struct{ Store }

// Leads implements [LeaderOnly].
func (p Passthrough) Leads() error { return Leads(p.Store) }

// Recall implements [Recaller].
func (p Passthrough) Recall(processGUID string, index int) (Recollection, bool) {
	return Recall(p.Store, processGUID, index)
}

// Restored implements [Restorer].
func (p Passthrough) Restored(ctx context.Context) error { return Restored(ctx, p.Store) }

// Wait implements [Waiter].
func (p Passthrough) Wait(ctx context.Context, after Cursor) error {
	return Wait(ctx, p.Store, after, 0)
}

var _ interface {
	LeaderOnly
	Recaller
	Restorer
	Waiter
} = Passthrough{}
