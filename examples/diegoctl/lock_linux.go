package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runWithParent runs cmd, which dies with this process.
func runWithParent(cmd *exec.Cmd) error {
	runtime.LockOSThread() // the kernel takes the thread for the parent
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
