//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// A container's own layer and what overlayfs works with lie in its directory
// or, if it has a disk limit, on its disk.
const (
	UpperDir = "upper" // what the container has written
	workDir  = "work"
)

// The directories on which something is mounted until the container has mounts
// of its own. They lie in one directory, which is a mount itself: to unmount it
// unmounts all of them, and waits once for the kernel.
const (
	rootDir  = "root"  // the root file system
	layerDir = "layer" // the layer between image and container
	diskDir  = "disk"  // the container's disk
	nodesDir = "nodes" // its devices
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
	// Nodes are the devices of a container with ids of its own; see [Mounter.Node].
	Nodes []Node
}

// A Node is a character device.
type Node struct {
	Name         string
	Major, Minor uint32
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
// hidden, and below are the directories that it shows beside its own; one may be
// empty. If Mount fails, Unmount takes away what it has mounted.
func (m *Mounter) Mount(ctx context.Context, c Container) (dir string, masks, below []string, err error) {
	image, err := m.images.find(ctx, c.GUID, c.RootFS)
	if err != nil {
		return "", nil, nil, err
	}
	if err := m.mountDir(c.GUID, c.IDs); err != nil {
		return "", nil, nil, err
	}
	if c.IDs.Own() {
		if err := m.makeNodes(c.GUID, c.Nodes); err != nil {
			return "", nil, nil, fmt.Errorf("container %q: its devices: %w", c.GUID, err)
		}
	}
	own := c.Dir
	if c.DiskMB > 0 {
		stage.Reached()
		own = m.in(c.GUID, diskDir)
		if err := m.disks.mount(ctx, c.DiskMB, filepath.Join(c.Dir, diskFile), own); err != nil {
			return "", nil, nil, fmt.Errorf("container %q: its disk: %w", c.GUID, err)
		}
	}
	upper, work := filepath.Join(own, UpperDir), filepath.Join(own, workDir)
	for _, name := range []string{upper, work} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return "", nil, nil, err
		}
	}
	if err := os.Lchown(upper, c.IDs.Host(0), c.IDs.Host(0)); err != nil {
		return "", nil, nil, err
	}
	if err := os.Chmod(upper, 0o755); err != nil { // with any umask of the daemon
		return "", nil, nil, err
	}
	stage.Reached()
	dir = m.in(c.GUID, rootDir)
	layer := lower{c.Layer, m.in(c.GUID, layerDir)}
	if err := mountLayers(dir, image.dir, layer, upper, work, c.IDs); err != nil {
		return "", nil, nil, fmt.Errorf("container %q: mount its root file system: %w", c.GUID, errNoMapping(c.GUID, image.dir, err))
	}
	if image.host {
		stage.Reached()
		if masks, err = m.images.view.mount(dir, layer.mapped, c.IDs); err != nil {
			return "", nil, nil, fmt.Errorf("container %q: show the host's programs: %w", c.GUID, err)
		}
	}
	return dir, masks, []string{image.dir, c.Layer}, nil
}

// makeNodes makes the devices of a container. The kernel delivers what happens to a
// device to all who watch its node, and who opens or writes it pays for that. So no
// two containers share a node, nor does one with the host.
func (m *Mounter) makeNodes(guid string, nodes []Node) error {
	for _, n := range nodes {
		path := m.Node(guid, n.Name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(n.Major, n.Minor))); err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
		if err := os.Chmod(path, 0o666); err != nil { // with any umask of the daemon
			return err
		}
	}
	return nil
}

// Node is where a device of a container is between Mount and Unmount.
func (m *Mounter) Node(guid, name string) string { return filepath.Join(m.in(guid, nodesDir), name) }

// A lower is a directory that containers share, or none if it is empty, and
// where it is mounted for a moment.
type lower struct{ dir, mapped string }

// mountLayers mounts at dir the layer upper over another layer over an image.
// The files of both belong to the users of the container that have their
// numbers. For that, the image is mounted at dir first, where the overlay then
// hides it, and the layer where it says.
func mountLayers(dir, image string, layer lower, upper, work string, own ids.Range) error {
	if own.Own() {
		if err := mountTree(image, dir, own.Space); err != nil {
			return err
		}
		image = dir
		stage.Reached()
	}
	if own.Own() && layer.dir != "" {
		if err := mountTree(layer.dir, layer.mapped, own.Space); err != nil {
			return err
		}
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
	if err != nil {
		return os.NewSyscallError("mount", err)
	}
	return writable(dir, work)
}

// writable is an error if an overlay is read-only. The kernel mounts it read-only if
// it cannot write to the work directory, and says why only in its log.
func writable(overlay, work string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(overlay, &s); err != nil {
		return &os.PathError{Op: "statfs", Path: overlay, Err: err}
	}
	if s.Flags&unix.ST_RDONLY == 0 {
		return nil
	}
	err := os.Mkdir(filepath.Join(work, "again"), 0o700) // which may fail for the same reason
	return fmt.Errorf("the kernel cannot write to its work directory: %w", cmp.Or(err, error(unix.EROFS)))
}

// mountTree mounts a directory at another one, read-only and, unless owners is
// nil, with the owners that the container of that user namespace sees.
func mountTree(dir, at string, owners *os.File) error {
	tree, err := openTree(dir, 0, owners)
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

// dir is what only the container's root can go through, on the way to the root
// file system. Its own directory may be closed to it.
func (m *Mounter) dir(guid string) string { return filepath.Join(m.mounts, guid) }

// in is where one of the mounts of a container is.
func (m *Mounter) in(guid, name string) string { return filepath.Join(m.mounts, guid, name) }

// Disk is where the disk of a container is mounted between Mount and Unmount.
func (m *Mounter) Disk(guid string) string { return m.in(guid, diskDir) }

// mountDir makes the directory for the mounts of a container, and for its devices. It
// is a mount of its own, on which there may be devices, and private: where the host
// shares its mounts, as systemd makes it, the container would otherwise lose what is
// mounted in its root file system as soon as the daemon unmounts its own copy.
func (m *Mounter) mountDir(guid string, own ids.Range) error {
	dir := m.dir(guid)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("diego", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, fmt.Sprintf("mode=700,uid=%d,gid=%[1]d,size=64k,nr_inodes=64", own.Host(0))); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	stage.Reached()
	for _, name := range []string{rootDir, layerDir, diskDir, nodesDir} {
		if err := os.Mkdir(m.in(guid, name), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{layerDir, nodesDir} {
		if err := os.Lchown(m.in(guid, name), own.Host(0), own.Host(0)); err != nil {
			return err
		}
	}
	return os.NewSyscallError("mount", unix.Mount("", dir, "", unix.MS_PRIVATE, ""))
}

// Unmount takes away what Mount has mounted for the container with a guid. The
// container keeps its own mounts.
func (m *Mounter) Unmount(guid string) error {
	// A daemon of 0.1 that was killed has left a mount at the second one alone.
	for _, name := range []string{m.dir(guid), m.in(guid, rootDir)} {
		if err := unmount(name); err != nil {
			return err
		}
	}
	for _, name := range []string{m.in(guid, rootDir), m.in(guid, layerDir), m.in(guid, diskDir), m.in(guid, nodesDir), m.dir(guid)} {
		if err := unix.Rmdir(name); err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "rmdir", Path: name, Err: err}
		}
	}
	return nil
}

// unmount takes away all that is mounted at a path, however often, with what is
// mounted below.
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
