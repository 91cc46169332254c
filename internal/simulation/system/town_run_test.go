package system_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A control plane and three cells run with all their goroutines, in real time.
// One cell is evacuated and ends by itself; the others end with their context,
// and no cell is present any more.
func TestRealCellsRunTogetherAndEndInOrder(t *testing.T) {
	store := memstore.New(nil)
	reps := map[string]*rep.Rep{}
	plane, err := diego.New(diego.Options{
		Store: store, Owner: "plane", Guard: converge.Guard{Grace: -1},
		Dial: func(p bbs.CellPresence) (auction.CellClient, error) { return reps[p.CellID], nil },
		Post: func(context.Context, string, task.CallbackResponse) int { return 200 },
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	managing, end := context.WithCancel(t.Context())
	defer end()
	var managers, others sync.WaitGroup
	ended := map[string]chan error{}
	var all []*manager.Manager
	for i := range 3 {
		id := fmt.Sprintf("cell-%d", i+1)
		m, err := manager.New(ctx, manager.Options{
			Backend: scripted.New(scripted.Options{Now: time.Now}), Capacity: executor.Capacity{MemoryMB: 1000, DiskMB: 1000, Containers: 100}})
		must(err)
		a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: store, Presence: bbs.CellPresence{CellID: id}, Owner: id})
		must(err)
		r, err := rep.New(rep.Options{
			CellID: id, BBS: plane.BBS, Executor: m, Announcer: a, RootFSProviders: []string{"preloaded:linux"},
			SyncInterval: 100 * time.Millisecond, EvacuationInterval: 100 * time.Millisecond,
			SelfTest: &rep.SelfTest{RunInfo: doing("wait 1ms").RunInfo, Interval: 20 * time.Millisecond},
		})
		must(err)
		reps[id], all = r, append(all, m)
		ended[id] = make(chan error, 1)
		managers.Go(func() { m.Run(managing) })
		must(a.Tick(ctx)) // it is there before there is work
	}
	for id, r := range reps {
		others.Go(func() { ended[id] <- r.Run(ctx) })
	}
	must(plane.Leadership.Tick(ctx)) // it leads before it is asked
	others.Go(func() { _ = plane.Run(ctx) })

	// until waits for events until something holds of the records.
	until := func(holds func() bool) {
		t.Helper()
		events, err := plane.BBS.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
		must(err)
		if holds() {
			return
		}
		for _, err := range events {
			must(err)
			if holds() {
				return
			}
		}
	}
	running := func(n int, without string) func() bool {
		return func() bool {
			count := 0
			for r, err := range store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
				must(err)
				if r.CellID == without {
					return false
				}
				if r.State == lrp.Running && r.Presence == lrp.Ordinary {
					count++
				}
			}
			return count == n
		}
	}
	web := desired("web", 30)
	must(plane.BBS.Desire(ctx, web))
	for i := range 10 {
		d := desiredTask(fmt.Sprintf("job-%d", i), "http://consumer.example/")
		d.Definition.RunInfo = doing("wait 5ms").RunInfo
		must(plane.BBS.DesireTask(ctx, d))
	}
	until(running(30, "none"))
	must(reps["cell-1"].Evacuate(ctx))
	if err := <-ended["cell-1"]; err != nil {
		t.Errorf("an evacuated cell ends with %v", err)
	}
	until(running(30, "cell-1"))
	until(func() bool { // every task ran, and its callback has removed it
		for range store.Tasks(ctx, storage.TaskFilter{}) {
			return false
		}
		return true
	})
	stop()
	others.Wait()
	for _, id := range []string{"cell-2", "cell-3"} {
		if err := <-ended[id]; !errors.Is(err, context.Canceled) {
			t.Errorf("a cell that is switched off ends with %v", err)
		}
	}
	for l, err := range store.Leases(t.Context(), storage.CellLease) {
		t.Errorf("still present: %+v, %v", l, err)
	}
	end()
	managers.Wait()
	for _, m := range all {
		must(m.Clear(t.Context()))
	}
}
