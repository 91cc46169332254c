package volumes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// An Export is a directory of the host that containers may mount.
type Export struct {
	// Path is absolute.
	Path string
	// Writable lets containers mount it for writing.
	Writable bool
}

// Exports is a driver that shows directories of this host that the operator has
// named, and nothing else. A volume's id is the name. Any number of goroutines
// may use it.
type Exports struct{ exports map[string]Export }

// NewExports returns a driver for exports by name. Each must be a directory. Its
// path may have links in it now; one that leads elsewhere later is refused. None
// may lie below one that is writable, because containers could replace it.
func NewExports(exports map[string]Export) (*Exports, error) {
	e := &Exports{make(map[string]Export, len(exports))}
	names := slices.Sorted(maps.Keys(exports))
	for _, name := range names {
		x := exports[name]
		if _, _, err := nameOf(executor.VolumeMount{Shared: &executor.SharedDevice{VolumeID: name}}); err != nil {
			return nil, fmt.Errorf("export %q: %w", name, err)
		}
		if !filepath.IsAbs(x.Path) {
			return nil, fmt.Errorf("export %q: %s is not an absolute path", name, x.Path)
		}
		path, err := filepath.EvalSymlinks(x.Path)
		if err != nil {
			return nil, fmt.Errorf("export %q: %w", name, err)
		}
		x.Path = path
		if err := x.check(); err != nil {
			return nil, fmt.Errorf("export %q: %w", name, err)
		}
		e.exports[name] = x
	}
	for _, outer := range names {
		for _, inner := range names {
			a, b := e.exports[outer], e.exports[inner]
			if a.Writable && strings.HasPrefix(b.Path, strings.TrimSuffix(a.Path, "/")+"/") {
				return nil, fmt.Errorf("export %q: %s lies below %s, which the export %q lets containers change; export one of them, or %q read-only",
					inner, b.Path, a.Path, outer, outer)
			}
		}
	}
	return e, nil
}

// check is an error unless the path is that of a directory, with no link in it.
func (x Export) check() error {
	path, err := filepath.EvalSymlinks(x.Path)
	if err != nil {
		return err
	}
	if path != x.Path {
		return fmt.Errorf("%s has become a link to %s; put the directory back, or start the cell again", x.Path, path)
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}

// Mount returns the directory of the export with the volume's id.
func (e *Exports) Mount(_ context.Context, _ string, v executor.VolumeMount) (string, error) {
	name, config, err := nameOf(v)
	if err != nil {
		return "", err
	}
	if err := noConfig(config); err != nil {
		return "", err
	}
	x, known := e.exports[name]
	if !known {
		return "", fmt.Errorf("this cell exports no %q; it exports %q", name, slices.Sorted(maps.Keys(e.exports)))
	}
	if v.Mode != executor.MountReadOnly && !x.Writable {
		return "", fmt.Errorf("the export %q is read-only; mount it with the mode %q", name, executor.MountReadOnly)
	}
	return x.Path, x.check()
}

// Kind is the same for all exports: there is nothing to unmount.
func (*Exports) Kind() string { return "exported directories" }

// Unmount does nothing.
func (e *Exports) Unmount(context.Context, string, executor.VolumeMount) error { return nil }
