package archive

import (
	"archive/tar"
	"context"
	"crypto/rand"
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

// Extract writes a tar stream into a directory of root, and makes the directory if
// it is missing. Files belong to uid and gid, or to this process if they are -1,
// and keep only their permission bits. Extract replaces files and links that are
// there already, and never writes through them. After an error, the entries before
// it stay. Extract opens at most some forty descriptors and ends soon after ctx.
func Extract(ctx context.Context, root *tenant.Root, dir string, r io.Reader, uid, gid int) error {
	x := extraction{ctx: ctx, root: root, dir: inRoot(dir), uid: uid, gid: gid, name: Name}
	return x.extract(r)
}

// Place is Extract for an archive of one file or directory, as Pack makes it. The
// file or directory becomes name or, if that is ".", keeps its own name in root.
// What it makes belongs to the user of this thread. A file does not replace a
// directory, nor a directory anything else: that is an fs.ErrExist. Place stops at
// the first entry beyond the limits. A file appears once all of it is there.
func Place(ctx context.Context, root *tenant.Root, name string, r io.Reader, l Limits) error {
	name = inRoot(name)
	x := extraction{ctx: ctx, root: root, dir: path.Dir(name), uid: -1, gid: -1, keepDirs: true, budget: newBudget(l, nil)}
	only := ""
	x.name = func(entry string) (string, error) {
		local, err := Name(entry)
		if err != nil {
			return "", err
		}
		first, rest, _ := strings.Cut(local, "/")
		switch {
		case local == ".":
			return "", unsafe("it is of a directory without a name, such as /; name a path below it")
		case only == "":
			only = first
		case first != only:
			return "", unsafe("the entry %q lies beside %q, of which the archive is", entry, only)
		}
		if name != "." {
			first = path.Base(name)
		}
		return path.Join(first, rest), nil
	}
	return x.extract(r)
}

func (x *extraction) extract(r io.Reader) error {
	ctx := x.ctx
	defer x.leave()
	if _, err := x.enter(x.dir); err != nil {
		return escape(err)
	}
	entries := 0
	if x.budget != nil {
		entries = x.budget.limits.MaxContentEntries
	}
	in := NewReader(ctx, r, entries)
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
	// keepDirs refuses entries where a directory would be replaced, or replace
	// something.
	keepDirs bool
	// name is what an entry is called in dir, or an error.
	name func(entry string) (string, error)
	// budget is nil if the caller has checked the limits.
	budget *budget

	// The directories on the way to that of the last entry, from the top: the
	// next entry is likely near. Below maxOpen only the last one is kept.
	open []opened
}

// An opened directory of an extraction.
type opened struct {
	path string
	*tenant.Root
}

// maxOpen bounds the descriptors of an extraction.
const maxOpen = 32

func (x *extraction) entry(h *tar.Header, content io.Reader) error {
	local, err := x.name(h.Name)
	if err != nil {
		return err
	}
	if x.budget != nil {
		if err := x.budget.count(local, h.Size); err != nil {
			return err
		}
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
	info, err := parent.Lstat(base)
	switch {
	case err == nil && info.IsDir() && x.keepDirs:
		return &fs.PathError{Op: "replace the directory", Path: name, Err: fs.ErrExist}
	case h.Typeflag == tar.TypeReg && x.keepDirs:
		return x.whole(parent, base, mode, content)
	case err == nil:
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
		target, err := x.name(h.Linkname)
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
	return x.file(parent, base, mode, content)
}

// whole makes a file that appears, or replaces another, only once it is complete.
// So a stream that is cut off leaves no part of it.
func (x *extraction) whole(parent *tenant.Root, base string, mode fs.FileMode, content io.Reader) error {
	part := ".diego-copy-" + rand.Text()
	err := x.file(parent, part, mode, content)
	if err == nil {
		err = parent.Rename(part, base)
	}
	// Errors have the name that the caller knows.
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at) && at.Path == part:
		at.Path = base
	case errors.As(err, &link):
		err = &fs.PathError{Op: "create", Path: base, Err: link.Err}
	}
	if err != nil {
		_ = parent.Remove(part) // it may not be there
	}
	return err
}

// file makes a file.
func (x *extraction) file(parent *tenant.Root, base string, mode fs.FileMode, content io.Reader) error {
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
	parent, err := x.enter(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if info, err := parent.Lstat(base); x.keepDirs && err == nil && !info.IsDir() {
		return &fs.PathError{Op: "make the directory", Path: name, Err: fs.ErrExist}
	}
	if dir, err := x.below(parent, name); err == nil {
		return dir.Close()
	}
	// Its owner must be able to fill it, even if the archive says otherwise.
	if err := parent.Mkdir(base, mode|0o700); err != nil {
		return err
	}
	return x.own(parent, base)
}

// enter opens a directory; it makes the directory and those above it if they are
// missing. It begins at the deepest directory on the way that is still open, so
// deep entries in their usual order cost no more than others. The directory is
// open until the next call of enter or leave.
func (x *extraction) enter(dir string) (*tenant.Root, error) {
	for last := len(x.open) - 1; last >= 0 && !within(dir, x.open[last].path); last-- {
		x.open[last].Close()
		x.open = x.open[:last]
	}
	at, rest := opened{".", x.root}, dir
	if last := len(x.open) - 1; last >= 0 {
		at = x.open[last]
		rest = strings.TrimPrefix(strings.TrimPrefix(dir, at.path), "/")
	}
	if rest == "." {
		rest = ""
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" {
			break
		}
		next := path.Join(at.path, part)
		below, err := x.below(at.Root, next)
		if errors.Is(err, fs.ErrNotExist) {
			if err = at.Mkdir(part, 0o755); err == nil {
				err = x.own(at.Root, part)
			}
			if err == nil {
				below, err = at.OpenRoot(part)
			}
		}
		if err != nil {
			return nil, err
		}
		if last := len(x.open) - 1; last == maxOpen {
			x.open[last].Close()
			x.open = x.open[:last]
		}
		at = opened{next, below}
		x.open = append(x.open, at)
	}
	return at.Root, nil
}

// below opens the directory at a path, whose parent is open. The path may be a
// link that only the root can follow.
func (x *extraction) below(parent *tenant.Root, name string) (*tenant.Root, error) {
	dir, err := parent.OpenRoot(path.Base(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	return x.root.OpenRoot(name)
}

// within reports whether a path is dir or below it.
func within(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// leave closes all directories.
func (x *extraction) leave() {
	for _, dir := range x.open {
		dir.Close()
	}
	x.open = nil
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
