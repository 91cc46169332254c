package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/executor"
)

// A Local is a driver whose volumes are directories of this host, one for each
// id. A volume is made when it is first mounted and kept until the operator
// removes its directory. Every user of a container may write to a new one.
// Nothing limits what a volume holds but the file system. Any number of
// goroutines may use a Local.
type Local struct{ root string }

// NewLocal returns a driver whose volumes are the directories below root. It
// makes root if it is missing, and closes it to all users but the daemon's: only
// containers see what is in the volumes.
func NewLocal(root string) (*Local, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	if err := os.Chmod(root, 0o700); err != nil {
		return nil, err
	}
	return &Local{root}, nil
}

// Mount returns the directory of the volume, which it makes if it is missing. It
// refuses what is not a directory, such as a link.
func (l *Local) Mount(_ context.Context, _ string, v executor.VolumeMount) (string, error) {
	name, config, err := nameOf(v)
	if err != nil {
		return "", err
	}
	if err := noConfig(config); err != nil {
		return "", err
	}
	dir := filepath.Join(l.root, name)
	// The mode of a volume that is not ready for all users: nobody would choose it.
	const unready = fs.ModeSticky
	if err := os.Mkdir(dir, unready); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
	case !info.IsDir():
		err = fmt.Errorf("%s is not a directory; move it away", dir)
	case info.Mode()&(fs.ModePerm|unready) == unready: // new, perhaps by a daemon that was killed here
		err = os.Chmod(dir, 0o777) // with any umask
	}
	return dir, err
}

// Kind is the same for all roots: there is nothing to unmount.
func (*Local) Kind() string { return "directories of this host" }

// Unmount leaves the volume to the next container.
func (l *Local) Unmount(context.Context, string, executor.VolumeMount) error { return nil }
