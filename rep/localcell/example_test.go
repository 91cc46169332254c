package localcell_test

import (
	"context"
	"fmt"
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
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage/memstore"
)

// A cell is a backend, a manager over it and a rep over that. Here everything
// is driven by hand, in virtual time; a daemon calls Run of manager, rep and
// control plane instead, and has a real backend.
func Example() {
	ctx := context.Background()
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	var cell *rep.Rep
	plane, err := diego.New(diego.Options{
		Store: store, Owner: "me", Now: clock.Now, Concurrency: 1, Guard: converge.Guard{Grace: -1},
		Dial: func(bbs.CellPresence) (auction.CellClient, error) { return cell, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	containers, err := manager.New(ctx, manager.Options{
		Backend: scripted.New(scripted.Options{Now: clock.Now}), Now: clock.Now,
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	presence, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
		Store: store, Presence: bbs.CellPresence{CellID: "cell-1"}, Owner: "run 1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cell, err = rep.New(rep.Options{
		CellID: "cell-1", BBS: plane.BBS, Executor: containers, Announcer: presence,
		RootFSProviders: []string{"preloaded:linux"}, Now: clock.Now,
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	pass := func(seconds int) {
		for range seconds {
			clock.Advance(time.Second)
			containers.Tick(ctx)
			cell.Tick(ctx)
			if err := plane.Tick(ctx); err != nil {
				fmt.Println(err)
			}
		}
	}
	tell := func() {
		state, err := cell.State(ctx)
		fmt.Println(len(state.LRPs), "instances", state.Remaining.Containers, "places left", err)
	}
	pass(2)
	if err := plane.BBS.Desire(ctx, lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 3},
		Definition: lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}},
	}); err != nil {
		fmt.Println(err)
	}
	pass(4)
	tell()
	if err := plane.BBS.DeleteDeployment(ctx, "web"); err != nil {
		fmt.Println(err)
	}
	pass(4)
	tell()
	fmt.Println(cell.Evacuate(ctx))
	pass(4)
	fmt.Println("evacuated:", cell.Evacuated())
	// Output:
	// 3 instances 247 places left <nil>
	// 0 instances 250 places left <nil>
	// <nil>
	// evacuated: true
}
