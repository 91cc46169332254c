//go:build linux

// Package rootfs makes the root file systems of containers and works with what
// is in them, which nobody trusts. A [Mounter] finds or unpacks an image, puts a
// container's own layer and disk over it and mounts both. [Open] and [OpenRoot]
// open files in a container without ever leaving it.
package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Find looks a path below a root directory up and returns an O_PATH handle:
// nothing is opened yet, so a device there notices nothing. Links are followed
// as for a process whose root it is, and never out of it; those of /proc that
// lead elsewhere are not followed at all. Among the flags may be O_DIRECTORY
// and O_NOFOLLOW.
func Find(root *os.File, name string, flags int) (*os.File, error) {
	fd, err := find(root, name, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func find(root *os.File, name string, flags int) (fd int, err error) {
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_PATH | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for again := 0; ; {
		fd, err := openat2(int(root.Fd()), path.Clean("/"+name), how)
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && again < maxAgain: // somebody renames while we look
			again++
			continue
		}
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
}

// maxAgain is how often a lookup begins again. The kernel gives one up if anything on
// the host was renamed before it came to the next "..". A tenant can rename without a
// pause and make links with thousands of "..", whose lookup would never end. Links
// that others make have a few, and are found after a few attempts at most.
const maxAgain = 128

// openat2 is the system call. A test replaces it.
var openat2 = unix.Openat2

// Stat looks at what a path leads to; see Find.
func Stat(root *os.File, name string) (s unix.Stat_t, err error) {
	fd, err := find(root, name, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(fd)
	return s, os.NewSyscallError("fstat", unix.Fstat(fd, &s))
}

// Open opens a file or directory below a root directory for reading; see Find
// and tenant.Reopen.
func Open(root *os.File, name string) (*os.File, error) {
	handle, err := Find(root, name, 0)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return tenant.Reopen(handle, name, unix.O_RDONLY)
}

// Deepest is the deepest directory of dir that is there, as one that nobody
// leaves, and what is missing below it.
func Deepest(from *os.File, dir string) (root *tenant.Root, rest string, err error) {
	rest = "."
	for at := path.Clean("/" + dir); ; at, rest = path.Dir(at), path.Join(path.Base(at), rest) {
		root, err = OpenRoot(from, at)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || at == "/" {
			return root, rest, err
		}
	}
}

// OpenRoot opens a directory below a root as one that nobody leaves.
func OpenRoot(from *os.File, dir string) (*tenant.Root, error) {
	handle, err := Find(from, dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return tenant.HandleRoot(handle, dir)
}
