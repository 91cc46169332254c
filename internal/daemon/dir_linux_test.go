package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
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
