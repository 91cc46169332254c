package diego_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage/memstore"
)

// A whole system in one goroutine and in virtual time: a store in memory, a
// control plane and three cells that are models. An instance crashes and comes
// back.
func Example() {
	ctx, clock := context.Background(), memcell.NewClock()
	store, cells := memstore.New(&memstore.Options{Now: clock.Now}), memcell.NewFleet(3, clock)
	plane, err := diego.New(diego.Options{Store: store, Dial: cells.Dial, Owner: "me", Now: clock.Now, Concurrency: 1})
	if err != nil {
		log.Fatal(err)
	}
	cells.ReportTo(plane.BBS)
	step := func() {
		if err := errors.Join(cells.Announce(ctx, store), plane.Tick(ctx)); err != nil {
			log.Fatal(err)
		}
		cells.Step(ctx)
	}
	step() // from now on this process leads
	err = plane.BBS.Desire(ctx, lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definition: lrp.Definition{RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
		}},
	})
	step()
	cells[0].Crash("web", 0, "exit status 137: out of memory")
	cells.Step(ctx)
	step()
	timeline, err2 := plane.BBS.Timeline(ctx, "web", 0)
	for _, entry := range timeline {
		fmt.Println(entry.Text)
	}
	fmt.Println(err, err2)
	// Output:
	// desired: 1 instance of definition web
	// waits for a cell
	// placed on cell-1
	// runs on cell-1
	// definition web proved healthy
	// crashed: exit status 137: out of memory (crash 1, restarts at once)
	// ended: it crashed
	// waits for a cell after crash 1
	// placed on cell-1
	// runs on cell-1
	// <nil> <nil>
}
