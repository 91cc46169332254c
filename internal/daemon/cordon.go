package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/rep"
)

// KeepCordon keeps a cordon when the daemon of a cell starts again: while the cell
// is cordoned, there is a file in its directory.
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
