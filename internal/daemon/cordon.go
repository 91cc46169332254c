package daemon

import (
	"errors"
	"io/fs"
	"os"

	"github.com/diegosdk/diego/rep"
)

// cordonMark is the file in a cell's directory that is there while the cell is
// cordoned.
const cordonMark = "cordoned"

// keepCordon lets a cordon outlive the processes of a cell with this directory.
func (d *Dir) keepCordon(o *rep.Options) error {
	switch _, err := os.Stat(d.In(cordonMark)); {
	case err == nil:
		o.Cordoned = true
	case !errors.Is(err, fs.ErrNotExist):
		return d.Wrong(err)
	}
	o.KeepCordon = func(cordoned bool) error {
		if !cordoned {
			if err := os.Remove(d.In(cordonMark)); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		mark, err := d.Create(cordonMark)
		if err != nil {
			return err
		}
		return mark.Close()
	}
	return nil
}
