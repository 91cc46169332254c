//go:build linux

package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// inRoot returns a directory with a file, and with a link to it through "..".
func inRoot(t *testing.T) *os.File {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Open(dir)
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "file"), nil, 0o644),
		os.Symlink("sub/../file", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// A tenant can make links whose lookup the kernel gives up again and again.
func TestALookupThatTheKernelGivesUpAgainAndAgainEnds(t *testing.T) {
	root, calls := inRoot(t), 0
	openat2 = func(int, string, *unix.OpenHow) (int, error) {
		if calls++; calls > 100*maxAgain {
			return -1, unix.EIO
		}
		return -1, unix.EAGAIN
	}
	defer func() { openat2 = unix.Openat2 }()
	if _, err := Stat(root, "link"); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("after %d calls it is %v", calls, err)
	}
}

func TestALinkIsFoundWhileTenantsRenameWithoutAPause(t *testing.T) {
	root := inRoot(t)
	stop := make(chan struct{})
	var renaming sync.WaitGroup
	for range 3 {
		at, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		renaming.Go(func() {
			for err := error(nil); err == nil; {
				select {
				case <-stop:
					return
				default:
					err = os.Rename(at, to)
					at, to = to, at
				}
			}
			t.Error("a file cannot be renamed")
		})
	}
	for range 1000 {
		if _, err := Stat(root, "link"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	renaming.Wait()
}
