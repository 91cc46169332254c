//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
)

// A hostView shows directories of the host to containers, without what not
// everybody on the host may read. To a container with ids of its own, their
// files belong to nobody without further ado: it is one of the others to them.
//
// Root in a container that shares the host's ids would own root's files. Where
// the kernel and the file systems can, the directories are mounted for it so
// that their files belong to nobody. Elsewhere what others may not read is
// masked, as it was found when the first such container needed it.
//
// Each container sees the directories through an overlay of its own. Otherwise any
// container could lock a file that a program of the host locks, and watch which
// programs the host and its neighbours run.
type hostView struct {
	mu     sync.Mutex
	known  bool     // whether what follows is
	owners *os.File // a user namespace without an owner; nil if masks do it
	masks  []string
}

// unowned is the only uid and gid in hostView.owners: the last there is, which
// no process and no file has.
const unowned = 1<<32 - 2

// mount mounts the directories below root, and returns what is to be masked.
// empty is a directory on which it may mount something.
func (v *hostView) mount(root, empty string, own ids.Range) (masks []string, err error) {
	dirs := hostDirectories()
	// A directory that is removed, as empty will be, makes an overlay's root look empty.
	if err := unix.Mount("tmpfs", empty, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4k"); err != nil {
		return nil, &os.PathError{Op: "mount", Path: empty, Err: err}
	}
	mounts, err := mountPoints()
	if err != nil {
		return nil, err
	}
	var owners *os.File
	if !own.Own() {
		if err := v.look(dirs); err != nil {
			return nil, err
		}
		owners, masks = v.owners, v.masks
	}
	for _, dir := range dirs {
		target := filepath.Join(root, dir)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return nil, err
		}
		tree, err := openTree(dir, unix.AT_RECURSIVE, owners)
		if err != nil {
			return nil, err
		}
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
		unix.Close(tree)
		if err != nil {
			return nil, &os.PathError{Op: "move_mount", Path: target, Err: err}
		}
		if slices.ContainsFunc(mounts, func(m string) bool { return strings.HasPrefix(m, dir+"/") }) {
			continue // an overlay would not show what is mounted below
		}
		if err := own.AsMounter(func() error { return cover(target, empty) }); err != nil {
			return nil, err
		}
	}
	return masks, nil
}

// cover mounts an overlay over what is mounted at dir and shows the same. The
// kernel asks for two directories, so there is an empty one, too. If it cannot do
// that, because overlays lie below already, dir stays as it is.
//
// An overlay keeps the modes of files that it has shown, and opens the files in the
// rights of the thread that has mounted it. So that thread must have none that the
// container has not: otherwise a file that the host closes stays open there.
func cover(dir, empty string) error {
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	err := unix.Mount("overlay", dir, "overlay", flags, "lowerdir="+escapeOverlay(dir)+":"+escapeOverlay(empty))
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return os.NewSyscallError("mount", err)
}

// mountPoints are the paths at which something is mounted, as /proc writes them.
func mountPoints() (paths []string, err error) {
	const file, point = "/proc/self/mountinfo", 4
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > point {
			paths = append(paths, fields[point])
		}
	}
	return paths, nil
}

// look finds out what this host can do, until it has succeeded.
func (v *hostView) look(dirs []string) (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known {
		return nil
	}
	if v.owners, err = ownerless(dirs); err == nil && v.owners == nil {
		v.masks, err = notForOthers(dirs)
	}
	v.known = err == nil
	return err
}

// UseMasks has the host's directories shown by masks from now on, as on a host
// that cannot show files without owners. Tests ask for it.
func (m *Mounter) UseMasks() error {
	masks, err := notForOthers(hostDirectories())
	if err != nil {
		return err
	}
	v := &m.images.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known, v.masks = true, masks
	return nil
}

func (v *hostView) close() {
	if v.owners != nil {
		v.owners.Close()
	}
}

// openTree returns a read-only copy of what is mounted at dir and, if recursive is
// AT_RECURSIVE, below. Unless owners is nil, it is a user namespace, and the copy
// shows the owner of each file as that maps it.
func openTree(dir string, recursive uint, owners *os.File) (fd int, err error) {
	fd, err = unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|recursive)
	if err != nil {
		return -1, &os.PathError{Op: "open_tree", Path: dir, Err: err}
	}
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if owners != nil {
		attributes.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attributes.Userns_fd = uint64(owners.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|recursive, &attributes); err != nil {
		unix.Close(fd)
		return -1, &os.PathError{Op: "mount_setattr", Path: dir, Err: err}
	}
	return fd, nil
}

// ownerless is the namespace with which all of dirs can be mounted, or nil if
// this host cannot do that. It is an error if something is exhausted.
func ownerless(dirs []string) (*os.File, error) {
	owners, err := ids.HoldNamespace([]syscall.SysProcIDMap{{ContainerID: unowned, HostID: unowned, Size: 1}})
	if ids.Exhausted(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil // no user namespaces here
	}
	for _, dir := range dirs {
		tree, err := openTree(dir, unix.AT_RECURSIVE, owners)
		if err != nil {
			owners.Close()
			if ids.Exhausted(err) {
				return nil, err
			}
			return nil, nil // a file system that has only its own owners
		}
		unix.Close(tree)
	}
	return owners, nil
}

// notForOthers are the files and directories below dirs that not everybody may
// read.
func notForOthers(dirs []string) (paths []string, err error) {
	const read, readAndEnter = 0o004, 0o005
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			switch {
			case err != nil: // it has just gone
				return nil
			case d.IsDir() && info.Mode()&readAndEnter != readAndEnter:
				paths = append(paths, path)
				return fs.SkipDir
			case d.Type().IsRegular() && info.Mode()&read == 0:
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return paths, nil
}
