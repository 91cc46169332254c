package converge_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
)

// A fleet is a healthy snapshot: apps of the given sizes, all RUNNING.
type fleet struct {
	deployments []lrp.Deployment
	actuals     []lrp.ActualLRP
	cells       []string
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func healthyFleet(instances, apps, cells int) *fleet {
	f := &fleet{}
	for c := range cells {
		f.cells = append(f.cells, fmt.Sprintf("cell-%05d", c))
	}
	running := 0
	for a := range apps {
		guid := fmt.Sprintf("app-%07d", a)
		n := (instances - running) / (apps - a)
		f.deployments = append(f.deployments, lrp.Deployment{
			ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: n},
			Definitions: map[string]lrp.Definition{guid: {}}, ActiveDefinitionID: guid, HealthyDefinitionID: guid,
		})
		for i := range n {
			f.actuals = append(f.actuals, lrp.ActualLRP{
				Key:         lrp.Key{ProcessGUID: guid, DefinitionID: guid, Index: i, Domain: "apps"},
				InstanceKey: lrp.InstanceKey{InstanceGUID: fmt.Sprint("i-", running), CellID: f.cells[running%cells]},
				State:       lrp.Running, Since: noon.Add(-time.Hour), RunningSince: noon.Add(-time.Hour), Routable: true,
				ModificationTag: lrp.ModificationTag{Epoch: 1, Index: 2},
			})
			running++
		}
	}
	return f
}

func values[T any](list []T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}
}

func records(list []lrp.ActualLRP) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		for i := range list {
			if !yield(list[i], nil) {
				return
			}
		}
	}
}

func (f *fleet) snapshot() converge.LRPs {
	return converge.LRPs{
		Deployments: values(f.deployments),
		ActualLRPs:  records(f.actuals),
		Domains:     []lrp.Domain{{Name: "apps"}},
		Cells:       converge.NewCells(f.cells),
	}
}

// BenchmarkPlanLRPs times a pass over a healthy fleet, in which there is
// nothing to do.
func BenchmarkPlanLRPs(b *testing.B) {
	for _, n := range []int{1_000, 250_000} {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) {
			f := healthyFleet(n, n*58/250, max(10, n/200))
			b.ReportAllocs()
			for b.Loop() {
				for a, err := range converge.PlanLRPs(f.snapshot(), noon, lrp.Policy{}) {
					b.Fatal(a, err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "slots/s")
		})
	}
}
