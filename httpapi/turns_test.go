package httpapi

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
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

// A crowd counts how many change a process at the same time.
type crowd struct {
	bbs.API
	changing, most atomic.Int32
}

func (c *crowd) AbortRollout(ctx context.Context, guid string) error {
	if n := c.changing.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	defer c.changing.Add(-1)
	time.Sleep(time.Millisecond) // so that others come meanwhile
	return nil
}

func TestChangesOfAProcessOverHTTPTakeTurns(t *testing.T) {
	api := &crowd{}
	handler, err := NewHandler(HandlerOptions{BBS: api, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	client, err := NewRemoteBBS(ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if err := client.AbortRollout(t.Context(), "p"); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := api.most.Load(); n != 1 {
		t.Errorf("%d callers change a process at the same time", n)
	}
}
