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
	"sort"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Extract writes a tar stream into a directory of root, which is made if it is
// missing. Files belong to uid and gid, or to this process if they are -1, and
// keep only their permission bits. What is there already is replaced, never
// written through. An error leaves the entries before it. It takes a constant
// number of descriptors and ends soon after ctx.
func Extract(ctx context.Context, root *tenant.Root, dir string, r io.Reader, uid, gid int) error {
	x := extraction{ctx: ctx, root: root, dir: inRoot(dir), uid: uid, gid: gid}
	defer x.leave()
	if _, err := x.enter(x.dir); err != nil {
		return escape(err)
	}
	in := NewReader(ctx, r, 0)
	for {
		h, err := in.Next()
		if err == io.EOF {
			// The rest is padding, and the writer of the stream waits.
			_, err := io.Copy(io.Discard, WithContext(ctx, r))
			return err
		}
		if err != nil {
			return err
		}
		if err := x.entry(h, in); err != nil {
			return fmt.Errorf("%.64s: %w", h.Name, escape(err))
		}
	}
}

type extraction struct {
	ctx      context.Context
	root     *tenant.Root
	dir      string
	uid, gid int

	// The directory of the last entry, which is likely that of the next one.
	parent *tenant.Root
	at     string
}

func (x *extraction) entry(h *tar.Header, content io.Reader) error {
	local, err := Name(h.Name)
	if err != nil {
		return err
	}
	name := path.Join(x.dir, local)
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	if h.Typeflag == tar.TypeDir {
		return x.mkdir(name, mode)
	}
	if local == "." {
		return unsafe("the entry %q has no name", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeLink, tar.TypeSymlink:
	default:
		return unsafe("the entry %q is neither file, directory nor link", h.Name)
	}
	parent, err := x.enter(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if info, err := parent.Lstat(base); err == nil {
		if err := parent.RemoveAll(x.ctx, base); err != nil {
			return err
		}
		if info.IsDir() { // perhaps one above that of the last entry
			x.leave()
			if parent, err = x.enter(path.Dir(name)); err != nil {
				return err
			}
		}
	}
	switch h.Typeflag {
	case tar.TypeLink:
		target, err := Name(h.Linkname)
		if err != nil {
			return err
		}
		return x.root.Link(path.Join(x.dir, target), name)
	case tar.TypeSymlink:
		if err := Link(local, h.Linkname); err != nil {
			return err
		}
		if err := parent.Symlink(h.Linkname, base); err != nil {
			return err
		}
		return x.own(parent, base)
	}
	f, err := parent.Create(base, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if chmodErr := f.Chmod(mode); err == nil {
		err = chmodErr
	}
	if x.uid >= 0 && err == nil {
		err = f.Chown(x.uid, x.gid)
	}
	return errors.Join(err, f.Close())
}

// mkdir makes the directory of an entry, unless it is there.
func (x *extraction) mkdir(name string, mode fs.FileMode) error {
	if dir, err := x.root.OpenRoot(name); err == nil {
		return dir.Close()
	}
	parent, err := x.enter(path.Dir(name))
	if err != nil {
		return err
	}
	// Its owner must be able to fill it, even if the archive says otherwise.
	if err := parent.Mkdir(path.Base(name), mode|0o700); err != nil {
		return err
	}
	return x.own(parent, path.Base(name))
}

// enter opens a directory, and makes it and those above it that are missing. It
// is open until the next call of enter or leave.
func (x *extraction) enter(dir string) (*tenant.Root, error) {
	if x.parent != nil && x.at == dir {
		return x.parent, nil
	}
	next, err := x.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		next, err = x.make(dir)
	}
	if err != nil {
		return nil, err
	}
	x.leave()
	x.parent, x.at = next, dir
	return next, nil
}

func (x *extraction) leave() {
	if x.parent != nil {
		x.parent.Close()
		x.parent = nil
	}
}

// make makes a directory and those above it that are missing. Each look from
// the root takes as long as the path is deep: so the first that is missing is
// searched for by halves.
func (x *extraction) make(dir string) (*tenant.Root, error) {
	parts := strings.Split(dir, "/")
	there := sort.Search(len(parts), func(i int) bool {
		above, err := x.root.OpenRoot(path.Join(parts[:i+1]...))
		if err == nil {
			above.Close()
		}
		return err != nil
	})
	at, err := x.root.OpenRoot(path.Join(append([]string{"."}, parts[:there]...)...))
	for _, part := range parts[there:] {
		if err != nil {
			return nil, err
		}
		var below *tenant.Root
		if err = at.Mkdir(part, 0o755); err == nil {
			if err = x.own(at, part); err == nil {
				below, err = at.OpenRoot(part)
			}
		}
		at.Close()
		at = below
	}
	return at, err
}

func (x *extraction) own(parent *tenant.Root, name string) error {
	if x.uid < 0 {
		return nil
	}
	return parent.Lchown(name, x.uid, x.gid)
}

// escape names the error with which os.Root refuses to leave its directory, and
// calls what failed by its usual name.
func escape(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	cause := err
	switch {
	case errors.As(err, &p):
		cause, p.Op = p.Err, usual(p.Op)
	case errors.As(err, &l):
		cause, l.Op = l.Err, usual(l.Op)
	}
	if cause.Error() == "path escapes from parent" { // package os exports no value for it
		return fmt.Errorf("%w: %w", executor.ErrUnsafeArchive, err)
	}
	return err
}

// usual is the name of an operation without what os.Root appends to it:
// "statat" is "stat".
func usual(op string) string {
	if op == "stat" || op == "lstat" {
		return op
	}
	return strings.TrimSuffix(op, "at")
}
