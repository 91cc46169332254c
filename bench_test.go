package diego_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// benchSystem is a control plane that leads, in the clock's time, and a fleet
// that is known to it.
func benchSystem(b *testing.B, cells int) (*diego.ControlPlane, *memstore.Store, simulation.Fleet) {
	b.Helper()
	clock := simulation.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	fleet := simulation.NewFleet(cells, clock)
	plane, err := diego.New(diego.Options{
		Store: store, Dial: fleet.Dial, Owner: "bench", Now: clock.Now, Guard: converge.Guard{Grace: -1}, Concurrency: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
	fleet.ReportTo(plane.BBS)
	if err := fleet.Announce(b.Context(), store); err != nil {
		b.Fatal(err)
	}
	if err := plane.Tick(b.Context()); err != nil {
		b.Fatal(err)
	}
	return plane, store, fleet
}

// desireAll desires instances in processes of 1,000 or fewer and brings them to
// run.
func desireAll(b *testing.B, plane *diego.ControlPlane, fleet simulation.Fleet, instances int) {
	b.Helper()
	for n := 0; instances > 0; n++ {
		if err := plane.BBS.Desire(b.Context(), desired(fmt.Sprintf("process-%04d", n), min(instances, 1000))); err != nil {
			b.Fatal(err)
		}
		instances -= 1000
	}
	if err := plane.Tick(b.Context()); err != nil {
		b.Fatal(err)
	}
	fleet.Step(b.Context())
}

// From the consumer's call until every instance is RUNNING.
func BenchmarkDesire(b *testing.B) {
	for _, size := range []struct{ instances, cells int }{{1_000, 100}, {25_000, 250}, {250_000, 1_250}} {
		b.Run(fmt.Sprintf("instances=%d/cells=%d", size.instances, size.cells), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				plane, store, fleet := benchSystem(b, size.cells)
				b.StartTimer()
				desireAll(b, plane, fleet, size.instances)
				b.StopTimer()
				running := 0
				for _, err := range store.ActualLRPs(b.Context(), storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
					if err != nil {
						b.Fatal(err)
					}
					running++
				}
				if running != size.instances {
					b.Fatalf("%d instances are RUNNING, want %d", running, size.instances)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(size.instances)*float64(b.N)/b.Elapsed().Seconds(), "instances/s")
		})
	}
}

// A pass over instances that are all well.
func BenchmarkHealthyPass(b *testing.B) {
	for _, size := range []struct{ instances, cells int }{{25_000, 250}, {250_000, 1_250}} {
		b.Run(fmt.Sprintf("instances=%d", size.instances), func(b *testing.B) {
			plane, _, fleet := benchSystem(b, size.cells)
			desireAll(b, plane, fleet, size.instances)
			for b.Loop() {
				if p, err := plane.Converger.Pass(b.Context()); err != nil || len(p.Actions) > 0 {
					b.Fatal(p, err)
				}
			}
			b.ReportMetric(float64(size.instances)*float64(b.N)/b.Elapsed().Seconds(), "instances/s")
		})
	}
}

// Every subscriber gets every event.
func BenchmarkEventFanOut(b *testing.B) {
	for _, subscribers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("subscribers=%d", subscribers), func(b *testing.B) {
			plane, _, _ := benchSystem(b, 1)
			const each = 100
			delivered := 0
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				var wg sync.WaitGroup
				for range subscribers {
					events, err := plane.BBS.Subscribe(ctx, diego.FromNow, storage.EventFilter{})
					if err != nil {
						b.Fatal(err)
					}
					wg.Go(func() {
						n := 0
						for _, err := range events {
							if err != nil {
								b.Error(err)
								return
							}
							if n++; n == each {
								return
							}
						}
					})
				}
				for range each {
					if err := plane.BBS.UpsertDomain(ctx, "apps", time.Hour); err != nil {
						b.Fatal(err)
					}
				}
				wg.Wait()
				cancel()
				delivered += each * subscribers
			}
			b.ReportMetric(float64(delivered)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}

// What a consumer reads of one process.
func BenchmarkResolvedLRPs(b *testing.B) {
	plane, _, fleet := benchSystem(b, 10)
	desireAll(b, plane, fleet, 10)
	for b.Loop() {
		n := 0
		for _, err := range plane.BBS.ResolvedLRPs(b.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{"process-0000"}}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}
