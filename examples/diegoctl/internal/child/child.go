// Package child runs a program for the user that does not outlive this process.
package child

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Run runs cmd, which exec.CommandContext has made, and waits for its end. When
// the context of cmd ends, cmd gets SIGTERM, and SIGKILL if it has not ended after
// the grace. On Linux it is also killed when this process dies. The error is that
// of [exec.Cmd.Run].
func Run(cmd *exec.Cmd, grace time.Duration) error {
	cmd.WaitDelay = grace
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil || errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return cmd.Process.Kill() // where there is no such signal
	}
	return run(cmd)
}
