package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/rep"
)

// KeepCordon lets a cordon outlive the processes of a cell: a file in the cell's
// directory is there while the cell is cordoned.
func KeepCordon(dir string, o *rep.Options) error {
	mark := filepath.Join(dir, "cordoned")
	switch _, err := os.Stat(mark); {
	case err == nil:
		o.Cordoned = true
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	o.KeepCordon = func(cordoned bool) error {
		if cordoned {
			return os.WriteFile(mark, nil, 0o600)
		}
		if err := os.Remove(mark); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return nil
}
