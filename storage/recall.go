package storage

import (
	"context"
	"errors"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// A Recaller is a Store that remembers slots. A step then need not read the
// database first, and its commit compares the whole slot: tags alone show that
// records have changed or gone, but not that one was added. [ApplySlot] uses
// both.
//
// The memory may be out of date, because other processes commit too. So rely on
// it only for a commit, which compares it with the records. Recall may be called
// concurrently with all other methods.
type Recaller interface {
	// Recall returns the slot as of the Store's last commit, in the form of Slot;
	// ok is false if the Store does not remember it.
	Recall(processGUID string, index int) (r Recollection, ok bool)
}

// A Recollection is a slot from memory.
type Recollection struct {
	Slot lrp.Slot
	// Deployment may be [Bare], and is nil if there is none.
	Deployment *lrp.Deployment
	// Origin goes into the Batch that is decided on this. Only the Store
	// understands it.
	Origin any
}

// Recall calls s.Recall if s is a [Recaller]. It is for Stores that wrap
// another.
func Recall(s Store, processGUID string, index int) (r Recollection, ok bool) {
	if recaller, is := s.(Recaller); is {
		return recaller.Recall(processGUID, index)
	}
	return Recollection{}, false
}

// errNotRecalled: the decision has to be made on the Store's records.
var errNotRecalled = errors.New("cannot be decided from memory")

// applyRecalled is ApplySlot without a read. Only a committed decision counts,
// because the commit checks the memory. For everything else it returns
// errNotRecalled, or the ErrConflict of the commit.
func applyRecalled(ctx context.Context, s Store, processGUID string, index int, o *Options,
	decide func(lrp.Slot, *lrp.Deployment) (lrp.Decision, error),
) (lrp.Decision, Cursor, error) {
	r, ok := Recall(s, processGUID, index)
	if !ok {
		return lrp.Decision{}, 0, errNotRecalled
	}
	decision, err := decide(r.Slot, r.Deployment)
	if err != nil || len(decision.Writes) == 0 || decision.Deployment != nil {
		return lrp.Decision{}, 0, errNotRecalled
	}
	b := Batch{Origin: r.Origin}
	b.AddLRP(r.Slot, r.Deployment, decision)
	cursor, err := s.Commit(ctx, o.complete(b))
	if err != nil {
		return lrp.Decision{}, 0, err
	}
	return decision, cursor, nil
}

// originAttempts is how often a decision that follows a read is committed with
// an Origin. A wrong memory must not keep a step from ending; after that the
// tags alone keep the slot consistent.
const originAttempts = 3

// originOf returns the Origin for a decision about a slot that was read, if s
// remembers the same slot. The commit then also notices a record that was added
// since, which no tag shows.
func originOf(s Store, slot lrp.Slot, d *lrp.Deployment) any {
	r, ok := Recall(s, slot.ProcessGUID, slot.Index)
	if !ok || (d == nil) != (r.Deployment == nil) || d != nil && d.ModificationTag != r.Deployment.ModificationTag {
		return nil
	}
	same := slices.EqualFunc(slot.Records, r.Slot.Records, func(a, b lrp.ActualLRP) bool {
		return a.Key == b.Key && a.Presence == b.Presence && a.ModificationTag == b.ModificationTag
	})
	if !same {
		return nil
	}
	return r.Origin
}
