//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// idsFile, in the directory of a container, holds the first of its ids.
const idsFile = "ids"

// makeIDs gives a container its ids. One that may take over the host shares the
// host's.
func (b *Backend) makeIDs(c *container) error {
	if b.ids == nil || c.spec.Privileged {
		return nil
	}
	var err error
	if c.ids, err = b.ids.Take(c.guid); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, idsFile), []byte(strconv.FormatUint(uint64(c.ids.First), 10)), 0o600)
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
		text, err := os.ReadFile(filepath.Join(b.dir(guid), idsFile))
		if err != nil {
			continue // it shared the host's ids, or was not made that far
		}
		if first, err := strconv.ParseUint(string(text), 10, 32); err == nil {
			b.ids.Keep(guid, uint32(first))
		}
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
