//go:build unix

package tenant

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// maxMeasured is how deep Measure looks: each level takes a descriptor.
const maxMeasured = 64

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
// It reads directories as it goes, follows no link and enters no other file
// system. What cannot be read, what lies deeper than 64 directories, and what
// it has not come to when ctx ends count as nothing.
func Measure(ctx context.Context, path string, of weight) int64 {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return 0
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return of(&s)
	}
	return of(&s) + measure(ctx, os.NewFile(uintptr(fd), path), uint64(s.Dev), of, maxMeasured)
}

// measure closes dir.
func measure(ctx context.Context, dir *os.File, device uint64, of weight, depth int) (total int64) {
	defer dir.Close()
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(chunk)
		for _, name := range names {
			var s unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil || uint64(s.Dev) != device {
				continue
			}
			total += of(&s)
			if s.Mode&unix.S_IFMT != unix.S_IFDIR || depth == 1 {
				continue
			}
			if fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				total += measure(ctx, os.NewFile(uintptr(fd), name), device, of, depth-1)
			}
		}
		if err != nil {
			break
		}
	}
	return total
}
