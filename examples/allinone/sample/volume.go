package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/executor"
)

// Driver is the name of the volume driver that a cell needs for the sample.
const Driver = "sample"

const binary = "app"

// A Volume is a directory of the host with a copy of the running binary. It is
// a manager.VolumeDriver: every container that asks for it sees the same
// directory.
type Volume struct{ dir string }

// NewVolume puts a copy of the running binary into dir, which must be an
// absolute path and is made if it is missing. Containers that still have an
// earlier copy keep it. An earlier copy is good enough if there can be no new
// one, as on a full disk.
func NewVolume(dir string) (Volume, error) {
	own, err := os.Executable()
	if err != nil {
		return Volume{}, fmt.Errorf("the sample app is this binary, which cannot be found: %w", err)
	}
	// The users of containers have to get through, with any umask of ours.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return Volume{}, err
	}
	path := filepath.Join(dir, binary)
	if err := copyFile(own, path+".new"); err != nil {
		err = errors.Join(fmt.Errorf("the sample app cannot be copied: %w", err), os.RemoveAll(path+".new"))
		if _, missing := os.Stat(path); missing == nil {
			return Volume{dir}, nil
		}
		return Volume{}, err
	}
	return Volume{dir}, os.Rename(path+".new", path)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// Mount returns the directory.
func (v Volume) Mount(context.Context, string, executor.VolumeMount) (string, error) {
	return v.dir, nil
}

// Unmount leaves the directory to others.
func (Volume) Unmount(context.Context, string, executor.VolumeMount) error { return nil }
