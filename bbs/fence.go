package bbs

import (
	"context"
	"errors"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// Fence proves the leadership for a commit. The error is a *[NotLeaderError].
func (l *Leadership) Fence() (storage.Fence, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.Epoch == 0 || !l.o.Now().Before(l.until) {
		return storage.Fence{}, l.notLeader()
	}
	return l.lease.Fence(), nil
}

// Store returns s with every commit fenced by this leadership: without the
// leadership commits fail with a *[NotLeaderError], and a leader that was
// replaced commits nothing. It also notes whether commits succeed.
func (l *Leadership) Store(s storage.Store) storage.Store { return &fencedStore{Store: s, leader: l} }

// A fencedStore commits only for a leader.
type fencedStore struct {
	storage.Store
	leader *Leadership
}

// Commit implements [storage.Store].
func (s *fencedStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	fence, err := s.leader.Fence()
	if err != nil {
		return 0, err
	}
	b.Fence = fence
	cursor, err := s.Store.Commit(ctx, b)
	s.leader.observe(fence, err)
	return cursor, err
}

// Recall implements [storage.Recaller].
func (s *fencedStore) Recall(processGUID string, index int) (storage.Recollection, bool) {
	return storage.Recall(s.Store, processGUID, index)
}

// Restored implements [storage.Restorer]. It changes no record, so it needs no
// leader.
func (s *fencedStore) Restored(ctx context.Context) error { return storage.Restored(ctx, s.Store) }

// Wait implements [storage.Waiter].
func (s *fencedStore) Wait(ctx context.Context, after storage.Cursor) error {
	return storage.Wait(ctx, s.Store, after, 0)
}

// observe learns from the result of a commit. Errors that concern only the
// batch show that the store works.
func (l *Leadership) observe(fence storage.Fence, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lease.Epoch != fence.Epoch:
	case errors.Is(err, storage.ErrFenced):
		l.suspectNamesake()
		l.lose()
	case err == nil, errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrDuplicate), errors.Is(err, executor.ErrInvalid):
		l.firstFailed, l.lastFailed, l.commitFailed = time.Time{}, time.Time{}, nil
	case errors.Is(err, context.Canceled): // the caller gave up
	default:
		l.lastFailed, l.commitFailed = l.o.Now(), err
		if l.firstFailed.IsZero() {
			l.firstFailed = l.lastFailed
		}
	}
}
