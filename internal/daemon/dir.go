package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Dir is a directory of which everything belongs to one process at a time:
// another one would take what it finds there for its own, and remove it.
type Dir struct {
	path string
	flag string
	lock *os.File
}

// OpenDir makes the directory if need be, and takes it for this process. The
// error says what to do about it. setting is the name of the setting that the
// path comes from.
func OpenDir(setting, path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	d := &Dir{path: path, flag: (&field{name: setting}).flag()}
	if err == nil {
		// Others get through to what is theirs in it.
		err = os.MkdirAll(path, 0o711)
	}
	if err != nil {
		return nil, d.Wrong(err)
	}
	lock, err := os.OpenFile(d.In("lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, d.Wrong(err)
	}
	if taken, err := lockFile(lock); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		lock.Close()
		if taken {
			return nil, fmt.Errorf("%s is in use by process %s; stop that one or name another directory with %s", path, strings.TrimSpace(string(owner)), d.flag)
		}
		return nil, fmt.Errorf("%s cannot be locked: %w; name a directory on a local disk with %s", path, err, d.flag)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0); err != nil {
		lock.Close()
		return nil, d.Wrong(err)
	}
	d.lock = lock
	return d, nil
}

// Wrong says of an error that it came of keeping something.
func (d *Dir) Wrong(err error) error {
	return fmt.Errorf("nothing can be kept in %s: %w; name another directory with %s", d.path, err, d.flag)
}

// In is a path in the directory.
func (d *Dir) In(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// Close lets others take the directory.
func (d *Dir) Close() error { return d.lock.Close() }
