package scripted_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestTheScriptedBackendKeepsTheContractOfBackends(t *testing.T) {
	programs := map[backendtest.Program][]string{
		backendtest.Exit0:     {"exit 0"},
		backendtest.Exit3:     {"exit 3"},
		backendtest.Print:     {"print out", "warn err"},
		backendtest.PrintEnv:  {"print $A:$B"},
		backendtest.Flood:     {fmt.Sprint("flood ", backendtest.FloodBytes)},
		backendtest.Sleep:     {"wait forever"},
		backendtest.Stubborn:  {"ignore TERM", "print ready", "wait forever"},
		backendtest.Polite:    {"print ready", "wait forever", "on TERM", "print bye", "exit 7"},
		backendtest.Family:    {"print ready", "wait forever"},
		backendtest.Orphan:    {"orphan", "print gone"},
		backendtest.WriteFile: {"write result result"},
		backendtest.ReadFiles: {"cat given/mounted given/file"},
		backendtest.Serve:     {"serve $PORT 200", "wait forever"},
	}
	backendtest.Run(t, backendtest.Subject{
		New: func(*testing.T) executor.ContainerBackend { return scripted.New(scripted.Options{}) },
		Restart: func(_ *testing.T, old executor.ContainerBackend) executor.ContainerBackend {
			return old.(*scripted.Backend).Restart()
		},
		RootFS: "host:",
		User:   "nobody",
		Command: func(p backendtest.Program) (string, []string) {
			if p == backendtest.Missing {
				return "/no/such/program", nil
			}
			return scripted.Path, programs[p]
		},
	})
}

// A process does what its arguments say, when virtual time comes to it.
func Example() {
	ctx := context.Background()
	b := scripted.New(scripted.Options{})
	if _, err := b.Create(ctx, executor.ContainerSpec{GUID: "c1"}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := b.Start(ctx, "c1", executor.ProcessSpec{
		Path: scripted.Path, Args: []string{"print working", "wait 5s", "print done", "exit 3"},
		Stdout: os.Stdout,
		Exited: func(e executor.Exit) { fmt.Println(e) },
	})
	fmt.Println("error:", err)
	for due, ok := b.Next(); ok; due, ok = b.Next() {
		fmt.Println("after", due.Sub(time.Time{}))
		b.Step(due)
	}
	// Output:
	// error: <nil>
	// after 0s
	// working
	// after 5s
	// done
	// exit status 3
}
