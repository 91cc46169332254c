package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
)

// The deadlines of calls pass in real time. On a busy machine one may cut a commit
// off whose outcome nobody knows then.
func TestACommitIsNotCutOffByADeadlineInRealTime(t *testing.T) {
	for _, sqlite := range []bool{false, true} {
		w, err := NewWorld(History{Seed: 1, SQLite: sqlite})
		if err != nil {
			t.Fatal(err)
		}
		late, end := context.WithCancel(t.Context())
		end()
		s := w.storage[0]
		lease, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "test", Owner: "somebody"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(late, storage.Batch{Fence: storage.Fence{Kind: lease.Kind, Name: lease.Name, Epoch: lease.Epoch}}); err != nil {
			t.Errorf("SQLite %t: %v", sqlite, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
