//go:build !linux

package child

import "os/exec"

// run runs cmd. Nothing here ends it when this process is killed.
func run(cmd *exec.Cmd) error { return cmd.Run() }
