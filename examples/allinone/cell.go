package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/executor/libcontainer"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
)

// A cell is one of several on this host. What must differ between them they
// choose by their directories (cgroups, networks), or from what is free at the
// moment (ports, addresses).
type cell struct {
	id      string
	backend *daemon.Backend
	localcell.Cell
	announcer *bbs.Announcer
	service   service
	logger    *slog.Logger
	// flush sends the rest of the log lines; nil if none are forwarded.
	flush func()
}

// A cellPlan says what a cell is made of.
type cellPlan struct {
	id, dir string
	// backend is one of daemon.BackendKinds.
	backend string
	// sharedIDs makes its containers share the host's uids and gids.
	sharedIDs bool
	upkeep    *daemon.Upkeep
	readers   *daemon.Readers
	volumes   *daemon.Volumes
	forward   *daemon.LogForward
	// drivers are those of volumes and that of the sample.
	drivers map[string]manager.VolumeDriver
	// listen is the host at which the cell is served, at any port.
	listen string
	// share is the part of the host that the cell has: 2 is a half.
	share  int64
	bbs    *bbs.BBS
	store  storage.Store
	issuer *fleetdir.Issuer
	// identity signs the certificates of containers, which find its own in the
	// directory trusted; nil and empty without the setting identity.
	identity *identity.Authority
	trusted  string
	// logger is that of the process: the lines of a rep name their cell.
	logger *slog.Logger
}

// of is the plan of one cell.
func (p cellPlan) of(id, dir, backend string) cellPlan {
	p.id, p.dir, p.backend = id, dir, backend
	return p
}

// identify makes the authority for the certificates of containers, or finds that
// of an earlier run.
func (p *cellPlan) identify(dir, trusted string, log *slog.Logger) error {
	authority, err := devcerts.Open(dir)
	if err != nil {
		return err
	}
	if p.identity, err = daemon.Identity(authority.CA(), authority.CAKey(), identity.DefaultLifetime, log); err != nil {
		return err
	}
	ca, err := os.ReadFile(authority.CA())
	if err != nil {
		return err
	}
	p.trusted = trusted // a directory without the key
	if err := os.MkdirAll(trusted, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(trusted, "ca.pem"), ca, 0o644)
}

// rootFS is what both backends offer without any image.
var rootFS = []string{"host"}

// openCell makes a cell that does nothing yet. The one that it returns with an
// error is for close, and nil if there is nothing to close.
func openCell(ctx context.Context, p cellPlan) (*cell, error) {
	backend, err := daemon.OpenBackend(ctx, daemon.BackendOptions{Kind: p.backend, Dir: p.dir, Real: libcontainer.Options{SharedIDs: p.sharedIDs}, Plain: process.Options{Logger: p.logger.With("cell", p.id)}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.id, err)
	}
	if _, err := daemon.ClearBackends(ctx, daemon.BackendOptions{Dir: p.dir}, backend.Name); err != nil {
		p.logger.Warn("an earlier start with another backend has left containers", "cell", p.id, "err", err)
	}
	c := &cell{id: p.id, backend: backend, logger: p.logger.With("cell", p.id)}
	if err := c.build(ctx, p); err != nil {
		return c, fmt.Errorf("%s: %w", p.id, err)
	}
	return c, nil
}

// isolatesAs is an error if the containers of a cell share the host's ids though
// others do not, which nobody would notice otherwise.
func (c *cell) isolatesAs(other *daemon.Backend) error {
	if c.backend.SharedIDs == other.SharedIDs {
		return nil
	}
	return fmt.Errorf("%s: its containers would share the host's uids and gids, unlike those of other cells (it lacks %s); mend that, and start again",
		c.id, strings.Join(c.backend.Lacks, "; "))
}

func (c *cell) build(ctx context.Context, p cellPlan) error {
	host, err := c.backend.Probe(ctx)
	if err != nil {
		return err
	}
	if c.service.listener, err = net.Listen("tcp", net.JoinHostPort(p.listen, "0")); err != nil {
		return err
	}
	mo := manager.Options{
		Backend: c.backend.ContainerBackend, Dir: p.dir + "/manager", Logger: p.logger.With("cell", p.id),
		// A backend that knows nothing of its host is believed to have a little.
		Capacity: executor.Capacity{
			MemoryMB: cmp.Or(host.MemoryMB, 2048) / p.share, DiskMB: cmp.Or(host.DiskMB, 2048) / p.share,
		},
		Volumes:       p.drivers,
		TransferAllow: own, Identity: p.identity, TrustedCertificates: p.trusted,
	}
	p.upkeep.Manager(&mo)
	p.volumes.Manager(&mo)
	forwarder, err := p.forward.Forwarder(p.id, nil, mo.Logger)
	if err != nil {
		return err
	}
	if forwarder != nil {
		mo.LogSink = forwarder.Line
		c.flush = parallel.During(context.WithoutCancel(ctx), forwarder.Run)
	}
	if c.Manager, err = manager.New(ctx, mo); err != nil {
		return err
	}
	// The data directory is this process's alone, so the earlier run of
	// this cell is dead, and its name is enough to take over at once.
	if c.announcer, err = bbs.NewAnnouncer(bbs.AnnouncerOptions{
		Store: p.store, Owner: p.id, TTL: p.upkeep.PresenceTTL, VolumeDrivers: c.Manager.VolumeDrivers,
		Presence: bbs.CellPresence{CellID: p.id, Address: c.service.url(), Capacity: c.Manager.Total(), RootFSProviders: rootFS},
	}); err != nil {
		return err
	}
	ro := rep.Options{
		CellID: p.id, BBS: p.bbs, Announcer: c.announcer,
		RootFSProviders: rootFS, Logger: p.logger,
	}
	p.upkeep.Rep(&ro)
	if err := daemon.KeepCordon(p.dir, &ro); err != nil {
		return err
	}
	made, err := localcell.New(c.Manager, ro)
	if err != nil {
		return err
	}
	c.Cell = *made
	c.service, err = newService(c.service.listener, p.issuer, p.id, []httpapi.Role{httpapi.CellRole}, p.readers.Limit(httpapi.HandlerOptions{Cell: c, Logger: c.logger}))
	return err
}

// tick clears the host of what an earlier run has left, and then reports and takes work
// as far as that is due. The manager does not run yet.
func (c *cell) tick(ctx context.Context) {
	c.clear(ctx)
	c.Rep.Tick(ctx)
}

// clearPause is between two attempts to remove what an earlier run has left.
const clearPause = 2 * time.Second

// clear removes what an earlier run has left. A process whose volume hangs does not die,
// so after a minute in which nothing could be removed, or ten in all, the cell goes on, and
// its manager tries again. After a kill -9 there may be thousands of containers. Clear
// removes many at a time, and the Tick one after the other.
func (c *cell) clear(ctx context.Context) {
	fewest := math.MaxInt
	if guids, err := c.backend.List(ctx); err == nil { // else Clear says what is wrong
		fewest = len(guids)
	}
	began := time.Now()
	progress := began // when there were fewer than before
	for ctx.Err() == nil {
		clearing, cancel := context.WithTimeout(ctx, 50*time.Second)
		err := c.Manager.Clear(clearing)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.logger.Error("not all that an earlier run has left could be removed; it is tried again", "error", err)
		}
		var left *manager.LeftError
		if !errors.As(err, &left) || left.Containers == 0 {
			break
		}
		if left.Containers < fewest {
			fewest, progress = left.Containers, time.Now()
		}
		if time.Since(progress) >= 50*time.Second || time.Since(began) >= 10*time.Minute {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(clearPause): // a backend may fail at once
		}
	}
	last, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c.Manager.Tick(last)
}

// stop ends all containers, with their grace as long as ctx lasts. The manager
// still runs, and the rep does not: nobody is told, so that what ran is started
// again with the next process.
func (c *cell) stop(ctx context.Context) {
	news := c.Manager.Subscribe()
	defer news.Close()
	for _, container := range c.Manager.List() {
		_ = c.Manager.Stop(container.GUID) // refused for a reservation, in which nothing runs
	}
	for c.live() {
		if _, err := news.Next(ctx); err != nil {
			return
		}
	}
}

func (c *cell) live() bool {
	return slices.ContainsFunc(c.Manager.List(), func(c executor.Container) bool {
		return c.State != executor.Reserved && c.State != executor.Completed
	})
}

// clearTime is how long it may take to remove what is left of a cell.
const clearTime = 20 * time.Second

// close removes everything of the cell from the host. The manager does not run
// any more. It returns how many containers are left all the same.
func (c *cell) close(ctx context.Context) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	if c.service.listener != nil {
		_ = c.service.listener.Close() // its server may have
	}
	if c.Manager != nil {
		err = c.Manager.Clear(ctx)
	}
	if c.flush != nil {
		c.flush()
	}
	if stuck := (*manager.LeftError)(nil); errors.As(err, &stuck) {
		left = stuck.Containers
	}
	if err = errors.Join(err, c.backend.Close()); err != nil {
		err = fmt.Errorf("%s: %w", c.id, err)
	}
	return left, err
}
