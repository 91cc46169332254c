package manager_test

import (
	"context"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// A container from its reservation to its end, in virtual time: the program
// drives the clock, and Tick does what is due. A daemon calls Run instead, with
// a real backend.
func Example() {
	ctx := context.Background()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	m, err := manager.New(ctx, manager.Options{
		Backend:  scripted.New(scripted.Options{Now: clock}),
		Capacity: manager.Capacity{MemoryMB: 1024, DiskMB: 4096},
		Now:      clock,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	news := m.Subscribe()
	defer news.Close()

	for _, r := range m.Reserve(
		manager.Reservation{GUID: "web", Resources: executor.Resources{MemoryMB: 512, DiskMB: 1024}},
		manager.Reservation{GUID: "huge", Resources: executor.Resources{MemoryMB: 1024, DiskMB: 1024}},
	) {
		fmt.Println(r.Err)
	}

	server := executor.Action{Run: &executor.RunAction{
		Path: scripted.Path, Args: []string{"wait 2s", "serve 8080 200", "wait forever"}, User: "app"}}
	err = m.Initialize("web", manager.Work{RunInfo: executor.RunInfo{
		RootFS: "host:", Action: server, Ports: []uint16{8080},
		Check: &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8080, Path: "/health"}}}},
	}})
	fmt.Println("error:", err)

	begin := now
	for now.Sub(begin) < 10*time.Second {
		m.Tick(ctx)
		for e, ok, _ := news.Poll(); ok; e, ok, _ = news.Poll() {
			fmt.Println(now.Sub(begin), e.Kind, e.Container.State)
		}
		now, _ = m.Next()
	}
	m.Delete("web")
	m.Tick(ctx)
	fmt.Println("containers:", len(m.List()), "free:", m.Remaining().Equal(m.Total()))
	// Output:
	// insufficient resources for container "huge": 512 MiB of memory more would have to be free
	// error: <nil>
	// 0s container_reserved RESERVED
	// 2s container_running RUNNING
	// containers: 0 free: true
}
