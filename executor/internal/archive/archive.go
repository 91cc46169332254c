// Package archive reads and writes archives that nobody trusts.
//
// [Normalize] turns a tar, tgz or zip into a plain tar and checks it on the
// way; [Extract] writes a tar below a directory that it never leaves; [Pack]
// is the way back. Whatever would be written or read outside is
// [executor.ErrUnsafeArchive], and sizes are bounded by [Limits].
package archive

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// ErrTooLarge: the content of an archive is above its Limits, however small
// the archive itself is.
var ErrTooLarge = errors.New("archive too large")

// Limits bound the content of an archive.
type Limits struct {
	// Bytes is the content of all files together; 0 means DefaultBytes.
	Bytes int64
	// Entries is the number of files, directories and links; 0 means
	// DefaultEntries.
	Entries int
}

// The defaults of Limits.
const (
	DefaultBytes   = 8 << 30
	DefaultEntries = 500_000
)

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Entries <= 0 {
		l.Entries = DefaultEntries
	}
	return l
}

func unsafe(format string, args ...any) error {
	return fmt.Errorf("%w: %s", executor.ErrUnsafeArchive, fmt.Sprintf(format, args...))
}

// Name is the name of an entry as a local path, or "." for the root. A name that
// leads out of the archive is an executor.ErrUnsafeArchive.
func Name(name string) (string, error) {
	clean := path.Clean(name)
	if strings.Contains(name, "\x00") || !filepath.IsLocal(clean) {
		return "", unsafe("the entry %q leads out of the archive", name)
	}
	return clean, nil
}

// Link checks the target of a symbolic link of the entry at name: it is
// relative and stays within the archive.
func Link(name, target string) error {
	if strings.Contains(target, "\x00") || target == "" || path.IsAbs(target) ||
		!filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return unsafe("the link %q to %q leads out of the archive", name, target)
	}
	return nil
}

// inRoot is a path of a container relative to its root.
func inRoot(p string) string {
	if p = path.Clean("/" + p)[1:]; p == "" {
		return "."
	}
	return p
}
