//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// StreamIn implements [executor.ContainerBackend].
func (b *Backend) StreamIn(ctx context.Context, guid, dir, user string, tar io.Reader) error {
	c, err := b.find(guid)
	if err != nil {
		return err
	}
	root, rest, uid, gid, err := c.target(dir, user)
	if err != nil {
		return c.errStream(err, dir)
	}
	defer root.Close()
	return c.errStream(archive.Extract(root, rest, &guardedReader{ctx, c, tar}, uid, gid), dir)
}

// target is where a stream goes, and to whom it will belong.
func (c *container) target(dir, user string) (root *os.Root, rest string, uid, gid int, err error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if err := c.usable(); err != nil {
		return nil, "", 0, 0, err
	}
	owner, err := c.user(user)
	if err != nil {
		return nil, "", 0, 0, err
	}
	root, rest, err = rootfs.Deepest(c.root, dir)
	return root, rest, int(owner.uid), int(owner.gid), err
}

// StreamOut implements [executor.ContainerBackend].
func (b *Backend) StreamOut(ctx context.Context, guid, name, _ string) (io.ReadCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	root, base, err := c.source(name)
	if err != nil {
		return nil, c.errStream(err, name)
	}
	reader, writer := io.Pipe()
	go func() {
		defer root.Close()
		writer.CloseWithError(c.errStream(archive.Pack(root, base, &guardedWriter{c, writer}), name))
	}()
	stop := context.AfterFunc(ctx, func() { writer.CloseWithError(ctx.Err()) })
	out := &stream{Reader: bufio.NewReader(reader), pipe: reader, stop: stop}
	// A file that is not there is an error now and not in the middle.
	if _, err := out.Peek(1); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func (c *container) source(name string) (root *os.Root, base string, err error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if err := c.usable(); err != nil {
		return nil, "", err
	}
	name = path.Clean("/" + name)
	root, err = rootfs.OpenRoot(c.root, path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		err = fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	return root, path.Base(name), err
}

// A guardedReader ends with its context and with its container, so that a
// slow stream never delays Delete.
type guardedReader struct {
	ctx context.Context
	c   *container
	r   io.Reader
}

func (g *guardedReader) Read(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	if g.c.gone.Load() {
		return 0, g.c.errGone()
	}
	return g.r.Read(p)
}

// A guardedWriter ends with its container.
type guardedWriter struct {
	c *container
	w io.Writer
}

func (g *guardedWriter) Write(p []byte) (int, error) {
	if g.c.gone.Load() {
		return 0, g.c.errGone()
	}
	return g.w.Write(p)
}

// A stream is the reading end of a tar stream.
type stream struct {
	*bufio.Reader
	pipe *io.PipeReader
	stop func() bool
}

// Close lets the writer end.
func (s *stream) Close() error {
	s.stop()
	return s.pipe.Close()
}

// errStream names what is wrong with a stream of the container.
func (c *container) errStream(err error, name string) error {
	if errors.As(err, new(*executor.BackendError)) {
		return err
	}
	for _, kind := range []error{executor.ErrUnsafeArchive, executor.ErrNoFile} {
		if errors.Is(err, kind) {
			return &executor.BackendError{Kind: kind, GUID: c.guid, Detail: name, Cause: err}
		}
	}
	if err != nil {
		return fmt.Errorf("container %q: %s: %w", c.guid, name, err)
	}
	return nil
}

// makeFiles writes the files of the ContainerSpec, and those that tell a
// process about its network.
func (b *Backend) makeFiles(_ context.Context, c *container) error {
	files := c.spec.Files
	if !b.options.HostNetwork {
		files = append(c.networkFiles(), files...)
	}
	for _, f := range files {
		if err := c.writeFile(f); err != nil {
			return fmt.Errorf("container %q: file %s: %w", c.guid, f.Path, err)
		}
	}
	return nil
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
	// A link in the image, as /etc/resolv.conf often is, is replaced.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if !errors.Is(err, unix.EBUSY) { // somebody's mount: written to
			return err
		}
	}
	return root.WriteFile(name, []byte(f.Content), 0o644)
}

// networkFiles are what a process with a network of its own needs to know.
func (c *container) networkFiles() []executor.File {
	name := hostname(c.guid)
	files := []executor.File{
		{Path: "/etc/hostname", Content: name + "\n"},
		{Path: "/etc/hosts", Content: "127.0.0.1 localhost\n" + c.link.address() + " " + name + "\n"},
	}
	// A resolver on the host's loopback is not there for a container; systemd
	// keeps the real list elsewhere.
	for _, source := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		text, err := os.ReadFile(source)
		if err == nil && len(text) > 0 && !strings.Contains(string(text), "nameserver 127.") {
			return append(files, executor.File{Path: "/etc/resolv.conf", Content: string(text)})
		}
	}
	return files
}
