package bbs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestOneCallerAtATimeHasAKey(t *testing.T) {
	var all turns
	var has, most atomic.Int32
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			leave, err := all.take(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			if has.Add(1) > 1 {
				most.Store(2)
			}
			has.Add(-1)
			leave()
		})
	}
	callers.Wait()
	if most.Load() > 0 {
		t.Error("several callers have the key")
	}

	leave, err := all.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := all.take(t.Context(), "b") // which waits for nobody
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.take(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller whose context has ended gets %v", err)
	}
	leave()
	if len(all.taken) != 0 {
		t.Errorf("%d keys are remembered that nobody has", len(all.taken))
	}
}

// A crowd counts how many read a whole deployment at the same time.
type crowd struct {
	storage.Store
	reading, most atomic.Int32
}

func (c *crowd) Deployment(ctx context.Context, guid string) (*lrp.Deployment, error) {
	if n := c.reading.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	defer c.reading.Add(-1)
	time.Sleep(time.Millisecond) // so that others come meanwhile
	return c.Store.Deployment(ctx, guid)
}

func TestChangesOfAProcessReadItOneAfterTheOther(t *testing.T) {
	store := &crowd{Store: memstore.New(nil)}
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if err := b.DeleteDeployment(t.Context(), "p"); !errors.Is(err, storage.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := store.most.Load(); n != 1 {
		t.Errorf("%d changes of a process read it at the same time", n)
	}
}
