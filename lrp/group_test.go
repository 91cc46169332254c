package lrp_test

import (
	"testing"

	"github.com/diegosdk/diego/lrp"
)

func TestTheActiveGroupIsTheActiveDefinitionsOrElseAnother(t *testing.T) {
	x := &scenario{slots: map[int]lrp.Slot{}, now: epoch}
	for _, step := range []struct{ command, want string }{
		{"create v1 1", ""},
		{"missing", "UNCLAIMED"},
		{"start i1", "RUNNING i1"},
		{"update v2", "RUNNING i1"}, // an index that runs is never "not found"
		{"roll", "v2 UNCLAIMED"},
		{"claim i2 v2", "v2 CLAIMED i2"},
		{"delete", "RUNNING i1"},
	} {
		if err := x.do(step.command); err != nil || x.err != nil {
			t.Fatal(err, x.err)
		}
		got := ""
		if r := x.slot().ActiveGroup(x.deployment).Resolve(); r != nil {
			got = record(r)
		}
		if got != step.want {
			t.Errorf("after %s: got %q, want %q", step.command, got, step.want)
		}
	}
}

func TestOfTwoRecordsTheOneThatServesTheIndexBestIsSeen(t *testing.T) {
	holder := map[string]lrp.InstanceKey{"v1": alpha, "v2": omega}
	with := func(definition string, state lrp.State, presence lrp.Presence) lrp.ActualLRP {
		r := lrp.ActualLRP{
			Key:   lrp.Key{ProcessGUID: "p", DefinitionID: definition, Domain: "d"},
			State: state, Presence: presence, Since: epoch,
			ModificationTag: lrp.ModificationTag{Epoch: map[string]int64{"v1": 1, "v2": 2}[definition]},
		}
		if state == lrp.Claimed || state == lrp.Running {
			r.InstanceKey = holder[definition]
		}
		if state == lrp.Running {
			r.RunningSince = epoch
		}
		if presence == lrp.Evacuating {
			r.ExpiresAt = epoch.Add(1)
		}
		return r
	}
	// Each is seen rather than those below it (000 §Suspect Cells, §The BBS's
	// Role during Evacuation). Of two that are alike the newer one is.
	best := []struct {
		state    lrp.State
		presence lrp.Presence
	}{
		{lrp.Running, lrp.Ordinary},
		{lrp.Running, lrp.Suspect},
		{lrp.Claimed, lrp.Suspect},
		{lrp.Claimed, lrp.Ordinary},
		{lrp.Unclaimed, lrp.Ordinary},
		{lrp.Crashed, lrp.Ordinary},
	}
	evacuating := with("v2", lrp.Running, lrp.Evacuating)
	for i, a := range best {
		for _, b := range best[i:] {
			for _, definitions := range [][2]string{{"v1", "v2"}, {"v2", "v1"}} {
				better, worse := with(definitions[0], a.state, a.presence), with(definitions[1], b.state, b.presence)
				s := lrp.Slot{ProcessGUID: "p", Records: []lrp.ActualLRP{better, worse}}
				lrp.SortRecords(s.Records)
				if err := s.Validate(); err != nil {
					t.Fatal(err)
				}
				if a == b {
					better = s.Records[1]
				}
				if got, ok := lrp.Resolve(s); !ok || !got.Equal(&better) {
					t.Errorf("%v %v of %s beside %v %v: got %s", a.state, a.presence, definitions[0], b.state, b.presence, record(&got))
				}
			}
		}
		one := with("v1", a.state, a.presence)
		want := evacuating
		if a.state == lrp.Running || a.state == lrp.Crashed {
			want = one
		}
		if got, _ := lrp.Resolve(lrp.Slot{ProcessGUID: "p", Records: []lrp.ActualLRP{one, evacuating}}); !got.Equal(&want) {
			t.Errorf("%v %v beside an EVACUATING record: got %s", a.state, a.presence, record(&got))
		}
	}
}
