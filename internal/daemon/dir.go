package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Dir is a directory whose whole content belongs to one process at a time.
// Another process would take what it finds there for its own and remove it.
type Dir struct {
	path string
	flag string
	lock *os.File
	note string // what an operator should know of the permissions, or empty
	// shared is true if the directory had other content before ours. The lock
	// records it, because the lock marks a directory as ours.
	shared bool
}

// OpenDir makes the directory if necessary and takes it for this process. Only
// the user of the process may have access: a directory that belongs to another
// user, or that is shared by all like /tmp, is an error that says what to do
// about it. setting is the name of the setting that the path comes from.
func OpenDir(setting, path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	d := &Dir{path: path, flag: (&field{name: setting}).flag()}
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, d.Wrong(err)
	}
	if err := d.keepPrivate(); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(d.In(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.Wrong(err)
	}
	if taken, err := lockInTime(lock); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		lock.Close()
		if taken {
			pid, _, _ := strings.Cut(strings.TrimSpace(string(owner)), "\n")
			return nil, fmt.Errorf("%s is in use by process %s; stop that one or name another directory with %s", path, strings.TrimSpace(pid), d.flag)
		}
		return nil, fmt.Errorf("%s cannot be locked: %w; name a directory on a local disk with %s", path, err, d.flag)
	}
	text := fmt.Appendf(nil, "%-10d\n", os.Getpid())
	if d.shared {
		text = append(text, sharedMark+"\n"...)
	}
	if _, err := lock.WriteAt(text, 0); err != nil {
		lock.Close()
		return nil, d.Wrong(err)
	}
	d.lock = lock
	return d, nil
}

// A child that a killed process was about to start has the lock, too, until it has
// become its program. On a busy host that takes some seconds.
const orphansLock = 10 * time.Second

// lockInTime locks a file like lockFile. While the process that has written its id into
// the file is gone, it tries again.
func lockInTime(lock *os.File) (taken bool, err error) {
	for end := time.Now().Add(orphansLock); ; time.Sleep(20 * time.Millisecond) {
		if taken, err = lockFile(lock); !taken || time.Now().After(end) {
			return taken, err
		}
		text, _ := os.ReadFile(lock.Name())
		line, _, _ := strings.Cut(string(text), "\n")
		if pid, bad := strconv.Atoi(strings.TrimSpace(line)); bad != nil || pid <= 0 || !gone(pid) {
			return taken, err
		}
	}
}

const (
	lockName   = "lock"
	sharedMark = "this directory had other things in it"
	others     = fs.FileMode(0o077) // the permissions of everybody but the owner
)

// keepPrivate takes the directory's permissions from other users. A directory
// that holds something else may be a mistake, such as "/" or a home directory.
// It keeps its permissions, at later starts too; all that is written into it is
// private anyway.
func (d *Dir) keepPrivate() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return d.Wrong(err)
	}
	const everybody = 0o002
	uid, strange := stranger(info)
	if strange && info.Mode()&everybody != 0 {
		return d.common(info)
	}
	if strange {
		return fmt.Errorf("%s belongs to the user %d, who could change what is kept there; give it to the user %d of this process (chown), or name another directory with %s", d.path, uid, os.Geteuid(), d.flag)
	}
	if info.Mode()&others == 0 {
		return nil
	}
	inside, err := os.ReadDir(d.path)
	if err != nil {
		return d.Wrong(err)
	}
	mark, err := os.ReadFile(d.In(lockName))
	if d.shared = len(inside) > 0 && (err != nil || strings.Contains(string(mark), sharedMark)); d.shared {
		if info.Mode()&fs.ModeSticky != 0 {
			return d.common(info)
		}
		d.note = fmt.Sprintf("others can look into %s (%v), which was not made by this program; what is kept there is closed to them, but chmod 700 is better", d.path, info.Mode())
		return nil
	}
	if err := os.Chmod(d.path, info.Mode().Perm()&^others); err != nil {
		return d.Wrong(err)
	}
	after, err := os.Stat(d.path)
	if err != nil {
		return d.Wrong(err)
	}
	if after.Mode() != info.Mode() { // on Windows nothing changes
		d.note = fmt.Sprintf("others could look into %s (%v); now only its owner can (%v)", d.path, info.Mode(), after.Mode())
	}
	return nil
}

// common reports whether the directory is everybody's, like /tmp.
func (d *Dir) common(info fs.FileInfo) error {
	return fmt.Errorf("%s is shared by all users of this host (%v); name a directory for this process alone with %s, such as %s", d.path, info.Mode(), d.flag, d.In("diego"))
}

// Tell logs what was found or changed about the directory's permissions, if
// anything.
func (d *Dir) Tell(log *slog.Logger) {
	if d.note != "" {
		log.Warn(d.note)
	}
}

// Wrong adds to an error that it happened while something was kept in the
// directory.
func (d *Dir) Wrong(err error) error {
	return fmt.Errorf("nothing can be kept in %s: %w; name another directory with %s", d.path, err, d.flag)
}

// Create makes a file in the directory, or empties it. Only its owner can read
// or write it.
func (d *Dir) Create(name string) (*os.File, error) {
	f, err := os.OpenFile(d.In(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil { // an earlier release made it for everybody
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Make makes a directory in this one if necessary and returns its path. Only
// the owner can look into it.
func (d *Dir) Make(name string) (string, error) {
	if err := os.MkdirAll(d.In(name), 0o700); err != nil {
		return "", d.Wrong(err)
	}
	return d.In(name), nil
}

// In is a path in the directory.
func (d *Dir) In(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// A process looks every dirInterval whether it still has its directory. A look that
// fails otherwise than because the directory is gone counts after dirFailures in a row.
const (
	dirInterval = 5 * time.Second
	dirFailures = 3
)

// While calls work, and ends its context once this process no longer has the directory,
// for example because it was removed, emptied, replaced or unmounted. Then the error of
// While says so; an error of work that is more than the end of its context is joined.
func (d *Dir) While(ctx context.Context, work func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	lost := make(chan error, 1)
	go func() { // nobody waits for it, because a look at a disk may hang
		if err := d.watch(ctx); err != nil {
			lost <- err
			end()
		}
	}()
	err := work(ctx)
	select {
	case gone := <-lost:
		if errors.Is(err, context.Canceled) {
			return gone
		}
		return errors.Join(gone, err)
	default:
		return err
	}
}

// watch returns why this process no longer has the directory, or nil when ctx ends.
func (d *Dir) watch(ctx context.Context) error {
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(dirInterval):
		}
		there, err := d.isThere()
		switch {
		case err == nil && !there:
			return fmt.Errorf("%s was removed, emptied, replaced or unmounted while this process had it, and the files of its containers with it; see that it stays, or name another directory with %s, and start this process again", d.path, d.flag)
		case err == nil:
			failures = 0
		default:
			if failures++; failures == dirFailures {
				return fmt.Errorf("%s has not been readable for %v: %w; repair its disk or name another directory with %s, and start this process again", d.path, dirFailures*dirInterval, err, d.flag)
			}
		}
	}
}

// isThere reports whether the directory still has the lock of this process. The lock is
// open, so no other file gets its inode.
func (d *Dir) isThere() (bool, error) {
	mine, err := d.lock.Stat()
	if err != nil {
		return false, err
	}
	found, err := os.Stat(d.In(lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, found), err
}

// Close lets others take the directory.
func (d *Dir) Close() error { return d.lock.Close() }
