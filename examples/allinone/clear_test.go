//go:build unix

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/daemon"
)

// together deletes containers once some of them are being deleted at a time.
type together struct {
	executor.ContainerBackend
	missing atomic.Int64
	met     chan struct{}
}

func (b *together) Delete(ctx context.Context, guid string) error {
	if b.missing.Add(-1) == 0 {
		close(b.met)
	}
	select {
	case <-b.met:
		return b.ContainerBackend.Delete(ctx, guid)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestWhatAKilledRunHasLeftIsRemovedTogether(t *testing.T) {
	const containers = 8
	s := new(settings)
	if err := daemon.Load(s, []string{"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--cells", "1", "--backend", "process"}); err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), s, nil)
	defer f.close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := f.cells[0]
	for i := range containers {
		if _, err := c.backend.Create(t.Context(), executor.ContainerSpec{GUID: fmt.Sprint("left-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	left := &together{ContainerBackend: c.backend.ContainerBackend, met: make(chan struct{})}
	left.missing.Store(containers)
	if c.Manager, err = manager.New(t.Context(), manager.Options{Backend: left, Capacity: manager.Capacity{MemoryMB: 1}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.tick(ctx)
	if guids, err := c.backend.List(t.Context()); err != nil || len(guids) > 0 {
		t.Errorf("after the start there are %q, %v", guids, err)
	}
}
