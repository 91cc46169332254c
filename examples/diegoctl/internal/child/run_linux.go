package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// run runs cmd, which dies with this process.
func run(cmd *exec.Cmd) error {
	runtime.LockOSThread() // the kernel takes the thread for the parent
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
