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
	aside, asideErr := t.Put(path)
	if asideErr != nil {
		return fmt.Errorf("%w; it cannot be set aside either: %w", err, asideErr)
	}
	return fmt.Errorf("%w: %s: %w", executor.ErrSetAside, aside, err)
}

// Put sets a file or directory aside, for the next Sweep, and returns where it
// lies.
func (t Trash) Put(path string) (aside string, err error) {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return "", err
	}
	aside = filepath.Join(t.Dir, filepath.Base(path)+"."+strconv.FormatInt(time.Now().UnixNano(), 36))
	return aside, os.Rename(path, aside)
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
			left = append(left, executor.Leftover{Path: path, Bytes: Measure(ctx, path, diskUsage), Err: err})
		}
	}
	if len(left) == 0 {
		os.Remove(t.Dir)
	}
	return left, nil
}

// chunk is how many names of a directory are read at a time.
const chunk = 1024
