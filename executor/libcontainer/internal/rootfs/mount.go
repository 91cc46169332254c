//go:build linux && cgo && (amd64 || arm64)

package rootfs

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
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// The directories below that of a container: its own layer and what overlayfs
// works with lie on a disk of its own if it has a limit.
const (
	diskDir  = "disk"
	UpperDir = "disk/upper" // what the container has written
	workDir  = "disk/work"
	layerDir = "layer" // only while the root file system is mounted
)

// A Container is what a Mounter knows of one.
type Container struct {
	GUID string
	// Dir is its own directory.
	Dir string
	// RootFS names its image.
	RootFS string
	// Layer is a directory above the image, which UnpackLayer has filled, or
	// empty.
	Layer string
	// DiskMB limits what it writes, in MiB; 0 means that nothing does.
	DiskMB int64
	// IDs are those to which its files belong.
	IDs ids.Range
}

// A Mounter mounts root file systems. Its methods may be called concurrently,
// for different containers.
type Mounter struct {
	mounts string
	images images
	disks  disks
}

// Options configure a Mounter.
type Options struct {
	// Images and Templates are directories for unpacked images and for empty
	// disks. Both must be there.
	Images, Templates string
	// Mounts is the directory below which root file systems are mounted.
	Mounts string
	// ImageDirs are the directories below which images may lie that a container
	// names by their path.
	ImageDirs []string
	// Preloaded maps names to images, which may lie anywhere.
	Preloaded map[string]string
	// Mkfs is the path of mkfs.ext4, which disks need.
	Mkfs string
	// Trash takes what cannot be removed.
	Trash tenant.Trash
}

// New returns a Mounter.
func New(o Options) *Mounter {
	return &Mounter{
		mounts: o.Mounts,
		images: images{dir: o.Images, allowedDirs: o.ImageDirs, preloaded: o.Preloaded, trash: o.Trash},
		disks:  disks{dir: o.Templates, mkfs: o.Mkfs},
	}
}

// Close gives up what the Mounter holds beside the root file systems.
func (m *Mounter) Close() { m.images.view.close() }

// Mount mounts what a container sees as "/" and returns where: its own layer
// over the image that it shares with others. masks are what in it is to be
// hidden. If Mount fails, Unmount takes away what it has mounted.
func (m *Mounter) Mount(ctx context.Context, c Container) (dir string, masks []string, err error) {
	image, err := m.images.find(ctx, c.GUID, c.RootFS)
	if err != nil {
		return "", nil, err
	}
	dirs := []string{filepath.Join(c.Dir, diskDir), m.mountDir(c.GUID)}
	layer := lower{c.Layer, filepath.Join(c.Dir, layerDir)}
	if c.Layer != "" {
		dirs = append(dirs, layer.mapped)
	}
	for _, name := range dirs {
		if err := os.Mkdir(name, 0o700); err != nil {
			return "", nil, err
		}
	}
	if c.DiskMB > 0 {
		stage.Reached()
		if err := m.disks.mount(ctx, c.DiskMB, c.Dir); err != nil {
			return "", nil, fmt.Errorf("container %q: its disk: %w", c.GUID, err)
		}
	}
	upper, work := filepath.Join(c.Dir, UpperDir), filepath.Join(c.Dir, workDir)
	for _, name := range []string{upper, work} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return "", nil, err
		}
	}
	dir = m.rootFS(c.GUID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	for _, name := range []string{upper, m.mountDir(c.GUID)} {
		if err := os.Lchown(name, c.IDs.Host(0), c.IDs.Host(0)); err != nil {
			return "", nil, err
		}
	}
	if err := os.Chmod(upper, 0o755); err != nil { // with any umask of the daemon
		return "", nil, err
	}
	stage.Reached()
	if err := mountLayers(dir, image.dir, layer, upper, work, c.IDs); err != nil {
		return "", nil, fmt.Errorf("container %q: mount its root file system: %w", c.GUID, errNoMapping(c.GUID, image.dir, err))
	}
	if image.host {
		stage.Reached()
		if masks, err = m.images.view.mount(dir, !c.IDs.Own()); err != nil {
			return "", nil, fmt.Errorf("container %q: show the host's programs: %w", c.GUID, err)
		}
	}
	return dir, masks, nil
}

// A lower is a directory that containers share, or none if it is empty, and
// where it is mounted for a moment.
type lower struct{ dir, mapped string }

// mountLayers mounts at dir the layer upper over another layer over an image.
// The files of both belong to the users of the container that have their
// numbers. For that, the image is mounted at dir first, where the overlay then
// hides it, and the layer where it says.
func mountLayers(dir, image string, layer lower, upper, work string, own ids.Range) error {
	if own.Own() {
		if err := mountMapped(image, dir, own); err != nil {
			return err
		}
		image = dir
		stage.Reached()
	}
	if own.Own() && layer.dir != "" {
		if err := mountMapped(layer.dir, layer.mapped, own); err != nil {
			return err
		}
		defer unmount(layer.mapped) // the overlay has a copy; else Delete tries again
		layer.dir = layer.mapped
		stage.Reached()
	}
	lowers := escapeOverlay(image)
	if layer.dir != "" {
		lowers = escapeOverlay(layer.dir) + ":" + lowers
	}
	options := "lowerdir=" + lowers + ",upperdir=" + escapeOverlay(upper) + ",workdir=" + escapeOverlay(work)
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

// mountMapped mounts a directory with the owners that one container sees.
func mountMapped(dir, at string, own ids.Range) error {
	tree, err := openTree(dir, 0, own.Space)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move_mount", Path: at, Err: err}
	}
	return nil
}

// escapeOverlay lets a path stand in the options of an overlay.
func escapeOverlay(path string) string { return overlayEscapes.Replace(path) }

var overlayEscapes = strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`)

// mountDir is what only the container's root can go through, on the way to the
// root file system. Its own directory may be closed to it.
func (m *Mounter) mountDir(guid string) string { return filepath.Join(m.mounts, guid) }

// rootFS is where the root file system is mounted.
func (m *Mounter) rootFS(guid string) string { return filepath.Join(m.mountDir(guid), "root") }

// Unmount takes away what Mount has mounted for the container with a guid, whose
// directory is dir. The container keeps its own mounts.
func (m *Mounter) Unmount(guid, dir string) error {
	for _, name := range []string{m.rootFS(guid), filepath.Join(dir, layerDir), filepath.Join(dir, diskDir)} {
		if err := unmount(name); err != nil {
			return err
		}
	}
	for _, name := range []string{m.rootFS(guid), m.mountDir(guid)} {
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

// errNoMapping names a path whose file system cannot show files with other
// owners, which the kernel says by EINVAL, or a cause that is another one.
func errNoMapping(guid, path string, err error) error {
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid, Cause: err, Detail: fmt.Sprintf(
		"%s cannot be mounted with the container's own ids: its file system, or one mounted below it, has no idmapped mounts; use one that has, such as ext4, xfs, btrfs or, since Linux 6.3, tmpfs, or set Options.SharedIDs", path)}
}

// CheckMapping is an error if the file system at a path cannot show its files
// with the owners of a container with ids of its own.
func CheckMapping(guid, path string, own ids.Range) error {
	tree, err := openTree(path, unix.AT_RECURSIVE, own.Space)
	if err == nil {
		return unix.Close(tree)
	}
	return errNoMapping(guid, path, err)
}
