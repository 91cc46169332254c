//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/rep/localcell"
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

// A clinging backend does not delete what is stuck, and tries it until its context ends.
type clinging struct{ executor.ContainerBackend }

func (b clinging) Delete(ctx context.Context, guid string) error {
	if !strings.HasPrefix(guid, "stuck") {
		return b.ContainerBackend.Delete(ctx, guid)
	}
	<-ctx.Done()
	return ctx.Err()
}

// List lists what is stuck first.
func (b clinging) List(ctx context.Context) ([]string, error) {
	guids, err := b.ContainerBackend.List(ctx)
	slices.Sort(guids)
	slices.Reverse(guids)
	return guids, err
}

func TestACellWaitsAMinuteForWhatDoesNotDie(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		host := clinging{scripted.New(scripted.Options{Now: time.Now})}
		for i := range manager.DefaultDeleteWorkers {
			for _, name := range []string{"other", "stuck"} {
				if _, err := host.Create(t.Context(), executor.ContainerSpec{GUID: fmt.Sprint(name, i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, err := manager.New(t.Context(), manager.Options{Backend: host, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		c := cell{backend: &daemon.Backend{ContainerBackend: host}, Cell: localcell.Cell{Manager: m}, logger: slog.New(slog.NewTextHandler(&said, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		// A minute after the others are gone, and two pauses: until then those that are
		// stuck are tried.
		if c.clear(ctx); time.Since(began) != 25*time.Second+time.Minute+2*clearPause {
			t.Errorf("it waits %v", time.Since(began))
		}
		if guids, err := host.List(ctx); err != nil || len(guids) != manager.DefaultDeleteWorkers {
			t.Errorf("%d are left, %v", len(guids), err)
		}
		select {
		case <-m.Cleared():
		default:
			t.Error("it does not go on")
		}
		if !strings.Contains(said.String(), "could be removed") {
			t.Errorf("the log says %q", &said)
		}
	})
}

// A refusing backend counts how often it refuses to delete a container, which takes no time.
type refusing struct {
	executor.ContainerBackend
	refused *atomic.Int64
}

func (b refusing) Delete(context.Context, string) error {
	b.refused.Add(1)
	return errors.New("refused")
}

func TestWhatIsRefusedAtOnceIsNotTriedWithoutAPause(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		host := refusing{scripted.New(scripted.Options{Now: time.Now}), new(atomic.Int64)}
		if _, err := host.Create(t.Context(), executor.ContainerSpec{GUID: "left"}); err != nil {
			t.Fatal(err)
		}
		m, err := manager.New(t.Context(), manager.Options{Backend: host, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
		if err != nil {
			t.Fatal(err)
		}
		c := cell{backend: &daemon.Backend{ContainerBackend: host}, Cell: localcell.Cell{Manager: m}, logger: slog.New(slog.DiscardHandler)}
		began := time.Now()
		c.clear(t.Context())
		if n := host.refused.Load(); n < 2 || n > int64(time.Minute/clearPause) || time.Since(began) > time.Minute {
			t.Errorf("it was tried %d times in %v", n, time.Since(began))
		}
	})
}
