package storage

import "context"

// A Passthrough is a Store with the optional powers of the Store in it: those of
// a [Recaller], a [Restorer] and a [Waiter]. Embed it to wrap a Store and replace
// some of its methods; a struct that embeds a plain Store loses these powers. Its
// methods may be called at the same time, like those of a Store.
type Passthrough struct{ Store }

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
	Recaller
	Restorer
	Waiter
} = Passthrough{}
