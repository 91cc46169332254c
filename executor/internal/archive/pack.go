package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Pack writes a file or directory of root as a tar stream whose first entry is
// the last element of name. Links are written as links, and name itself may be
// one that stays in root. What is neither file, directory nor link is left
// out, unless it is name itself. A missing file is an executor.ErrNoFile.
func Pack(root *tenant.Root, name string, w io.Writer) error {
	out := tar.NewWriter(w)
	name = inRoot(name)
	if err := pack(root, out, name, path.Base(name), true); err != nil {
		err = escape(err)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, executor.ErrUnsafeArchive) {
			return fmt.Errorf("%w: %w", executor.ErrNoFile, err)
		}
		return err
	}
	return out.Close()
}

func pack(root *tenant.Root, out *tar.Writer, name, as string, first bool) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 && !first {
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: as, Linkname: target, Mode: 0o777, ModTime: info.ModTime()})
	}
	if !first && !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	flags := os.O_RDONLY
	if !first {
		flags |= tenant.NoFollow
	}
	f, err := root.Open(name, flags)
	if errors.Is(err, tenant.ErrKind) {
		return fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	h := &tar.Header{Name: as, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if info.IsDir() {
		h.Typeflag, h.Name = tar.TypeDir, as+"/"
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		entries, err := f.ReadDir(-1)
		if err != nil {
			return err
		}
		f.Close() // so that depth costs no descriptors
		for _, e := range entries {
			if err := pack(root, out, path.Join(name, e.Name()), path.Join(as, e.Name()), false); err != nil {
				return err
			}
		}
		return nil
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(out, f, h.Size); err != nil {
		return fmt.Errorf("%s changed while it was read: %w", name, err)
	}
	return nil
}
