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
func (l *Leadership) Store(s storage.Store) storage.Store {
	return &fencedStore{Passthrough: storage.Passthrough{Store: s}, leader: l}
}

// A fencedStore commits only for a leader.
type fencedStore struct {
	storage.Passthrough
	leader *Leadership
}

// Leads implements [storage.LeaderOnly]; the error is a *[NotLeaderError].
func (s *fencedStore) Leads() error {
	_, err := s.leader.Fence()
	return err
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
