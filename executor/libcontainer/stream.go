//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tarstream"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// StreamIn implements [executor.ContainerBackend].
func (b *Backend) StreamIn(ctx context.Context, guid, dir, user string, tar io.Reader) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	root, rest, owner, err := c.target(dir, user)
	if err != nil {
		return c.streams().Err(err, dir)
	}
	return c.ids.As(owner.UID, owner.GID, func() error {
		place := tarstream.Place{Root: root, Path: rest, Name: dir}
		return c.streams().In(ctx, place, tar, c.ids.Host(owner.UID), c.ids.Host(owner.GID))
	})
}

// target is where a stream goes, and to whom it will belong.
func (c *container) target(dir, name string) (root *tenant.Root, rest string, owner ids.User, err error) {
	if err := c.enter(); err != nil {
		return nil, "", owner, err
	}
	defer c.life.RUnlock()
	if owner, err = c.user(name); err != nil {
		return nil, "", owner, err
	}
	root, rest, err = rootfs.Deepest(c.root, dir)
	return root, rest, owner, err
}

// StreamOut implements [executor.ContainerBackend]. It reads what the user may read
// and, if that does not include the file, what root in the container may. Root of the
// host could read what the container is not shown of its host.
func (b *Backend) StreamOut(ctx context.Context, guid, name, user string) (io.ReadCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	if c.spec.Privileged { // which may read all files
		root, base, err := c.source(name)
		if err != nil {
			return nil, c.streams().Err(err, name)
		}
		return c.streams().Out(ctx, tarstream.Place{Root: root, Path: base, Name: name})
	}
	const root = "0:0"
	stream, err := b.CopyOut(ctx, guid, name, cmp.Or(user, root))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, executor.ErrNoUser) {
		return b.CopyOut(ctx, guid, name, root)
	}
	return stream, err
}

func (c *container) streams() tarstream.Container {
	return tarstream.Container{GUID: c.guid, Gone: c.deleted}
}

func (c *container) source(name string) (root *tenant.Root, base string, err error) {
	if err := c.enter(); err != nil {
		return nil, "", err
	}
	defer c.life.RUnlock()
	name = path.Clean("/" + name)
	root, err = rootfs.OpenRoot(c.root, path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		err = fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	return root, path.Base(name), err
}

// makeFiles writes the files of the ContainerSpec, and those that tell a
// process about its network.
func (c *container) makeFiles() error {
	files := c.spec.Files
	if !c.backend.options.HostNetwork {
		files = append(c.networkFiles(), files...)
	}
	if len(files) == 0 { // and no thread has to be made
		return nil
	}
	return c.ids.As(0, 0, func() error {
		for _, f := range files {
			if err := c.writeFile(f); err != nil {
				return fmt.Errorf("container %q: file %s: %w", c.guid, f.Path, err)
			}
		}
		return nil
	})
}

func (c *container) writeFile(f executor.File) error {
	root, rest, err := rootfs.Deepest(c.root, path.Dir("/"+f.Path))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(rest, 0o755); err != nil {
		return err
	}
	name := path.Join(rest, path.Base(f.Path))
	// A link in the image, as /etc/resolv.conf often is, is replaced. In another mount
	// namespace, a mount would go with what it is on; see supported.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(name, []byte(f.Content), 0o644)
}
