//go:build unix

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// Many callers at once, real processes, and in the end nothing is left.
func TestManyCallersAtOnceLeaveNothingBehind(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := newHost(t, func(o *manager.Options) { o.Grace = 50 * time.Millisecond; o.CreateWorkers = 3 })
	works := []manager.Work{
		work(sh("exit 3")), work(sh("sleep 0.05")), work(sh("trap '' TERM; while :; do sleep 0.1; done")),
		with(work(sh("sleep 1000 & exit 0")), func(w *manager.Work) { w.Monitor = ptr(sh("exit 0")) }),
		with(work(codependent(sh("sleep 1000"), sh("sleep 0.02"))), func(w *manager.Work) { w.Setup = ptr(sh("sleep 0.02")); w.Ports = []uint16{8080} }),
		work(executor.Action{Run: &executor.RunAction{Path: "/no/such/command", User: "app"}}),
	}
	var callers sync.WaitGroup
	for caller := range uint64(6) {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(seed, caller))
			for range 40 {
				guid := fmt.Sprint("c", random.IntN(5))
				switch random.IntN(6) {
				case 0, 1:
					h.Reserve(manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 10, DiskMB: 10}})
				case 2, 3:
					err := h.Initialize(guid, works[random.IntN(len(works))])
					if err != nil && !errors.Is(err, manager.ErrNotFound) && !errors.Is(err, executor.ErrTransition) {
						t.Error(err)
					}
				case 4:
					h.Stop(guid)
				default:
					h.Delete(guid)
				}
				for _, c := range h.List() {
					var v executor.Validator
					if c.Validate(&v); v.Err() != nil {
						t.Errorf("%s: %v", c.GUID, v.Err())
					}
				}
				time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond) // between two calls
			}
		})
	}
	callers.Wait()
	for _, c := range h.List() {
		h.remove(c.GUID)
	}
	if guids, err := h.backend.List(context.Background()); err != nil || len(guids) != 0 {
		t.Errorf("left behind: %q, %v", guids, err)
	}
	if !h.Remaining().Equal(h.Total()) {
		t.Errorf("%+v remains of %+v", h.Remaining(), h.Total())
	}
}
