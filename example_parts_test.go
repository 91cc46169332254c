package diego_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage/memstore"
)

// smallSystem is a control plane that leads, in virtual time, with two model
// cells of 64 GB.
func smallSystem(ctx context.Context) *diego.ControlPlane {
	clock := memcell.NewClock()
	store, cells := memstore.New(&memstore.Options{Now: clock.Now}), memcell.NewFleet(2, clock)
	plane, err := diego.New(diego.Options{Store: store, Dial: cells.Dial, Owner: "me", Now: clock.Now, Concurrency: 1})
	if err == nil {
		cells.ReportTo(plane.BBS)
		err = errors.Join(cells.Announce(ctx, store), plane.Tick(ctx))
	}
	if err != nil {
		log.Fatal(err)
	}
	return plane
}

// Why would it not be placed? A dry run takes the way of a real auction and
// sends nothing.
func ExampleControlPlane_dryRun() {
	ctx := context.Background()
	plane := smallSystem(ctx)
	d := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", ActiveDefinitionID: "v1",
		Definitions: map[string]lrp.Definition{"v1": {
			Resources: executor.Resources{MemoryMB: 100_000}, RunInfo: executor.RunInfo{RootFS: "preloaded:linux"},
		}},
	}
	item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: "web", DefinitionID: "v1", Domain: "apps"}, time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := plane.Auctioneer.Plan(ctx, item)
	for _, refusal := range plan.Refusals {
		fmt.Println(refusal)
	}
	fmt.Println(err)
	// Output:
	// lrp web.0 (definition v1): insufficient resources: of 2 cells 2 short of memory; the nearest, cell-1, lacks 34464 MiB of memory
	// <nil>
}
