//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// MarkLimit is the limit that marks a start. A process bequeaths its limits to
// all that descends from it, also to what makes a session of its own or loses
// its parents. Linux has not used the limit of file locks since 2.4.25, so each
// process that is started gets a number there, and with it all that it will
// leave behind. Nobody can change it: the filter of system calls refuses that,
// except in a privileged container, in which such a process ends with its
// container. A cgroup for each process would tell as much, and cost each start
// more than all the rest of it.
const MarkLimit = unix.RLIMIT_LOCKS

// Mark returns the limit that marks a start of a container, by its id, and all
// that descends from it.
func Mark(id uint32) Limit {
	return Limit{Resource: MarkLimit, Soft: uint64(id), Hard: uint64(id)}
}

// HasMark reports whether a process, by its number on the host, has the mark of
// a start. One that has ended has none. It reads what prlimit(2) shows only to
// those who may also change it.
func HasMark(pid int, id uint32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return false
	}
	_, line, _ := bytes.Cut(text, []byte("\nMax file locks "))
	fields := bytes.Fields(line)
	return len(fields) > 0 && string(fields[0]) == strconv.FormatUint(uint64(id), 10)
}
