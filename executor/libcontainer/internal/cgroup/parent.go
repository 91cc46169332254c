//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/guids"
)

// A Parent is the cgroup below which those of all containers of a Backend are,
// and nothing else. Its methods may be called concurrently.
type Parent struct {
	path string

	mu     sync.Mutex
	self   *Cgroup  // its own; nil before it is asked for
	owned  *os.File // see Own
	closed bool
}

// NewParent returns the Parent with a path below base, which is that of [Base].
func NewParent(base, name string) *Parent { return &Parent{path: path.Join("/", base, name)} }

// Path is the parent's own, or that of the container guid below it, as
// libcontainer names it.
func (p *Parent) Path(guid string) string { return path.Join(p.path, guid) }

// Child returns the cgroup of a container. It need not be there.
func (p *Parent) Child(guid string) (*Cgroup, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	self, err := p.own()
	if err != nil {
		return nil, err
	}
	dirs := make(map[string]string, len(self.paths))
	for controller, dir := range self.paths {
		dirs[controller] = filepath.Join(dir, guid)
	}
	return at(p.Path(guid), dirs)
}

// own returns the parent's cgroup. To find its directories takes a look at all
// controllers, and is done once. The caller holds mu.
func (p *Parent) own() (_ *Cgroup, err error) {
	if p.self == nil {
		p.self, err = at(p.path, nil)
	}
	return p.self, err
}

// Own reports whether this Backend owns the cgroups below its parent, and so
// may remove those that it does not know. The owner has locked the parent's
// directory, and the kernel unlocks it when the owner dies. The name alone
// proves nothing: a daemon in somebody's container may have a Dir of the same
// name, which is not ours, and cgroups that we see.
func (p *Parent) Own() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owned != nil {
		return true
	}
	if p.closed {
		return false
	}
	g, err := p.own()
	if err != nil {
		return false
	}
	dir := g.paths[g.version.owner]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false
	}
	parent, err := os.Open(dir)
	if err != nil {
		return false
	}
	if err := unix.Flock(int(parent.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		parent.Close()
		return false
	}
	p.owned = parent
	return true
}

// Close gives the ownership up and removes the parent if nothing is left in it.
func (p *Parent) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.owned == nil {
		return
	}
	if g, err := p.own(); err == nil {
		for _, dir := range g.paths {
			unix.Rmdir(dir)
		}
	}
	unix.Flock(int(p.owned.Fd()), unix.LOCK_UN) // also if a child has it at this moment
	p.owned.Close()
	p.owned = nil
}

// Children lists the guids of the cgroups below the parent. It lists none while
// another Backend owns them.
func (p *Parent) Children() ([]string, error) {
	if !p.Own() {
		return nil, nil
	}
	p.mu.Lock()
	g, err := p.own()
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range g.paths {
		found, err := guids.Dirs(dir)
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Has reports whether a container's cgroup is there and ours.
func (p *Parent) Has(guid string) bool {
	if !p.Own() {
		return false
	}
	g, err := p.Child(guid)
	return err == nil && g.Exists()
}
