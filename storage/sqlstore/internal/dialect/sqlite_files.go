package dialect

import (
	"io/fs"
	"log/slog"
	"os"
)

// A SQLite database holds what runs and the secrets of it, so its files are
// their owner's alone. SQLite gives the log and the other files beside the
// database the permissions of the database itself.
const (
	privateFile = fs.FileMode(0o600)
	others      = fs.FileMode(0o077) // the permissions of everybody but the owner
)

// sqliteFiles are what is appended to a database's path for the files that
// SQLite keeps beside it.
var sqliteFiles = []string{"", "-wal", "-shm", "-journal"}

// KeepPrivate makes the file of a SQLite database, if there is none and the mode
// lets one be made, and closes to others what an earlier release has
// left open to them. What it changes, or cannot change, goes to log. An error
// of the file itself is left to SQLite, which meets it at once.
func KeepPrivate(path, mode string, log *slog.Logger) {
	if mode == "" || mode == "rwc" {
		// A file that is there is not opened: closing it would give up the locks
		// that this process holds on it.
		if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile); err == nil {
			_ = f.Close()
		}
	}
	for _, suffix := range sqliteFiles {
		closeToOthers(path+suffix, log)
	}
}

func closeToOthers(path string, log *slog.Logger) {
	before, err := os.Stat(path)
	if err != nil || before.Mode()&others == 0 {
		return
	}
	err = os.Chmod(path, before.Mode().Perm()&^others)
	after, statErr := os.Stat(path)
	switch {
	case err != nil:
		log.Warn("others can read or write a file of the database, and this process may not change that; run chmod 600 on it as its owner",
			"file", path, "mode", before.Mode(), "err", err)
	case statErr == nil && after.Mode() != before.Mode(): // on Windows nothing changes
		log.Warn("others could read or write a file of the database; now only its owner can", "file", path, "was", before.Mode(), "is", after.Mode())
	}
}
