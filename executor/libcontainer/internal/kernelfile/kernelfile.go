//go:build linux

// Package kernelfile reads the files in which the kernel shows its numbers, most of
// them below /sys. A cell reads thousands of them a minute. [os.ReadFile] takes three
// times as many system calls, because it has Go's poller watch them.
package kernelfile

import (
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// MaxBytes is how much is read of a file: more than any of them has.
const MaxBytes = 16 << 10

var buffers = sync.Pool{New: func() any { return new([MaxBytes]byte) }}

// Read returns the text of a file. An error is an *fs.PathError.
func Read(path string) (string, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buffer := buffers.Get().(*[MaxBytes]byte)
	defer buffers.Put(buffer)
	for size := 0; ; {
		n, err := retry(func() (int, error) { return unix.Read(fd, buffer[size:]) })
		if err != nil {
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return string(buffer[:size]), nil
		}
		size += n
	}
}

func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

// Number returns the number that is alone in a file or, if the key is not empty,
// in the line that begins with the key. It is false if there is none, or one
// below 0.
func Number(path, key string) (int64, bool) {
	text, err := Read(path)
	if err != nil {
		return 0, false
	}
	if key != "" {
		lines := text
		text = ""
		for line := range strings.Lines(lines) {
			if value, found := strings.CutPrefix(line, key+" "); found {
				text = value
				break
			}
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 0
}
