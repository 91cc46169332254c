package transfer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor/internal/transfer"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestOnlyAFullDiskOfTheCacheMakesRoom(t *testing.T) {
	testenv.Root(t)
	s, at := newServer(t), t.TempDir()
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=4m"); err != nil {
		testenv.Missing(t, "a small file system", err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	f, _ := newFetcher(t, func(o *transfer.Options) { o.Dir = filepath.Join(at, "cache") })
	unused := fetch(t, f, transfer.Request{URL: s.URL + "/unused", CacheKey: "unused"})
	unused.Release()
	ownDisk := fmt.Errorf("the disk of the container is too small: %w", syscall.ENOSPC)
	if f.MakeRoom(ownDisk) {
		t.Error("a container whose own disk is full costs what neighbours may need")
	}
	if err := os.WriteFile(filepath.Join(at, "large"), make([]byte, 5<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("5 MiB have room: %v", err)
	}
	if f.MakeRoom(errors.New("broken")) {
		t.Error("another error makes room")
	}
	if !f.MakeRoom(fmt.Errorf("no container: %w", syscall.EDQUOT)) || f.MakeRoom(syscall.ENOSPC) {
		t.Error("what nobody uses is not removed, or more than once")
	}
	if _, err := os.Stat(unused.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
