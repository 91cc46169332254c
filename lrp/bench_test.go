package lrp_test

import (
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// BenchmarkStep times the commands of an instance's usual life.
func BenchmarkStep(b *testing.B) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1", HealthyDefinitionID: "v1",
	}
	alpha := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
	for _, c := range []lrp.Command{
		lrp.CreateMissing{},
		lrp.Claim{Instance: alpha},
		lrp.Start{Instance: alpha, NetInfo: lrp.NetInfo{Address: "10.0.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 60000}}}},
		lrp.EvacuateRunning{Instance: alpha},
		lrp.Crash{Instance: alpha, Reason: "exit status 1"},
		lrp.Remove{Instance: alpha},
	} {
		b.Run(c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := lrp.Step(slot, d, c, now, lrp.Policy{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		switch c.(type) {
		case lrp.EvacuateRunning, lrp.Crash, lrp.Remove: // measured from RUNNING
		default:
			decision, err := lrp.Step(slot, d, c, now, lrp.Policy{})
			if err != nil {
				b.Fatal(err)
			}
			slot = slot.Apply(decision)
		}
	}
}
