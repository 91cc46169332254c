package process_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/process"
)

func TestContainersThatAreStoppedTogetherShareTheLooksAtTheHost(t *testing.T) {
	const cells, each = 4, 50
	ctx := t.Context()
	var backends []executor.ContainerBackend
	for range cells {
		b := newBackend(t, t.TempDir())
		backends = append(backends, b)
		for i := range each {
			guid := fmt.Sprint("c", i)
			if _, err := b.Create(ctx, executor.ContainerSpec{GUID: guid}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Start(ctx, guid, executor.ProcessSpec{Path: "sleep", Args: []string{"1000"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var taken atomic.Int64
	t.Cleanup(process.Looks(func(look func() error) error {
		taken.Add(1)
		return look()
	}))
	var stopping sync.WaitGroup
	for _, b := range backends {
		for i := range each {
			stopping.Go(func() {
				guid := fmt.Sprint("c", i)
				if err := b.Signal(ctx, guid, executor.Kill); err != nil {
					t.Error(err)
				}
				if err := b.Delete(ctx, guid); err != nil {
					t.Error(err)
				}
			})
		}
	}
	stopping.Wait()
	// Each of them needs two looks at least: some 400 in all if they shared none.
	if n := taken.Load(); n > cells*each/2 {
		t.Errorf("%d containers took %d looks at the host", cells*each, n)
	}
}

func TestNothingIsSaidToHaveStoppedWhileNobodyCanLook(t *testing.T) {
	ctx := t.Context()
	b := newBackend(t, t.TempDir())
	if _, err := b.Create(ctx, executor.ContainerSpec{GUID: "c"}); err != nil {
		t.Fatal(err)
	}
	blind := errors.New("too many open files")
	see := process.Looks(func(func() error) error { return blind })
	defer see()
	for _, stop := range []struct {
		name string
		by   func() error
	}{
		{"TERM", func() error { return b.Signal(ctx, "c", executor.Terminate) }},
		{"KILL", func() error { return b.Signal(ctx, "c", executor.Kill) }},
		{"Delete", func() error { return b.Delete(ctx, "c") }},
	} {
		if err := stop.by(); !errors.Is(err, blind) || !strings.Contains(err.Error(), `container "c"`) {
			t.Errorf("%s says %v", stop.name, err)
		}
	}
	if guids, err := b.List(ctx); err != nil || len(guids) != 1 {
		t.Errorf("it lists %q, %v, want the container that was not deleted", guids, err)
	}
	see()
	if err := b.Delete(ctx, "c"); err != nil {
		t.Error(err)
	}
}
