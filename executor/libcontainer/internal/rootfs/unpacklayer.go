//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
)

// UnpackLayer is that of [executor.Layerer]. It unpacks the archive into an
// overlay whose upper directory is l.Dir, in the same way in which the layers of
// an image are unpacked upon each other. So what the layer removes, and what it
// adds to directories of the image, is in l.Dir in the kernel's own form.
func (m *Mounter) UnpackLayer(ctx context.Context, l executor.LayerSpec) (int64, error) {
	base, err := m.images.find(ctx, l.GUID, l.RootFS)
	if err != nil {
		return 0, err
	}
	if base.host {
		return 0, errNoRootFS(l.GUID, l.RootFS, "the host's own programs take no layer; give the name to an image", nil)
	}
	work := l.Dir + ".work"
	if err := os.Mkdir(work, 0o700); err != nil {
		return 0, err
	}
	var disk int64
	err = ids.OnOwnThread(func() error { // whose umask is not the daemon's
		top, err := detachedOverlay(base.dir, l.Dir, work)
		if err != nil {
			return err
		}
		defer top.Close() // nobody else has the mount
		disk, err = unpackUpon(ctx, top, l)
		return err
	})
	return disk, errors.Join(err, tenant.RemoveAll(context.WithoutCancel(ctx), work))
}

func unpackUpon(ctx context.Context, top *os.File, l executor.LayerSpec) (int64, error) {
	if path := strings.Trim(l.Path, "/"); path != "" {
		at, rest, err := Deepest(top, path)
		if err != nil {
			return 0, fmt.Errorf("its directory %s: %w", l.Path, err)
		}
		err = at.MkdirAll(rest, 0o755)
		at.Close()
		if err != nil {
			return 0, fmt.Errorf("its directory %s: %w", l.Path, err)
		}
	}
	root, err := Find(top, l.Path, unix.O_DIRECTORY)
	if err != nil {
		return 0, fmt.Errorf("its directory %s: %w", l.Path, err)
	}
	defer root.Close()
	limits := archive.Limits{MaxContentBytes: maxImageBytes, MaxContentEntries: maxImageEntries, MaxDisk: l.MaxDisk}
	if l.MaxBytes > 0 {
		limits.MaxContentBytes = l.MaxBytes
	}
	if l.MaxEntries > 0 {
		limits.MaxContentEntries = l.MaxEntries
	}
	layers := layering{root: root, limits: limits}
	err = layers.apply(ctx, l.Archive)
	return layers.disk, err
}

// detachedOverlay mounts the layer upper over a directory, where no path leads:
// the mount ends with its descriptor, and so with the daemon. Its directories
// are named by descriptors, so no path needs to be escaped. It is volatile where
// the kernel can, since Linux 5.10: its end would otherwise wait until all that
// anybody has written to the host's file system is on the disk.
func detachedOverlay(dir, upper, work string) (*os.File, error) {
	f, err := detached(dir, upper, work, "volatile")
	if err != nil {
		f, err = detached(dir, upper, work)
	}
	return f, err
}

func detached(dir, upper, work string, flags ...string) (*os.File, error) {
	context, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(context)
	for _, o := range []struct{ option, value string }{{"lowerdir", dir}, {"upperdir", upper}, {"workdir", work}} {
		fd, err := unix.Open(o.value, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: o.value, Err: err}
		}
		defer unix.Close(fd)
		if err := unix.FsconfigSetString(context, o.option, fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
			return nil, os.NewSyscallError("fsconfig", err)
		}
	}
	// What is made here is a lower directory later, so that everything has to
	// be in it.
	for _, o := range []string{"metacopy", "redirect_dir", "index"} {
		if err := unix.FsconfigSetString(context, o, "off"); err != nil {
			return nil, os.NewSyscallError("fsconfig", err)
		}
	}
	for _, flag := range flags {
		if err := unix.FsconfigSetFlag(context, flag); err != nil {
			return nil, os.NewSyscallError("fsconfig", err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	mount, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	return os.NewFile(uintptr(mount), "overlay"), nil
}
