//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/testenv"
)

// After a power cut, a template may have its size and nothing of its content.
func TestADiskIsMadeAlthoughAPowerCutHasSpoiltItsTemplate(t *testing.T) {
	testenv.Root(t)
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Fatal(err)
	}
	const megabytes = 16
	d := disks{dir: t.TempDir(), mkfs: mkfs}
	spoilt := d.templatePath(megabytes)
	if err := errors.Join(os.WriteFile(spoilt, nil, 0o600), os.Truncate(spoilt, megabytes<<20)); err != nil {
		t.Fatal(err)
	}
	dir, at := t.TempDir(), t.TempDir()
	for _, name := range []string{"first", "second"} {
		if err := d.mount(t.Context(), megabytes, filepath.Join(dir, name), at); err != nil {
			t.Fatalf("the %s disk: %v", name, err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(at, "file"), nil, 0o600), unix.Unmount(at, 0)); err != nil {
			t.Error(err)
		}
	}
}
