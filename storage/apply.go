package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// Options of [Apply] and its variants. A nil *Options means the zero value,
// which has the documented defaults.
type Options struct {
	// Fence and RequestID go into every batch that has none of its own.
	Fence     Fence
	RequestID string
	// Attempts is how often to try when another commit is faster (default 20).
	Attempts int
	// MinWait and MaxWait bound the pause before each further attempt (default 1
	// ms and 200 ms). It doubles from one attempt to the next; the actual pause is
	// a random part of it, at least half. Values of 0 or less mean the defaults.
	MinWait time.Duration
	MaxWait time.Duration
	// Random returns a number from [0, 1) (default: that of math/rand/v2).
	Random func() float64
	// Sleep waits for d, or returns ctx's error when ctx ends first (default: in
	// real time).
	Sleep func(ctx context.Context, d time.Duration) error
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Attempts <= 0 {
		out.Attempts = 20
	}
	if out.MinWait <= 0 {
		out.MinWait = time.Millisecond
	}
	if out.MaxWait <= 0 {
		out.MaxWait = 200 * time.Millisecond
	}
	if out.Random == nil {
		out.Random = rand.Float64
	}
	if out.Sleep == nil {
		out.Sleep = sleep
	}
	return out
}

// complete adds the Fence and RequestID of o to a batch without them.
func (o *Options) complete(b Batch) Batch {
	if o == nil {
		return b
	}
	if b.Fence == (Fence{}) {
		b.Fence = o.Fence
	}
	b.RequestID = cmp.Or(b.RequestID, o.RequestID)
	return b
}

// Apply reads, decides and commits. It calls decide, which reads from the Store
// and returns what to write, and commits that. If the commit conflicts, it
// waits a little and starts again, up to o.Attempts times; the last error then
// wraps ErrConflict. Any other error ends it at once. An empty batch is not
// committed.
//
// decide is called once for each attempt and must have no effects.
func Apply(ctx context.Context, s Store, o *Options, decide func(context.Context, Reader) (Batch, error)) (Cursor, error) {
	opts := o.withDefaults()
	wait := opts.MinWait
	for attempt := 1; ; attempt++ {
		b, err := decide(ctx, s)
		if err != nil || b.IsEmpty() {
			return 0, err
		}
		cursor, err := s.Commit(ctx, opts.complete(b))
		if err == nil || !errors.Is(err, ErrConflict) {
			return cursor, err
		}
		if attempt >= opts.Attempts {
			return 0, fmt.Errorf("gave up after %d attempts: %w", attempt, err)
		}
		if err := opts.Sleep(ctx, wait/2+time.Duration(opts.Random()*float64(wait/2))); err != nil {
			return 0, err
		}
		wait = min(2*wait, opts.MaxWait)
	}
}

// ApplySlot applies a decision to one slot: see [Apply]. It returns the
// committed decision; its effects are now the caller's to carry out. The
// deployment that decide gets may be [Bare], and is nil if there is none. If
// decide changes it, decide is called again with the whole deployment.
//
// A [Recaller] is asked for the slot first. A decision from memory counts only
// if its commit succeeds, so decide may be called once more than attempts are
// made.
//
// If there is a RequestID, a decision that writes nothing but has effects is
// committed too: otherwise a repetition would have the effects again.
func ApplySlot(ctx context.Context, s Store, processGUID string, index int, o *Options,
	decide func(lrp.Slot, *lrp.Deployment) (lrp.Decision, error),
) (lrp.Decision, Cursor, error) {
	decision, cursor, err := applyRecalled(ctx, s, processGUID, index, o, decide)
	if !errors.Is(err, errNotRecalled) && !errors.Is(err, ErrConflict) {
		return decision, cursor, err
	}
	attempt := 0
	cursor, err = Apply(ctx, s, o, func(ctx context.Context, r Reader) (b Batch, err error) {
		slot, d, err := r.Slot(ctx, processGUID, index)
		if err != nil {
			return b, err
		}
		decision, err = decide(slot, d)
		if err != nil {
			return b, err
		}
		if decision.Deployment != nil {
			// A write needs the whole deployment. It may have changed since the slot was
			// read; the commit compares both tags.
			if d, err = r.Deployment(ctx, processGUID); errors.Is(err, ErrNotFound) {
				d, err = nil, nil
			}
			if err != nil {
				return b, err
			}
			if decision, err = decide(slot, d); err != nil {
				return b, err
			}
		}
		if err := reached(ctx, r, d, decision.Deployment); err != nil {
			return b, err
		}
		b.AddLRP(slot, d, decision)
		if attempt++; attempt <= originAttempts {
			b.Origin = originOf(s, slot, d)
		}
		if b.IsEmpty() && len(decision.Effects) > 0 && o != nil && o.RequestID != "" {
			b.addChecks(slot)
		}
		return b, nil
	})
	if err != nil {
		return lrp.Decision{}, 0, err
	}
	return decision, cursor, nil
}

// ApplyDeployment applies a consumer's change to one deployment: see [Apply].
// decide gets nil if there is none. ApplyDeployment returns the committed
// change. A change that has not gone through [lrp.Policy.Record] is missing in
// the history of the deployment.
func ApplyDeployment(ctx context.Context, s Store, processGUID string, o *Options,
	decide func(*lrp.Deployment) (lrp.Change, error),
) (lrp.Change, Cursor, error) {
	var change lrp.Change
	cursor, err := Apply(ctx, s, o, func(ctx context.Context, r Reader) (b Batch, err error) {
		d, err := r.Deployment(ctx, processGUID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return b, err
		}
		if change, err = decide(d); err != nil {
			return b, err
		}
		if err := reached(ctx, r, change.Before, change.After); err != nil {
			return b, err
		}
		b.AddChange(change)
		return b, nil
	})
	if err != nil {
		return lrp.Change{}, 0, err
	}
	return change, cursor, nil
}

// reached notes in the history of after how far the definition had come that was
// active before.
func reached(ctx context.Context, r Reader, before, after *lrp.Deployment) error {
	revision := lrp.Ended(before, after)
	if revision == nil {
		return nil
	}
	now, err := r.Now(ctx)
	if err != nil {
		return err
	}
	done, err := RolledOut(ctx, r, before, now)
	revision.Reached(done)
	return err
}

// RolledOut counts the indices of a deployment at which its rollout is done: see
// lrp.RolloutStatus. It leaves out a record that cannot be decoded.
func RolledOut(ctx context.Context, r Reader, d *lrp.Deployment, now time.Time) (done int, err error) {
	rollout := lrp.NewRollout(d, now, lrp.Policy{})
	for slot, err := range SlotsOf(r.ActualLRPs(ctx, ActualLRPFilter{ProcessGUIDs: []string{d.ProcessGUID}})) {
		switch {
		case errors.Is(err, ErrCorrupt):
		case err != nil:
			return 0, err
		default:
			rollout.Visit(slot)
		}
	}
	return rollout.Status().Done, nil
}

// ApplyTask applies a decision to one task: see [Apply]. decide gets nil if
// there is no task with this guid. ApplyTask returns the committed decision;
// its effects are now the caller's to carry out.
func ApplyTask(ctx context.Context, s Store, guid string, o *Options,
	decide func(*task.Task) (task.Decision, error),
) (task.Decision, Cursor, error) {
	var decision task.Decision
	cursor, err := Apply(ctx, s, o, func(ctx context.Context, r Reader) (b Batch, err error) {
		t, err := r.Task(ctx, guid)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return b, err
		}
		if decision, err = decide(t); err != nil {
			return b, err
		}
		b.AddTask(decision)
		return b, nil
	})
	if err != nil {
		return task.Decision{}, 0, err
	}
	return decision, cursor, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
