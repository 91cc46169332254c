//go:build !linux

package tenant

import (
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file or a directory. With NoFollow among the flags, a link is
// an ErrKind; anything else is one in any case.
func (r *Root) Open(name string, flags int) (*os.File, error) {
	look := r.root.Stat
	if flags&NoFollow != 0 {
		look = r.root.Lstat
	}
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	if err := allowed(info, name); err != nil {
		return nil, err
	}
	// Another file may be there by now: it is opened without an effect, too.
	f, err := r.root.OpenFile(name, flags&^NoFollow|harmless, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = allowed(info, name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenRoot opens a directory as a Root of its own.
func (r *Root) OpenRoot(name string) (*Root, error) {
	info, err := r.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := r.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Root{root}, nil
}
