//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
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
	if err != nil {
		return m, err
	}
	m.DiskBytes = c.diskUsage(ctx) // may take long, and holds up nobody
	return m, ctx.Err()
}

func (c *container) usage() (executor.Usage, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if err := c.deleted(); err != nil {
		return executor.Usage{}, err
	}
	return c.cgroup.Usage(), nil
}

func (c *container) diskUsage(ctx context.Context) int64 {
	var s unix.Statfs_t
	if c.spec.Resources.DiskMB > 0 {
		// An overlay tells what its upper layer does.
		if err := unix.Fstatfs(int(c.root.Fd()), &s); err != nil {
			return executor.Unknown
		}
		return int64(s.Blocks-s.Bfree) * s.Bsize
	}
	return tenant.Measure(ctx, filepath.Join(c.dir, rootfs.UpperDir), tenant.Content)
}
