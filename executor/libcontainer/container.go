//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/internal/life"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// A container is what this daemon knows about one, besides what is on the disk.
type container struct {
	backend *Backend
	guid    string
	dir     string
	earlier bool // of an earlier daemon, known by its guid alone
	made    bool // whether Create has succeeded; guarded by Backend.mu
	spec    executor.ContainerSpec
	ids     ids.Range

	// life is held for reading while something is made or started, and for writing
	// by Delete: nothing begins in a container that is being deleted.
	life sync.RWMutex // see lock and enter
	gone atomic.Bool

	below    []string // the directories below its own layer; see rootfs.Mounter.Mount
	cgroup   *cgroup.Cgroup
	init     *libcontainer.Process // the first process; it is our child
	initPID  int
	root     *os.File // the root directory as the container sees it
	link     network.Link
	mappings []executor.PortMapping

	// conn leads to the first process. lost is closed when that process is gone,
	// and everything with it.
	conn    *pid1.Conn
	key     int32
	ready   chan struct{}
	lost    chan struct{}
	dead    chan struct{} // closed when the first process is; made by end, guarded by life
	ended   bool          // whether end has succeeded; guarded by life
	removed bool          // whether nothing is left; guarded by life

	receiving sync.Mutex // held while messages are read and until conn is closed
	closed    bool       // guarded by receiving

	pace      stdio.Pace
	pipes     stdio.Guard
	mu        sync.Mutex
	nextID    uint32
	starting  map[*process]struct{}
	running   map[int]*process      // by their number in the container
	processes map[*process]struct{} // until Delete, as children may write on
	sessions  stdio.Sessions
	lastUser  *foundUser
	beginning int            // calls of Start in progress
	victims   int64          // processes of ours that were killed for lack of memory
	greedy    time.Time      // when endFor has ended its processes; zero if never
	draining  sync.WaitGroup // of the ends that are being reported

	strange map[uint64]bool // sockets of other networks, and such that are not bound, at the last call of uncounted
	waited  int64           // descriptors that waited in sockets at the last call of uncounted

	// At the last call of endStorms: processes that were killed for lack of memory, how
	// many are remembered to have waited, and whether it was in the way of others.
	oomKills, queued int64
	inTheWay         bool

	sights glance // at what it holds uncounted

	// About locks of the host: see endLockHolders.
	holds holds
	looks glance // at its threads
	// The last one has found that it holds a lock, and how many threads take it.
	holding atomic.Bool
	taking  atomic.Int64

	lockers glance // at its locks on files of the host

	weighing sync.Mutex
	reasons  int  // for the full weight; guarded by weighing
	full     bool // it has the full weight for them; guarded by weighing
}

// Create implements [executor.ContainerBackend].
func (b *Backend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	none := executor.Endpoint{}
	if !guids.Valid(spec.GUID) {
		return none, fmt.Errorf("libcontainer: %q is not a guid", spec.GUID)
	}
	if err := b.supported(spec); err != nil {
		return none, err
	}
	c := &container{
		backend: b, guid: spec.GUID, dir: b.dir(spec.GUID), spec: spec,
		ready: make(chan struct{}), lost: make(chan struct{}),
		starting: make(map[*process]struct{}), running: make(map[int]*process),
		processes: make(map[*process]struct{}),
	}
	c.sessions.Guard = &c.pipes
	b.mu.Lock()
	if other := b.containers[c.guid]; other != nil {
		b.mu.Unlock()
		if other.gone.Load() {
			return none, other.errGone()
		}
		return none, &executor.BackendError{Kind: executor.ErrContainerExists, GUID: c.guid}
	}
	b.containers[c.guid] = c
	b.mu.Unlock()

	endpoint, err := b.make(ctx, c)
	if err != nil {
		if c.gone.Load() { // Delete has come between, which also explains the error
			err = c.errGone()
		}
		if errors.Is(err, executor.ErrContainerExists) { // what is there is not c's to remove
			b.mu.Lock()
			delete(b.containers, c.guid)
			b.mu.Unlock()
			return none, err
		}
		return none, errors.Join(err, b.remove(context.WithoutCancel(ctx), c))
	}
	return endpoint, nil
}

// errFull says which disk to look at after an error for lack of room. The kernel says
// "no space" even if only inodes are missing, and also of other things than disks. Once
// the container has a cgroup, its own disk is written to if it has one. An image that
// did not fit is removed by now, so its disk does not look full any more.
func (c *container) errFull(err error) error {
	dir := c.backend.options.Dir
	switch {
	case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT):
		return err
	case c.spec.Resources.DiskMB > 0 && (c.cgroup != nil || nearlyFull(c.backend.roots.Disk(c.guid))):
		return fmt.Errorf("%w; its disk of %d MiB is too small for its files", err, c.spec.Resources.DiskMB)
	case errors.Is(err, executor.ErrNoRootFS) || nearlyFull(dir):
		return &executor.BackendError{Kind: executor.ErrNoRoom, GUID: c.guid, Cause: err,
			Detail: dir + " has too little room or too few inodes, which df and df -i show"}
	}
	return err
}

// nearlyFull reports whether less than a twentieth of the blocks or inodes of a
// file system is free.
func nearlyFull(path string) bool {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return false
	}
	return s.Bavail < s.Blocks/20 || s.Ffree < s.Files/20
}

// make makes a container, one part after the other. Each part is one that
// Delete finds by the guid alone.
func (b *Backend) make(ctx context.Context, c *container) (executor.Endpoint, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	var endpoint executor.Endpoint
	for _, part := range []func(context.Context, *container) error{
		b.makeDir, b.makeLink, b.makeFirst,
		func(_ context.Context, c *container) (err error) {
			endpoint, err = b.makeEndpoint(c)
			return err
		},
	} {
		if err := c.deleted(); err != nil {
			return endpoint, err
		}
		if err := ctx.Err(); err != nil {
			return endpoint, err
		}
		stage.Reached()
		if err := part(ctx, c); err != nil {
			return endpoint, c.errFull(err)
		}
	}
	stage.Reached()
	b.mu.Lock()
	defer b.mu.Unlock()
	c.made = ctx.Err() == nil
	c.spec.Files = nil // the container has them now, and they may be a MiB of secrets
	return endpoint, ctx.Err()
}

func (b *Backend) makeDir(_ context.Context, c *container) error {
	err := os.Mkdir(c.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return &executor.BackendError{Kind: executor.ErrContainerExists, GUID: c.guid,
			Detail: "left by an earlier daemon; delete it first"}
	}
	if err != nil {
		return err
	}
	return b.makeIDs(c)
}

// makeFirst mounts the root file system, starts the first process and leaves
// the mounts to it. The daemon unmounts its own and writes files while that
// process begins.
func (b *Backend) makeFirst(ctx context.Context, c *container) error {
	rootFS, masks, below, err := b.roots.Mount(ctx, rootfs.Container{
		GUID: c.guid, Dir: c.dir, RootFS: c.spec.RootFS, Layer: strings.Join(c.spec.Layers, ""), DiskMB: c.spec.Resources.DiskMB, IDs: c.ids, Nodes: nodes(),
	})
	if err != nil {
		return err
	}
	c.below = below
	stage.Reached()
	config := b.config(c.spec, c.ids, rootFS, masks)
	if path := c.link.Path(); path != "" {
		config.Namespaces = append(config.Namespaces, configs.Namespace{Type: configs.NEWNET, Path: path})
	}
	cgroup.Widen(config.Cgroups.Resources)
	if c.cgroup, err = b.cgroups.Child(c.guid); err != nil {
		return err
	}
	stage.Reached()
	lc, err := libcontainer.Create(b.states, c.guid, config)
	if err != nil {
		return fmt.Errorf("container %q: %w", c.guid, err)
	}
	defer os.RemoveAll(filepath.Join(b.states, c.guid)) // nobody needs it once the first process runs
	stage.Reached()
	conn, other, err := pid1.Pair()
	if err != nil {
		return err
	}
	first := &libcontainer.Process{
		Args: []string{pid1.ProgramPath}, Cwd: "/", Init: true,
		ExtraFiles: []*os.File{other, b.program},
	}
	done := b.raiseIfSlow()
	asParent(func() { err = lc.Start(first) })
	done()
	other.Close() // so that its end is told, even if it comes before it is ready
	if err != nil {
		conn.Close()
		return c.errFirst(err)
	}
	stage.Reached()
	// The container has its own mounts by now, which end with it. The daemon's
	// would outlive it if it is killed, and hold the loop device of the disk.
	unmounted := make(chan error, 1)
	go func() { unmounted <- b.roots.Unmount(c.guid) }()
	if err = lc.Exec(); err != nil {
		conn.Close()
		go first.Wait() // Delete kills it, and somebody has to reap it
		err = c.errFirst(err)
	} else {
		c.conn, c.init = conn, first
		stage.Reached()
		err = b.prepare(ctx, c)
	}
	return errors.Join(err, <-unmounted)
}

// prepare makes a container ready for processes, once its first process runs.
func (b *Backend) prepare(ctx context.Context, c *container) (err error) {
	if c.initPID, err = c.init.Pid(); err != nil {
		return err
	}
	if c.key, err = b.poller.Watch(c.conn.FD(), c.receive); err != nil {
		return err
	}
	if c.root, err = os.OpenFile(fmt.Sprintf("/proc/%d/root", c.initPID), unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return c.errLimits(err)
	}
	if err := c.makeFiles(); err != nil {
		return err
	}
	select {
	case <-c.ready:
	case <-c.lost:
		return fmt.Errorf("container %q: its first process has died at once", c.guid)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.cgroup.Tighten(b.limits(c.spec)); err != nil {
		return c.errLimits(err)
	}
	stage.Reached()
	return nil
}

// UnpackLayer implements [executor.Layerer].
func (b *Backend) UnpackLayer(ctx context.Context, l executor.LayerSpec) (bytes int64, err error) {
	return b.roots.UnpackLayer(ctx, l)
}

// errFirst names the reason if a mount could not be mapped or there was too
// little memory or disk, which libcontainer reports as text only.
func (c *container) errFirst(err error) error {
	if c.ids.Own() {
		for _, m := range c.spec.Mounts {
			if why := rootfs.CheckMapping(c.guid, m.Source, c.ids); errors.Is(why, executor.ErrUnsupported) {
				return why
			}
		}
	}
	for _, words := range []string{"OOM-killed", "unable to set memory limit"} {
		if strings.Contains(err.Error(), words) {
			return c.errMemory(fmt.Sprintf("to make it, this daemon's program is run in it, which takes more than %d MiB",
				max(c.spec.Resources.MemoryMB, cgroup.StartMemory>>20)), err)
		}
	}
	err = fmt.Errorf("container %q: start its first process: %w", c.guid, err)
	if strings.HasSuffix(err.Error(), unix.ENOSPC.Error()) { // elsewhere in it may be a tenant's words
		err = fullError{err}
	}
	return err
}

// A fullError is ENOSPC that libcontainer reports as text only.
type fullError struct{ error }

func (e fullError) Unwrap() error { return e.error }

// Is implements the interface of errors.Is.
func (e fullError) Is(target error) bool { return target == unix.ENOSPC }

// errLimits names the reason if the limits were too low for what was there
// already: v1 says so, and v2 ends it.
func (c *container) errLimits(err error) error {
	if !errors.Is(err, unix.EBUSY) && c.cgroup.OOMKills() == 0 {
		return fmt.Errorf("container %q: set its limits: %w", c.guid, err)
	}
	return c.errMemory("what it takes to make it exceeds that", err)
}

func (c *container) errMemory(why string, err error) error {
	return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: c.guid, Cause: err,
		Detail: fmt.Sprintf("a memory limit of %d MiB; %s; ask for more", c.spec.Resources.MemoryMB, why)}
}

// Delete implements [executor.ContainerBackend].
func (b *Backend) Delete(ctx context.Context, guid string) error {
	if !guids.Valid(guid) {
		return nil
	}
	lost := b.isLost(guid)
	b.mu.Lock()
	c := b.containers[guid]
	if c == nil {
		if _, err := os.Lstat(b.dir(guid)); !lost && errors.Is(err, fs.ErrNotExist) {
			b.mu.Unlock()
			return nil
		}
		// Of an earlier daemon.
		c = &container{backend: b, guid: guid, dir: b.dir(guid), lost: make(chan struct{}), earlier: true}
		b.containers[guid] = c
	}
	b.mu.Unlock()
	return b.remove(ctx, c)
}

// remove removes a container of any daemon, finished or half-made. It relies
// on nothing but its guid.
func (b *Backend) remove(ctx context.Context, c *container) error {
	c.gone.Store(true)
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.life.Unlock()
	if c.removed { // and the guid may be in use again
		return nil
	}
	stage.Reached()
	if err := c.end(ctx); err != nil {
		return err
	}
	stage.Reached()
	g := c.cgroup
	if g == nil {
		var err error
		if g, err = b.cgroups.Child(c.guid); err != nil {
			return err
		}
	}
	if c.init == nil { // else the kernel has killed all with the first process
		_ = g.SetCPUWeight(executor.MaxCPUWeight) // as in end
		if err := g.Kill(ctx); err != nil {
			return fmt.Errorf("container %q: %w", c.guid, err)
		}
	}
	c.mu.Lock()
	processes := c.processes
	c.processes = nil
	c.mu.Unlock()
	c.draining.Wait()
	for p := range processes {
		p.close()
	}
	// The kernel takes its time to remove a device; the rest goes on meanwhile. A
	// failure needs no trace on the disk, because the network ends with the daemon.
	// A privileged container may have left anything in its network.
	unlinked := make(chan error, 1)
	if b.network == nil {
		unlinked <- nil
	} else {
		go func() { unlinked <- b.network.Remove(&c.link, !c.spec.Privileged) }()
	}
	err := c.removeRest(ctx, g)
	linkErr := <-unlinked
	if linkErr != nil {
		linkErr = fmt.Errorf("container %q: remove its network: %w", c.guid, linkErr)
	}
	if err != nil && !errors.Is(err, executor.ErrSetAside) {
		return errors.Join(err, linkErr)
	}
	if linkErr != nil {
		return linkErr // alone: ErrSetAside says that only files are left
	}
	c.removed = true
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.containers, c.guid)
	b.ports.Release(c.guid)
	if b.ids != nil {
		b.ids.Release(c.guid)
	}
	return err
}

// Aside implements [executor.Weigher].
func (b *Backend) Aside(ctx context.Context) ([]executor.Leftover, error) {
	return b.trash().Aside(ctx)
}

// Sweep implements [executor.Sweeper].
func (b *Backend) Sweep(ctx context.Context) ([]executor.Leftover, error) {
	return b.trash().Sweep(ctx)
}

func (b *Backend) trash() tenant.Trash {
	return tenant.Trash{Dir: filepath.Join(b.options.Dir, lostDir)}
}

// removeRest removes the cgroup, the mounts and, as the last trace, the
// directory. What it cannot remove of that it sets aside.
func (c *container) removeRest(ctx context.Context, g *cgroup.Cgroup) error {
	stage.Reached()
	if err := g.Remove(); err != nil {
		return fmt.Errorf("container %q: remove its cgroup: %w", c.guid, err)
	}
	stage.Reached()
	if err := c.backend.roots.Unmount(c.guid); err != nil {
		return fmt.Errorf("container %q: remove its mounts: %w", c.guid, err)
	}
	stage.Reached()
	var err error
	if c.earlier {
		err = c.backend.trash().RemoveBefore(ctx, c.dir, c.backend.hurry.End())
	} else {
		err = c.backend.trash().Remove(ctx, c.dir)
	}
	if err != nil && !errors.Is(err, executor.ErrSetAside) {
		return fmt.Errorf("container %q: remove its files: %w", c.guid, err)
	}
	return err
}

// end kills everything in the container and returns when it is dead: the
// kernel ends the first process after all others. What waits for a file system
// that hangs does not die; then end fails with ctx. The caller holds life.
func (c *container) end(ctx context.Context) error {
	if c.ended || c.init == nil {
		return nil
	}
	if c.dead == nil {
		c.dead = make(chan struct{})
		c.mu.Lock()
		for _, p := range c.running {
			p.killed = true
		}
		c.mu.Unlock()
		c.raise(1) // processes die with the time of their container
		c.init.Signal(unix.SIGKILL)
		go func() {
			c.init.Wait()
			close(c.dead)
		}()
	}
	for dying := true; dying; {
		select {
		case <-c.dead:
			dying = false
		case <-time.After(pipePatience):
			c.cgroup.KillOthers(c.initPID) // it may wait for the lock of a pipe that another one holds
		case <-ctx.Done():
			return fmt.Errorf("container %q: processes do not die: %w", c.guid, ctx.Err())
		}
	}
	c.ended = true
	c.backend.poller.Forget(c.key)
	c.receiveAll() // its last messages
	c.receiving.Lock()
	defer c.receiving.Unlock()
	c.closed = true
	c.conn.Close()
	c.lose()
	c.sessions.Free() // a terminal would hold the mounts
	if c.root != nil {
		c.root.Close()
	}
	return nil
}

// close ends the container and leaves its files to the next daemon. What does not
// end before ctx does keeps its descriptors.
func (c *container) close(ctx context.Context) error {
	c.gone.Store(true)
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.life.Unlock()
	err := c.end(ctx)
	c.mu.Lock()
	processes := c.processes
	c.processes = nil
	c.mu.Unlock()
	for p := range processes { // while the poller says what there is to carry
		p.close()
	}
	c.link.Close()
	return err
}

// lock holds life for writing. A reader may wait for a file system that hangs; then
// lock fails with ctx.
func (c *container) lock(ctx context.Context) error {
	if err := life.Lock(ctx, &c.life); err != nil {
		return fmt.Errorf("container %q: what was begun in it does not end: %w", c.guid, err)
	}
	return nil
}

// enter holds life for reading, unless nothing may begin any more: then it returns
// why, and does not wait for a removal, which may take long.
func (c *container) enter() error { return life.RLock(&c.life, c.usable) }

// deleted is an error once Delete has begun.
func (c *container) deleted() error {
	if c.gone.Load() {
		return c.errGone()
	}
	return nil
}

func (c *container) errGone() error {
	return &executor.BackendError{Kind: executor.ErrNoContainer, GUID: c.guid, Detail: "it is being deleted"}
}

// usable is an error if the container is being deleted or its first process
// has died.
func (c *container) usable() error {
	if err := c.deleted(); err != nil {
		return err
	}
	select {
	case <-c.lost:
		return c.errDied()
	default:
		return nil
	}
}

func (c *container) errDied() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := ""
	if c.cgroup.OOMKills() > c.victims || !c.greedy.IsZero() {
		after = " after the container ran out of memory"
	}
	return &executor.BackendError{Kind: executor.ErrNoContainer, GUID: c.guid, Detail: "its first process has died" + after + "; delete it"}
}

// Signal implements [executor.ContainerBackend].
func (b *Backend) Signal(ctx context.Context, guid string, s executor.Signal) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	if s == executor.Kill {
		return c.killAll(ctx)
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.life.RUnlock()
	return c.signal(everybody, s)
}

// everybody is all processes but the first one.
const everybody = -1

// killAll returns when only the first process is left. Nothing is started
// meanwhile.
func (c *container) killAll(ctx context.Context) error {
	// A process may hold up the start of another one, for which lock would wait.
	if err := c.enter(); err != nil {
		return err
	}
	c.raise(1) // processes die with the time of their container
	defer c.raise(-1)
	err := c.killOnce()
	c.life.RUnlock()
	if err != nil {
		return err
	}
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.life.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	for {
		if err := c.killOnce(); err != nil {
			return err
		}
		if c.cgroup.PIDs() <= 1 || c.usable() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("container %q: processes do not die: %w", c.guid, ctx.Err())
		case <-time.After(cgroup.KillPause):
		}
	}
}

// killOnce kills all processes but the first one. The caller holds life.
func (c *container) killOnce() error {
	c.mu.Lock()
	for _, p := range c.running {
		p.killed = true
	}
	c.mu.Unlock()
	return c.signal(everybody, executor.Kill)
}

// signal reaches nobody if the first process has just died, because then all
// have.
func (c *container) signal(pid int, s executor.Signal) error { return c.send(pid, signals[s]) }

func (c *container) send(pid int, s unix.Signal) error {
	err := c.conn.Signal(pid, s)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

var signals = [...]unix.Signal{executor.Terminate: unix.SIGTERM, executor.Kill: unix.SIGKILL}
