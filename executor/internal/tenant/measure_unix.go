//go:build unix

package tenant

import (
	"context"
	"io"

	"golang.org/x/sys/unix"
)

// A weight is what a file or directory counts for.
type weight func(*unix.Stat_t) int64

// Content is the weight of the bytes in files.
func Content(s *unix.Stat_t) int64 {
	if s.Mode&unix.S_IFMT == unix.S_IFREG {
		return s.Size
	}
	return 0
}

// diskUsage is the weight of the disk that files and directories take.
func diskUsage(s *unix.Stat_t) int64 {
	const sector = 512
	return int64(s.Blocks) * sector
}

// Measure adds up what a directory of the host and everything below it weigh.
// It reads directories as it goes, follows no link, enters no other file system
// and holds two descriptors, however deep the tree is. What it cannot read, what
// is moved meanwhile, and what it has not come to when ctx ends count as
// nothing.
func Measure(ctx context.Context, path string, of weight) int64 {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return 0
	}
	m := measuring{of: of, device: uint64(s.Dev), total: of(&s)}
	fd, err := unix.Open(path, enter, 0)
	if err != nil {
		return m.total
	}
	m.fd, m.levels = fd, []level{{inode: s.Ino}}
	defer func() { unix.Close(m.fd) }()
	for ctx.Err() == nil && m.step() {
	}
	return m.total
}

const enter = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// A measuring is on its way through a tree.
type measuring struct {
	of     weight
	device uint64
	fd     int     // of the last of levels
	levels []level // from the top to where it is
	total  int64
	buffer [16 << 10]byte
	names  []string
}

// A level is a directory that is not yet done.
type level struct {
	inode uint64
	next  int64    // where to read on
	dirs  []string // subdirectories that were read and not yet entered
}

// step enters a directory, reads some of one or leaves one. It reports whether
// there is more.
func (m *measuring) step() bool {
	at := &m.levels[len(m.levels)-1]
	if last := len(at.dirs) - 1; last >= 0 {
		name := at.dirs[last]
		at.dirs = at.dirs[:last]
		m.down(name)
		return true
	}
	return m.read(at) || m.up()
}

// read weighs some of what a directory holds. It reports whether that was any.
func (m *measuring) read(at *level) bool {
	n, err := unix.ReadDirent(m.fd, m.buffer[:])
	if err != nil || n <= 0 {
		return false
	}
	_, _, m.names = unix.ParseDirent(m.buffer[:n], -1, m.names[:0])
	if at.next, err = unix.Seek(m.fd, 0, io.SeekCurrent); err != nil {
		return false
	}
	for _, name := range m.names {
		var s unix.Stat_t
		if unix.Fstatat(m.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil || uint64(s.Dev) != m.device {
			continue
		}
		m.total += m.of(&s)
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			at.dirs = append(at.dirs, name)
		}
	}
	return true
}

func (m *measuring) down(name string) {
	var s unix.Stat_t
	fd, err := unix.Openat(m.fd, name, enter, 0)
	if err != nil {
		return
	}
	if unix.Fstat(fd, &s) != nil || uint64(s.Dev) != m.device {
		unix.Close(fd)
		return
	}
	unix.Close(m.fd)
	m.fd, m.levels = fd, append(m.levels, level{inode: s.Ino})
}

// up goes back to the directory above, if that is still the one that it came
// from.
func (m *measuring) up() bool {
	m.levels = m.levels[:len(m.levels)-1]
	if len(m.levels) == 0 {
		return false
	}
	fd, err := unix.Openat(m.fd, "..", enter, 0)
	if err != nil {
		return false
	}
	unix.Close(m.fd)
	m.fd = fd
	var s unix.Stat_t
	above := m.levels[len(m.levels)-1]
	if unix.Fstat(fd, &s) != nil || uint64(s.Dev) != m.device || s.Ino != above.inode {
		return false
	}
	_, err = unix.Seek(fd, above.next, io.SeekStart)
	return err == nil
}
