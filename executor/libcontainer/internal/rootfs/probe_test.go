//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestAnAttemptRemovesWhatThoseOfKilledDaemonsHaveLeft(t *testing.T) {
	dir := t.TempDir()
	if missing := Missing(dir, ids.Range{}); missing != "" {
		testenv.Missing(t, "overlays", missing)
		return
	}
	// One was killed before it had mounted anything, and one after that.
	left := filepath.Join(dir, tryPrefix+"2")
	merged := filepath.Join(left, "merged")
	for _, name := range []string{filepath.Join(dir, tryPrefix+"1"), left, filepath.Join(left, "lower"), merged} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the image and the overlay
		if err := unix.Mount(filepath.Join(left, "lower"), merged, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { unmount(merged) })
	if missing := Missing(dir, ids.Range{}); missing != "" {
		t.Error(missing)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("something is still mounted below %s, or that is not known: %v", dir, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, or that is not known: %v", entries, err)
	}
}
