package lrp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
)

func TestABudgetIsANumberOrAShareOfTheDesiredIndices(t *testing.T) {
	for _, tt := range []struct {
		budget               *lrp.Disruption
		instances, available int
		want                 bool
	}{
		// Without a budget, one at a time and only from full strength.
		{nil, 3, 3, true}, {nil, 3, 2, false}, {&lrp.Disruption{}, 3, 2, false}, {nil, 1, 1, true},
		{&lrp.Disruption{MaxUnavailable: 2}, 5, 5, true}, {&lrp.Disruption{MaxUnavailable: 2}, 5, 4, true}, {&lrp.Disruption{MaxUnavailable: 2}, 5, 3, false},
		{&lrp.Disruption{MaxUnavailable: 9}, 5, 1, true},
		// A quarter of 10 is 2, and of 3 still 1.
		{&lrp.Disruption{MaxUnavailablePercent: 25}, 10, 9, true}, {&lrp.Disruption{MaxUnavailablePercent: 25}, 10, 8, false},
		{&lrp.Disruption{MaxUnavailablePercent: 25}, 3, 3, true}, {&lrp.Disruption{MaxUnavailablePercent: 25}, 3, 2, false},
		{&lrp.Disruption{MaxUnavailablePercent: 100}, 4, 1, true},
	} {
		d := &lrp.Deployment{Settings: lrp.Settings{Instances: tt.instances, Policies: lrp.Policies{Disruption: tt.budget}}}
		if got := d.MayTakeDown(tt.available); got != tt.want {
			t.Errorf("budget %+v, %d of %d available: %v, want %v", tt.budget, tt.available, tt.instances, got, tt.want)
		}
	}
}

// newProcess is a roll without a rollout: n instances of v1 run on cell-v1.
func newProcess(t *testing.T, n int, strategy lrp.UpdateStrategy, b *lrp.Disruption) *roll {
	t.Helper()
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", UpdateStrategy: strategy, DefinitionID: "v1", Definition: runnable(),
		Settings: lrp.Settings{Instances: n, Policies: lrp.Policies{Disruption: b}},
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	x := &roll{t: t, d: change.After, now: epoch, slots: make([]lrp.Slot, n)}
	for i := range x.slots {
		x.slots[i] = lrp.Slot{ProcessGUID: "web", Index: i}
		x.start(i, "v1")
	}
	return x
}

// evacuate is what the cell of v1's instances asks, and reports whether it keeps
// the container.
func (x *roll) evacuate(index, available int) bool {
	x.t.Helper()
	return x.do(index, lrp.EvacuateRunning{Instance: instanceOf(index, "v1"), RunningInstances: available}).KeepContainer
}

// replace starts the replacement of an evacuated instance.
func (x *roll) replace(index int, unready bool) {
	x.t.Helper()
	x.do(index, lrp.Start{DefinitionID: "v1", Instance: lrp.InstanceKey{InstanceGUID: fmt.Sprint("new-", index), CellID: "cell-2"}, Unready: unready})
}

func (x *roll) presences(index int) (list []lrp.Presence) {
	for _, r := range x.slots[index].Records {
		list = append(list, r.Presence)
	}
	return list
}

func TestAnEvacuatedInstanceServesUntilItsReplacementIsReadyWhereThereIsABudget(t *testing.T) {
	for _, tt := range []struct {
		budget *lrp.Disruption
		stays  bool
	}{{nil, false}, {&lrp.Disruption{MaxUnavailable: 1}, true}} {
		t.Run(fmt.Sprint(tt.stays), func(t *testing.T) {
			x := newProcess(t, 1, lrp.Rolling, tt.budget)
			if !x.evacuate(0, 0) {
				t.Fatal("the container is not kept though nothing replaces it")
			}
			x.replace(0, true)
			if kept := x.evacuate(0, 0); kept != tt.stays {
				t.Fatalf("beside a replacement that is not ready, the container is kept: %v, want %v", kept, tt.stays)
			}
			if got := len(x.presences(0)); (got == 2) != tt.stays {
				t.Fatalf("the index has %d records", got)
			}
			x.now = x.now.Add(time.Second)
			x.replace(0, false)
			if x.evacuate(0, 0) || len(x.presences(0)) != 1 {
				t.Errorf("the container is kept beside a replacement that is ready, with records %v", x.presences(0))
			}
		})
	}
}

func TestARolloutWaitsUntilTheNewInstanceIsReadyWhereThereIsABudget(t *testing.T) {
	x := newProcess(t, 1, lrp.Rolling, &lrp.Disruption{MaxUnavailable: 1})
	id, definition := "v2", runnable()
	change, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if err != nil {
		t.Fatal(err)
	}
	x.d = change.After
	x.look()
	x.do(0, lrp.Start{DefinitionID: "v2", Instance: instanceOf(0, "v2"), Unready: true})
	x.look()
	x.want("v2 runs but is not ready", "v1")
	x.start(0, "v2")
	x.want("v2 is ready", "v2", "v1-0")
}

func TestInstancesAreRecreatedOnlyAsLongAsTheBudgetHasRoom(t *testing.T) {
	x := newProcess(t, 4, lrp.Recreate, &lrp.Disruption{MaxUnavailable: 2})
	available := func(own int) (n int) {
		for i, s := range x.slots {
			for _, r := range s.Records {
				if x.d.Available(&r) || i == own && r.State == lrp.Running {
					n++
				}
			}
		}
		return n
	}
	var taken []int
	for i := range x.slots {
		if !x.evacuate(i, available(i)) {
			taken = append(taken, i)
		}
	}
	if fmt.Sprint(taken) != "[0 1]" {
		t.Fatalf("taken down are %v, want two", taken)
	}
	x.replace(0, true) // runs, but is not ready
	if !x.evacuate(2, available(2)) {
		t.Error("a third is taken down although two are not ready")
	}
	x.replace(0, false)
	if x.evacuate(2, available(2)) {
		t.Error("the third is not taken down although one is back")
	}
}

// Losses are never prevented: a cell that goes without asking, and instances
// that crash.
func TestABudgetPreventsNoLoss(t *testing.T) {
	x := newProcess(t, 2, lrp.Rolling, &lrp.Disruption{MaxUnavailable: 1})
	x.do(0, lrp.MarkSuspect{CellID: "cell-v1"})
	x.do(1, lrp.MarkSuspect{CellID: "cell-v1"})
	x.replace(0, true)
	if got := fmt.Sprint(x.presences(0), x.presences(1)); got != "[ORDINARY] [SUSPECT ORDINARY]" && got != "[ORDINARY] [ORDINARY SUSPECT]" {
		t.Errorf("the presences are %s, want the suspect of index 0 replaced by the instance that runs", got)
	}
}

// The specification ends an evacuation whose replacement is CRASHED, because there it
// has run. With a budget it may have run without being ready.
func TestAReplacementThatHasCrashedEndsNoEvacuationWhereThereIsABudget(t *testing.T) {
	for _, budget := range []*lrp.Disruption{nil, {MaxUnavailable: 1}} {
		x := newProcess(t, 1, lrp.Rolling, budget)
		x.evacuate(0, 0)
		for i := range x.slots[0].Records {
			if r := &x.slots[0].Records[i]; r.Presence == lrp.Ordinary {
				r.CrashCount = 10
			}
		}
		replacement := lrp.InstanceKey{InstanceGUID: "new", CellID: "cell-2"}
		x.do(0, lrp.Claim{DefinitionID: "v1", Instance: replacement})
		x.do(0, lrp.Crash{DefinitionID: "v1", Instance: replacement})
		if kept := x.evacuate(0, 0); kept != (budget != nil) {
			t.Errorf("budget %+v: the container is kept: %v, with records %v", budget, kept, x.presences(0))
		}
		x.now = x.now.Add(time.Hour)
		x.do(0, lrp.Restart{DefinitionID: "v1"})
		x.replace(0, false)
		if x.evacuate(0, 0) {
			t.Errorf("budget %+v: the container is kept although its replacement is ready", budget)
		}
	}
}

// A definition has one EVACUATING record at an index.
func TestAnInstanceThatIsNotReadyDoesNotTakeOverTheEvacuationOfOneThatIs(t *testing.T) {
	next := lrp.InstanceKey{InstanceGUID: "new-0", CellID: "cell-2"}
	serves := func(x *roll, i lrp.InstanceKey) bool {
		for _, r := range x.slots[0].Records {
			if r.InstanceKey == i && r.Presence == lrp.Evacuating {
				return true
			}
		}
		return false
	}
	for name, begin := range map[string]func(*roll){
		"it is recorded as RUNNING": func(x *roll) { x.replace(0, true) },
		"it is recorded as CLAIMED": func(x *roll) { x.do(0, lrp.Claim{DefinitionID: "v1", Instance: next}) },
		"its cell is missing": func(x *roll) {
			x.replace(0, true)
			x.do(0, lrp.MarkSuspect{CellID: next.CellID})
		},
	} {
		x := newProcess(t, 1, lrp.Rolling, &lrp.Disruption{MaxUnavailable: 1})
		x.evacuate(0, 0)
		begin(x)
		if x.do(0, lrp.EvacuateRunning{DefinitionID: "v1", Instance: next, Unready: true}).KeepContainer {
			t.Errorf("%s: a container that serves nobody is kept", name)
		}
		if !x.evacuate(0, 0) || !serves(x, instanceOf(0, "v1")) {
			t.Errorf("%s: the instance that was ready is given up: %v", name, x.slots[0].Records)
		}
		x.do(0, lrp.Start{DefinitionID: "v1", Instance: lrp.InstanceKey{InstanceGUID: "third", CellID: "cell-3"}})
		if x.evacuate(0, 0) {
			t.Errorf("%s: the container is kept although its replacement is ready", name)
		}
	}
	x := newProcess(t, 1, lrp.Rolling, &lrp.Disruption{MaxUnavailable: 1})
	x.evacuate(0, 0)
	x.replace(0, true)
	if !x.do(0, lrp.EvacuateRunning{DefinitionID: "v1", Instance: next}).KeepContainer || !serves(x, next) || serves(x, instanceOf(0, "v1")) {
		t.Errorf("an instance that is ready by now does not take the place: %v", x.slots[0].Records)
	}
}

// The model checker of rollouts has found this and the next.
func TestAnInstanceThatARolloutHasToldToStopEndsNoEvacuation(t *testing.T) {
	for _, last := range []struct {
		name    string
		command lrp.Command
	}{
		{"its cell evacuates too", lrp.EvacuateRunning{Instance: instanceOf(0, "v1")}},
		{"its cell withdraws its route", lrp.Start{Instance: instanceOf(0, "v1"), Unready: true}},
	} {
		t.Run(last.name, func(t *testing.T) {
			x := newProcess(t, 1, lrp.Rolling, nil)
			id, definition := "v2", runnable()
			change, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
			x.call("update", change, err)
			x.look()
			x.start(0, "v2")
			x.want("v2 runs", "v2", "v1-0")
			x.do(0, lrp.EvacuateRunning{Instance: instanceOf(0, "v2")})
			x.do(0, last.command)
			if !slices.ContainsFunc(x.slots[0].Records, func(r lrp.ActualLRP) bool {
				return r.InstanceKey == instanceOf(0, "v2") && r.Presence == lrp.Evacuating
			}) {
				t.Errorf("nothing routes to the instance of v2 any more, and that of v1 is about to stop: %v", x.slots[0].Records)
			}
		})
	}
}

func TestRecreateMovesAnInstanceThatIsNotRecordedAsRunningAtOnce(t *testing.T) {
	x := newProcess(t, 2, lrp.Recreate, &lrp.Disruption{MaxUnavailable: 1})
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	me := lrp.InstanceKey{InstanceGUID: "new", CellID: "cell-2"}
	x.do(0, lrp.Claim{DefinitionID: "v1", Instance: me})
	// Its container has begun to run since the cell evacuates, so the cell reports
	// no start. One index of two is down, and it is this one.
	if x.do(0, lrp.EvacuateRunning{Instance: me, RunningInstances: 1}).KeepContainer {
		t.Error("the container is kept until the time to evacuate has passed, though nobody is routed to it")
	}
}
