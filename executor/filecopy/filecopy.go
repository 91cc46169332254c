// Package filecopy is the caller's side of copying files into and out of
// containers: Send makes the tar stream for a cell's CopyIn, and Receive unpacks
// the stream of a CopyOut. A container may send anything, so Receive writes only
// inside its target, bounds sizes, and sets no special permission bits.
//
// # Concurrent use
//
// All functions may be called concurrently.
package filecopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Limits bound what Receive takes. Zero fields mean the defaults.
type Limits struct {
	// MaxBytes is the content of all files together (default 8 GiB).
	MaxBytes int64
	// MaxEntries is the number of files, directories and links (default 500,000).
	MaxEntries int
}

// Send writes the file or directory at path as a tar stream. It writes links as
// links, but follows path itself, and leaves out devices, pipes and sockets. Send
// ends soon after ctx.
func Send(ctx context.Context, w io.Writer, path string) error {
	whole, err := filepath.Abs(path)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole) // what the caller names may lie anywhere
	}
	if err != nil {
		return err
	}
	if whole == filepath.Dir(whole) {
		return fmt.Errorf("%s has no name that its copy could have: name something in it", path)
	}
	root, err := tenant.OpenRoot(filepath.Dir(whole))
	if err != nil {
		return err
	}
	defer root.Close()
	return archive.Pack(ctx, root, filepath.Base(whole), w)
}

// Receive unpacks a tar stream that has one file or directory. If path is a
// directory, that becomes an entry of it under the given name; otherwise it
// becomes path, whose parent directory must exist. A path that ends with a
// separator must be a directory. A directory is merged into one of its name,
// and a file replaces another; a file in place of a directory, or the reverse,
// is an fs.ErrExist. Nothing is written before the whole stream has arrived and
// is known to fit. An archive that holds more than one file or directory, or
// would write elsewhere, is an executor.ErrUnsafeArchive. Receive ends soon
// after ctx.
func Receive(ctx context.Context, r io.Reader, path, name string, l Limits) (err error) {
	target := filepath.Clean(path)
	info, err := os.Stat(target)
	switch isDir := err == nil && info.IsDir(); {
	case !isDir && path != "" && os.IsPathSeparator(path[len(path)-1]):
		return &fs.PathError{Op: "copy to", Path: path, Err: cmp.Or(err, error(syscall.ENOTDIR))}
	case isDir:
		if !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
			return fmt.Errorf("%q cannot be the name of a copy in %s: say how it is to be called", name, path)
		}
		target = filepath.Join(target, name)
	}
	if _, err := os.Stat(filepath.Dir(target)); err != nil {
		return err
	}
	// Unpack in a new directory on the same file system: no link leads out of it, and
	// path never shows a part of the copy.
	own, err := os.MkdirTemp(filepath.Dir(target), ".diego-copy-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tenant.RemoveAll(context.WithoutCancel(ctx), own)) }()
	root, err := tenant.OpenRoot(own)
	if err != nil {
		return err
	}
	defer root.Close()
	const copied = "copy"
	if err := archive.Place(ctx, root, copied, r, archive.Limits{MaxContentBytes: l.MaxBytes, MaxContentEntries: l.MaxEntries}); err != nil {
		return err
	}
	if _, err := root.Lstat(copied); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it is empty", executor.ErrUnsafeArchive)
	}
	moves, err := fit(nil, filepath.Join(own, copied), target)
	for _, m := range moves {
		if err == nil {
			err = os.Rename(m.from, m.to)
		}
	}
	return err
}

type move struct{ from, to string }

// fit adds the moves that bring a file or directory to its place: it goes as a whole
// unless there is a directory that it is to be merged into.
func fit(moves []move, from, to string) ([]move, error) {
	info, err := os.Lstat(from)
	if err != nil {
		return nil, err
	}
	before, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return append(moves, move{from, to}), nil
	case err != nil:
		return nil, err
	case before.IsDir() != info.IsDir():
		return nil, &fs.PathError{Op: "copy to", Path: to, Err: fs.ErrExist}
	case !info.IsDir():
		return append(moves, move{from, to}), nil
	}
	list, err := os.ReadDir(from)
	for _, e := range list {
		if err == nil {
			moves, err = fit(moves, filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	return moves, err
}
