//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// StartSession implements [executor.SessionBackend].
func (b *Backend) StartSession(ctx context.Context, guid string, spec executor.SessionSpec) (executor.Session, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.life.RUnlock()
	request, err := c.request(spec.ProcessSpec)
	if err != nil {
		return nil, err
	}
	ends, err := stdio.OpenEnds(spec.Terminal, func() (master, slave *os.File, err error) { return c.terminal(request.UID, request.GID) })
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.guid, err)
	}
	request.Terminal = ends.Terminal
	return c.sessions.Start(ends, spec.ProcessSpec, func(whole executor.ProcessSpec, stdin *os.File) (stdio.Target, error) {
		return c.run(ctx, whole, request, stdin)
	})
}

// Send implements [stdio.Target].
func (p *process) Send(s executor.SessionSignal) error {
	c := p.c
	number := unix.SignalNum("SIG" + string(s))
	if number == 0 {
		return fmt.Errorf("container %q: there is no signal %q", c.guid, s)
	}
	if c.enter() != nil {
		return nil
	}
	defer c.life.RUnlock()
	c.mu.Lock()
	over, pid := p.end != nil, p.pid
	p.killed = p.killed || s == executor.SignalKill
	c.mu.Unlock()
	if over {
		return nil
	}
	return c.send(-pid, number)
}

// terminal makes a terminal among those of the container. The caller holds life.
func (c *container) terminal(uid, gid uint32) (master, slave *os.File, err error) {
	const multiplexer = "/dev/pts/ptmx"
	handle, err := c.device(multiplexer, unix.Mkdev(5, 2))
	if err != nil {
		return nil, nil, err
	}
	defer handle.Close()
	var system unix.Statfs_t
	fd := int(handle.Fd())
	if err := unix.Fstatfs(fd, &system); err != nil {
		return nil, nil, err
	}
	if system.Type != unix.DEVPTS_SUPER_MAGIC {
		return nil, nil, fmt.Errorf("%s is not what makes terminals; the container has replaced it", multiplexer)
	}
	return stdio.OpenTerminal(fmt.Sprintf("/proc/self/fd/%d", fd), c.ids.Host(uid), c.ids.Host(gid))
}

// CopyIn implements [executor.SessionBackend].
func (b *Backend) CopyIn(ctx context.Context, guid, name, user string, tar io.Reader) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	return c.streams().Err(c.asUser(user, func() error {
		root, rest, err := c.copyTarget(name)
		if err != nil {
			return err
		}
		defer root.Close()
		return archive.Place(ctx, root, rest, c.streams().Reader(ctx, tar), archive.Limits{})
	}), name)
}

// CopyOut implements [executor.SessionBackend].
func (b *Backend) CopyOut(ctx context.Context, guid, name, user string) (io.ReadCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	return c.streams().Pack(ctx, name, func(w io.Writer) error {
		return c.asUser(user, func() error {
			root, base, err := c.source(name)
			if err != nil {
				return err
			}
			defer root.Close()
			return archive.Pack(ctx, root, base, w)
		})
	})
}

// asUser calls f on a thread that may do with files what a user of the container
// may.
func (c *container) asUser(name string, f func() error) error {
	if err := c.enter(); err != nil {
		return err
	}
	user, err := c.user(name)
	c.life.RUnlock()
	if err != nil {
		return err
	}
	return c.ids.AsUser(user, f)
}

// copyTarget is where something is to be put: "." in the directory of that name, or a
// name in the directory above.
func (c *container) copyTarget(name string) (root *tenant.Root, base string, err error) {
	if err := c.enter(); err != nil {
		return nil, "", err
	}
	root, err = rootfs.OpenRoot(c.root, name)
	c.life.RUnlock()
	switch {
	case err == nil:
		return root, ".", nil
	case strings.HasSuffix(name, "/") && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)):
		return nil, "", fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	return c.source(name)
}
