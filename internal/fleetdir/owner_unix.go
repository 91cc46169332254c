//go:build unix

package fleetdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// check makes sure that no other user made the data directory in a place that
// is open to everybody, for example /tmp: its address and authority would be
// theirs.
func check(data string) error {
	parent, err := os.Stat(filepath.Dir(filepath.Clean(data)))
	if err != nil || parent.Mode()&fs.ModeSticky == 0 {
		return nil // what is the matter is found when it is read
	}
	info, err := os.Lstat(data)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: it belongs to the user %d: %w", data, s.Uid, fs.ErrPermission)
	}
	return nil
}
