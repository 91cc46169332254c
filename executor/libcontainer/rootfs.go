//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// The directories below that of a container: its own layer and what overlayfs
// works with lie on a disk of its own if it has a limit.
const (
	diskDir  = "disk"
	upperDir = "disk/upper"
	workDir  = "disk/work"
	imageDir = "image" // only while the root file system is mounted
)

// makeRootFS mounts what the container sees as "/": its own layer over the
// image that it shares with others. masks are what in it is to be hidden.
func (b *Backend) makeRootFS(ctx context.Context, c *container) (dir string, masks []string, err error) {
	image, err := b.images.find(ctx, c.guid, c.spec.RootFS)
	if err != nil {
		return "", nil, err
	}
	for _, name := range []string{filepath.Join(c.dir, diskDir), filepath.Join(c.dir, imageDir), c.mountDir()} {
		if err := os.Mkdir(name, 0o700); err != nil {
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
	dir = c.rootFS()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	for _, name := range []string{upper, c.mountDir()} {
		if err := os.Lchown(name, c.ids.host(0), c.ids.host(0)); err != nil {
			return "", nil, err
		}
	}
	stage()
	if err := mountLayers(dir, image.dir, upper, work, filepath.Join(c.dir, imageDir), c.ids); err != nil {
		return "", nil, fmt.Errorf("container %q: mount its root file system: %w", c.guid, errNoMapping(c.guid, image.dir, err))
	}
	if image.host {
		stage()
		if masks, err = b.images.view.mount(dir, !c.ids.own()); err != nil {
			return "", nil, fmt.Errorf("container %q: show the host's programs: %w", c.guid, err)
		}
	}
	return dir, masks, nil
}

// mountLayers mounts at dir the layer upper over an image. The image's files
// belong to the users of the container that have their numbers; for that it is
// mounted at mapped for a moment.
func mountLayers(dir, image, upper, work, mapped string, i ids) error {
	if i.own() {
		tree, err := openTree(image, 0, i.space)
		if err != nil {
			return err
		}
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, mapped, unix.MOVE_MOUNT_F_EMPTY_PATH)
		unix.Close(tree)
		if err != nil {
			return &os.PathError{Op: "move_mount", Path: mapped, Err: err}
		}
		defer unmount(mapped) // the overlay has a copy; else Delete tries again
		image = mapped
		stage()
	}
	options := "lowerdir=" + escapeOverlay(image) + ",upperdir=" + escapeOverlay(upper) + ",workdir=" + escapeOverlay(work)
	err := unix.Mount("overlay", dir, "overlay", unix.MS_NODEV, options+",volatile")
	if errors.Is(err, unix.EINVAL) { // before Linux 5.10
		err = unix.Mount("overlay", dir, "overlay", unix.MS_NODEV, options)
	}
	if err == nil {
		// Where the host shares its mounts, as systemd makes it, the container
		// would otherwise lose what is mounted in its root file system as soon
		// as the daemon unmounts its own copy.
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	return os.NewSyscallError("mount", err)
}

// escapeOverlay lets a path stand in the options of an overlay.
func escapeOverlay(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(path)
}

// mountDir is what only the container's root can go through, on the way to the
// root file system. Options.Dir may be closed to it.
func (c *container) mountDir() string { return filepath.Join(c.backend.mounts, c.guid) }

// rootFS is where the root file system is mounted.
func (c *container) rootFS() string { return filepath.Join(c.mountDir(), "root") }

// unmountRootFS takes away what makeRootFS has mounted.
func (c *container) unmountRootFS() error {
	for _, name := range []string{filepath.Join(c.dir, imageDir), c.rootFS(), filepath.Join(c.dir, diskDir)} {
		if err := unmount(name); err != nil {
			return err
		}
	}
	for _, name := range []string{c.rootFS(), c.mountDir()} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
