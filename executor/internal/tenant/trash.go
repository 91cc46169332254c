package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Trash is a directory of a backend for what it cannot remove: a file that an
// administrator has made immutable, a mount that somebody has left. It is made
// when it is needed. Its methods may be called at once from many goroutines.
type Trash struct{ Dir string }

// Remove removes a directory beside the Trash, or sets it aside: then the
// error is an executor.ErrSetAside, and nothing is left at the path. Any other
// error leaves the directory where it is.
func (t Trash) Remove(ctx context.Context, path string) error {
	err := RemoveAll(ctx, path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if mkdirErr := os.MkdirAll(t.Dir, 0o700); mkdirErr != nil {
		return errors.Join(err, mkdirErr)
	}
	name := filepath.Base(path) + "." + strconv.FormatInt(time.Now().UnixNano(), 36)
	if renameErr := os.Rename(path, filepath.Join(t.Dir, name)); renameErr != nil {
		return fmt.Errorf("%w; it cannot be set aside either: %w", err, renameErr)
	}
	return fmt.Errorf("%w: %s in %s: %w", executor.ErrSetAside, name, t.Dir, err)
}

// Sweep tries again to remove what has been set aside, and returns what is
// left.
func (t Trash) Sweep(ctx context.Context) ([]executor.Leftover, error) {
	entries, err := os.ReadDir(t.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var left []executor.Leftover
	for _, e := range entries {
		path := filepath.Join(t.Dir, e.Name())
		err := RemoveAll(ctx, path)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			left = append(left, executor.Leftover{Path: path, Bytes: size(path, maxMeasured), Err: err})
		}
	}
	if len(left) == 0 {
		os.Remove(t.Dir)
	}
	return left, nil
}

// maxMeasured is how deep size looks. What lies deeper has been lifted, unless
// that could not be done.
const maxMeasured = 100

// size is the disk that a tree takes, as far as it can be read.
func size(path string, depth int) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	total := diskUsage(info)
	if !info.IsDir() || depth == 0 {
		return total
	}
	dir, err := os.Open(path)
	if err != nil {
		return total
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(chunk)
		for _, name := range names {
			total += size(filepath.Join(path, name), depth-1)
		}
		if err != nil {
			return total
		}
	}
}

// chunk is how many names of a directory are read at a time.
const chunk = 1024
