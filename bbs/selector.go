package bbs

import (
	"context"
	"iter"

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

// wants returns a function that reports for each event whether f wants it. It must
// be called for all events of the log from some position on, in order.
func (b *BBS) wants(ctx context.Context, f storage.EventFilter) (func(*storage.Event) bool, error) {
	match := f.Matcher()
	var subject storage.Subject // once, because match lets it escape
	if f.Selector.IsZero() {
		return func(e *storage.Event) bool {
			subject = e.Subject()
			return match(&subject)
		}, nil
	}
	now, err := b.chosen(ctx, storage.DeploymentFilter{Selector: f.Selector})
	selection := storage.NewSelection(f.Selector, now)
	return func(e *storage.Event) bool {
		subject = e.Subject()
		return selection.Wants(e) && match(&subject)
	}, err
}
