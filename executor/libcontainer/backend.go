//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/internal/hostport"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// Backend is an [executor.ContainerBackend]. Its methods may be called
// concurrently; Close must be the last.
type Backend struct {
	options Options
	// id tells what belongs to this Dir from what belongs to others on the
	// same host: cgroups, network devices, firewall tables.
	id      string
	mounts  string // where root file systems are mounted; each can go through it to its own
	states  string // what libcontainer writes about containers that it starts
	host    facts
	hidden  []string // paths in /proc that no container is shown
	program *os.File // what every first process runs
	poller  *pid1.Poller
	hurry   tenant.Hurry
	roots   *rootfs.Mounter
	cgroups *cgroup.Parent
	network *network.Network // nil with Options.HostNetwork, or where the host has no means
	ids     *ids.Pool        // nil with Options.SharedIDs, or where the host has no means

	closing    chan struct{} // ends watch
	unwatched  chan struct{} // closed by watch at its end
	stall      time.Duration // of the host, at the last call of endStorms
	looking    sync.Mutex    // held by endLockHolders
	slow       atomic.Int32  // how many calls of raiseIfSlow have raised containers
	mu         sync.Mutex
	containers map[string]*container
	ports      *hostport.Range
	closed     bool
}

var (
	_ executor.ContainerBackend = (*Backend)(nil)
	_ executor.Sweeper          = (*Backend)(nil)
	_ executor.Layerer          = (*Backend)(nil)
	_ executor.SessionBackend   = (*Backend)(nil)
)

// New returns a Backend that keeps its containers in o.Dir. Of the containers
// of an earlier Backend it ends only the network: List returns them and Delete
// removes them. An error that wraps executor.ErrUnsupported means that this
// host cannot run containers.
func New(o Options) (*Backend, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	base := "/"
	if os.Geteuid() == 0 {
		if base, err = cgroup.Base(); err != nil {
			return nil, err
		}
	}
	host := look(o, base)
	if err := host.allowed(os.Geteuid()); err != nil {
		return nil, err
	}
	if o, err = o.makeDir(); err != nil {
		return nil, err
	}
	for _, dir := range []string{containersDir, imagesDir, templatesDir} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	host.overlay = rootfs.Missing(o.Dir, ids.Range{})
	if host.ids = "Options.SharedIDs is set"; !o.SharedIDs {
		host.ids = ownIDsMissing(o)
	}
	host.openFiles = liftLimits("/proc/sys")
	hidden, err := hiddenInProc()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(o.Dir))
	id := hex.EncodeToString(sum[:network.IDBytes])
	b := &Backend{
		options:    o,
		host:       host,
		hidden:     hidden,
		id:         id,
		mounts:     "/run/diego-" + id,
		states:     "/run/diego-" + id + "-states",
		cgroups:    cgroup.NewParent(base, o.CgroupParent+"-"+id),
		containers: make(map[string]*container),
		closing:    make(chan struct{}),
		unwatched:  make(chan struct{}),
		hurry:      tenant.Hurry{Limit: tenant.HurryLimit},
		ports:      hostport.NewRange(o.FirstPort, o.LastPort),
	}
	images, err := rootfs.OfThisBoot(filepath.Join(o.Dir, imagesDir), b.trash())
	if err != nil {
		return nil, err
	}
	b.roots = rootfs.New(rootfs.Options{
		Images: images, Templates: filepath.Join(o.Dir, templatesDir), Mounts: b.mounts,
		ImageDirs: o.ImageDirs, Preloaded: o.Preloaded, Mkfs: host.mkfs, Trash: b.trash(),
	})
	if b.program, err = pid1.Program(); err != nil {
		return nil, err
	}
	if b.poller, err = pid1.NewPoller(); err != nil {
		b.program.Close()
		return nil, err
	}
	if !o.HostNetwork {
		if b.network, err = network.New(b.id, o.Subnet, o.MaxConnections); err != nil {
			b.host.network = err.Error()
		} else {
			b.host.connections = b.network.Unbounded()
		}
	}
	b.cgroups.Own()
	go b.watch()           // until Close
	const passable = 0o711 // to the root of each container, with any umask
	if err := cmp.Or(os.MkdirAll(b.mounts, passable), os.Chmod(b.mounts, passable)); err != nil {
		return nil, errors.Join(fmt.Errorf("libcontainer: root file systems are mounted below /run: %w; make it writable", err), b.Close())
	}
	// A daemon that was killed has left what none of its containers needs.
	if err := cmp.Or(os.RemoveAll(b.states), os.Mkdir(b.states, 0o700)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if host.ids == "" {
		if err := b.openIDs(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// The directories below Options.Dir.
const (
	containersDir = "containers"
	imagesDir     = "images"
	templatesDir  = "templates"
	lostDir       = "lost" // what cannot be removed
)

// closePatience is how long Close waits for the processes of all containers to die.
const closePatience = 10 * time.Second

// Close gives up what the Backend holds on the host beside its containers, such
// as the firewall table and ports. Containers that are still there end with
// their first processes; the next Backend removes what is left of them on the
// disk. Close waits at most 10 s for processes that do not die, and says so.
// Nothing may be called after Close.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.closing)
	all := slices.Collect(maps.Values(b.containers))
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	select {
	case <-b.unwatched:
	case <-ctx.Done(): // it looks at a directory of a server that does not answer
	}
	err := errors.Join(closeAll(ctx, all), b.poller.Close())
	b.program.Close()
	b.roots.Close()
	if b.network != nil {
		err = errors.Join(err, b.network.Close())
	}
	b.ports.Close()
	if b.ids != nil {
		b.ids.Close()
	}
	b.cgroups.Close()
	for _, dir := range []string{b.mounts, b.states} {
		if rmErr := unix.Rmdir(dir); rmErr != nil && rmErr != unix.ENOENT && rmErr != unix.ENOTEMPTY {
			err = errors.Join(err, fmt.Errorf("remove %s: %w", dir, rmErr))
		}
	}
	return err
}

// closeAll closes containers at once, so that none waits for one that does not end.
func closeAll(ctx context.Context, all []*container) error {
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, c := range all {
		closing.Go(func() { errs[i] = c.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// List implements [executor.ContainerBackend]. If somebody has deleted the
// directory of a container that this Backend has not made, or the directory of
// all, the cgroup still shows it, unless another daemon may own that cgroup.
func (b *Backend) List(context.Context) ([]string, error) {
	all, err := guids.Dirs(filepath.Join(b.options.Dir, containersDir))
	if err != nil {
		return nil, err
	}
	lost, err := b.cgroups.Children()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	for _, guid := range lost {
		if c := b.containers[guid]; c == nil || c.earlier {
			all = append(all, guid)
		}
	}
	b.mu.Unlock()
	slices.Sort(all)
	return slices.Compact(all), nil
}

// find is the container with a guid that this Backend has made.
func (b *Backend) find(guid string) (*container, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.containers[guid]
	if c == nil || !c.made {
		return nil, &executor.BackendError{Kind: executor.ErrNoContainer, GUID: guid}
	}
	return c, nil
}

// dir is the directory of a container.
func (b *Backend) dir(guid string) string { return filepath.Join(b.options.Dir, containersDir, guid) }

// isLost reports whether a cgroup of ours is all that is known of a container:
// somebody has deleted the directory by which it would be found.
func (b *Backend) isLost(guid string) bool {
	b.mu.Lock()
	known := b.containers[guid] != nil
	b.mu.Unlock()
	return !known && b.cgroups.Has(guid)
}
