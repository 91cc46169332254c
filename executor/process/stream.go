//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
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
	defer root.Close()
	err = archive.Extract(root, dir, &guardedReader{ctx, c, tar}, uid, gid)
	return c.errStream(err, dir)
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
	reader, writer := io.Pipe()
	go func() {
		defer root.Close()
		writer.CloseWithError(c.errStream(archive.Pack(root, path, writer), path))
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

// open opens the container's directory. Nothing is read or written outside,
// and after Delete nothing at all.
func (c *container) open() (*os.Root, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.gone.Load() {
		return nil, c.errGone()
	}
	return os.OpenRoot(c.dir)
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
func (c *container) errStream(err error, path string) error {
	for _, kind := range []error{executor.ErrUnsafeArchive, executor.ErrNoFile} {
		if errors.Is(err, kind) {
			return &executor.BackendError{Kind: kind, GUID: c.guid, Detail: path, Cause: err}
		}
	}
	if err != nil {
		return fmt.Errorf("container %q: %s: %w", c.guid, path, err)
	}
	return nil
}
