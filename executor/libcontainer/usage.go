//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/life"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// Usage implements [executor.ContainerBackend]. The disk is what the
// container has written, not its image.
func (b *Backend) Usage(ctx context.Context, guid string) (executor.Usage, error) {
	c, err := b.find(guid)
	if err != nil {
		return executor.Usage{}, err
	}
	m, err := c.usage()
	if err != nil || c.spec.Resources.DiskMB > 0 {
		return m, err
	}
	// This may take long and holds up nobody. It needs nothing that Delete closes.
	m.DiskBytes = tenant.Measure(ctx, filepath.Join(c.dir, rootfs.UpperDir), tenant.Content)
	return m, ctx.Err()
}

// usage is what can be read at once: all but the disk of a container without a
// disk limit.
func (c *container) usage() (executor.Usage, error) {
	if err := life.RLock(&c.life, c.deleted); err != nil {
		return executor.Usage{}, err
	}
	defer c.life.RUnlock()
	m := c.cgroup.Usage()
	m.ReceivedBytes, m.SentBytes = c.link.Traffic()
	if c.spec.Resources.DiskMB == 0 {
		return m, nil
	}
	var s unix.Statfs_t
	m.DiskBytes = executor.Unknown
	if unix.Fstatfs(int(c.root.Fd()), &s) == nil { // of an overlay: its upper layer's
		m.DiskBytes = int64(s.Blocks-s.Bfree) * s.Bsize
	}
	return m, nil
}
