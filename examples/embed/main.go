// Command embed has all of Diego in one program: a control plane over SQLite
// and a cell of ordinary processes. It desires an app, follows its events,
// scales it, rolls out a new definition, runs a task, and empties the cell.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

func main() {
	dir, err := os.MkdirTemp("", "diego-embed-")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := sqlstore.Open(ctx, "sqlite:"+filepath.Join(dir, "diego.db"), nil)
	check(err)
	defer store.Close()

	// The control plane and the cell call each other, so the one that is made
	// first gets a function that returns the other.
	var cell *localcell.Cell
	plane, err := diego.New(diego.Options{
		Store: store, Owner: "embed", // another name for each process that shares the store
		Dial: func(bbs.CellPresence) (auction.CellClient, error) { return cell, nil },
		// The consumer below is on this host, which callbacks do not reach otherwise.
		CallbackAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	check(err)
	cell, err = newCell(ctx, "cell-1", dir, store, plane.BBS)
	check(err)

	var running sync.WaitGroup
	running.Go(func() { ended(plane.Run(ctx)) })
	running.Go(func() { ended(cell.Run(ctx)) })
	check(plane.WaitReady(ctx))

	check(use(ctx, plane.BBS))
	check(drain(ctx, cell))
	stop()
	running.Wait()
}

// newCell makes a cell: a backend that makes containers, a manager that keeps
// them, and a rep that represents them to the BBS.
func newCell(ctx context.Context, id, dir string, store storage.Store, api rep.BBS) (*localcell.Cell, error) {
	backend, err := process.New(process.Options{Dir: filepath.Join(dir, id, "containers")})
	if err != nil {
		return nil, err
	}
	containers, err := manager.New(ctx, manager.Options{
		Backend: backend, Dir: filepath.Join(dir, id, "state"),
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 1024},
	})
	if err != nil {
		return nil, err
	}
	announcer, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
		Store: store, Presence: bbs.CellPresence{CellID: id},
		Owner: fmt.Sprintf("%s since %d", id, time.Now().UnixNano()), // another one for each run
	})
	if err != nil {
		return nil, err
	}
	return localcell.New(containers, rep.Options{
		CellID: id, BBS: api, Announcer: announcer,
		RootFSProviders: []string{"host"}, // the scheme of the RootFS that definitions name
		// From the only cell nothing can move: what runs is stopped after this.
		EvacuationInterval: 100 * time.Millisecond, EvacuationTimeout: time.Second,
	})
}

// definition is what an instance runs.
func definition(greeting string) lrp.Definition {
	return lrp.Definition{
		Resources: executor.Resources{MemoryMB: 32, DiskMB: 32},
		RunInfo:   shell("echo " + greeting + "; exec sleep 1000"),
	}
}

func shell(script string) executor.RunInfo {
	return executor.RunInfo{
		RootFS: "host:",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", script}, User: "nobody"}},
	}
}

// use does what a consumer does.
func use(ctx context.Context, api bbs.API) error {
	c, err := newConsumer(ctx, api)
	if err != nil {
		return err
	}
	defer c.close()
	if err := api.Desire(ctx, lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Definition: definition("one"),
		Settings: lrp.Settings{Instances: 3, Policies: lrp.Policies{
			// A version that lives for a moment replaces nothing.
			Rollout: &lrp.RolloutPolicy{MinHealthy: 10 * time.Second, MaxInFlight: 2},
		}},
	}); err != nil {
		return err
	}
	if err := c.untilRunning(3); err != nil {
		return err
	}
	for _, n := range []int{5, 2} {
		if err := api.UpdateDeployment(ctx, "web", lrp.Update{Instances: &n}); err != nil {
			return err
		}
		if err := c.untilRunning(n); err != nil {
			return err
		}
	}

	id, second := "v2", definition("two")
	if err := api.UpdateDeployment(ctx, "web", lrp.Update{DefinitionID: &id, Definition: &second}); err != nil {
		return err
	}
	if err := c.until(func() (bool, error) {
		status, err := api.RolloutStatus(ctx, "web")
		return status.Complete(), err
	}); err != nil {
		return err
	}
	fmt.Println("definition v2 runs everywhere")

	if err := api.DesireTask(ctx, task.Desire{GUID: "sum", Domain: "apps", Definition: task.Definition{
		RunInfo: shell("echo $((6 * 7)) > result"), ResultFile: "result", CompletionCallbackURL: c.callbackURL,
	}}); err != nil {
		return err
	}
	select {
	case r := <-c.completed:
		fmt.Printf("task %s: failed: %v, result: %q\n", r.TaskGUID, r.Failed, r.Result)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// drain empties the cell, which then leaves by itself.
func drain(ctx context.Context, cell rep.API) error {
	if err := cell.Evacuate(ctx); err != nil {
		return err
	}
	for {
		status, err := cell.Evacuation(ctx)
		if err != nil || status.Done {
			fmt.Println("drained:", status.Done)
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ended is for what runs until its context ends.
func ended(err error) {
	if !errors.Is(err, context.Canceled) {
		check(err)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
