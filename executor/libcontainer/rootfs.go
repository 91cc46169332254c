//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// The directories below that of a container: its own layer and what overlayfs
// works with lie on a disk of its own if it has a limit.
const (
	diskDir   = "disk"
	upperDir  = "disk/upper"
	workDir   = "disk/work"
	rootFSDir = "rootfs"
)

// makeRootFS mounts what the container sees as "/": its own layer over the
// image that it shares with others. masks are what in it is to be hidden.
func (b *Backend) makeRootFS(ctx context.Context, c *container) (dir string, masks []string, err error) {
	image, err := b.images.find(ctx, c.guid, c.spec.RootFS)
	if err != nil {
		return "", nil, err
	}
	for _, name := range []string{diskDir, rootFSDir} {
		if err := os.Mkdir(filepath.Join(c.dir, name), 0o700); err != nil {
			return "", nil, err
		}
	}
	if c.spec.Resources.DiskMB > 0 {
		stage()
		if err := b.mountDisk(ctx, c); err != nil {
			return "", nil, fmt.Errorf("container %q: its disk: %w", c.guid, err)
		}
	}
	upper, work := filepath.Join(c.dir, upperDir), filepath.Join(c.dir, workDir)
	for _, name := range []string{upper, work} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return "", nil, err
		}
	}
	dir = filepath.Join(c.dir, rootFSDir)
	stage()
	options := "lowerdir=" + escapeOverlay(image.dir) + ",upperdir=" + escapeOverlay(upper) + ",workdir=" + escapeOverlay(work)
	err = unix.Mount("overlay", dir, "overlay", unix.MS_NODEV, options+",volatile")
	if errors.Is(err, unix.EINVAL) { // before Linux 5.10
		err = unix.Mount("overlay", dir, "overlay", unix.MS_NODEV, options)
	}
	if err != nil {
		return "", nil, fmt.Errorf("container %q: mount its root file system: %w", c.guid, os.NewSyscallError("mount", err))
	}
	if image.host {
		stage()
		if masks, err = b.images.view.mount(dir); err != nil {
			return "", nil, fmt.Errorf("container %q: show the host's programs: %w", c.guid, err)
		}
	}
	return dir, masks, nil
}

// escapeOverlay lets a path stand in the options of an overlay.
func escapeOverlay(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(path)
}

// unmountRootFS takes away what makeRootFS has mounted.
func unmountRootFS(dir string) error {
	for _, name := range []string{rootFSDir, diskDir} {
		if err := unmount(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// unmount takes away all that is mounted at a path, however often.
func unmount(path string) error {
	for {
		switch err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // nothing is mounted, or nothing is there
			return nil
		default:
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// removeAll removes a tree and follows no link. Somebody whose stream has
// begun before the end may make one more file.
func removeAll(dir string) error {
	const attempts = 100
	for n := 0; ; n++ {
		err := os.RemoveAll(dir)
		if err == nil || n == attempts || !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
}

// An image is what the containers of a root file system share.
type image struct {
	dir  string // never written to
	host bool   // whether directories of the host appear in it
}

// errNoRootFS names what is wrong with a root file system.
func errNoRootFS(guid, url, detail string, cause error) error {
	kind := executor.ErrNoRootFS
	if errors.Is(cause, executor.ErrUnsupported) {
		kind = executor.ErrUnsupported
	}
	return &executor.BackendError{Kind: kind, GUID: guid, Detail: fmt.Sprintf("%q: %s", url, detail), Cause: cause}
}
