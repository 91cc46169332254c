// Package guids tells which names can be those of containers.
package guids

import (
	"errors"
	"io/fs"
	"os"

	"github.com/diegosdk/diego/executor"
)

// Valid keeps every path that is made of a guid below the directory of a
// backend.
func Valid(guid string) bool {
	var v executor.Validator
	v.GUID("guid", guid)
	return v.Err() == nil
}

// Dirs are the guids that are names of directories in dir, in their order. There are none
// if dir is missing.
func Dirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && Valid(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all, nil
}
