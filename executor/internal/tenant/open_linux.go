package tenant

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links are followed to find one file, as in the kernel.
const maxLinks = 40

// Open opens a file or a directory. With NoFollow among the flags, a link is
// an ErrKind; anything else is one in any case.
func (r *Root) Open(name string, flags int) (*os.File, error) {
	handle, err := r.find(name, flags&NoFollow == 0)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return Reopen(handle, name, flags)
}

// OpenRoot opens a directory as a Root of its own.
func (r *Root) OpenRoot(name string) (*Root, error) {
	handle, err := r.find(name, true)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return HandleRoot(handle, name)
}

// find looks a path up and opens nothing of it: an O_PATH handle has no effect
// on what it stands for.
func (r *Root) find(name string, follow bool) (*os.File, error) {
	for range maxLinks {
		handle, err := r.root.OpenFile(name, unix.O_PATH, 0)
		if err != nil {
			return nil, err
		}
		info, err := handle.Stat()
		if err == nil && (info.Mode()&fs.ModeSymlink == 0 || !follow) {
			return handle, nil
		}
		handle.Close()
		if err != nil {
			return nil, err
		}
		target, err := r.Readlink(name)
		if err != nil {
			return nil, err
		}
		// What ".." means in it is known only when the links before it have
		// been followed: the path is not cleaned.
		if !strings.HasPrefix(target, "/") {
			target = name[:strings.LastIndexByte(name, '/')+1] + target
		}
		name = target
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: unix.ELOOP}
}

// Reopen opens what an O_PATH handle stands for, called name in errors, if it
// is a file or a directory. It never waits, never gets a controlling terminal
// and follows no link.
func Reopen(handle *os.File, name string, flags int) (*os.File, error) {
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if err := allowed(info, name); err != nil {
		return nil, err
	}
	// Files of /proc and /sys have no size, so an archive would hold nothing of them,
	// and some wait when they are read.
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(handle.Fd()), &s); err == nil && (s.Type == unix.PROC_SUPER_MAGIC || s.Type == unix.SYSFS_MAGIC) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w but made by the kernel", ErrKind)}
	}
	// The handle's own entry is what has to be followed, and leads to nothing else.
	f, err := os.OpenFile(self(handle), flags&^NoFollow|harmless, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err.(*fs.PathError).Err}
	}
	return f, nil
}

// HandleRoot opens the directory that an O_PATH handle stands for, called name
// in errors, as a Root.
func HandleRoot(handle *os.File, name string) (*Root, error) {
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.ENOTDIR}
	}
	return OpenRoot(self(handle))
}

func self(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
