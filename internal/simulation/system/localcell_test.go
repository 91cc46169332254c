package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
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
			cell, err := localcell.New(m, rep.Options{CellID: "cell-1", BBS: unheard{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err = cell.Run(ctx)
			if fault == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("it was told to stop, and says %v", err)
			}
			// Its caller takes the context's error for a good end.
			if fault != nil && (!errors.Is(err, stuck) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "left")) {
				t.Errorf("a container stays, and it says %v", err)
			}
		})
	}
}

// unheard is a BBS that nobody asks anything.
type unheard struct{ rep.BBS }

func TestACellIsReadyOnceItIsPresent(t *testing.T) {
	m, err := manager.New(t.Context(), manager.Options{Backend: scripted.New(scripted.Options{}), Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
	if err != nil {
		t.Fatal(err)
	}
	m.Tick(t.Context()) // clears its host
	for _, announced := range []error{errors.New("not reached"), nil} {
		cell, err := localcell.New(m, rep.Options{CellID: "cell-1", BBS: empty{}, Announcer: announcing{announced}})
		if err != nil {
			t.Fatal(err)
		}
		cell.Tick(t.Context())
		if got := cell.Ready(t.Context()); got.Ready != (announced == nil) || got.Ready != (got.Why == "") {
			t.Errorf("after %v it says %+v", announced, got)
		}
	}
}

// A cellRun is what an operator sees of one daemon of a cell.
type cellRun struct {
	*rep.Rep
	url string
}

func (r cellRun) readyz(t *testing.T) (status int, why string) {
	t.Helper()
	answer, err := http.Get(r.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var ready bbs.Readiness
	if err := json.NewDecoder(answer.Body).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, ready.Why
}

func TestASecondDaemonWithTheSameCellIDIsToldWhoElseIsThere(t *testing.T) {
	d := newDistributed(t)
	d.step()
	run := func(owner string) cellRun {
		t.Helper()
		m, err := manager.New(t.Context(), manager.Options{Backend: scripted.New(scripted.Options{}), Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
		d.must(err)
		m.Tick(t.Context()) // clears its host
		p := newProcess(t)
		a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{BBS: d.client, Owner: owner, Presence: bbs.CellPresence{CellID: "cell-x", Address: p.URL}})
		d.must(err)
		cell, err := localcell.New(m, rep.Options{CellID: "cell-x", BBS: empty{}, Announcer: a, Now: d.clock.Now})
		d.must(err)
		p.serve(t, httpapi.HandlerOptions{Cell: cell, Ready: cell.Ready})
		return cellRun{cell.Rep, p.URL}
	}
	first, second := run("process 1 on host-a"), run("process 2 on host-b")
	tick := func(list ...cellRun) {
		for _, r := range list {
			r.Tick(t.Context())
		}
		d.clock.Advance(rep.DefaultAnnounceInterval)
	}
	expect := func(r cellRun, want int, parts ...string) {
		t.Helper()
		status, why := r.readyz(t)
		if status != want || want == http.StatusOK && why != "" {
			t.Errorf("the status is %d, %q", status, why)
		}
		for _, part := range parts {
			if !strings.Contains(why, part) {
				t.Errorf("%q does not say %q", why, part)
			}
		}
	}
	expect(first, http.StatusServiceUnavailable, `cell "cell-x" has not been announced yet`)
	tick(first)
	tick(second)
	expect(first, http.StatusOK)
	expect(second, http.StatusServiceUnavailable, `another run of cell "cell-x" is present`, "if it was killed", first.url, "process 1 on host-a")
	tick(first)
	tick(second)
	expect(first, http.StatusOK)
	expect(second, http.StatusServiceUnavailable, `another run of cell "cell-x" is alive`, "give one of the two another id", first.url, "process 1 on host-a")
	if err := second.Absent(); !errors.Is(err, storage.ErrHeld) || first.Absent() != nil {
		t.Errorf("the second says %v, the first %v", err, first.Absent())
	}
	// The first is killed.
	for range 3 {
		tick(second)
	}
	tick(second)
	expect(second, http.StatusOK)
	tick(first)
	expect(first, http.StatusServiceUnavailable, second.url, "process 2 on host-b")
}

// announcing is an Announcer that fails as it is told.
type announcing struct{ err error }

func (a announcing) Tick(context.Context) error  { return a.err }
func (a announcing) Leave(context.Context) error { return nil }

// empty is a BBS without records.
type empty struct{ rep.BBS }

func (empty) ActualLRPs(context.Context, storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return func(func(lrp.ActualLRP, error) bool) {}
}

func (empty) Tasks(context.Context, storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return func(func(*task.Task, error) bool) {}
}
