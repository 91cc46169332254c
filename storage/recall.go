package storage

import (
	"context"
	"errors"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// A Recaller is a Store that remembers slots. A step then need not begin with a
// question to a database, and its commit compares the whole slot: by their tags
// alone a commit sees that records have changed or gone, but not that one was
// added. [ApplySlot] makes use of both.
//
// What is remembered may be out of date, as other processes commit too. So
// nobody may act on it but by committing, which finds out.
type Recaller interface {
	// Recall is what Slot returned, or would have returned, at the Store's last
	// commit; ok is false if the Store does not remember it.
	Recall(processGUID string, index int) (r Recollection, ok bool)
}

// A Recollection is a slot from memory.
type Recollection struct {
	Slot lrp.Slot
	// Deployment may be [Bare], and is nil if there is none.
	Deployment *lrp.Deployment
	// Origin goes into the Batch that is decided from this. It means something
	// to the Store only.
	Origin any
}

// Recall asks s if s is a [Recaller]. It is for Stores that wrap another.
func Recall(s Store, processGUID string, index int) (r Recollection, ok bool) {
	if recaller, is := s.(Recaller); is {
		return recaller.Recall(processGUID, index)
	}
	return Recollection{}, false
}

// errNotRecalled: the decision has to be made from what the Store holds.
var errNotRecalled = errors.New("cannot be decided from memory")

// applyRecalled is ApplySlot without a read. Only a decision that is committed
// counts, as the commit checks what was remembered: for everything else it
// returns errNotRecalled, or the ErrConflict of the commit.
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

// originAttempts is how often a decision that was made after a read is committed
// with an Origin. Whatever a memory goes by, it must not keep a step from coming
// to its end; the tags see to it that the slot stays a proper one.
const originAttempts = 3

// originOf is the Origin for a decision about a slot that was read, if s
// remembers the slot as the same. The commit then sees also a record that was
// added since, which has no tag that was read.
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
