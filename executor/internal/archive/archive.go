// Package archive reads and writes archives that nobody trusts.
//
// [Normalize] turns a tar, tgz or zip into a plain tar and checks it on the
// way; [Extract] writes a tar below a directory that it never leaves; [Pack]
// is the way back. An entry that would be written or read outside is an
// [executor.ErrUnsafeArchive], and [Limits] bound sizes.
package archive

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// ErrTooLarge: an archive is beyond one of its Limits, or beyond one of those
// that are fixed, however small it is itself.
var ErrTooLarge = errors.New("archive too large")

// Limits bound the content of an archive. They have the names of the settings
// of package manager, which errors mention.
type Limits struct {
	// MaxContentBytes is the content of all files together; 0 means
	// DefaultBytes.
	MaxContentBytes int64
	// MaxContentEntries is the number of files, directories and links; 0 means
	// DefaultEntries. Directories that an entry needs and that were not named
	// before it count, too.
	MaxContentEntries int
	// MaxDisk is the disk that the content may take, counted in blocks of 4 KiB
	// with at least one for each entry; 0 means that there is no limit but the
	// other two.
	MaxDisk int64
}

// The defaults of Limits.
const (
	DefaultBytes   = 8 << 30
	DefaultEntries = 500_000
)

// What is fixed. An archive that goes beyond is refused: each of these costs
// time or memory that has nothing to do with its size.
const (
	// MaxDepth is how many directories may lie within each other.
	MaxDepth = 256
	// MaxPathBytes is the longest name of an entry and the longest target of a
	// link, as in Linux.
	MaxPathBytes = 4095
	// MaxHeaderBytes is what may be said of one entry besides its content: long
	// names, PAX records, sparse maps, global headers before it.
	MaxHeaderBytes = 1 << 20
	// meanHeaderBytes is the same in the mean of as many entries as there may
	// be.
	meanHeaderBytes = 4 << 10
)

func (l Limits) orDefault() Limits {
	if l.MaxContentBytes <= 0 {
		l.MaxContentBytes = DefaultBytes
	}
	if l.MaxContentEntries <= 0 {
		l.MaxContentEntries = DefaultEntries
	}
	return l
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTooLarge, fmt.Sprintf(format, args...))
}

func tooMany(entries int) error {
	return tooLarge("it has more entries than MaxContentEntries, which is %d", entries)
}

func unsafe(format string, args ...any) error {
	return fmt.Errorf("%w: %s", executor.ErrUnsafeArchive, fmt.Sprintf(format, args...))
}

// Name is the name of an entry as a local path, or "." for the root. A name that
// leads out of the archive is an executor.ErrUnsafeArchive, one that is too
// long or too deep an ErrTooLarge.
func Name(name string) (string, error) {
	if len(name) > MaxPathBytes {
		return "", tooLarge("the name %.64q… has more than %d bytes, which is fixed", name, MaxPathBytes)
	}
	clean := path.Clean(name)
	if strings.Contains(name, "\x00") || !filepath.IsLocal(clean) {
		return "", unsafe("the entry %q leads out of the archive", name)
	}
	if strings.Count(clean, "/") > MaxDepth {
		return "", tooLarge("%.64q… lies deeper than %d directories, which is fixed", name, MaxDepth)
	}
	return clean, nil
}

// Link checks the target of a symbolic link of the entry at name: it is
// relative and stays within the archive.
func Link(name, target string) error {
	if len(target) > MaxPathBytes {
		return tooLarge("the link %.64q has a target of more than %d bytes, which is fixed", name, MaxPathBytes)
	}
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
