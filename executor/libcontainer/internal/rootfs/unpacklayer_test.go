//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

// Else the end of a layer's overlay writes all of the host's file system to the
// disk, and a stop waits for it.
func TestTheOverlayOfALayerIsVolatile(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f, err := detachedOverlay(filepath.Join(dir, "lower"), filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := os.Stat(filepath.Join(dir, "work", "work", "incompat", "volatile")); err != nil {
		t.Error(err) // the kernel's own mark
	}
}
