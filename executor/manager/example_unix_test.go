//go:build unix

package manager_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
)

// A task on plain processes: it runs, and its result is a file.
func ExampleManager_Run() {
	dir, err := os.MkdirTemp("", "cell-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	backend, err := process.New(process.Options{Dir: dir + "/containers"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := manager.New(ctx, manager.Options{
		Backend: backend, Dir: dir + "/cell", Capacity: manager.Capacity{MemoryMB: 1024, DiskMB: 1024},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	news := m.Subscribe()

	m.Reserve(manager.Reservation{GUID: "task-1", Resources: executor.Resources{MemoryMB: 64, DiskMB: 64}})
	err = m.Initialize("task-1", manager.Work{RunInfo: executor.RunInfo{
		RootFS: "host:",
		Action: executor.Action{Run: &executor.RunAction{
			Path: "/bin/sh", Args: []string{"-c", "echo $((6 * 7)) > result"}, User: "app"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		e, err := news.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Kind == executor.ContainerCompleted {
			fmt.Println("failed:", e.Container.RunResult.Failed)
			break
		}
	}
	result, err := m.ReadFile(ctx, "task-1", "/result")
	fmt.Printf("%s%v\n", result, err)

	cancel()
	running.Wait()
	fmt.Println(m.Clear(context.Background()))
	// Output:
	// failed: false
	// 42
	// <nil>
	// <nil>
}
