package memstore_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

var begin = time.Unix(1_800_000_000, 0).UTC()

func record(guid string, index int) *lrp.ActualLRP {
	return &lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: guid, DefinitionID: "d", Index: index, Domain: "apps"},
		InstanceKey: lrp.InstanceKey{InstanceGUID: fmt.Sprint(guid, "-", index), CellID: fmt.Sprint("cell-", index%1250)},
		NetInfo:     lrp.NetInfo{Address: "10.0.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61000}}},
		State:       lrp.Running, Since: begin, RunningSince: begin, Zone: "z1", Routable: true,
		ModificationTag: lrp.ModificationTag{Epoch: begin.UnixNano()},
	}
}

// BenchmarkCommit writes one record and two events in each commit, to a store
// that holds 250,000 records.
func BenchmarkCommit(b *testing.B) {
	for _, viewers := range []int{0, 1} {
		b.Run(fmt.Sprintf("views=%d", viewers), func(b *testing.B) {
			s, records := filled(b, 250_000, 58_000)
			stop := make(chan struct{})
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for viewers > 0 {
					s.View(b.Context(), func(r storage.Reader) error {
						for range r.ActualLRPs(b.Context(), storage.ActualLRPFilter{}) {
						}
						return nil
					})
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				before := records[n*7919%len(records)]
				after := *before
				after.ModificationTag = before.ModificationTag.Next()
				after.CrashCount++
				batch := storage.Batch{
					ActualLRPs: []lrp.Write{{Before: before, After: &after}},
					Events: []storage.Event{
						{LRP: &lrp.Event{Kind: lrp.InstanceChanged, Before: before, After: &after}},
						{LRP: &lrp.Event{Kind: lrp.GroupChanged, Before: before, After: &after}},
					},
				}
				if _, err := s.Commit(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				records[n*7919%len(records)] = &after
				n++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			close(stop)
			<-stopped
		})
	}
}

// BenchmarkLifecycle creates, claims, starts and removes instances with
// lrp.Step through ApplySlot.
func BenchmarkLifecycle(b *testing.B) {
	s := memstore.New(nil)
	guid := "p"
	instance := lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}
	desired := *deployment(guid)
	if _, err := s.Commit(b.Context(), storage.Batch{Deployments: []storage.DeploymentWrite{{After: &desired}}}); err != nil {
		b.Fatal(err)
	}
	now, n := begin, 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		for _, command := range []lrp.Command{
			lrp.CreateMissing{}, lrp.Claim{Instance: instance},
			lrp.Start{Instance: instance, NetInfo: lrp.NetInfo{Address: "10.0.0.1"}}, lrp.StopExtra{MissingCells: []string{"c"}},
		} {
			now = now.Add(time.Millisecond)
			_, _, err := storage.ApplySlot(b.Context(), s, guid, n%1000, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
				if _, stop := command.(lrp.StopExtra); stop {
					d = nil
				}
				return lrp.Step(slot, d, command, now, lrp.Policy{})
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lifecycles/s")
}

// BenchmarkSnapshot streams everything that convergence looks at.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []int{10_000, 250_000} {
		b.Run(fmt.Sprintf("lrps=%d", size), func(b *testing.B) {
			s, _ := filled(b, size, size*58/250)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				s.View(ctx, func(r storage.Reader) error {
					for range r.Deployments(ctx, storage.DeploymentFilter{Bare: true}) {
						n++
					}
					for range r.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
						n++
					}
					return nil
				})
				if n != size+size*58/250 {
					b.Fatal(n)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/snapshot")
		})
	}
}

// BenchmarkMemory says what a record costs.
func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const size = 250_000
	s, records := filled(b, size, 58_000)
	clear(records)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(s)
	for b.Loop() {
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/size, "B/record")
}

func deployment(guid string) *lrp.Deployment {
	action := executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "vcap"}}
	return &lrp.Deployment{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: 1000},
		Definitions:        map[string]lrp.Definition{"d": {RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: action}}},
		ActiveDefinitionID: "d", HealthyDefinitionID: "d",
		ModificationTag: lrp.ModificationTag{Epoch: begin.UnixNano()},
	}
}

func filled(b *testing.B, size, deployments int) (*memstore.Store, []*lrp.ActualLRP) {
	b.Helper()
	s := memstore.New(&memstore.Options{Events: 10_000})
	records := make([]*lrp.ActualLRP, size)
	for i := range records {
		r := record(fmt.Sprintf("process-%06d", i%deployments), i/deployments)
		records[i] = r
		batch := storage.Batch{ActualLRPs: []lrp.Write{{After: r}}}
		if i < deployments {
			batch.Deployments = []storage.DeploymentWrite{{After: deployment(r.ProcessGUID)}}
		}
		if _, err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return s, records
}
