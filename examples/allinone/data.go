package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A dataDir holds everything that outlives the process. It belongs to one
// process at a time.
type dataDir struct {
	path string
	lock *os.File
}

// openData makes the directory if need be, and takes it for this process.
func openData(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	d := &dataDir{path: path}
	if err == nil {
		// Others get through to what is theirs in it.
		err = os.MkdirAll(path, 0o711)
	}
	if err != nil {
		return nil, d.wrong(err)
	}
	lock, err := os.OpenFile(d.in("lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, d.wrong(err)
	}
	if taken, err := lockFile(lock); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		lock.Close()
		if taken {
			return nil, fmt.Errorf("%s is in use by process %s; stop that one or name another directory with -data", path, strings.TrimSpace(string(owner)))
		}
		return nil, fmt.Errorf("%s cannot be locked: %w; name a directory on a local disk with -data", path, err)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0); err != nil {
		lock.Close()
		return nil, d.wrong(err)
	}
	d.lock = lock
	return d, nil
}

// wrong says of an error that it came of keeping something.
func (d *dataDir) wrong(err error) error {
	return fmt.Errorf("nothing can be kept in %s: %w; name another directory with -data", d.path, err)
}

// in is a path in the directory.
func (d *dataDir) in(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// Close lets others take the directory.
func (d *dataDir) Close() error { return d.lock.Close() }
