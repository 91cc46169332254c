//go:build unix

package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveAll removes a path of the host with everything below it. A tenant may have
// made the last element of the path, but none before it. RemoveAll follows no link
// and leaves mounts alone. A path that does not exist is not an error. After a
// failure it goes on; its error names the first failure and counts them. It ends
// with ctx.
//
// It takes a constant number of descriptors and constant memory, because what lies
// deeper than maxDescent directories is moved to the top before it is removed.
// Directories of the lower layers of an overlay cannot be moved. They take a
// descriptor for each level, but a tenant can add none.
func RemoveAll(ctx context.Context, path string) error {
	parent, err := os.Open(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return removeAt(ctx, parent, filepath.Base(path))
}

// RemoveAll is the function RemoveAll for what lies below r.
func (r *Root) RemoveAll(ctx context.Context, name string) error {
	dir, base := filepath.Split(name)
	parent, err := r.Open("./"+dir, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return removeAt(ctx, parent, base)
}

func removeAt(ctx context.Context, parent *os.File, name string) error {
	if name == "" || name == "." || name == ".." { // not what parent holds
		return &fs.PathError{Op: "remove", Path: name, Err: unix.EINVAL}
	}
	err := removeOne(parent, name)
	if !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	top, err := openDir(parent, name)
	if err != nil {
		return present(err)
	}
	defer top.Close()
	r := removal{ctx: ctx, top: top}
	const idle = 100 // passes that find nothing, though somebody makes one more file
	for pass := 0; ; pass++ {
		r.progress, r.failures, r.first = false, 0, nil
		if err := r.each(top, r.child(1)); err != nil {
			return err
		}
		err := removeOne(parent, name)
		switch {
		case err == nil || !errors.Is(err, unix.ENOTEMPTY):
			return err
		case r.progress:
			pass = 0
		case r.failures > 1:
			return fmt.Errorf("%w, and %d more", r.first, r.failures-1)
		case r.failures == 1:
			return r.first
		case pass == idle:
			return err
		}
		if _, err := top.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// A removal is in progress in a directory.
type removal struct {
	ctx    context.Context
	top    *os.File
	lifted int // counts names in top for what is lifted there

	progress bool // anything at all was removed or lifted in this pass
	failures int
	first    error
}

// each removes all that a directory holds. It calls full for a directory in it
// that is not empty.
func (r *removal) each(dir *os.File, full func(dir *os.File, name string) error) error {
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(chunk)
		if err == io.EOF || errors.Is(err, fs.ErrNotExist) { // somebody else has removed dir
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			err := removeOne(dir, name)
			if errors.Is(err, unix.ENOTEMPTY) {
				err = full(dir, name)
			}
			if r.ctx.Err() != nil {
				return r.ctx.Err()
			}
			r.note(err)
		}
	}
}

func (r *removal) note(err error) {
	switch {
	case err == nil:
		r.progress = true
	case err == errNoted:
	case r.first == nil:
		r.failures, r.first = 1, err
	default:
		r.failures++
	}
}

// maxDescent bounds how many directories are open at once below the top. That
// of a container whose tenant has written little is not deeper; to lift what is
// deeper takes a pass for each level.
const maxDescent = 5

// child returns a function that empties a subdirectory, which lies depth
// directories below the top, and removes it.
func (r *removal) child(depth int) func(parent *os.File, name string) error {
	deeper := r.lift
	if depth < maxDescent {
		deeper = func(dir *os.File, name string) error { return r.child(depth+1)(dir, name) }
	}
	return func(parent *os.File, name string) error {
		dir, err := openDir(parent, name)
		if err != nil {
			return present(err)
		}
		defer dir.Close()
		if err := r.each(dir, deeper); err != nil {
			return err
		}
		if err := removeOne(parent, name); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		return errNoted
	}
}

// errNoted is how a directory ends that still holds what could not be removed:
// that has been noted.
var errNoted = errors.New("not empty")

// lift moves a directory to the top.
func (r *removal) lift(dir *os.File, name string) error {
	for {
		r.lifted++
		err := unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), "lifted-"+strconv.Itoa(r.lifted))
		switch {
		case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR): // the name is taken
			continue
		case errors.Is(err, unix.EACCES) && os.Geteuid() != 0: // its owner has taken away his own rights
			opened, openErr := openDir(dir, name)
			if openErr != nil {
				return openErr
			}
			opened.Close()
			err = unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), "lifted-"+strconv.Itoa(r.lifted))
		}
		if errors.Is(err, unix.EXDEV) { // it is of an overlay's lower layer
			return r.child(maxDescent)(dir, name)
		}
		if err != nil {
			return present(&fs.PathError{Op: "rename", Path: name, Err: err})
		}
		return nil
	}
}

// present is an error unless it says that something is not there any more:
// somebody else removes it, too.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeOne removes a file, a link or an empty directory; what is not there is
// no error. A mount point is an EBUSY before it is said to hold anything, so
// that nobody enters it.
func removeOne(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == unix.EISDIR || err == unix.EPERM || err == unix.EACCES {
		if asDir := unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR); asDir != unix.ENOTDIR {
			err = asDir
		}
	}
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.EEXIST:
		err = unix.ENOTEMPTY
	}
	return &fs.PathError{Op: "remove", Path: name, Err: err}
}

// openDir opens a directory to empty it. A tenant that works as this process's
// own user may have taken rights away, which are given back.
func openDir(parent *os.File, name string) (*os.File, error) {
	const all = 0o700
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.EACCES && os.Geteuid() != 0 {
		if err = unix.Fchmodat(int(parent.Fd()), name, all, 0); err == nil {
			fd, err = unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	if os.Geteuid() != 0 {
		if info, err := dir.Stat(); err == nil && info.Mode().Perm()&all != all {
			dir.Chmod(all)
		}
	}
	return dir, nil
}
