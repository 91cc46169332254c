package bbs

import (
	"context"
	"errors"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/storage"
)

// A measuredStore counts commits and how long they take.
type measuredStore struct {
	storage.Store
	metrics auction.Metrics
}

// Commit implements [storage.Store].
func (s measuredStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	began := time.Now()
	cursor, err := s.Store.Commit(ctx, b)
	s.metrics.Observe("commit_seconds", time.Since(began).Seconds())
	if errors.Is(err, storage.ErrConflict) {
		s.metrics.Count("commit_conflicts_total", 1)
	}
	return cursor, err
}

// Recall implements [storage.Recaller].
func (s measuredStore) Recall(processGUID string, index int) (storage.Recollection, bool) {
	return storage.Recall(s.Store, processGUID, index)
}

// Restored implements [storage.Restorer].
func (s measuredStore) Restored(ctx context.Context) error { return storage.Restored(ctx, s.Store) }

// Wait implements [storage.Waiter].
func (s measuredStore) Wait(ctx context.Context, after storage.Cursor) error {
	return storage.Wait(ctx, s.Store, after, 0)
}
