//go:build !linux

package main

import "os/exec"

// runWithParent runs cmd. Nothing here ends it when this process is killed.
func runWithParent(cmd *exec.Cmd) error { return cmd.Run() }
