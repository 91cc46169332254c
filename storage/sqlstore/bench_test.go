package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var noon = time.Unix(1_900_000_000, 0).UTC()

// desired is a deployment with one definition that has proved healthy.
func desired(guid string, instances int) *lrp.Deployment {
	path := executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "vcap"}}
	return &lrp.Deployment{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances},
		Definitions:        map[string]lrp.Definition{guid: {RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: path}}},
		ActiveDefinitionID: guid, HealthyDefinitionID: guid,
		ModificationTag: lrp.ModificationTag{Epoch: noon.UnixNano()},
	}
}

// eachStore runs a sub-benchmark on a new store of each kind.
func eachStore(b *testing.B, f func(b *testing.B, s *Store)) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) { f(b, mustOpen(b, d.database(b), Options{})) })
	}
	b.Run("sqlite-full", func(b *testing.B) { f(b, mustOpen(b, databases[0].database(b), Options{FullSync: true})) })
}

// BenchmarkLifecycle creates, claims, starts and removes ActualLRPs through
// storage.ApplySlot, from several clients at once.
func BenchmarkLifecycle(b *testing.B) {
	eachStore(b, func(b *testing.B, s *Store) {
		for _, clients := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchmarkLifecycle(b, s, clients) })
		}
	})
}

var processes atomic.Int64

func benchmarkLifecycle(b *testing.B, s *Store, clients int) {
	guids := deployed(b, s, clients)
	b.ReportAllocs()
	b.ResetTimer()
	lifecycles(b, clients, b.N, func(client, index int) error { return live(b.Context(), s, guids[client], index) })
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lifecycles/s")
}

// deployed commits a new deployment for each client.
func deployed(b testing.TB, s *Store, clients int) (guids []string) {
	b.Helper()
	var deployments storage.Batch
	for range clients {
		guid := fmt.Sprintf("process-%08d", processes.Add(1))
		guids = append(guids, guid)
		deployments.Deployments = append(deployments.Deployments, storage.DeploymentWrite{After: desired(guid, 1<<16)})
	}
	if _, err := s.Commit(b.Context(), deployments); err != nil {
		b.Fatal(err)
	}
	return guids
}

// live leads one instance through its life.
func live(ctx context.Context, s *Store, guid string, index int) error {
	me := lrp.InstanceKey{InstanceGUID: fmt.Sprint("instance-", guid, index), CellID: fmt.Sprintf("cell-%04d", index%500)}
	net := lrp.NetInfo{Address: "10.0.0.1", InstanceAddress: "10.255.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}}}
	for _, c := range []lrp.Command{lrp.CreateMissing{}, lrp.Claim{Instance: me}, lrp.Start{Instance: me, NetInfo: net}, lrp.Remove{Instance: me}} {
		_, _, err := storage.ApplySlot(ctx, s, guid, index, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
			if _, last := c.(lrp.Remove); last {
				d = nil // as if the index was not desired any more
			}
			return lrp.Step(slot, d, c, time.Now(), lrp.Policy{})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fill commits instances spread evenly over processes, all running.
func fill(b *testing.B, s *Store, instances, deployments int) (cells []string) {
	b.Helper()
	const perBatch = 1000
	for c := range 1250 {
		cells = append(cells, fmt.Sprintf("cell-%05d", c))
	}
	var batch storage.Batch
	flush := func() {
		if _, err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		batch = storage.Batch{}
	}
	running := 0
	for p := range deployments {
		guid := fmt.Sprintf("app-%07d", p)
		n := (instances - running) / (deployments - p)
		batch.Deployments = append(batch.Deployments, storage.DeploymentWrite{After: desired(guid, n)})
		for i := range n {
			batch.ActualLRPs = append(batch.ActualLRPs, lrp.Write{After: &lrp.ActualLRP{
				Key:         lrp.Key{ProcessGUID: guid, DefinitionID: guid, Index: i, Domain: "apps"},
				InstanceKey: lrp.InstanceKey{InstanceGUID: fmt.Sprintf("instance-%036d", running), CellID: cells[running%len(cells)]},
				NetInfo:     lrp.NetInfo{Address: "10.0.0.1", InstanceAddress: "10.255.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}}},
				State:       lrp.Running, Since: noon, RunningSince: noon, Routable: true,
				ModificationTag: lrp.ModificationTag{Epoch: noon.UnixNano(), Index: 2},
			}})
			running++
		}
		if len(batch.ActualLRPs) >= perBatch {
			flush()
		}
	}
	batch.Domains = []storage.DomainWrite{{Name: "apps"}}
	flush()
	return cells
}

// BenchmarkSnapshot streams a healthy fleet through converge.PlanLRPs in one
// View, as a convergence pass does.
func BenchmarkSnapshot(b *testing.B) {
	const instances, deployments = 250_000, 58_000
	for _, d := range databases {
		b.Run(fmt.Sprintf("%s/instances=%d", d.name, instances), func(b *testing.B) {
			s := mustOpen(b, d.database(b), Options{})
			cells := fill(b, s, instances, deployments)
			present := converge.NewCells(cells)
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var most uint64
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				most = max(most, pass(b, s, present, instances, n == 0))
			}
			b.StopTimer()
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/pass")
			b.ReportMetric((float64(most)-float64(before.HeapAlloc))/(1<<20), "live-MiB")
		})
	}
}

// pass plans over a View and returns the live heap in its middle, if that is
// wanted.
func pass(b *testing.B, s *Store, cells converge.Cells, instances int, measure bool) (live uint64) {
	err := s.View(b.Context(), func(r storage.Reader) error {
		var domains []lrp.Domain
		for d, err := range r.Domains(b.Context()) {
			if err != nil {
				return err
			}
			domains = append(domains, d)
		}
		seen := 0
		plan := converge.PlanLRPs(converge.LRPs{
			Deployments: r.Deployments(b.Context(), storage.DeploymentFilter{Bare: true}),
			ActualLRPs: counted(r.ActualLRPs(b.Context(), storage.ActualLRPFilter{}), func() {
				if seen++; measure && seen == instances/2 {
					b.StopTimer()
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					live = m.HeapAlloc
					b.StartTimer()
				}
			}),
			Domains: domains, Cells: cells,
		}, noon.Add(time.Hour), lrp.Policy{})
		for action, err := range plan {
			return fmt.Errorf("%+v: %w", action, err)
		}
		if seen != instances {
			return fmt.Errorf("saw %d instances, want %d", seen, instances)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return live
}

// counted calls each for every element of a list.
func counted[T any](list iter.Seq2[T, error], each func()) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			each()
			if !yield(v, err) {
				return
			}
		}
	}
}

// BenchmarkMend is what convergence does when one cell of a hundred is lost: the
// pass that makes its instances suspect, and the one after it, which looks at
// what the first has written.
func BenchmarkMend(b *testing.B) {
	const instances, deployments, lost = 250_000, 58_000, 12
	for _, d := range databases {
		b.Run(fmt.Sprintf("%s/instances=%d", d.name, instances), func(b *testing.B) {
			s := mustOpen(b, d.database(b), Options{})
			cells := fill(b, s, instances, deployments)
			present := func(cells []string) (leases []storage.Lease) {
				for _, id := range cells {
					l, err := s.Acquire(b.Context(), storage.Lease{Kind: storage.CellLease, Name: id, Owner: id}, 24*time.Hour)
					if err != nil {
						b.Fatal(err)
					}
					leases = append(leases, l)
				}
				return leases
			}
			leases := present(cells)[:lost]
			c, err := converge.NewConverger(converge.ConvergerOptions{
				Store: s, Effects: noEffects{}, Guard: converge.Guard{Grace: -1}, FullInterval: 24 * time.Hour,
			})
			if err != nil {
				b.Fatal(err)
			}
			mend := func() (p converge.Pass, took time.Duration) {
				began := time.Now()
				if p, err = c.Pass(b.Context()); err != nil {
					b.Fatal(err)
				}
				return p, time.Since(began)
			}
			mend() // makes the agenda
			var first, next time.Duration
			for b.Loop() {
				for _, l := range leases {
					if err := s.Release(b.Context(), l); err != nil {
						b.Fatal(err)
					}
				}
				p, took := mend()
				if want := instances * lost / len(cells); p.Full || len(p.Actions) != 1 || p.Actions[0].Count != want {
					b.Fatalf("the pass did %+v, want %d actions by the log", p, want)
				}
				first += took
				_, took = mend()
				next += took
				b.StopTimer()
				leases = present(cells[:lost])
				mend()
				mend()
				b.StartTimer()
			}
			b.ReportMetric(first.Seconds()/float64(b.N), "s/mending-pass")
			b.ReportMetric(next.Seconds()/float64(b.N), "s/next-pass")
		})
	}
}

type noEffects struct{}

func (noEffects) Carry([]lrp.Effect, []task.Effect) {}

// BenchmarkDeployments lists 10,000 deployments: whole, without their
// definitions as routers and syncs do, and bare. A definition is of some 2 KiB.
func BenchmarkDeployments(b *testing.B) {
	eachStore(b, func(b *testing.B, s *Store) {
		const deployments, batch = 10_000, 500
		for n := 0; n < deployments; n += batch {
			var writes storage.Batch
			for i := range batch {
				d := desired(fmt.Sprintf("app-%07d", n+i), 4)
				d.Routes = lrp.Routes{"http": []byte(fmt.Sprintf(`[{"hostname":"app-%d.example.com","port":8080}]`, n+i))}
				d.MetricTags = map[string]lrp.MetricTag{"app": {Static: d.ProcessGUID}, "index": {Dynamic: executor.MetricTagIndex}}
				definition := d.Definitions[d.ActiveDefinitionID]
				for v := range 20 {
					definition.Env = append(definition.Env, executor.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: strings.Repeat("x", 64)})
				}
				d.Definitions[d.ActiveDefinitionID] = definition
				writes.Deployments = append(writes.Deployments, storage.DeploymentWrite{After: d})
			}
			if _, err := s.Commit(b.Context(), writes); err != nil {
				b.Fatal(err)
			}
		}
		for _, extent := range []struct {
			name string
			f    storage.DeploymentFilter
		}{{"whole", storage.DeploymentFilter{}}, {"without-definitions", storage.DeploymentFilter{WithoutDefinitions: true}}, {"bare", storage.DeploymentFilter{Bare: true}}} {
			b.Run(extent.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					for _, err := range s.Deployments(b.Context(), extent.f) {
						if n++; err != nil {
							b.Fatal(err)
						}
					}
					if n != deployments {
						b.Fatalf("%d deployments", n)
					}
				}
			})
		}
	})
}

// BenchmarkTasksOfACell lists the 31 tasks of a cell whose definitions are of 1 MiB
// each: whole, and bare as a cell does.
func BenchmarkTasksOfACell(b *testing.B) {
	eachStore(b, func(b *testing.B, s *Store) {
		const tasks = 31
		for n := range tasks {
			t := &task.Task{
				GUID: fmt.Sprintf("task-%d", n), Domain: "apps", State: task.Running, CellID: "cell-1", InstanceGUID: fmt.Sprintf("i-%d", n),
				Definition: task.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "app"}}, VolumeMountedFiles: []executor.File{
					{Path: "f", Content: strings.Repeat("some text\n", 1<<20/10)},
				}}},
				ModificationTag: task.ModificationTag{Epoch: 1},
			}
			if _, err := s.Commit(b.Context(), storage.Batch{Tasks: []task.Write{{After: t}}}); err != nil {
				b.Fatal(err)
			}
		}
		for name, bare := range map[string]bool{"whole": false, "bare": true} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					for _, err := range s.Tasks(b.Context(), storage.TaskFilter{CellIDs: []string{"cell-1"}, States: []task.State{task.Running}, Bare: bare}) {
						if n++; err != nil {
							b.Fatal(err)
						}
					}
					if n != tasks {
						b.Fatalf("%d tasks", n)
					}
				}
			})
		}
	})
}

// BenchmarkReads reads the instances of one process at a time.
func BenchmarkReads(b *testing.B) {
	eachStore(b, func(b *testing.B, s *Store) {
		const deployments, each = 1000, 4
		fill(b, s, each*deployments, deployments)
		for _, clients := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range clients {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							n := 0
							filter := storage.ActualLRPFilter{ProcessGUIDs: []string{fmt.Sprintf("app-%07d", i*7919%deployments)}}
							for _, err := range s.ActualLRPs(b.Context(), filter) {
								if n++; err != nil {
									b.Error(err)
									return
								}
							}
							if n != each {
								b.Errorf("%d instances, want %d", n, each)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
			})
		}
	})
}
