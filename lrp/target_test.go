package lrp_test

import (
	"testing"

	"github.com/diegosdk/diego/lrp"
)

// A command that names neither a definition nor an instance with a record is
// about the record that is in the state it is for; only where the state does
// not tell does the deployment: the active definition comes before the healthy
// one, and that before any other.
func TestACommandWithoutADefinitionFindsTheRecordItIsAbout(t *testing.T) {
	d := valid()
	d.ProcessGUID, d.Domain, d.Instances = "p", "d", 1
	d.Definitions = definitions(3)
	d.ActiveDefinitionID, d.HealthyDefinitionID = "v2", "v3"
	failure := lrp.Fail{Error: lrp.PlacementError{Reason: lrp.InsufficientResources}}
	for _, c := range []struct {
		name    string
		records map[string]lrp.State // by definition
		command lrp.Command
		want    string // the definition whose record changes
	}{
		{"the one that waits, not the active one that is placed", map[string]lrp.State{"v1": lrp.Unclaimed, "v2": lrp.Claimed}, lrp.Claim{Instance: alpha}, "v1"},
		{"the one that waits, not the healthy one that crashed", map[string]lrp.State{"v1": lrp.Unclaimed, "v3": lrp.Crashed}, failure, "v1"},
		{"the active one of two that wait", map[string]lrp.State{"v2": lrp.Unclaimed, "v3": lrp.Unclaimed}, lrp.Claim{Instance: alpha}, "v2"},
		{"the healthy one of two that wait", map[string]lrp.State{"v1": lrp.Unclaimed, "v3": lrp.Unclaimed}, failure, "v3"},
		{"the active one of two that crashed", map[string]lrp.State{"v1": lrp.Crashed, "v2": lrp.Crashed}, lrp.Retire{}, "v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lrp.Slot{ProcessGUID: "p"}
			for id, state := range c.records {
				r := lrp.ActualLRP{
					Key:   lrp.Key{ProcessGUID: "p", DefinitionID: id, Domain: "d"},
					State: state, Since: epoch, ModificationTag: lrp.ModificationTag{Epoch: int64(id[1])},
				}
				if state == lrp.Claimed {
					r.InstanceKey = omega
				}
				s.Records = append(s.Records, r)
			}
			lrp.SortRecords(s.Records)
			_, decision, refused, broken := stepped(s, &d, c.command, epoch.Add(1), lrp.Policy{})
			if refused != nil || broken != nil {
				t.Fatal(refused, broken)
			}
			for _, w := range decision.Writes {
				if w.Before.DefinitionID != c.want {
					t.Errorf("the record of %s changes", w.Before.DefinitionID)
				}
			}
			if len(decision.Writes) != 1 {
				t.Errorf("%d records change", len(decision.Writes))
			}
		})
	}
}

func TestConvergenceRestartsNothingWhereNothingIsDesiredAnyMore(t *testing.T) {
	l := newLife(t)
	l.crashTo("CLAIMED", 3)
	l.do(lrp.Crash{Instance: alpha, Reason: "r"})
	l.now = l.now.Add(long)
	gone := *l.deployment
	gone.Instances = 0
	for name, d := range map[string]*lrp.Deployment{"deleted": nil, "scaled down": &gone} {
		decision, err := lrp.Step(l.slot, d, lrp.Restart{DefinitionID: "v1"}, l.now, lrp.Policy{})
		if err != nil || !isZero(decision) {
			t.Errorf("%s: %+v, %v", name, decision, err)
		}
	}
}
