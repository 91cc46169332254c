//go:build unix

package manager_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
)

// From the reservation to RUNNING, and from the deletion to nothing.
func BenchmarkStartAndDelete(b *testing.B) {
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprintf("processes/parallel=%d", parallel), func(b *testing.B) {
			backend, err := process.New(process.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			m, err := manager.New(context.Background(), manager.Options{
				Backend: backend, Dir: b.TempDir(), Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { m.Run(ctx) })
			defer running.Wait()
			defer cancel()
			guids := make(chan string, parallel)
			var workers sync.WaitGroup
			for range parallel {
				workers.Go(func() {
					for guid := range guids {
						startAndDelete(b, m, guid)
					}
				})
			}
			for b.Loop() {
				guids <- fmt.Sprintf("c-%d", time.Now().UnixNano())
			}
			close(guids)
			workers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "containers/s")
		})
	}
}

func startAndDelete(b *testing.B, m *manager.Manager, guid string) {
	news := m.Subscribe()
	defer news.Close()
	m.Reserve(manager.Reservation{GUID: guid})
	if err := m.Initialize(guid, work(sh("exec sleep 1000"))); err != nil {
		b.Error(err)
		return
	}
	wait := func(state executor.State) {
		for {
			if c, ok := m.Get(guid); !ok || c.State >= state {
				return
			}
			news.Next(context.Background())
		}
	}
	wait(executor.Running)
	m.Delete(guid)
	wait(executor.Completed)
}

// The stop of a container whose checks wait for places, among others that do the same.
func BenchmarkStopAmongManyChecks(b *testing.B) {
	const containers = 300
	for b.Loop() {
		b.StopTimer()
		now := epoch
		clock := func() time.Time { return now }
		m, err := manager.New(context.Background(), manager.Options{
			Backend: scripted.New(scripted.Options{Now: clock}), Now: clock, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1, Containers: containers},
			Delay: func(j manager.Job) time.Duration {
				if j.Kind == manager.JobProbe {
					return time.Second
				}
				return 0
			}})
		if err != nil {
			b.Fatal(err)
		}
		for i := range containers {
			guid := fmt.Sprint("c", i)
			m.Reserve(manager.Reservation{GUID: guid})
			if err := m.Initialize(guid, with(work(do("wait forever")), func(w *manager.Work) {
				w.Check, w.Ports = &executor.CheckDefinition{Checks: slices.Repeat([]executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}, executor.MaxChecks)}, []uint16{8080}
			})); err != nil {
				b.Fatal(err)
			}
		}
		for end := now.Add(500 * time.Millisecond); now.Before(end); {
			m.Tick(context.Background())
			next, _ := m.Next()
			now = next
		}
		b.StartTimer()
		m.Delete("c0")
		m.Tick(context.Background())
	}
}

// The end of containers that have as many jobs as definitions allow, behind another one
// that has some.
func BenchmarkStopOfAllThatIsAllowed(b *testing.B) {
	const containers = 250
	many := parallel(slices.Repeat([]executor.Action{do("wait forever")}, executor.MaxActionNodes-1)...)
	checks := slices.Repeat([]executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}, executor.MaxChecks)
	for b.Loop() {
		b.StopTimer()
		now := epoch
		clock := func() time.Time { return now }
		m, err := manager.New(context.Background(), manager.Options{
			Backend: scripted.New(scripted.Options{Now: clock}), Now: clock, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1, Containers: containers + 1},
			Delay: func(j manager.Job) time.Duration {
				if j.Kind == manager.JobStart || j.Kind == manager.JobProbe {
					return time.Hour
				}
				return 0
			}})
		if err != nil {
			b.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range containers + 1 {
			m.Reserve(manager.Reservation{GUID: fmt.Sprint("c", i)})
			w := work(parallel(slices.Repeat([]executor.Action{do("wait forever")}, 100)...))
			if i > 0 {
				w = with(work(many), func(w *manager.Work) {
					w.Sidecars, w.Check, w.Ports = []executor.Sidecar{{Action: many}}, &executor.CheckDefinition{Checks: checks, ReadinessChecks: checks}, []uint16{8080}
				})
			}
			if err := m.Initialize(fmt.Sprint("c", i), w); err != nil {
				b.Fatal(err)
			}
		}
		for end := now.Add(500 * time.Millisecond); now.Before(end); {
			m.Tick(context.Background())
			next, known := m.Next()
			if !known {
				break
			}
			now = next
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/containers/1024, "KiB/container")
		b.StartTimer()
		for i := range containers {
			m.Delete(fmt.Sprint("c", i+1))
		}
		m.Tick(context.Background())
	}
}

// What a cell costs that has nothing to do but to probe.
func BenchmarkIdleMinute(b *testing.B) {
	for _, containers := range []int{50, 250} {
		b.Run(fmt.Sprintf("containers=%d", containers), func(b *testing.B) {
			now := epoch
			clock := func() time.Time { return now }
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			m, err := manager.New(context.Background(), manager.Options{
				Backend: scripted.New(scripted.Options{Now: clock}), Now: clock, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			for i := range containers {
				guid := fmt.Sprint("c", i)
				m.Reserve(manager.Reservation{GUID: guid})
				if err := m.Initialize(guid, with(work(do("wait forever")), func(w *manager.Work) { w.Monitor = ptr(do("exit 0")) })); err != nil {
					b.Fatal(err)
				}
			}
			m.Tick(ctx)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				for end := now.Add(time.Minute); now.Before(end); {
					m.Tick(ctx)
					next, _ := m.Next()
					now = next
				}
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(containers)/1024, "KiB/container")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/60e6*100, "%core")
		})
	}
}
