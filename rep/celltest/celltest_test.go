package celltest_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/celltest"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/rep/memcell"
)

func TestAModelCellKeepsTheContract(t *testing.T) {
	celltest.Run(t, func(_ testing.TB, o celltest.Options) celltest.Harness {
		return openModel(o, o.BBS, nil)
	})
}

func TestARepKeepsTheContract(t *testing.T) {
	celltest.Run(t, func(t testing.TB, o celltest.Options) celltest.Harness { return openRep(t, o, o.BBS, 1) })
}

func TestARepKeepsTheContractOverHTTP(t *testing.T) {
	celltest.Run(t, func(t testing.TB, o celltest.Options) celltest.Harness {
		bbs, err := httpapi.NewRemoteBBS(serve(t, httpapi.HandlerOptions{BBS: o.BBS}))
		if err != nil {
			t.Fatal(err)
		}
		h := openRep(t, o, bbs, rep.DefaultConcurrency)
		there := serve(t, httpapi.HandlerOptions{Cell: h.Cell.(*localcell.Cell)})
		there.CellID = o.CellID
		cell, err := httpapi.NewRemoteCell(there)
		if err != nil {
			t.Fatal(err)
		}
		h.Cell, h.Evacuate = cell, cell.Evacuate
		return h
	})
}

// serve serves something on a loopback address, and says how to reach it.
func serve(t testing.TB, o httpapi.HandlerOptions) httpapi.ClientOptions {
	t.Helper()
	o.AllowPlain = true
	handler, err := httpapi.NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true, Attempts: 1}
}

// openModel makes a model cell that reports to bbs. pass, if it is not nil, runs
// after each second.
func openModel(o celltest.Options, bbs rep.BBS, pass func(*memcell.Cell)) celltest.Harness {
	clock := memcell.NewClock()
	cell := memcell.NewFleet(1, clock)[0]
	cell.BBS, cell.Presence.CellID, cell.StartsIn, cell.TaskTakes = bbs, o.CellID, o.StartsIn, 24*time.Hour
	seconds := 0
	return celltest.Harness{
		Cell: cell, Now: clock.Now, Begun: cell.Begun,
		RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}},
		End: func(_ testing.TB, guid string, failed bool) {
			result := executor.Succeeded()
			if failed {
				result = executor.Failed("exit status 1")
			}
			cell.End(guid, result)
		},
		Evacuate: func(ctx context.Context) error {
			err := cell.Evacuate(ctx)
			cell.Poll(ctx)
			return err
		},
		Pass: func(d time.Duration) {
			for range d / time.Second {
				clock.Advance(time.Second)
				cell.Step(context.Background())
				if seconds++; seconds%30 == 0 {
					cell.Poll(context.Background())
				}
				if pass != nil {
					pass(cell)
				}
			}
		},
	}
}

// openRep makes a cell of a rep and a manager over a scripted backend.
func openRep(t testing.TB, o celltest.Options, bbs rep.BBS, concurrency int) celltest.Harness {
	t.Helper()
	clock := memcell.NewClock()
	var mu sync.Mutex
	begun := map[string]int{}
	backend := scripted.New(scripted.Options{Now: clock.Now, Fault: func(op scripted.Op, guid string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == scripted.Start {
			begun[guid]++
		}
		return nil
	}})
	m, err := manager.New(t.Context(), manager.Options{
		Backend: backend, Now: clock.Now, Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096},
		Delay: func(j manager.Job) time.Duration {
			if j.Kind == manager.JobCreate {
				return o.StartsIn
			}
			return 0
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := localcell.New(m, rep.Options{CellID: o.CellID, BBS: bbs, RootFSProviders: []string{"preloaded:linux"}, Concurrency: concurrency, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return celltest.Harness{
		Cell: c, Now: clock.Now, Evacuate: c.Evacuate,
		RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{
			Path: scripted.Path, Args: []string{"wait forever", "on TERM", "exit 0"}, User: "vcap",
		}}},
		Begun: func(guid string) int {
			mu.Lock()
			defer mu.Unlock()
			return begun[guid]
		},
		End: func(t testing.TB, guid string, failed bool) {
			signal := executor.Terminate // upon which the program exits with status 0
			if failed {
				signal = executor.Kill
			}
			if err := backend.Signal(context.Background(), guid, signal); err != nil {
				t.Error(err)
			}
		},
		Pass: func(d time.Duration) {
			for range d / time.Second {
				clock.Advance(time.Second)
				m.Tick(context.Background())
				c.Tick(context.Background())
				m.Tick(context.Background())
			}
		},
	}
}

var _ auction.InventoryClient = (*memcell.Cell)(nil)
