//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// makeIDs gives a container its ids. One that may take over the host shares the
// host's. The group of its directory is the first of them, for the next daemon;
// the directory's mode gives the group no rights.
func (b *Backend) makeIDs(c *container) error {
	if b.ids == nil || c.spec.Privileged {
		return nil
	}
	var err error
	if c.ids, err = b.ids.Take(c.guid); err != nil {
		return err
	}
	return os.Lchown(c.dir, -1, int(c.ids.First))
}

// openIDs makes the pool. The containers of an earlier daemon keep their ranges
// in it.
func (b *Backend) openIDs() (err error) {
	if b.ids, err = ids.NewPool(b.id, b.options.FirstID, b.options.LastID, IDsPerContainer); err != nil {
		return err
	}
	left, err := guids.Dirs(filepath.Join(b.options.Dir, containersDir))
	if err != nil {
		return err
	}
	for _, guid := range left {
		var s unix.Stat_t
		if err := unix.Lstat(b.dir(guid), &s); err != nil {
			return &os.PathError{Op: "lstat", Path: b.dir(guid), Err: err}
		}
		b.ids.Keep(guid, s.Gid) // which is in no range if it shared the host's ids
	}
	return nil
}

// ownIDsMissing says why containers cannot have ids of their own here. It tries
// in Options.Dir, on whose file system images and layers lie.
func ownIDsMissing(o Options) string {
	own, missing := ids.Probe(o.FirstID, IDsPerContainer)
	if !own.Own() {
		return missing
	}
	defer own.Space.Close()
	return rootfs.Missing(o.Dir, own)
}
