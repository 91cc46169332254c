package lrp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// The specification's tables name states that Step never makes, since it does
// in one commit what they do in several: a replacement that runs beside the
// SUSPECT record of its definition (000 §Suspect Cells B2, D1, E2), and an
// instance that has an ORDINARY and an EVACUATING record (000 §Harmonizing
// During Evacuation). A store may hold them all the same, so Step knows what
// to do. Here they are put together from two slots that commands did make.
func TestTheStatesThatOnlyAnotherWriterMakesAreMended(t *testing.T) {
	reach := func(after time.Duration, commands ...lrp.Command) lrp.ActualLRP {
		l := newLife(t)
		l.now = l.now.Add(after)
		l.do(commands...)
		r, _ := lrp.Resolve(l.slot)
		return r
	}
	suspect := reach(0, lrp.CreateMissing{}, lrp.Start{Instance: alpha}, lrp.MarkSuspect{CellID: alpha.CellID})
	runs := reach(time.Second, lrp.CreateMissing{}, lrp.Start{Instance: omega})
	evacuates := reach(0, lrp.CreateMissing{}, lrp.Start{Instance: alpha}, lrp.EvacuateRunning{Instance: alpha})
	claimedByAlpha := reach(time.Second, lrp.CreateMissing{}, lrp.Claim{Instance: alpha})
	runsByAlpha := reach(time.Second, lrp.CreateMissing{}, lrp.Start{Instance: alpha})

	for _, c := range []struct {
		name    string
		records []lrp.ActualLRP
		command lrp.Command
		want    []string
		keep    bool
		refused error
		group   string
	}{
		{"B2: the cell returns", []lrp.ActualLRP{runs, suspect}, lrp.Recover{CellID: alpha.CellID}, []string{"RUNNING i2"}, false, nil, "-RUNNING SUSPECT i1"},
		{"D1: convergence finds both", []lrp.ActualLRP{runs, suspect}, lrp.RemoveSuspect{}, []string{"RUNNING i2"}, false, nil, "-RUNNING SUSPECT i1"},
		{"E2: the missing cell starts", []lrp.ActualLRP{runs, suspect}, lrp.Start{Instance: alpha}, []string{"RUNNING i2", "RUNNING SUSPECT i1"}, false, lrp.ErrCannotBeStarted, "-"},
		{"E2: the missing cell evacuates", []lrp.ActualLRP{runs, suspect}, lrp.EvacuateRunning{Instance: alpha}, []string{"RUNNING i2"}, false, nil, "-RUNNING SUSPECT i1"},
		{"the newer cell goes missing too", []lrp.ActualLRP{runs, suspect}, lrp.MarkSuspect{CellID: omega.CellID}, []string{"UNCLAIMED", "RUNNING SUSPECT i2"}, false, nil, "-RUNNING SUSPECT i1"},
		{"CLAIMED α × RUNNING α: ordinary to UNCLAIMED", []lrp.ActualLRP{claimedByAlpha, evacuates}, lrp.EvacuateRunning{Instance: alpha}, []string{"UNCLAIMED", "RUNNING EVACUATING i1"}, true, nil, ""},
		{"RUNNING α × RUNNING α: ordinary to UNCLAIMED", []lrp.ActualLRP{runsByAlpha, evacuates}, lrp.EvacuateRunning{Instance: alpha}, []string{"UNCLAIMED", "RUNNING EVACUATING i1"}, true, nil, ""},
		{"both records of an instance that ends go", []lrp.ActualLRP{runsByAlpha, evacuates}, lrp.EvacuateCrashed{Instance: alpha, Reason: "r"}, []string{"UNCLAIMED x1"}, false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			l.slot.Records = c.records
			if err := l.slot.Validate(); err != nil {
				t.Fatal(err)
			}
			l.now = l.now.Add(time.Minute)
			after, decision, err, broken := stepped(l.slot, l.deployment, c.command, l.now, lrp.Policy{})
			if !errors.Is(err, c.refused) || broken != nil {
				t.Fatal(err, broken)
			}
			var got []string
			for i := range after.Records {
				got = append(got, record(&after.Records[i]))
			}
			if len(got) != len(c.want) || decision.KeepContainer != c.keep {
				t.Fatalf("got %q, keep %v", got, decision.KeepContainer)
			}
			group := events(decision.Events, map[lrp.EventKind]string{lrp.GroupCreated: "+", lrp.GroupChanged: "~", lrp.GroupRemoved: "-"})
			if c.group != "" && group != c.group {
				t.Errorf("got group events %s, want %s", group, c.group)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestNothingIsSeenWhereNothingIs(t *testing.T) {
	if _, ok := lrp.Resolve(lrp.Slot{ProcessGUID: "p"}); ok {
		t.Error("a record is seen in an empty slot")
	}
	d := valid()
	d.Instances = 0
	s := lrp.Slot{ProcessGUID: "p"}
	if c := lrp.NewRollout(&d, epoch, lrp.Policy{}).Visit(s); c != nil {
		t.Errorf("%v is due where nothing is desired", c)
	}
}

func TestEvenAStrangeEventIsExplained(t *testing.T) {
	r := lrp.ActualLRP{State: lrp.Running, InstanceKey: alpha}
	moved := r
	moved.Address = "b"
	waits, claimed := lrp.ActualLRP{State: lrp.Unclaimed}, lrp.ActualLRP{State: lrp.Claimed, InstanceKey: alpha}
	for want, e := range map[string]lrp.Event{
		"placed on cell-1":                                      {Kind: lrp.InstanceChanged, Before: &waits, After: &claimed, Cause: lrp.Cause{Command: "Claim", Detail: "cell-1"}},
		"placed on cell-1: score 1":                             {Kind: lrp.InstanceChanged, Before: &waits, After: &claimed, Cause: lrp.Cause{Command: "Claim", Detail: "score 1"}},
		"crashed: for an unknown reason (is not started again)": {Kind: lrp.InstanceCrashed},
		"actual_lrp_changed":                                    {Kind: lrp.GroupChanged},
		"ended":                                                 {Kind: lrp.InstanceRemoved, Before: &r},
		"has other addresses on cell-1":                         {Kind: lrp.InstanceChanged, Before: &r, After: &moved},
		"waits for a cell":                                      {Kind: lrp.InstanceCreated, After: &lrp.ActualLRP{State: lrp.Unclaimed}},
		"moved: cell z1-3 is missing":                           {Kind: lrp.InstanceCreated, After: &lrp.ActualLRP{State: lrp.Unclaimed}, Cause: lrp.Cause{Command: "MarkSuspect", Detail: "z1-3"}},
		"replaced: cell cell-1 is missing":                      {Kind: lrp.InstanceRemoved, Before: &r, Cause: lrp.Cause{Command: "RemoveSuspect"}},
	} {
		if got := e.Explain(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
