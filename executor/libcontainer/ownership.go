//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"io/fs"
	"os"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/guids"
)

// own reports whether this Backend owns the cgroups below its parent, and so
// may remove those that it does not know. Who owns them has locked the
// parent's directory, and the kernel unlocks it for the dead. The name alone
// proves nothing: a daemon in somebody's container may have a Dir of the same
// name, which is not ours, and cgroups that we see.
func (b *Backend) own() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parent != nil {
		return true
	}
	if b.closed {
		return false
	}
	g, err := b.parentCgroup()
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
	b.parent = parent
	return true
}

// disown removes the parent if nothing is left in it.
func (b *Backend) disown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parent == nil {
		return
	}
	if g, err := b.parentCgroup(); err == nil {
		for _, dir := range g.paths {
			unix.Rmdir(dir)
		}
	}
	unix.Flock(int(b.parent.Fd()), unix.LOCK_UN) // also if a child has it at this moment
	b.parent.Close()
	b.parent = nil
}

// lost are the guids of cgroups of ours that no container is known for:
// somebody has deleted the directory by which it would be found.
func (b *Backend) lost() ([]string, error) {
	if !b.own() {
		return nil, nil
	}
	g, err := b.parentCgroup()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range g.paths {
		found, err := guids.Dirs(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// isLost reports whether a cgroup of ours is all that is known of a container.
func (b *Backend) isLost(guid string) bool {
	b.mu.Lock()
	known := b.containers[guid] != nil
	b.mu.Unlock()
	if known || !b.own() {
		return false
	}
	g, err := b.cgroup(guid)
	if err != nil {
		return false
	}
	for _, dir := range g.paths {
		if exists(dir) {
			return true
		}
	}
	return false
}

func (b *Backend) parentCgroup() (*cgroup, error) {
	return newCgroup(&cgroups.Cgroup{Path: b.cgroupParent(), Resources: &cgroups.Resources{}})
}
