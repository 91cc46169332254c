// Package tarstream carries tar archives into and out of a container that may
// be deleted meanwhile.
package tarstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// A Container is where streams begin and end.
type Container struct {
	GUID string
	// Gone is an error once the container is being deleted. Every stream ends
	// with it, so that a slow one never delays that.
	Gone func() error
}

// A Place is a path below a directory that nothing leads out of. Name is how
// the caller knows it.
type Place struct {
	Root       *tenant.Root
	Path, Name string
}

// In unpacks an archive into a directory, for an owner; see [archive.Extract].
// It closes the place's root.
func (c Container) In(ctx context.Context, dir Place, tar io.Reader, uid, gid int) error {
	defer dir.Root.Close()
	return c.Err(archive.Extract(ctx, dir.Root, dir.Path, c.Reader(ctx, tar), uid, gid), dir.Name)
}

// Reader reads from r until the context or the container ends.
func (c Container) Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, c, r} }

// Out is an archive of a file or a directory; see [archive.Pack]. A file that
// is not there is an error now and not in the middle. The place's root is
// closed when either side ends the stream.
func (c Container) Out(ctx context.Context, from Place) (io.ReadCloser, error) {
	return c.Pack(ctx, from.Name, func(w io.Writer) error {
		defer from.Root.Close()
		return archive.Pack(ctx, from.Root, from.Path, w)
	})
}

// Pack is Out for a stream that pack writes in a goroutine of its own. The caller
// knows what is packed as name.
func (c Container) Pack(ctx context.Context, name string, pack func(io.Writer) error) (io.ReadCloser, error) {
	in, out := io.Pipe()
	go func() { out.CloseWithError(c.Err(pack(&writer{ctx, c, out}), name)) }()
	stop := context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	s := &stream{Reader: bufio.NewReader(in), pipe: in, stop: stop}
	if _, err := s.Peek(1); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// refusals are errors that come from what lies in the container. io.EOF is that of a
// file with less in it than its size, because somebody cuts it off meanwhile or because
// the kernel makes it (/sys); of an archive that ends early it is io.ErrUnexpectedEOF.
// tenant.ErrChanged is also that of a link in whose place something else was put.
var refusals = []error{
	fs.ErrPermission, fs.ErrExist, archive.ErrTooLarge, tenant.ErrChanged, io.EOF,
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EAGAIN,
	syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
}

// Err names what is wrong with a stream: a *executor.BackendError where there
// is a kind for it.
func (c Container) Err(err error, name string) error {
	if err == nil || errors.As(err, new(*executor.BackendError)) {
		return err
	}
	for _, kind := range []error{executor.ErrUnsafeArchive, executor.ErrNoFile} {
		if errors.Is(err, kind) {
			return &executor.BackendError{Kind: kind, GUID: c.GUID, Detail: name, Cause: err}
		}
	}
	for _, cause := range refusals {
		if errors.Is(err, cause) {
			return &executor.BackendError{Kind: executor.ErrFileRefused, GUID: c.GUID, Detail: name, Cause: err}
		}
	}
	return fmt.Errorf("container %q: %s: %w", c.GUID, name, err)
}

// A reader ends with its context and with its container.
type reader struct {
	ctx context.Context
	c   Container
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if err := r.c.Gone(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// A writer ends with its context and with its container.
type writer struct {
	ctx context.Context
	c   Container
	w   io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if err := w.c.Gone(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// A stream is the reading end.
type stream struct {
	*bufio.Reader
	pipe *io.PipeReader
	stop func() bool
}

// Close lets the writing end go.
func (s *stream) Close() error {
	s.stop()
	return s.pipe.Close()
}
