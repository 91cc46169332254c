//go:build unix

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/internal/tarstream"
)

// StartSession implements [executor.SessionBackend]. Terminals are those of the
// host, and exist on Linux only. A descendant that starts a session of its own
// outlives the process, but not its container.
func (b *Backend) StartSession(ctx context.Context, guid string, spec executor.SessionSpec) (executor.Session, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.life.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := c.command(spec.ProcessSpec, b.options.SwitchUser)
	if err != nil {
		return nil, err
	}
	ends, err := stdio.OpenEnds(spec.Terminal, func() (master, slave *os.File, err error) {
		uid, gid := -1, -1
		if owner := cmd.attr.Sys.Credential; owner != nil {
			uid, gid = int(owner.Uid), int(owner.Gid)
		}
		return stdio.OpenTerminal("/dev/ptmx", uid, gid)
	})
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.guid, err)
	}
	cmd.attr.Sys.Setctty = ends.Terminal // which is descriptor 0
	return c.sessions.Start(ends, spec.ProcessSpec, func(whole executor.ProcessSpec, stdin *os.File) (stdio.Target, error) {
		return c.run(cmd, whole, stdin)
	})
}

var sessionSignals = map[executor.SessionSignal]syscall.Signal{
	executor.SignalHangup: syscall.SIGHUP, executor.SignalInterrupt: syscall.SIGINT, executor.SignalQuit: syscall.SIGQUIT,
	executor.SignalKill: syscall.SIGKILL, executor.SignalUser1: syscall.SIGUSR1, executor.SignalUser2: syscall.SIGUSR2,
	executor.SignalTerminate: syscall.SIGTERM,
}

// Send implements [stdio.Target].
func (p *process) Send(s executor.SessionSignal) error {
	number, known := sessionSignals[s]
	if !known {
		return fmt.Errorf("there is no signal %q", s)
	}
	p.send(number)
	return nil
}

// CopyIn implements [executor.SessionBackend]. It copies with the rights of the
// daemon, which the processes have, too. With SwitchUser they have others, so it is
// refused.
func (b *Backend) CopyIn(ctx context.Context, guid, name, _ string, tar io.Reader) error {
	c, err := b.copying(guid)
	if err != nil {
		return err
	}
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()
	base := "."
	dir, err := root.OpenRoot(path.Join(".", path.Clean("/"+name)))
	if err != nil && !strings.HasSuffix(name, "/") {
		base = path.Base(name)
		dir, err = root.OpenRoot(path.Join(".", path.Dir(path.Clean("/"+name))))
	}
	if err != nil {
		return c.streams().Err(fmt.Errorf("%w: %w", executor.ErrNoFile, err), name)
	}
	defer dir.Close()
	return c.streams().Err(archive.Place(ctx, dir, base, c.streams().Reader(ctx, tar), archive.Limits{}), name)
}

// CopyOut implements [executor.SessionBackend]; see CopyIn.
func (b *Backend) CopyOut(ctx context.Context, guid, name, _ string) (io.ReadCloser, error) {
	c, err := b.copying(guid)
	if err != nil {
		return nil, err
	}
	root, err := c.open()
	if err != nil {
		return nil, err
	}
	return c.streams().Out(ctx, tarstream.Place{Root: root, Path: name, Name: name})
}

// copying is the container with a guid if files can be copied in its rights.
func (b *Backend) copying(guid string) (*container, error) {
	c, err := b.find(guid)
	if err == nil && b.options.SwitchUser {
		err = &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid, Detail: "to copy files as another user; leave Options.SwitchUser out, or run a program that copies them"}
	}
	return c, err
}
