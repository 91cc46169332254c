package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
