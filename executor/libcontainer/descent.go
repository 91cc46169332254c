//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// A process bequeaths its limits to all that descends from it, also to what
// makes a session of its own or loses its parents. Linux has not used the limit
// of file locks since 2.4.25, so each process that is started gets a number
// there, and with it all that it will leave behind. Nobody can change it: the
// filter of system calls refuses that, except in a privileged container, in
// which such a process ends with its container. A cgroup for each process would
// tell as much, and cost each start more than all the rest of it.
const markLimit = unix.RLIMIT_LOCKS

// mark is the limit that names a start of a container and its descendants.
func mark(id uint32) pid1.Limit {
	return pid1.Limit{Resource: markLimit, Soft: uint64(id), Hard: uint64(id)}
}

// hasMark reads what prlimit(2) shows only to who may also change it.
func hasMark(pid int, id uint32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return false // it has ended
	}
	_, line, _ := bytes.Cut(text, []byte("\nMax file locks "))
	fields := bytes.Fields(line)
	return len(fields) > 0 && string(fields[0]) == strconv.FormatUint(uint64(id), 10)
}

// killDescent kills what descends from a start, itself included. When it
// returns nil, all have been sent the signal, so that none of them can fork.
func (g *cgroup) killDescent(id uint32) error {
	sent := make(map[int]bool)
	const rounds = 100 // far more than it takes, unless they fork as fast as we kill
	for range rounds {
		pids, err := cgroups.GetAllPids(g.processes())
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err != nil {
			return err
		}
		more := false
		for _, pid := range pids {
			if sent[pid] {
				continue
			}
			killed, ended, err := killMarked(pid, id)
			if err != nil {
				return err
			}
			sent[pid] = killed
			more = more || killed || ended // either may have forked just before
		}
		if !more {
			return nil
		}
	}
	return errors.New("its children fork faster than they can be killed; they end with their container")
}

// killMarked kills a process if it has the mark, and no other that has got its
// number meanwhile. One that had ended may have had it.
func killMarked(pid int, id uint32) (killed, ended bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return false, true, nil
	}
	if err == unix.EINVAL { // a process of another pid namespace
		return false, false, nil
	}
	if err != nil {
		return false, false, os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	if !hasMark(pid, id) {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		return false, err == unix.ESRCH, nil
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err == unix.ESRCH {
		return false, true, nil
	}
	return err == nil, false, os.NewSyscallError("pidfd_send_signal", err)
}
