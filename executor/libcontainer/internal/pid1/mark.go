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

// MarkOf returns the id of the start that a process, by its number on the host, is
// marked with. One that has ended has none. It reads what prlimit(2) shows only to
// those who may also change it.
func MarkOf(pid int) (id uint32, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, false
	}
	_, line, _ := bytes.Cut(text, []byte("\nMax file locks "))
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 32) // fails for "unlimited", which is not a mark
	return uint32(n), err == nil
}
