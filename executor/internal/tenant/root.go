// Package tenant works in directories in which a tenant may have put anything:
// links that lead out, pipes, terminals, other devices, trees of any depth.
//
// A [Root] is a directory that nothing leads out of. All that is opened below
// it goes through [Reopen], which opens files and directories and nothing
// else: to open a device may already change it, and a terminal would become
// the controlling one of a daemon that leads a session. [RemoveAll] takes a
// constant number of descriptors, however deep a tree is. Only this package
// uses os.Root, and a house rule keeps it so.
package tenant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind is the error for opening what is neither a file nor a directory, or lies in
// /proc or /sys.
var ErrKind = errors.New("it is neither a file nor a directory")

// ErrChanged is the error for a file that a tenant changes in the middle of a read.
var ErrChanged = errors.New("changed while it was read")

// A Root is a directory that nothing leads out of: links are followed as far
// as they stay below it. Its methods may be called at once from many
// goroutines. The caller closes it.
type Root struct{ root *os.Root }

// OpenRoot opens a directory of the host. No tenant has a say in its path.
func OpenRoot(dir string) (*Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{root}, nil
}

// Close frees the Root.
func (r *Root) Close() error { return r.root.Close() }

// Create makes a file for writing. One that is there already is an
// fs.ErrExist, a link too.
func (r *Root) Create(name string, mode fs.FileMode) (*os.File, error) {
	return r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// WriteFile makes a file, or writes another content to the one that is there.
func (r *Root) WriteFile(name string, content []byte, mode fs.FileMode) error {
	f, err := r.Create(name, mode)
	if errors.Is(err, fs.ErrExist) {
		f, err = r.Open(name, os.O_WRONLY|os.O_TRUNC)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Lstat describes what is at name; a link is described itself.
func (r *Root) Lstat(name string) (fs.FileInfo, error) { return r.root.Lstat(name) }

// Readlink is the target of a link. What is not a link is an ErrChanged, because callers
// have seen a link there.
func (r *Root) Readlink(name string) (string, error) {
	target, err := r.root.Readlink(name)
	if errors.Is(err, syscall.EINVAL) {
		return "", fmt.Errorf("%s %w: it is not a link any more", name, ErrChanged)
	}
	return target, err
}

// Mkdir makes a directory.
func (r *Root) Mkdir(name string, mode fs.FileMode) error { return r.root.Mkdir(name, mode) }

// MkdirAll makes a directory and those above it that are missing.
func (r *Root) MkdirAll(name string, mode fs.FileMode) error { return r.root.MkdirAll(name, mode) }

// Symlink makes a link. Its target may be anything: it is checked when it is
// followed.
func (r *Root) Symlink(target, name string) error { return r.root.Symlink(target, name) }

// Link makes a second name for a file; a link is not followed.
func (r *Root) Link(old, name string) error { return r.root.Link(old, name) }

// Lchown gives away what is at name, a link itself.
func (r *Root) Lchown(name string, uid, gid int) error { return r.root.Lchown(name, uid, gid) }

// Chmod changes the permissions of what is at name.
func (r *Root) Chmod(name string, mode fs.FileMode) error { return r.root.Chmod(name, mode) }

// Rename gives a file another name, and replaces what has it.
func (r *Root) Rename(from, to string) error { return r.root.Rename(from, to) }

// Remove removes a file, a link or an empty directory.
func (r *Root) Remove(name string) error { return r.root.Remove(name) }

// allowed is an error for what must not be opened.
func allowed(info fs.FileInfo, name string) error {
	if info.IsDir() || info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w but %s", ErrKind, kind(info.Mode()))}
}

// kind is what a mode says in words.
func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
