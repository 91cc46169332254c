//go:build linux

package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// The most that an image may hold, however small its archive is.
const (
	maxImageBytes   = 16 << 30
	maxImageEntries = 1_000_000
)

// maxID is the largest uid or gid that Linux can give a file.
const maxID uint64 = 1<<32 - 2

// unpackTar unpacks an archive that is a whole root file system.
func unpackTar(ctx context.Context, name, dir string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	l, err := newLayering(dir)
	if err != nil {
		return err
	}
	defer l.root.Close()
	return l.apply(ctx, f)
}

// A layering puts layers upon each other in one directory. Archives are not
// trusted: their names and links cannot lead outside.
type layering struct {
	root    *os.File
	limits  archive.Limits
	bytes   int64
	entries int
	// disk is what limits.MaxDisk limits. It is counted as if a hard link were a
	// copy, which it is where the file comes from a lower layer.
	disk int64
}

func newLayering(dir string) (*layering, error) {
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	return &layering{root: root, limits: archive.Limits{MaxContentBytes: maxImageBytes, MaxContentEntries: maxImageEntries}}, err
}

// apply adds one layer: a tar, gzipped or not. Entries as ".wh.name" remove
// what a lower layer holds.
func (l *layering) apply(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(archive.WithContext(ctx, r), 64<<10)
	var stream io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		stream = unzipped
	} else if magic, _ := in.Peek(4); bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return fmt.Errorf("%w: layers packed with zstd; pack them with gzip", executor.ErrUnsupported)
	}
	layer := archive.NewReader(ctx, stream, l.limits.MaxContentEntries)
	for {
		h, err := layer.Next()
		if err == io.EOF {
			_, err := io.Copy(io.Discard, in) // so that all of it is checked
			return err
		}
		if err != nil {
			return err
		}
		if err := l.entry(ctx, h, layer); err != nil {
			return fmt.Errorf("%.64s: %w", h.Name, err)
		}
	}
}

const (
	whiteout       = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

func (l *layering) entry(ctx context.Context, h *tar.Header, content io.Reader) error {
	name, err := archive.Name(strings.TrimLeft(h.Name, "/"))
	if err != nil {
		return err
	}
	parent, base := path.Split(name)
	dir, rest, err := Deepest(l.root, parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := l.count(h.Size, rest); err != nil {
		return err
	}
	if err := dir.MkdirAll(rest, 0o755); err != nil {
		return err
	}
	at := path.Join(rest, base)
	switch {
	case base == whiteoutOpaque:
		return empty(ctx, dir, rest)
	case strings.HasPrefix(base, whiteout):
		return dir.RemoveAll(ctx, path.Join(rest, strings.TrimPrefix(base, whiteout)))
	}
	for _, id := range []int{h.Uid, h.Gid} {
		if uint64(id) > maxID { // chown would leave the file to root, or cut the number off
			return fmt.Errorf("%w: the owner %d:%d; uids and gids go up to %d", executor.ErrUnsupported, h.Uid, h.Gid, maxID)
		}
	}
	mode := fs.FileMode(h.Mode).Perm()
	if h.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if h.Typeflag == tar.TypeDir {
		if info, err := dir.Lstat(at); err != nil || !info.IsDir() {
			if err := dir.RemoveAll(ctx, at); err != nil {
				return err
			}
			if err := dir.Mkdir(at, 0o755); err != nil {
				return err
			}
		}
		if err := dir.Lchown(at, h.Uid, h.Gid); err != nil {
			return err
		}
		return dir.Chmod(at, mode)
	}
	if name == "." {
		return nil
	}
	if err := dir.RemoveAll(ctx, at); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := dir.Create(at, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Chown(h.Uid, h.Gid), f.Chmod(mode), f.Close())
	case tar.TypeSymlink:
		if err := dir.Symlink(h.Linkname, at); err != nil { // followed only within containers
			return err
		}
		return dir.Lchown(at, h.Uid, h.Gid)
	case tar.TypeLink:
		return l.link(h.Linkname, dir, at)
	}
	return nil // devices and pipes: a container makes its own
}

// count takes an entry of a size, with the directories that are missing on the
// way to it, from what an image may hold.
func (l *layering) count(size int64, missing string) error {
	l.entries++
	if missing != "." {
		l.entries += 1 + strings.Count(missing, "/")
	}
	if most := l.limits.MaxContentEntries; l.entries > most {
		return fmt.Errorf("%w: it holds more than %d entries", archive.ErrTooLarge, most)
	}
	if most := l.limits.MaxContentBytes; size < 0 || size > most-l.bytes {
		return fmt.Errorf("%w: it holds more than %d bytes", archive.ErrTooLarge, most)
	}
	l.bytes += size
	return l.take(size, missing)
}

// take counts the disk that an entry takes, in blocks.
func (l *layering) take(size int64, missing string) error {
	const block = 4 << 10
	l.disk += max((size+block-1)/block, 1) * block
	if missing != "." {
		l.disk += int64(1+strings.Count(missing, "/")) * block
	}
	if most := l.limits.MaxDisk; most > 0 && l.disk > most {
		return fmt.Errorf("%w: it takes more disk than the %d bytes that there are for it", archive.ErrTooLarge, most)
	}
	return nil
}

// link makes a hard link to a file of the image.
func (l *layering) link(target string, dir *tenant.Root, at string) error {
	source, err := Find(l.root, target, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := l.take(info.Size(), "."); err != nil {
		return err
	}
	parent, err := dir.Open(path.Dir(at), unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer parent.Close()
	return os.NewSyscallError("linkat", unix.Linkat(int(source.Fd()), "", int(parent.Fd()), path.Base(at), unix.AT_EMPTY_PATH))
}

// empty removes all that a directory holds. It ends with ctx. A layer may have put a
// million names there, so few of them are in memory at a time.
func empty(ctx context.Context, root *tenant.Root, name string) error {
	dir, err := root.Open(name, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	const chunk = 1024
	for removed := 0; ; {
		names, err := dir.Readdirnames(chunk)
		switch {
		case err == io.EOF && removed == 0:
			return nil
		case err == io.EOF: // names may be left out while others are removed
			removed = 0
			_, err = dir.Seek(0, io.SeekStart)
		}
		if err != nil {
			return err
		}
		for _, inside := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := root.RemoveAll(ctx, path.Join(name, inside)); err != nil {
				return err
			}
			removed++
		}
	}
}
