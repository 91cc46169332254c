//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// Metrics implements [executor.ContainerBackend]. The disk is what the
// container has written, not its image.
func (b *Backend) Metrics(ctx context.Context, guid string) (executor.Metrics, error) {
	c, err := b.find(guid)
	if err != nil {
		return executor.Metrics{}, err
	}
	c.life.RLock()
	defer c.life.RUnlock()
	if c.gone.Load() {
		return executor.Metrics{}, c.errGone()
	}
	m := c.cgroup.usage()
	m.DiskBytes = c.diskUsage(ctx)
	return m, ctx.Err()
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
	var bytes int64
	filepath.WalkDir(filepath.Join(c.dir, upperDir), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what is removed while we look counts as nothing
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return ctx.Err()
	})
	return bytes
}
