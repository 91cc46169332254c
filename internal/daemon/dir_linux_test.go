package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// A daemon that is killed while it starts processes leaves children that have its
// descriptors, and with them the lock, until they have become their programs.
func TestTheLockOfAKilledProcessIsWaitedForWhileItsLastChildHasIt(t *testing.T) {
	for _, reaped := range []bool{true, false} {
		t.Run(fmt.Sprint("reaped=", reaped), func(t *testing.T) {
			former := exec.Command("true")
			if err := former.Start(); err != nil {
				t.Fatal(err)
			}
			if reaped {
				former.Wait()
			} else {
				t.Cleanup(func() { former.Wait() })
				for !gone(former.Process.Pid) {
					time.Sleep(time.Millisecond) // until it has ended
				}
			}
			successorOf(t, former.Process.Pid)
		})
	}
}

// successorOf opens the directory of a daemon that is gone, of which a child has the lock.
func successorOf(t *testing.T, pid int) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%-10d\n", pid), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(lock); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "0.5")
	child.ExtraFiles = []*os.File{lock}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	d, err := OpenDir("dir", dir)
	if err != nil {
		t.Errorf("the next process was refused: %v", err)
	} else {
		d.Close()
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAProcessEndsWhenItsDirectoryIsGone(t *testing.T) {
	busy := errors.New("something is left")
	idle := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		lose func(dir string) error
		work func(context.Context) error
		want []string // in the error
		took time.Duration
	}{
		"removed": {os.RemoveAll, idle, []string{"was removed", "--dir"}, dirInterval},
		"emptied": {func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) }, idle, []string{"emptied"}, dirInterval},
		"replaced": {func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			again, err := OpenDir("dir", dir)
			if err == nil {
				err = again.Close()
			}
			return err
		}, idle, []string{"replaced"}, dirInterval},
		"unreadable": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink(filepath.Base(dir), dir))
		}, idle, []string{"has not been readable for 15s", "too many levels of symbolic links"}, dirFailures * dirInterval},
		"with an error of its own": {os.RemoveAll, func(ctx context.Context) error { <-ctx.Done(); return busy }, []string{"was removed", busy.Error()}, dirInterval},
		"not at all":               {func(string) error { return nil }, func(context.Context) error { time.Sleep(time.Hour); return busy }, []string{busy.Error()}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "cell")
				d, err := OpenDir("dir", dir)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if err := tt.lose(dir); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = d.While(t.Context(), tt.work)
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				for _, want := range tt.want {
					if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
			})
		})
	}
}
