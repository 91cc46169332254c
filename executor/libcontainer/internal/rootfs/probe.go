//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
)

// Missing says why containers with ids cannot have a root file system below dir,
// or is "". It tries: a module may be loaded by the attempt, and not every file
// system can carry an overlay, or have its files shown with other owners. An
// attempt for which something is exhausted counts as one that succeeds: then
// the next container says what is missing, and the one after that may find it.
func Missing(dir string, own ids.Range) string {
	switch err := try(dir, own); {
	case err == nil, ids.Exhausted(err):
		return ""
	case own.Own():
		return "an overlay over files with other owners cannot be mounted (" + err.Error() + "); it takes Linux 5.19 and Options.Dir on a file system with idmapped mounts, as ext4, xfs or btrfs"
	default:
		return "an overlay cannot be mounted (" + err.Error() + "); load the module overlay, and put Options.Dir on a file system that carries it, as ext4 or xfs do"
	}
}

// tryPrefix begins the names of the directories of attempts.
const tryPrefix = "probe-"

func try(dir string, own ids.Range) error {
	if err := removeTries(dir); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(dir, tryPrefix)
	if err != nil {
		return err
	}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return errors.Join(err, removeTry(dir))
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	err = mountLayers(at("merged"), at("lower"), lower{}, at("upper"), at("work"), own)
	return errors.Join(err, removeTry(dir))
}

// removeTries removes the attempts of daemons that were killed meanwhile. Nothing else
// would: a mount stays, and the names differ.
func removeTries(dir string) (err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tryPrefix) {
			err = errors.Join(err, removeTry(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func removeTry(dir string) error {
	return errors.Join(unmount(filepath.Join(dir, "merged")), os.RemoveAll(dir))
}
