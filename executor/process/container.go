//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/internal/life"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// A container is a directory and the processes that belong to it.
type container struct {
	guid string
	dir  string // stands in for the root file system
	log  *slog.Logger
	made bool // whether Create has succeeded; guarded by Backend.mu
	// earlier: it is of an earlier daemon, or there is none.
	earlier bool

	ports []executor.PortMapping

	// life is held for reading while something is started or streamed, and for
	// writing by Delete: nothing begins in a container that is being deleted.
	life sync.RWMutex
	gone atomic.Bool
	pace stdio.Pace

	mu        sync.Mutex
	processes map[*process]struct{} // until Delete, as children may remain
	sessions  stdio.Sessions
	beginning int           // calls of Start in progress
	spent     time.Duration // processor time of those that have ended
	found     []leader      // all that the last look has found, leaders or not
}

// Create implements [executor.ContainerBackend]. It ignores the root file
// system, limits, egress rules and privileges, none of which Probe promises. A
// manager refuses such work by [executor.Host.Refuse] before it calls Create.
func (b *Backend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	if !guids.Valid(spec.GUID) {
		return executor.Endpoint{}, fmt.Errorf("process: %q is not a guid", spec.GUID)
	}
	c := &container{guid: spec.GUID, dir: b.dir(spec.GUID), log: b.options.Logger, processes: make(map[*process]struct{})}
	b.mu.Lock()
	if other := b.containers[c.guid]; other != nil {
		b.mu.Unlock()
		if other.gone.Load() {
			return executor.Endpoint{}, other.errGone()
		}
		return executor.Endpoint{}, &executor.BackendError{Kind: executor.ErrContainerExists, GUID: c.guid}
	}
	b.containers[c.guid] = c
	b.mu.Unlock()

	endpoint, err := b.make(ctx, c, spec)
	if errors.Is(err, executor.ErrContainerExists) { // what is there is not c's to remove
		b.mu.Lock()
		delete(b.containers, c.guid)
		b.mu.Unlock()
		return endpoint, err
	}
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			err = &executor.BackendError{Kind: executor.ErrNoRoom, GUID: c.guid, Cause: err}
		}
		return endpoint, errors.Join(err, b.remove(context.WithoutCancel(ctx), c))
	}
	return endpoint, nil
}

func (b *Backend) make(ctx context.Context, c *container, spec executor.ContainerSpec) (executor.Endpoint, error) {
	none := executor.Endpoint{}
	if err := c.enter(); err != nil {
		return none, err
	}
	defer c.life.RUnlock()
	// Files are often secrets. Other users are kept out unless they work here.
	dirMode, fileMode := fs.FileMode(0o700), fs.FileMode(0o600)
	if b.options.SwitchUser {
		dirMode, fileMode = 0o755, 0o644
	}
	err := os.Mkdir(filepath.Join(b.options.Dir, c.guid), dirMode)
	if errors.Is(err, fs.ErrExist) {
		return none, &executor.BackendError{Kind: executor.ErrContainerExists, GUID: c.guid,
			Detail: "left by an earlier daemon; delete it first"}
	}
	if err != nil {
		return none, err
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return none, err
	}
	if b.options.SwitchUser { // all users work in it
		if err := os.Chmod(c.dir, 0o777|fs.ModeSticky); err != nil {
			return none, err
		}
	}
	if err := c.populate(spec, fileMode); err != nil {
		return none, err
	}
	mappings, err := b.ports.Map(c.guid, spec.Ports, false)
	if err != nil {
		return none, err
	}
	b.mu.Lock()
	c.ports = mappings
	c.made = ctx.Err() == nil
	b.mu.Unlock()
	return executor.Endpoint{
		Addresses:         executor.Addresses{ExternalIP: b.options.ExternalIP, Ports: mappings},
		SharesHostNetwork: true,
	}, ctx.Err()
}

// populate puts the mounts and files of a container below its directory.
func (c *container) populate(spec executor.ContainerSpec, mode fs.FileMode) error {
	root, err := tenant.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range spec.Mounts {
		target := strings.TrimPrefix(path.Clean("/"+m.Target), "/")
		if err := root.MkdirAll(path.Dir(target), 0o755); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		if err := root.Symlink(m.Source, target); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	for _, f := range spec.Files {
		name := strings.TrimPrefix(path.Clean("/"+f.Path), "/")
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		if err := root.WriteFile(name, []byte(f.Content), mode); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	return nil
}

// Delete implements [executor.ContainerBackend].
func (b *Backend) Delete(ctx context.Context, guid string) error {
	if !guids.Valid(guid) {
		return nil
	}
	b.mu.Lock()
	c := b.containers[guid]
	if c == nil { // perhaps of an earlier daemon
		c = &container{guid: guid, dir: b.dir(guid), log: b.options.Logger, earlier: true}
		b.containers[guid] = c
	}
	b.mu.Unlock()
	return b.remove(ctx, c)
}

func (b *Backend) remove(ctx context.Context, c *container) error {
	c.gone.Store(true)
	if err := life.Lock(ctx, &c.life); err != nil {
		return fmt.Errorf("container %q: what was begun in it does not end: %w", c.guid, err)
	}
	defer c.life.Unlock()
	if err := c.killAll(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	for p := range c.processes {
		p.close()
	}
	c.mu.Unlock()
	c.sessions.Free()
	path := filepath.Join(b.options.Dir, c.guid)
	var err error
	if c.earlier {
		err = b.trash().RemoveBefore(ctx, path, b.hurry.End())
	} else {
		err = b.trash().Remove(ctx, path)
	}
	if err != nil && !errors.Is(err, executor.ErrSetAside) {
		return fmt.Errorf("container %q: remove its files: %w", c.guid, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.containers[c.guid] == c {
		delete(b.containers, c.guid)
		b.ports.Release(c.guid)
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

// trash has a name that no container can have.
func (b *Backend) trash() tenant.Trash {
	return tenant.Trash{Dir: filepath.Join(b.options.Dir, ".lost")}
}

// Signal implements [executor.ContainerBackend].
func (b *Backend) Signal(ctx context.Context, guid string, s executor.Signal) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.life.RUnlock()
	if s == executor.Kill {
		return c.killAll(ctx)
	}
	_, _, err = c.signal(ctx, s)
	return err
}

// The pause between two attempts to kill what is still there doubles up to
// maxKillPause.
const (
	killPause    = 2 * time.Millisecond
	maxKillPause = 100 * time.Millisecond
)

// isEmpty reports whether nothing runs in a container after a number of looks in a row
// that have found nothing. all says that the last one saw all there was, and ran that
// one before has found something. A look may miss what forks meanwhile.
func isEmpty(looks int, all, ran bool) bool {
	switch {
	case !all:
		return looks >= 3
	case ran:
		return looks >= 2
	}
	return looks >= 1
}

// killAll returns when nothing runs in the container.
func (c *container) killAll(ctx context.Context) error {
	pause := killPause
	ran := false
	for empty := 0; ; {
		found, all, err := c.signal(ctx, executor.Kill)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil:
		case found:
			ran, empty = true, 0
		default:
			if empty++; isEmpty(empty, all, ran) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return fmt.Errorf("container %q: processes do not die: %w", c.guid, ctx.Err())
		case <-time.After(pause):
			pause = min(2*pause, maxKillPause)
		}
	}
}

// signal signals everything in the container and reports whether there was
// anything, and whether that was surely all. After an error there may be processes
// that it has not found.
func (c *container) signal(ctx context.Context, s executor.Signal) (found, all bool, err error) {
	c.mu.Lock()
	started := slices.Collect(maps.Keys(c.processes))
	c.mu.Unlock()
	// Whose child a process is can be seen as long as its parents are there.
	others, all, err := c.members(ctx, living(started))
	if err != nil {
		err = fmt.Errorf("container %q: %w", c.guid, err)
	}
	done := make(map[int]bool, len(started))
	for _, p := range started {
		if alive := p.signal(s); alive {
			found = true
			done[p.pid] = true
		}
	}
	signalGroups(others, done, s)
	return found || len(others) > 0, all, err
}

// remember looks at what runs in the container, so that it is found later too.
func (c *container) remember(ctx context.Context) error {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.processes))
	c.mu.Unlock()
	_, _, err := c.members(ctx, living(all))
	return err
}

// living are the leaders that are not reaped.
func living(all []*process) (leaders []leader) {
	for _, p := range all {
		p.mu.Lock()
		if !p.reaped {
			leaders = append(leaders, p.leader)
		}
		p.mu.Unlock()
	}
	return leaders
}

// enter holds life for reading, unless Delete has begun: then it returns an error.
func (c *container) enter() error { return life.RLock(&c.life, c.deleted) }

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

// dir is the directory that stands in for a container's root file system.
func (b *Backend) dir(guid string) string { return filepath.Join(b.options.Dir, guid, "root") }
