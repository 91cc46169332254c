package httpapi

import (
	"context"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
)

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
