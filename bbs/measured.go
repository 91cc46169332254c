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
	storage.Passthrough
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
