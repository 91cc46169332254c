//go:build linux

package rootfs

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

// OfThisBoot returns the directory below dir for images that are unpacked until the
// host boots again. It does not make the directory: then a daemon can start on a full
// disk. Nobody waits until an image is on the disk, so after a power cut an image may
// look whole and not be. OfThisBoot therefore sets aside what was unpacked before the
// host booted, and with it the images that nobody needs any more.
func OfThisBoot(dir string, trash tenant.Trash) (string, error) {
	boot := "boot-" + bootID()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() == boot {
			continue
		}
		if err := setAside(filepath.Join(dir, e.Name()), trash); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, boot), nil
}

// setAside puts what an earlier boot has left into the trash. If the disk is too full
// for the trash's own directory, a former directory is renamed to be the trash, because
// its removal here could delay the start.
func setAside(former string, trash tenant.Trash) error {
	if _, err := trash.Put(former); err == nil {
		return nil
	}
	if s, err := os.Lstat(former); err == nil && s.IsDir() && os.Chmod(former, 0o700) == nil && os.Rename(former, trash.Dir) == nil {
		return nil
	}
	return tenant.RemoveAll(context.Background(), former)
}

// bootID returns an id that changes whenever the host boots, or with every call if the
// kernel has none.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return rand.Text()
	}
	return strings.TrimSpace(string(id))
}
