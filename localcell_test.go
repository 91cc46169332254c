package diego_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

func TestACellThatLeavesContainersBehindSaysSoWhenItIsStopped(t *testing.T) {
	stuck := errors.New("the mount is busy")
	for name, fault := range map[string]error{"all go": nil, "one stays": stuck} {
		t.Run(name, func(t *testing.T) {
			backend := scripted.New(scripted.Options{Fault: func(op scripted.Op, _ string) error {
				if op == scripted.Delete {
					return fault
				}
				return nil
			}})
			if _, err := backend.Create(t.Context(), executor.ContainerSpec{GUID: "i1"}); err != nil {
				t.Fatal(err)
			}
			m, err := manager.New(t.Context(), manager.Options{Backend: backend, Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := rep.New(rep.Options{CellID: "cell-1", BBS: unheard{}, Executor: m})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err = diego.LocalCell{Rep: r, Manager: m}.Run(ctx)
			if fault == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("it was told to stop, and says %v", err)
			}
			// Whoever stops it takes the context's error for a good end.
			if fault != nil && (!errors.Is(err, stuck) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "left")) {
				t.Errorf("a container stays, and it says %v", err)
			}
		})
	}
}

// unheard is a BBS that nobody asks anything.
type unheard struct{ rep.BBS }
