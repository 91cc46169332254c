package system_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

// benchStores are what the benchmarks run on. Over a store in memory everything
// happens in one goroutine and in virtual time; over SQLite as in a daemon.
var benchStores = []struct {
	name string
	open func(*testing.B, *memcell.Clock) (store storage.Store, now func() time.Time, concurrency int)
}{
	{"memory", func(_ *testing.B, clock *memcell.Clock) (storage.Store, func() time.Time, int) {
		return memstore.New(&memstore.Options{Now: clock.Now}), clock.Now, 1
	}},
	{"sqlite", func(b *testing.B, _ *memcell.Clock) (storage.Store, func() time.Time, int) {
		store, err := sqlstore.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "diego.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		return store, time.Now, 0
	}},
}

// A builder makes a system of so many cells.
type builder func(b *testing.B, cells int) *benchSystem

func eachStore(b *testing.B, f func(*testing.B, builder)) {
	for _, s := range benchStores {
		b.Run("store="+s.name, func(b *testing.B) {
			f(b, func(b *testing.B, cells int) *benchSystem {
				clock := memcell.NewClock()
				store, now, concurrency := s.open(b, clock)
				return newBenchSystem(b, store, now, concurrency, cells)
			})
		})
	}
}

// A benchSystem is a control plane that leads, and a fleet that is known to it.
type benchSystem struct {
	*diego.ControlPlane
	b      *testing.B
	store  storage.Store
	fleet  memcell.Fleet
	inTurn bool // the cells report one after another, not all at once
}

func newBenchSystem(b *testing.B, store storage.Store, now func() time.Time, concurrency, cells int) *benchSystem {
	b.Helper()
	s := &benchSystem{b: b, store: store, fleet: memcell.NewFleet(cells, nil), inTurn: concurrency == 1}
	o := diego.Options{
		Store: store, Dial: s.fleet.Dial, Owner: "bench", Now: now, Concurrency: concurrency,
		Guard: converge.Guard{Grace: -1}, LeaderTTL: time.Hour,
	}
	var err error
	if s.ControlPlane, err = diego.New(o); err != nil {
		b.Fatal(err)
	}
	s.fleet.ReportTo(s.BBS)
	for _, c := range s.fleet {
		c.Now, c.ReservationExpiry = now, time.Hour
		a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: store, Presence: c.Presence, Owner: "bench", TTL: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Tick(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	s.tick()
	return s
}

func (s *benchSystem) tick() {
	s.b.Helper()
	if err := s.Tick(s.b.Context()); err != nil {
		s.b.Fatal(err)
	}
}

// desireAll desires instances in processes of 1,000 or fewer, and brings them
// to run.
func (s *benchSystem) desireAll(instances int) {
	s.b.Helper()
	for n := 0; instances > 0; n++ {
		if err := s.BBS.Desire(s.b.Context(), desired(fmt.Sprintf("process-%04d", n), min(instances, 1000))); err != nil {
			s.b.Fatal(err)
		}
		instances -= 1000
	}
	s.tick()
	if s.inTurn {
		s.fleet.Step(s.b.Context())
		return
	}
	var cells sync.WaitGroup
	for _, c := range s.fleet {
		cells.Go(func() { c.Step(s.b.Context()) })
	}
	cells.Wait()
}

// From the consumer's call until every instance is RUNNING.
func BenchmarkDesire(b *testing.B) {
	eachStore(b, func(b *testing.B, build builder) {
		for _, size := range []struct{ instances, cells int }{{1_000, 100}, {25_000, 250}, {250_000, 1_250}} {
			b.Run(fmt.Sprintf("instances=%d/cells=%d", size.instances, size.cells), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					s := build(b, size.cells)
					b.StartTimer()
					s.desireAll(size.instances)
					b.StopTimer()
					running := 0
					for _, err := range s.store.ActualLRPs(b.Context(), storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
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
	})
}

// A pass over instances that are all well: one that looks at everything, and
// one that goes by the log, in which nothing has happened.
func BenchmarkPass(b *testing.B) {
	eachStore(b, func(b *testing.B, build builder) {
		for _, size := range []struct{ instances, cells int }{{25_000, 250}, {250_000, 1_250}} {
			b.Run(fmt.Sprintf("instances=%d", size.instances), func(b *testing.B) {
				s := build(b, size.cells)
				s.desireAll(size.instances)
				full, err := converge.NewConverger(converge.ConvergerOptions{
					Store: s.store, Effects: noEffects{}, Guard: converge.Guard{Grace: -1}, FullInterval: -1,
				})
				if err != nil {
					b.Fatal(err)
				}
				for _, look := range []struct {
					name string
					c    *converge.Converger
				}{{"full", full}, {"unchanged", s.Converger}} {
					b.Run(look.name, func(b *testing.B) {
						if _, err := look.c.Pass(b.Context()); err != nil { // the agenda is made
							b.Fatal(err)
						}
						for b.Loop() {
							if p, err := look.c.Pass(b.Context()); err != nil || len(p.Actions) > 0 || p.Full != (look.c == full) {
								b.Fatal(p, err)
							}
						}
						b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/pass")
					})
				}
			})
		}
	})
}

type noEffects struct{}

func (noEffects) Carry([]lrp.Effect, []task.Effect) {}

// Every subscriber gets every event.
func BenchmarkEventFanOut(b *testing.B) {
	eachStore(b, func(b *testing.B, build builder) {
		for _, subscribers := range []int{1, 1000} {
			b.Run(fmt.Sprintf("subscribers=%d", subscribers), func(b *testing.B) {
				plane := build(b, 1)
				const each = 100
				delivered := 0
				for b.Loop() {
					ctx, cancel := context.WithCancel(b.Context())
					var wg sync.WaitGroup
					for range subscribers {
						events, err := plane.BBS.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
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
	})
}

// What a consumer reads of one process.
func BenchmarkResolvedLRPs(b *testing.B) {
	eachStore(b, func(b *testing.B, build builder) {
		plane := build(b, 10)
		plane.desireAll(10)
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
	})
}

// What a consumer reads of one process over HTTP, on loopback with connections
// that are kept.
func BenchmarkReadsOverHTTP(b *testing.B) {
	eachStore(b, func(b *testing.B, build builder) {
		for _, instances := range []int{1, 10} {
			b.Run(fmt.Sprintf("instances=%d", instances), func(b *testing.B) {
				plane := build(b, 10)
				plane.desireAll(instances)
				client := overHTTP(b, plane.ControlPlane)
				f := storage.ActualLRPFilter{ProcessGUIDs: []string{"process-0000"}}
				b.SetParallelism(8)
				b.ResetTimer()
				used := cpuTime()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						n := 0
						for _, err := range client.ResolvedLRPs(b.Context(), f) {
							if err != nil {
								b.Error(err)
								return
							}
							n++
						}
						if n != instances {
							b.Errorf("got %d instances", n)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
				b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/read")
			})
		}
	})
}
