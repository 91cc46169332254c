package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Trash is a directory of a backend for what it cannot remove: a file that an
// administrator has made immutable, a mount that somebody has left. It also
// holds what takes long to remove. It is made when it is needed. Its methods
// may be called at once from many goroutines.
type Trash struct{ Dir string }

// Remove removes a directory beside the Trash, or sets it aside: then the
// error is an executor.ErrSetAside, and nothing is left at the path. Any other
// error leaves the directory where it is.
func (t Trash) Remove(ctx context.Context, path string) error {
	err := RemoveAll(ctx, path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return t.setAside(path, err)
}

// RemoveBefore is Remove, and also sets aside what takes longer than until end.
func (t Trash) RemoveBefore(ctx context.Context, path string, end time.Time) error {
	hurried, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := RemoveAll(hurried, path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if hurried.Err() != nil {
		err = errors.New("it takes long")
	}
	return t.setAside(path, err)
}

func (t Trash) setAside(path string, err error) error {
	aside, asideErr := t.Put(path)
	if asideErr != nil {
		return fmt.Errorf("%w; it cannot be set aside either: %w", err, asideErr)
	}
	return fmt.Errorf("%w: %s: %w", executor.ErrSetAside, aside, err)
}

// A Hurry bounds how long a daemon that has started waits, in all, for the files of
// the containers of an earlier one to be removed. Its time begins with the first call
// of End, which may be called concurrently.
type Hurry struct {
	Limit time.Duration

	once sync.Once
	end  time.Time
}

// HurryLimit is the Limit of backends.
const HurryLimit = 10 * time.Second

// End is when what has not been removed is set aside.
func (h *Hurry) End() time.Time {
	h.once.Do(func() { h.end = time.Now().Add(h.Limit) })
	return h.end
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

// Aside returns what lies there, without an error each.
func (t Trash) Aside(ctx context.Context) ([]executor.Leftover, error) {
	entries, err := os.ReadDir(t.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var list []executor.Leftover
	for _, e := range entries {
		path := filepath.Join(t.Dir, e.Name())
		list = append(list, executor.Leftover{Path: path, Bytes: Measure(ctx, path, diskUsage)})
	}
	return list, ctx.Err()
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
