package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
)

// nothingIsLeft looks for everything that the cells of a data directory may
// have on this host.
func nothingIsLeft(t *testing.T, data string) {
	t.Helper()
	noProcessOf(t, data)
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, data) {
			t.Errorf("a mount is left: %s", line)
		}
	}
	for _, cell := range glob(t, data+"/cell-*") {
		for _, left := range []string{"/process/[^.]*", "/process/.lost/*", "/libcontainer/containers/*", "/libcontainer/lost/*"} {
			for _, container := range glob(t, cell+left) {
				t.Errorf("a container is left: %s", container)
			}
		}
		dir, err := filepath.EvalSymlinks(cell)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%x", sha256.Sum256([]byte(dir+"/libcontainer")))[:8]
		for _, what := range append(glob(t, "/sys/class/net/dg"+id[:4]+"*"), glob(t, "/sys/fs/cgroup/*/diego-"+id)...) {
			t.Errorf("left on the host: %s", what)
		}
	}
}

// noProcessOf looks for processes of containers in a directory.
func noProcessOf(t *testing.T, dir string) {
	t.Helper()
	for _, file := range glob(t, "/proc/[0-9]*/environ") {
		if environ, err := os.ReadFile(file); err == nil && bytes.Contains(environ, []byte(dir)) {
			t.Errorf("a process is left: %s", file)
		}
	}
}

func TestEachCellMakesRoomForItsContainersBeforeItStarts(t *testing.T) {
	testenv.Root(t)
	data := t.TempDir()
	full := filepath.Join(data, "cell-2")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64m,mode=700"); err != nil {
		testenv.Missing(t, "a small file system", err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(full, 0); err != nil {
			t.Error(err)
		}
	})
	downloads := filepath.Join(full, "manager", "cache")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(downloads, "large"), make([]byte, 65<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("65 MiB have room: %v", err)
	}
	s := new(settings)
	if err := daemon.Load(s, []string{"--data", data, "--listen", "127.0.0.1:0", "--cells", "2", "--backend", daemon.RealBackend}); err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), s, nil)
	if err != nil {
		t.Error(err)
	}
	for _, left := range glob(t, downloads+"*/large") {
		t.Errorf("nothing made room: there is %s", left)
	}
	for _, left := range glob(t, downloads+".former/*/large") {
		t.Errorf("nothing made room: there is %s", left)
	}
	if _, err := f.close(context.Background()); err != nil {
		t.Error(err)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
