//go:build linux

package rootfs

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

// OfThisBoot returns the directory below dir, which it makes if it is missing, for
// images that are unpacked until the host boots again. Nobody waits until an image is
// on the disk, so after a power cut one may look whole that is not. What was unpacked
// before the host booted is therefore set aside, and with it the images that nobody
// needs any more.
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
		former := filepath.Join(dir, e.Name())
		if _, err := trash.Put(former); err != nil { // the disk may be full
			if err := os.RemoveAll(former); err != nil {
				return "", err
			}
		}
	}
	current := filepath.Join(dir, boot)
	if err := os.Mkdir(current, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return current, nil
}

// bootID is another one whenever the host has booted. If the kernel does not tell, it
// is another one each time.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return rand.Text()
	}
	return strings.TrimSpace(string(id))
}
