package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/sqlstore"
)

// A fleet is a control plane and its cells, in one process and over one
// database.
type fleet struct {
	*diego.ControlPlane
	began   time.Time
	data    *daemon.Dir
	logFile *os.File
	log     *slog.Logger
	store   *sqlstore.Store
	durable string // what a power cut may undo
	service service
	plan    cellPlan // of any cell
	cells   []*cell
	former  []formerCell
}

// durable is what the values of the setting store_sync mean.
var durable = map[string]string{
	"full":   "each commit is on the disk before it counts",
	"normal": "a power cut may undo the newest commits; --store-sync full prevents that",
}

// own are the addresses of this machine alone: all who may ask the fleet for
// something are its user, who may serve files and wait for callbacks there.
var own = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// opening is how many cells are opened at a time: each makes a container, which has to
// be done in time.
const opening = 4

// openFleet makes a fleet that does nothing yet. placed is told why cells were
// chosen. The fleet that it returns with an error is for close.
func openFleet(ctx context.Context, s *settings, placed func(auction.Result)) (f *fleet, err error) {
	f = &fleet{began: time.Now(), durable: durable[s.Sync]}
	if f.data, err = daemon.OpenDir("data", s.data()); err != nil {
		return f, err
	}
	if f.logFile, err = f.data.Create("log"); err != nil {
		return f, f.data.Wrong(err)
	}
	f.log = slog.New(slog.NewTextHandler(f.logFile, nil))
	f.data.Tell(f.log)
	if f.service.listener, err = daemon.Listen("listen", s.Listen); err != nil {
		return f, err
	}
	if f.store, err = sqlstore.Open(ctx, "sqlite:"+f.data.In("diego.db"), &sqlstore.Options{FullSync: s.Sync == "full", Logger: f.log}); err != nil {
		return f, f.data.Wrong(err)
	}
	volume, err := sample.NewVolume(f.data.In("sample"))
	if err != nil {
		return f, f.data.Wrong(err)
	}
	o := daemon.PlaneOptions(&s.Convergence, &s.Restarts, &s.Tasks, &s.Placing)
	o.Store, o.Dial, o.Owner, o.Logger, o.CallbackAllow = f.store, f.dial, "allinone", f.log, own
	o.Auction.Placed = placed
	figures := new(httpapi.Prometheus)
	o.Metrics = figures
	if f.ControlPlane, err = diego.New(o); err != nil {
		return f, err
	}
	host, _, err := net.SplitHostPort(f.service.listener.Addr().String())
	if err != nil {
		return f, err
	}
	issuer, err := fleetdir.Make(f.data.In(), host)
	if err != nil {
		return f, f.data.Wrong(err)
	}
	calls := s.Limit(httpapi.HandlerOptions{
		BBS: f.BBS, Convergence: f.ControlPlane, Locks: bbs.NewLocks(f.store), Auctioneer: f.ControlPlane, Ready: f.Ready,
		Metrics: figures, Logger: f.log,
	})
	if f.service, err = newService(f.service.listener, issuer, "bbs", []httpapi.Role{httpapi.BBSRole, httpapi.AuctioneerRole}, calls); err != nil {
		return f, err
	}
	if f.service.handler, err = console.New(daemon.WithFigures(f.service.handler, figures, false), console.Options{
		Calls: calls, Cell: f.cell, Figures: figures,
	}); err != nil {
		return f, err
	}
	if err := issuer.Publish(f.service.url()); err != nil {
		return f, f.data.Wrong(err)
	}
	drivers, err := s.Volumes.Drivers()
	if err != nil {
		return f, fmt.Errorf("the settings --cell-volume-…: %w", err)
	}
	drivers[sample.Driver] = volume
	f.plan = cellPlan{
		upkeep: &s.Upkeep, readers: &s.Readers, volumes: &s.Volumes, drivers: drivers, forward: &s.LogForward,
		listen: host, share: int64(s.Cells), bbs: f.BBS, store: f.store, issuer: issuer, logger: f.log,
	}
	if s.Identity {
		if err := f.plan.identify(f.data.In("identity"), f.data.In("trusted"), f.log); err != nil {
			return f, f.data.Wrong(err)
		}
	}
	if f.former, err = findFormer(ctx, f.data.In(), s.Cells); err != nil {
		return f, err
	}
	// All are of the kind of the first. Each is tried, because an earlier run may have
	// left no room to one of them.
	open := func(n int, backend string) error {
		id := fmt.Sprintf("cell-%d", n+1)
		dir, err := f.data.Make(id)
		if err != nil {
			return err
		}
		f.cells[n], err = openCell(ctx, f.plan.of(id, dir, backend))
		return err
	}
	f.cells = make([]*cell, s.Cells)
	if err := open(0, s.Backend); err != nil {
		return f, err
	}
	first := f.cells[0].backend
	f.plan.sharedIDs = first.SharedIDs
	var rest errgroup.Group
	rest.SetLimit(opening)
	for n := range s.Cells - 1 {
		rest.Go(func() error {
			if err := open(n+1, first.Name); err != nil {
				return err
			}
			return f.cells[n+1].isolatesAs(first)
		})
	}
	if err := rest.Wait(); err != nil {
		return f, err
	}
	return f, nil
}

// dial finds a cell. One that is not of this run is dead, and its presence
// ends soon.
func (f *fleet) dial(p bbs.CellPresence) (auction.CellClient, error) { return f.cell(p) }

// cell finds a cell, as dial does.
func (f *fleet) cell(p bbs.CellPresence) (rep.API, error) {
	for _, c := range f.cells {
		if c.id == p.CellID {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no cell %q any more", p.CellID)
}

// lead makes the control plane lead and its cells known and ready for work, so
// that the first work finds them. Former cells leave the records.
func (f *fleet) lead(ctx context.Context) error {
	for _, c := range f.cells {
		if err := c.announcer.Tick(ctx); err != nil {
			return err
		}
	}
	return f.leadWhile(ctx, func(ctx context.Context) error {
		parallel.Each(len(f.cells), len(f.cells), func(i int) { f.cells[i].clear(ctx) })
		parallel.Each(len(f.cells), len(f.cells), func(i int) { f.cells[i].Rep.Tick(ctx) })
		for _, c := range f.former {
			if err := c.leave(ctx, f.BBS, f.plan); err != nil {
				return err
			}
		}
		return nil
	})
}

// leadWhile makes the control plane lead and keeps it leading until prepare returns.
// Clearing a cell may take minutes, longer than a lease lasts.
func (f *fleet) leadWhile(ctx context.Context, prepare func(context.Context) error) error {
	if err := f.Leadership.Tick(ctx); err != nil {
		return err
	}
	defer parallel.During(ctx, f.stayLeader)()
	return prepare(ctx)
}

// stayLeader renews the lease until ctx ends.
func (f *fleet) stayLeader(ctx context.Context) {
	_, until := f.Leadership.Leading()
	ticker := time.NewTicker(max(time.Until(until)/3, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = f.Leadership.Tick(ctx) // a failure shows in the next call, which is refused
		}
	}
}

// run works until stop ends, and then ends all containers, gently until force
// ends, too.
func (f *fleet) run(stop, force context.Context) {
	managing, end := context.WithCancel(context.WithoutCancel(stop))
	var managers, rest sync.WaitGroup
	for _, c := range f.cells {
		managers.Go(func() { c.Manager.Run(managing) })
		rest.Go(func() { _ = c.Rep.Run(stop) }) // what it returns is that stop has ended
		rest.Go(func() { c.service.serve(stop, f.log.With("cell", c.id)) })
	}
	rest.Go(func() { f.service.serve(stop, f.log) })
	rest.Go(func() { _ = f.ControlPlane.Run(stop) })
	rest.Wait()
	for _, c := range f.cells {
		rest.Go(func() { c.stop(force) })
	}
	rest.Wait()
	end()
	managers.Wait()
}

// close removes what the fleet has on this host, and closes its database. The
// records stay. It returns how many containers are left all the same.
func (f *fleet) close(ctx context.Context) (left int, err error) {
	ctx = context.WithoutCancel(ctx)
	lefts, errs := make([]int, len(f.cells)), make([]error, len(f.cells))
	parallel.Each(len(f.cells), len(f.cells), func(i int) {
		if f.cells[i] != nil {
			lefts[i], errs[i] = f.cells[i].close(ctx)
		}
	})
	for _, n := range lefts {
		left += n
	}
	err = errors.Join(errs...)
	if f.store != nil {
		err = errors.Join(err, f.store.Close())
	}
	if f.service.listener != nil {
		_ = f.service.listener.Close() // its server may have
	}
	if f.logFile != nil {
		err = errors.Join(err, f.logFile.Close())
	}
	if f.data != nil {
		err = errors.Join(err, f.data.Close())
	}
	return left, err
}

// introduce says where everything is.
func (f *fleet) introduce(out io.Writer) {
	first := f.cells[0]
	fmt.Fprintf(out, "data        %s\n", f.data.In())
	fmt.Fprintf(out, "durability  %s\n", f.durable)
	fmt.Fprintf(out, "containers  %v\n", first.backend)
	size := first.Manager.Total()
	fmt.Fprintf(out, "cells       %d, each with %d MiB of memory\n", len(f.cells), size.MemoryMB)
	for _, c := range f.former {
		c.introduce(out)
	}
	fmt.Fprintf(out, "API         %s\n\n", f.service.url())
}
