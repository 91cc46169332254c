// Diegoctl is the operator's tool: it says what should run, shows what does and
// why, and empties cells. docs/cli.md describes every command.
//
// This is its outermost edge, which gives run what the process has; command.go
// and commands.go hold the table of commands, arguments.go reads command lines,
// exit.go has the exit codes, remote.go reaches a Diego, and the other files
// hold the commands and how their answers are shown.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/daemon"
)

//go:generate go test -run TestTheDocumentIsFresh -update

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends what does not end by itself.
	context.AfterFunc(ctx, stop)
	width, terminal := terminalOf(os.Stdout)
	os.Exit(run(ctx, os.Args[1:], &process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.Getenv, now: executor.UTC(time.Now), after: time.After, dial: dialHTTP, examine: daemon.Examine,
		terminal: terminal, width: width,
	}))
}
