//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// A container with a disk limit has a file system of its own, in a file as
// large as the limit. The file is sparse: it takes what is written.
const diskFile = "disk.img"

// disks makes the disks of containers.
type disks struct {
	dir  string // of the templates
	mkfs string // the path of mkfs.ext4

	mu sync.Mutex // held while a template is made, opened or removed
}

// maxTemplates bounds the templates, so that many sizes do not fill the host's disk.
// Each takes some 100 KiB.
const maxTemplates = 100

// MinDiskMB is the size of the smallest disk, in MiB.
const MinDiskMB = 2

// mount makes a disk in a new file and mounts it at a directory. A power cut may have
// spoilt the template, which nobody has waited for to be on the disk: then mount makes
// it again.
func (d *disks) mount(ctx context.Context, megabytes int64, name, at string) error {
	err := d.mountCopy(ctx, megabytes, name, at)
	// Most often the kernel finds no file system (EINVAL), one that ends too early (EIO), a
	// damaged one (EUCLEAN), or a wrong checksum (EBADMSG).
	if err == nil || !errors.Is(err, errMount) {
		return err
	}
	if err := errors.Join(os.RemoveAll(name), d.removeTemplate(megabytes)); err != nil {
		return err
	}
	return d.mountCopy(ctx, megabytes, name, at)
}

func (d *disks) mountCopy(ctx context.Context, megabytes int64, name, at string) error {
	template, err := d.template(ctx, megabytes)
	if err != nil {
		return err
	}
	defer template.Close()
	file, err := copySparse(template, name)
	if err != nil {
		return err
	}
	defer file.Close()
	stage.Reached()
	loop, err := attach(ctx, kernelLoops{}, file)
	if err != nil {
		return err
	}
	defer loop.Close() // the mount holds it, and frees it at its end
	// What is in it is not needed after a crash: nothing waits for the disk.
	err = unix.Mount(loop.Name(), at, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "errors=remount-ro,barrier=0")
	if err != nil {
		return fmt.Errorf("%w: %w", errMount, err)
	}
	return nil
}

// errMount is that a disk cannot be mounted.
var errMount = errors.New("mount")

func (d *disks) templatePath(megabytes int64) string {
	return filepath.Join(d.dir, fmt.Sprintf("ext4-%dM", megabytes))
}

// removeTemplate removes a template that cannot be mounted, unless another container
// has done so.
func (d *disks) removeTemplate(megabytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return os.RemoveAll(d.templatePath(megabytes))
}

// template opens an empty file system of a size. One is made for each size.
func (d *disks) template(ctx context.Context, megabytes int64) (*os.File, error) {
	path := d.templatePath(megabytes)
	d.mu.Lock()
	defer d.mu.Unlock()
	if info, err := os.Lstat(path); err == nil && (!info.Mode().IsRegular() || info.Size() != megabytes<<20) {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(d.makeRoom(), d.makeTemplate(ctx, megabytes, path)); err != nil {
			return nil, err
		}
		f, err = os.Open(path)
	}
	return f, err
}

// makeRoom removes the oldest templates, so that one more may be made.
func (d *disks) makeRoom() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) < maxTemplates {
		return err
	}
	made := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(made(a), made(b)) })
	for _, e := range entries[:len(entries)-maxTemplates+1] {
		err = errors.Join(err, os.Remove(filepath.Join(d.dir, e.Name())))
	}
	return err
}

func (d *disks) makeTemplate(ctx context.Context, megabytes int64, path string) error {
	half := path + ".part"
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(megabytes << 20)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	// Without a journal and without zeroed tables it is small and quickly
	// copied; nobody needs what is in it after a crash.
	mkfs := exec.CommandContext(ctx, d.mkfs, "-q", "-F", "-b", "4096", "-m", "0", "-i", "16384",
		"-O", "^has_journal,^resize_inode,sparse_super2", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", half)
	mkfs.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := mkfs.CombinedOutput(); err != nil {
		os.Remove(half)
		if bytes.Contains(out, []byte("No space left on device")) {
			err = unix.ENOSPC
		}
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return os.Rename(half, path)
}

// copySparse copies what a file holds and leaves its holes.
func copySparse(in *os.File, to string) (*os.File, error) {
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := fillSparse(out, in, info.Size()); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func fillSparse(out, in *os.File, size int64) error {
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	if err := out.Truncate(size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		start, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // only a hole is left
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = in.Seek(start, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := in.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, at-start); err != nil {
			return err
		}
	}
	return nil
}
