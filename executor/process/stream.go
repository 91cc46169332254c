//go:build unix

package process

import (
	"context"
	"io"

	"github.com/diegosdk/diego/executor/internal/tarstream"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// StreamIn implements [executor.ContainerBackend].
func (b *Backend) StreamIn(ctx context.Context, guid, dir, user string, tar io.Reader) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if b.options.SwitchUser {
		credential, err := c.lookup(user)
		if err != nil {
			return err
		}
		uid, gid = int(credential.Uid), int(credential.Gid)
	}
	root, err := c.open()
	if err != nil {
		return err
	}
	return c.streams().In(ctx, tarstream.Place{Root: root, Path: dir, Name: dir}, tar, uid, gid)
}

// StreamOut implements [executor.ContainerBackend].
func (b *Backend) StreamOut(ctx context.Context, guid, path, _ string) (io.ReadCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	root, err := c.open()
	if err != nil {
		return nil, err
	}
	return c.streams().Out(ctx, tarstream.Place{Root: root, Path: path, Name: path})
}

func (c *container) streams() tarstream.Container {
	return tarstream.Container{GUID: c.guid, Gone: c.deleted}
}

// open opens the container's directory. Nothing is read or written outside,
// and after Delete nothing at all.
func (c *container) open() (*tenant.Root, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.life.RUnlock()
	return tenant.OpenRoot(c.dir)
}
