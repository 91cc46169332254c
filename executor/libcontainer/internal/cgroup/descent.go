//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"errors"
	"io/fs"
	"os"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// KillDescent kills what descends from a start, by its id, and the started
// process itself; see [pid1.MarkLimit]. When it returns nil, all have been sent
// the signal, so that none of them can fork.
func (g *Cgroup) KillDescent(id uint32) error {
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
	if !pid1.HasMark(pid, id) {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		return false, err == unix.ESRCH, nil
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err == unix.ESRCH {
		return false, true, nil
	}
	return err == nil, false, os.NewSyscallError("pidfd_send_signal", err)
}
