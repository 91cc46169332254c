//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/internal/hostport"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// Backend is an [executor.ContainerBackend]. Its methods may be called at
// once from many goroutines.
type Backend struct {
	options Options
	// id tells what belongs to this Dir from what belongs to others on the
	// same host: cgroups, network devices, firewall tables.
	id      string
	mounts  string // where root file systems are mounted; each can go through it to its own
	host    facts
	base    string   // the cgroup below which all of ours are
	hidden  []string // paths in /proc that no container is shown
	program *os.File // what every first process runs
	null    *os.File
	poller  *poller
	images  images
	network *network // nil with Options.HostNetwork, or where the host has no means
	ids     *idPool  // nil with Options.SharedIDs, or where the host has no means

	mu         sync.Mutex
	containers map[string]*container
	ports      *hostport.Range
	parent     *os.File // see own
	closed     bool
}

// idBytes is the length of an id before it is written in hexadecimal. Names of
// devices have little room.
const idBytes = 4

var (
	_ executor.ContainerBackend = (*Backend)(nil)
	_ executor.Sweeper          = (*Backend)(nil)
)

// New returns a Backend that keeps its containers in o.Dir. It touches none
// that are there already, but for their network, which ends: List shows them
// and Delete removes them. An error that is executor.ErrUnsupported means that
// this host can run no containers.
func New(o Options) (*Backend, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	base := "/"
	if os.Geteuid() == 0 {
		if base, err = cgroupBase(); err != nil {
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
	host.overlay = overlayMissing(o.Dir, ids{})
	if host.ids = "Options.SharedIDs is set"; !o.SharedIDs {
		host.ids = ownIDsMissing(o.Dir, o.FirstID)
	}
	hidden, err := hiddenInProc()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(o.Dir))
	b := &Backend{
		options:    o,
		host:       host,
		base:       base,
		hidden:     hidden,
		id:         hex.EncodeToString(sum[:idBytes]),
		mounts:     "/run/diego-" + hex.EncodeToString(sum[:idBytes]),
		containers: make(map[string]*container),
		ports:      hostport.NewRange(o.FirstPort, o.LastPort),
	}
	b.images = images{backend: b}
	if b.program, err = pid1.Program(); err != nil {
		return nil, err
	}
	if b.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		b.program.Close()
		return nil, err
	}
	if b.poller, err = newPoller(); err != nil {
		b.program.Close()
		b.null.Close()
		return nil, err
	}
	if !o.HostNetwork {
		share := o.MaxConnections
		if share == 0 {
			share = shareOfConnections()
		}
		if b.network, err = newNetwork(b.id, o.Subnet, share); err != nil {
			b.host.network = err.Error()
		} else {
			b.host.connections = b.network.unbounded
		}
	}
	b.own()
	if err := os.MkdirAll(b.mounts, 0o711); err != nil {
		return nil, errors.Join(fmt.Errorf("libcontainer: root file systems are mounted below /run: %w; make it writable", err), b.Close())
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

// Close gives up what the Backend holds on the host beside its containers:
// firewall table, ports. The first processes of containers
// that are still there end, and with them the containers; what is left of
// those on the disk is for the next Backend. Nothing may be called afterwards.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	all := make([]*container, 0, len(b.containers))
	for _, c := range b.containers {
		all = append(all, c)
	}
	b.mu.Unlock()
	for _, c := range all {
		c.gone.Store(true)
		c.life.Lock()
		c.end()
		if c.link.wire != nil {
			c.link.wire.ns.Close()
		}
		c.life.Unlock()
	}
	err := b.poller.close()
	b.program.Close()
	b.null.Close()
	b.images.view.close()
	if b.network != nil {
		if networkErr := b.network.close(); err == nil {
			err = networkErr
		}
	}
	b.ports.Close()
	if b.ids != nil {
		b.ids.close()
	}
	b.disown()
	if rmErr := unix.Rmdir(b.mounts); rmErr != nil && rmErr != unix.ENOENT && rmErr != unix.ENOTEMPTY {
		err = errors.Join(err, fmt.Errorf("remove %s: %w", b.mounts, rmErr))
	}
	return err
}

// List implements [executor.ContainerBackend]. A container whose directory
// somebody has deleted is known by its cgroup, unless that may be somebody
// else's.
func (b *Backend) List(context.Context) ([]string, error) {
	all, err := guids.Dirs(filepath.Join(b.options.Dir, containersDir))
	if err != nil {
		return nil, err
	}
	lost, err := b.lost()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	for _, guid := range lost {
		if b.containers[guid] == nil {
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
