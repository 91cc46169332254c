package sqlstore

import (
	"context"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// maxGroup is the largest number of commits in one transaction, and
// maxGroupBytes about the largest amount of their data.
const (
	maxGroup      = 256
	maxGroupBytes = 4 << 20
)

// Commit implements storage.Store.
//
// Commits that come at the same time share a transaction. One that fails has no
// effect on the others. If ctx ends during the transaction, the batch may still
// be committed.
func (s *Store) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	it, err := s.newItem(b)
	if err != nil {
		return 0, err
	}
	if err := s.commits.Do(ctx, it); err != nil {
		return 0, err
	}
	return it.cursor, it.err
}

// commitGroup commits a batch of the group, in as many transactions as
// necessary.
func (s *Store) commitGroup(items []*item) {
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && (n == 0 || size+items[n].size <= maxGroupBytes) {
			size += items[n].size
			n++
		}
		deferred := s.commitTogether(items[:n:n])
		s.keepWALShort(size)
		items = append(deferred, items[n:]...)
	}
}

// commitTogether commits items in one transaction and finishes them. It returns
// those that have to wait for the next transaction, because they concern
// records that this one has written.
func (s *Store) commitTogether(items []*item) []*item {
	a := &attempt{s: s, items: items}
	err := s.retry(background, "committing", func() error { return s.onConn(s.write, a.onConnection) })
	if err != nil || a.committed {
		s.memory.Forget()
	} else {
		a.remember()
	}
	if class, _ := s.d.ClassOf(err); err != nil && class != dialect.Transient && class != dialect.Lost && len(items) > 1 && a.doubt == nil {
		// One of them may be at fault.
		for i := range items {
			s.commitTogether(items[i : i+1])
		}
		return nil
	}
	if err != nil {
		for _, it := range items {
			it.cursor, it.err = 0, err
			it.Finish()
		}
		return nil
	}
	s.notify(a.newest)
	s.commits.Telling(len(items) - len(a.deferred))
	var deferred []*item
	for _, it := range items {
		if a.deferred[it] {
			deferred = append(deferred, it)
		} else {
			it.Finish()
		}
	}
	return deferred
}
