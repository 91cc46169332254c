// Diegoctl is the operator's tool: it desires what should run, shows what does
// run and why, and empties cells. docs/cli.md describes every command.
//
// root.go puts the commands together. Each noun has a file with its commands, such
// as lrp.go and task.go. What they share knows none of them:
//
//	call, flags    what carries a command out, the flags that several have
//	specs          reads spec files, and those of a directory
//	exit           the exit codes, and what to do about an error
//	remote         the way to a Diego and its cells
//	source         which container a name such as web/0 means, and on which cell
//	watch, wait    looks again; waits for instances and tasks
//	complete       the names that a shell completes
//
// The packages below internal:
//
//	cli           what cobra lacks for the commands
//	show          writes answers: views, tables, streams, words
//	difference    the fields in which two definitions differ
//	intent        what apply does about each process and task
//	terminal      the terminal of the user, for exec
//	child         the command of lock hold
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/diegosdk/diego/examples/diegoctl/internal/terminal"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/daemon"
)

//go:generate go test -run TestTheDocumentIsFresh|TestTheSessionsOfRollouts -update

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process even if a command does not stop.
	context.AfterFunc(ctx, stop)
	width, isTerminal := terminal.Width(os.Stdout)
	_, stderrTerminal := terminal.Width(os.Stderr)
	os.Exit(run(ctx, os.Args[1:], &process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.Getenv, now: executor.UTC(time.Now), after: time.After, dial: dialHTTP, examine: daemon.Examine,
		terminal: isTerminal, stderrTerminal: stderrTerminal, width: width, own: terminal.Of(os.Stdin),
	}))
}
