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
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Extract writes a tar stream into a directory of root, which is made if it is
// missing. Files belong to uid and gid, or to this process if they are -1, and
// keep only their permission bits. What is there already is replaced, never
// written through. An error leaves the entries before it.
func Extract(ctx context.Context, root *tenant.Root, dir string, r io.Reader, uid, gid int) error {
	x := extraction{ctx: ctx, root: root, dir: inRoot(dir), uid: uid, gid: gid}
	if err := x.mkdir(x.dir, 0o755); err != nil {
		return escape(err)
	}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			// The rest is padding, and whoever writes the stream waits.
			_, err := io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return err
		}
		if err := x.entry(h, in); err != nil {
			return fmt.Errorf("%s: %w", h.Name, escape(err))
		}
	}
}

type extraction struct {
	ctx      context.Context
	root     *tenant.Root
	dir      string
	uid, gid int
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
	if err := x.mkdir(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := x.root.RemoveAll(x.ctx, name); err != nil {
		return err
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
		if err := x.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return x.own(name)
	}
	f, err := x.root.Create(name, mode)
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

// mkdir makes a directory and those above it that are missing.
func (x *extraction) mkdir(name string, mode fs.FileMode) error {
	if dir, err := x.root.OpenRoot(name); err == nil {
		return dir.Close()
	}
	if parent := path.Dir(name); parent != name {
		if err := x.mkdir(parent, 0o755); err != nil {
			return err
		}
	}
	// Its owner must be able to fill it, whatever the archive says.
	if err := x.root.Mkdir(name, mode|0o700); err != nil {
		return err
	}
	return x.own(name)
}

func (x *extraction) own(name string) error {
	if x.uid < 0 {
		return nil
	}
	return x.root.Lchown(name, x.uid, x.gid)
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
