package bbs

import (
	"context"
	"errors"
	"iter"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// chosen lists the guids of the processes that f wants, in order. A deployment
// that cannot be decoded is not among them. It costs one pass over the
// deployments, without their settings and definitions.
func (b *BBS) chosen(ctx context.Context, f storage.DeploymentFilter) (guids []string, err error) {
	f.Bare = true
	for d, err := range b.o.Store.Deployments(ctx, f) {
		switch {
		case isCorrupt(err):
		case err != nil:
			return nil, err
		default:
			guids = append(guids, d.ProcessGUID)
		}
	}
	return guids, nil
}

// selected lists with a filter in which the guids of processes stand for the
// selector.
func selected[T any](ctx context.Context, b *BBS, f storage.ActualLRPFilter, list func(context.Context, storage.ActualLRPFilter) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if f.Selector.IsZero() {
		return list(ctx, f)
	}
	return func(yield func(T, error) bool) {
		guids, err := b.chosen(ctx, storage.DeploymentFilter{ProcessGUIDs: f.ProcessGUIDs, Selector: f.Selector})
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		if len(guids) > 0 {
			of := f
			of.ProcessGUIDs = guids
			list(ctx, of)(yield)
		}
	}
}

// lookBack is how many events before its position a subscription with a selector
// reads, to know which processes have ended there. A subscriber that was cut off
// misses the end of an instance only if more events lie between the end of the
// process and the subscriber's position.
const lookBack = 1000

// wants returns a function that reports for each event whether f wants it. It must
// be called for all events of the log after a position, in order. With a selector it
// costs a pass over the deployments, and one over the events after the position.
func (b *BBS) wants(ctx context.Context, after storage.Cursor, f storage.EventFilter, share *share) (func(*storage.Event) bool, error) {
	match := f.Matcher()
	var subject storage.Subject // once, because match lets it escape
	if f.Selector.IsZero() {
		return func(e *storage.Event) bool {
			subject = e.Subject()
			return match(&subject)
		}, nil
	}
	var selection *storage.Selection
	err := share.read(ctx, func() (err error) {
		selection, err = b.selection(ctx, after, f.Selector)
		return err
	})
	return func(e *storage.Event) bool {
		subject = e.Subject()
		return selection.Wants(e) && match(&subject)
	}, err
}

func (b *BBS) selection(ctx context.Context, after storage.Cursor, selector executor.Selector) (*storage.Selection, error) {
	now, err := b.chosen(ctx, storage.DeploymentFilter{Selector: selector})
	if err != nil {
		return nil, err
	}
	extent, err := b.o.Store.Log(ctx)
	if err != nil {
		return nil, err
	}
	changes := storage.EventFilter{Kinds: []string{lrp.DeploymentCreated.String(), lrp.DeploymentChanged.String(), lrp.DeploymentRemoved.String()}}
	for _, from := range []storage.Cursor{max(after-lookBack, extent.Oldest-1), after} {
		selection, err := storage.SelectionAfter(selector, now, after, b.o.Store.Events(ctx, from, changes))
		if !errors.Is(err, storage.ErrGone) { // such as a position in a gap
			return selection, err
		}
	}
	return storage.NewSelection(selector, now), nil // the position is not in the log, which the subscriber is about to read
}
