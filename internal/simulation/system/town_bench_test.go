package system_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A Sync of a cell on which all is well, among many others.
func BenchmarkSync(b *testing.B) {
	for _, size := range []struct{ containers, others int }{{250, 0}, {250, 25_000}} {
		b.Run(fmt.Sprintf("containers=%d/others=%d", size.containers, size.others), func(b *testing.B) {
			r, _ := benchCell(b, size.containers, size.others)
			for b.Loop() {
				if err := r.Sync(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/sync")
		})
	}
}

// From handing 250 instances to a cell to all of them RUNNING in the records,
// with containers that take no time.
func BenchmarkPerform(b *testing.B) {
	for b.Loop() {
		benchCell(b, 250, 0)
	}
	b.ReportMetric(250*float64(b.N)/b.Elapsed().Seconds(), "instances/s")
}

// benchCell is a cell on which so many instances run, while others are recorded
// on other cells.
func benchCell(b *testing.B, containers, others int) (*rep.Rep, *manager.Manager) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	service, err := bbs.New(bbs.Options{Store: store, Effects: nothing{}, Now: clock.Now})
	must(err)
	m, err := manager.New(ctx, manager.Options{
		Backend: scripted.New(scripted.Options{Now: clock.Now}), Now: clock.Now,
		Capacity: executor.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: 1000}})
	must(err)
	r, err := rep.New(rep.Options{CellID: "cell-1", BBS: service, Executor: m, Concurrency: 1, Now: clock.Now})
	must(err)

	web := desired("web", containers)
	must(service.Desire(ctx, web))
	d, err := service.Deployment(ctx, "web")
	must(err)
	work := auction.Work{CellID: "cell-1"}
	for i := range containers {
		item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: "web", DefinitionID: d.ActiveDefinitionID, Index: i, Domain: "apps"}, clock.Now())
		must(err)
		work.Items = append(work.Items, item)
	}
	m.Tick(ctx) // clears its host
	must(r.Sync(ctx))
	rejected, err := r.Perform(ctx, work)
	must(err)
	if len(rejected) > 0 {
		b.Fatal(rejected)
	}
	for range 3 {
		r.Tick(ctx)
		m.Tick(ctx)
	}
	r.Tick(ctx)
	running := 0
	for _, err := range store.ActualLRPs(ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}, CellIDs: []string{"cell-1"}}) {
		must(err)
		running++
	}
	if running != containers {
		b.Fatalf("%d instances are RUNNING, want %d", running, containers)
	}

	if others > 0 {
		must(service.Desire(ctx, desired("other", others)))
	}
	for i := range others {
		must(service.StartLRP(context.Background(), "other", i, lrp.Start{Instance: lrp.InstanceKey{
			InstanceGUID: fmt.Sprintf("other-%d", i), CellID: fmt.Sprintf("cell-%d", 2+i%100)}}))
	}
	clock.Advance(time.Minute)
	return r, m
}
