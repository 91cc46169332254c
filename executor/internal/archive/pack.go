package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// What Pack takes is bounded by these, and by MaxDepth.
const (
	// chunk is how many names of a directory are read at a time.
	chunk = 1024
	// maxLarge is how many directories with more names may lie within each
	// other: each is held open until its last name has been read.
	maxLarge = 16
)

// Pack writes a file or directory of root as a tar stream whose first entry is
// the last element of name. Links are written as links, and name itself may be
// one that stays in root. What is neither file, directory nor link is left
// out, unless it is name itself. A missing file is an executor.ErrNoFile; a
// tree that is deeper than MaxDepth, or has too many large directories within
// each other, is an ErrTooLarge. Neither memory nor descriptors grow with the
// tree. Pack ends soon after ctx.
func Pack(ctx context.Context, root *tenant.Root, name string, w io.Writer) error {
	name = inRoot(name)
	p := packer{root: root, out: tar.NewWriter(w)}
	defer p.close()
	err := p.entry(name, path.Base(name), os.O_RDONLY)
	for err == nil && len(p.dirs) > 0 {
		if err = ctx.Err(); err == nil {
			err = p.next()
		}
	}
	if err == nil {
		return p.out.Close()
	}
	if err = escape(err); errors.Is(err, fs.ErrNotExist) || errors.Is(err, executor.ErrUnsafeArchive) {
		return fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	return err
}

type packer struct {
	root *tenant.Root
	out  *tar.Writer
	dirs []*directory // within each other, the first one outermost
	open int          // how many of them are
}

// A directory is one whose entries are being packed.
type directory struct {
	name, as string   // below root, and in the archive
	names    []string // that have been read and not packed yet
	rest     *os.File // where there are more; nil if there are none
}

// next packs one entry of the innermost directory, or leaves it.
func (p *packer) next() error {
	d := p.dirs[len(p.dirs)-1]
	if len(d.names) == 0 {
		if err := p.read(d); err != nil {
			return err
		}
	}
	if len(d.names) == 0 {
		p.dirs = p.dirs[:len(p.dirs)-1]
		return nil
	}
	base := d.names[0]
	d.names = d.names[1:]
	name, as := path.Join(d.name, base), path.Join(d.as, base)
	info, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(name)
		if err != nil {
			return err
		}
		return p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: as, Linkname: target, Mode: 0o777, ModTime: info.ModTime()})
	case info.IsDir(), info.Mode().IsRegular():
		if err := p.entry(name, as, os.O_RDONLY|tenant.NoFollow); !errors.Is(err, tenant.ErrKind) {
			return err
		}
	}
	return nil
}

// entry packs a file, or begins with a directory.
func (p *packer) entry(name, as string, flags int) error {
	f, err := p.root.Open(name, flags)
	if errors.Is(err, tenant.ErrKind) {
		return fmt.Errorf("%w: %w", executor.ErrNoFile, err)
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return p.enter(&directory{name: name, as: as, rest: f}, info)
	}
	defer f.Close()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: as, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Size: info.Size()}
	if err := p.out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(p.out, f, h.Size)
	if err == io.EOF { // the file has become shorter
		return fmt.Errorf("%s %w: %w", name, tenant.ErrChanged, err)
	}
	return err
}

// enter begins with a directory, which close closes from now on.
func (p *packer) enter(d *directory, info fs.FileInfo) error {
	p.dirs = append(p.dirs, d)
	p.open++
	if len(p.dirs) > MaxDepth {
		return tooLarge("%.64q… lies deeper than %d directories, which is fixed", d.as, MaxDepth)
	}
	h := &tar.Header{Typeflag: tar.TypeDir, Name: d.as + "/", Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if err := p.out.WriteHeader(h); err != nil {
		return err
	}
	return p.read(d)
}

// read reads the next names of a directory, and closes it after the last.
func (p *packer) read(d *directory) error {
	if d.rest == nil {
		return nil
	}
	var err error
	d.names, err = d.rest.Readdirnames(chunk)
	if err == nil && len(d.names) == chunk {
		if p.open > maxLarge {
			return tooLarge("more than %d directories of %d and more entries lie within each other, which is fixed", maxLarge, chunk)
		}
		return nil
	}
	d.rest.Close()
	d.rest = nil
	p.open--
	if err == io.EOF {
		return nil
	}
	return err
}

func (p *packer) close() {
	for _, d := range p.dirs {
		if d.rest != nil {
			d.rest.Close()
		}
	}
}
