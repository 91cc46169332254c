package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A daemon that is killed while it starts processes leaves children that have its
// descriptors, and with them the lock, until they have become their programs.
func TestTheLockOfAKilledProcessIsWaitedForWhileItsLastChildHasIt(t *testing.T) {
	dir := t.TempDir()
	former := exec.Command("true")
	if err := former.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, lockName)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%-10d\n", former.Process.Pid), 0o600); err != nil {
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
