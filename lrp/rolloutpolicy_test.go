package lrp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A roll is a rollout from v1 to v2, with what a store and the leader would do.
type roll struct {
	t     *testing.T
	d     *lrp.Deployment
	slots []lrp.Slot
	now   time.Time
	// stopped are the instances that cells were told to stop.
	stopped []string
	starts  int
	flaky   bool // v2 crashes often
}

// newRoll is a process whose instances all run v1 when v2 becomes active.
func newRoll(t *testing.T, instances int, p lrp.RolloutPolicy) *roll {
	t.Helper()
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: runnable(), Settings: lrp.Settings{Instances: instances},
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	x := &roll{t: t, d: change.After, now: epoch, slots: make([]lrp.Slot, instances)}
	for i := range x.slots {
		x.slots[i] = lrp.Slot{ProcessGUID: "web", Index: i}
		x.start(i, "v1")
	}
	x.now = x.now.Add(time.Second) // so that no two records are made at one time
	id, definition := "v2", runnable()
	change, err = x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition, Rollout: &p})
	if err != nil {
		t.Fatal(err)
	}
	x.d = change.After
	x.look()
	return x
}

func instanceOf(index int, definition string) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: fmt.Sprintf("%s-%d", definition, index), CellID: "cell-" + definition}
}

func (x *roll) do(index int, c lrp.Command) lrp.Decision {
	x.t.Helper()
	decision, err := lrp.Step(x.slots[index], x.d, c, x.now, lrp.Policy{})
	if err != nil {
		x.t.Fatalf("%s: %v", c.Name(), err)
	}
	x.slots[index] = x.slots[index].Apply(decision)
	if decision.Deployment != nil {
		x.d = decision.Deployment
	}
	for _, e := range decision.Effects {
		if e.Kind == lrp.StopInstance {
			x.stopped = append(x.stopped, e.Instance.InstanceGUID)
		}
	}
	return decision
}

func (x *roll) start(index int, definition string) {
	x.t.Helper()
	x.do(index, lrp.Start{DefinitionID: definition, Instance: instanceOf(index, definition)})
}

// look is one look of the leader, and says when the next one is due.
func (x *roll) look() (next time.Duration) {
	x.t.Helper()
	r := lrp.NewRollout(x.d, x.now, lrp.Policy{})
	for i, s := range x.slots {
		if c := r.Visit(s); c != nil {
			x.do(i, c)
		}
	}
	if r.Next().IsZero() {
		return 0
	}
	return r.Next().Sub(x.now)
}

// begun are the indices that have a record of v2.
func (x *roll) begun() (list []int) {
	for i, s := range x.slots {
		if slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return r.DefinitionID == "v2" }) {
			list = append(list, i)
		}
	}
	return list
}

func (x *roll) want(what string, healthy string, stopped ...string) {
	x.t.Helper()
	if x.d.HealthyDefinitionID != healthy || !slices.Equal(x.stopped, stopped) {
		x.t.Fatalf("%s: %s is healthy and %q are told to stop; want %s and %q", what, x.d.HealthyDefinitionID, x.stopped, healthy, stopped)
	}
}

func TestAnInstanceIsReplacedOnlyWhenTheNewOneHasBeenHealthyForAsLongAsThePolicyWants(t *testing.T) {
	x := newRoll(t, 2, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
	x.start(0, "v2")
	x.want("v2 runs", "v1")
	if next := x.look(); next != 10*time.Second || !slices.Equal(x.begun(), []int{0}) {
		t.Fatalf("the next look is due in %v, and v2 is at %v; want 10s and only index 0", next, x.begun())
	}
	x.now = x.now.Add(10*time.Second - 1)
	x.look()
	x.want("a moment before its time", "v1")
	x.now = x.now.Add(1)
	x.look()
	x.want("at its time", "v2", "v1-0")
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	if x.look(); !slices.Equal(x.begun(), []int{0, 1}) {
		t.Errorf("v2 is at %v, want the next index too", x.begun())
	}
}

// tellToStop lets an instance of v1 start at index 1, where a rollout is to end it.
func (x *roll) tellToStop(instance lrp.InstanceKey) {
	x.t.Helper()
	x.do(1, lrp.Claim{DefinitionID: "v1", Instance: instance})
	x.start(0, "v2")
	x.now = x.now.Add(10 * time.Second)
	x.look()
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	x.look()
	x.do(1, lrp.Start{DefinitionID: "v1", Instance: instance})
	if !slices.Contains(x.stopped, instance.InstanceGUID) {
		x.t.Fatalf("the rollout has not told the replacement to stop: %+v", x.slots[1].Records)
	}
}

// Two cells are missing, one after the other. The second has what was to replace the
// first one's instance, and what a rollout has told to stop since.
func TestASuspectDoesNotGiveWayToOneThatWasToldToStop(t *testing.T) {
	old, again := instanceOf(1, "v1"), lrp.InstanceKey{InstanceGUID: "again", CellID: "cell-again"}
	x := newRoll(t, 2, lrp.RolloutPolicy{MinHealthy: 10 * time.Second, MaxInFlight: 1})
	x.do(1, lrp.MarkSuspect{CellID: old.CellID})
	x.tellToStop(again)
	x.do(1, lrp.MarkSuspect{CellID: again.CellID})
	x.do(1, lrp.Recover{CellID: old.CellID})
	if !slices.ContainsFunc(x.slots[1].Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == old && r.Presence == lrp.Ordinary }) {
		t.Errorf("the first instance is back and gone: %+v", x.slots[1].Records)
	}
}

// Until it has stopped, an instance serves, and a suspect that has never run does not.
func TestAnInstanceThatWasToldToStopDoesNotGiveWayToASuspectThatNeverRan(t *testing.T) {
	late, again := lrp.InstanceKey{InstanceGUID: "late", CellID: "cell-late"}, lrp.InstanceKey{InstanceGUID: "again", CellID: "cell-again"}
	x := newRoll(t, 2, lrp.RolloutPolicy{MinHealthy: 10 * time.Second, MaxInFlight: 1})
	x.do(1, lrp.Remove{Instance: instanceOf(1, "v1")})
	x.do(1, lrp.CreateMissing{})
	x.slots[1].Records[0].DefinitionID = "v1" // as if the rollout had begun later
	x.do(1, lrp.Claim{DefinitionID: "v1", Instance: late})
	x.do(1, lrp.MarkSuspect{CellID: late.CellID})
	x.tellToStop(again)
	x.do(1, lrp.MarkSuspect{CellID: again.CellID})
	if !slices.ContainsFunc(x.slots[1].Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == again && r.State == lrp.Running }) {
		t.Errorf("the instance that runs is given up: %+v", x.slots[1].Records)
	}
}

func TestAnIndexIsStoppingUntilWhatWasReplacedHasStopped(t *testing.T) {
	x := newRoll(t, 2, lrp.RolloutPolicy{MinHealthy: 10 * time.Second, MaxInFlight: 2})
	counts := func(what string, proving, stopping, done int) {
		t.Helper()
		if s := x.status(); s.Proving != proving || s.Stopping != stopping || s.Done != done || s.Pending != 2-done {
			t.Errorf("%s: %+v, want %d proving, %d stopping, %d done", what, s, proving, stopping, done)
		}
	}
	x.start(0, "v2")
	x.start(1, "v2")
	counts("v2 runs", 2, 0, 0)
	x.now = x.now.Add(10 * time.Second)
	counts("nobody has looked", 0, 2, 0)
	x.look()
	counts("v1 is told to stop", 0, 2, 0)
	x.do(1, lrp.Remove{Instance: instanceOf(1, "v1")})
	counts("one has stopped", 0, 1, 1)
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	counts("both have stopped", 0, 0, 2)

	// What a pause keeps does not stop.
	y := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
	y.start(0, "v2")
	y.pause()
	y.now = y.now.Add(time.Hour)
	if s := y.status(); s.Stopping != 0 || s.WaitsFor != lrp.WaitResumed {
		t.Errorf("in a pause it is %+v", s)
	}
}

func TestAnInstanceThatIsNotReadyReplacesNone(t *testing.T) {
	x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
	x.do(0, lrp.Start{DefinitionID: "v2", Instance: instanceOf(0, "v2"), Unready: true})
	x.now = x.now.Add(time.Hour)
	x.look()
	x.want("after an hour without being ready", "v1")
	x.start(0, "v2")
	x.want("ready", "v2", "v1-0")
}

func TestAVersionThatLivesForAMomentTakesNoInstance(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
	for n := range 8 {
		me := lrp.InstanceKey{InstanceGUID: fmt.Sprint("attempt-", n), CellID: "cell-v2"}
		x.do(0, lrp.Start{DefinitionID: "v2", Instance: me})
		x.now = x.now.Add(300 * time.Millisecond)
		x.look()
		x.do(0, lrp.Crash{DefinitionID: "v2", Instance: me, Reason: "exit status 1"})
		x.look()
		x.now = x.now.Add(long)
		x.do(0, lrp.Restart{DefinitionID: "v2"})
	}
	x.want("after many attempts", "v1")
	if !slices.Equal(x.begun(), []int{0}) {
		t.Errorf("v2 is at %v, want only index 0", x.begun())
	}
}

func TestAsManyIndicesAreInFlightAsThePolicySays(t *testing.T) {
	for _, most := range []int{0, 1, 3, 9} {
		x := newRoll(t, 5, lrp.RolloutPolicy{MaxInFlight: most})
		for done := 0; ; done++ {
			var want []int
			for i := range min(5, done+max(1, most)) {
				want = append(want, i)
			}
			if !slices.Equal(x.begun(), want) {
				t.Fatalf("at most %d: v2 is at %v when %d are done, want %v", most, x.begun(), done, want)
			}
			if done == 5 {
				break
			}
			x.start(done, "v2")
			x.do(done, lrp.Remove{Instance: instanceOf(done, "v1")})
			x.look()
		}
	}
}

// An evacuated instance stays while the only other one has still to prove
// healthy.
func TestAnEvacuatedInstanceIsNotReplacedByOneThatHasStillToProveHealthy(t *testing.T) {
	evacuate := lrp.EvacuateRunning{DefinitionID: "v1", Instance: instanceOf(0, "v1")}
	for name, order := range map[string][]func(*roll){
		"the drain begins first":    {func(x *roll) { x.do(0, evacuate) }, func(x *roll) { x.start(0, "v2") }},
		"the new one starts first":  {func(x *roll) { x.start(0, "v2") }, func(x *roll) { x.do(0, evacuate) }},
		"the drain asks repeatedly": {func(x *roll) { x.do(0, evacuate) }, func(x *roll) { x.start(0, "v2") }, func(x *roll) { x.do(0, evacuate) }},
	} {
		x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
		for _, f := range order {
			f(x)
		}
		if x.want(name, "v1"); !x.do(0, evacuate).KeepContainer {
			t.Errorf("%s: the container is given up before its replacement has proved healthy", name)
		}
		x.now = x.now.Add(10 * time.Second)
		x.look()
		if x.do(0, evacuate).KeepContainer || x.d.HealthyDefinitionID != "v2" {
			t.Errorf("%s: the container is kept although its replacement has proved healthy", name)
		}
	}
}

// An instance that has still to prove healthy may never do so. Until it does, the
// healthy definition serves the index, however its instance was lost.
func TestTheHealthyDefinitionStartsAgainBesideAnInstanceThatHasStillToProveHealthy(t *testing.T) {
	old := instanceOf(0, "v1")
	for name, lose := range map[string]func(*roll){
		"it crashed": func(x *roll) { x.do(0, lrp.Crash{DefinitionID: "v1", Instance: old}) },
		"it crashed often": func(x *roll) {
			x.slots[0].Records[0].CrashCount = 10
			x.do(0, lrp.Crash{DefinitionID: "v1", Instance: old})
			x.now = x.now.Add(long)
			x.do(0, lrp.Restart{DefinitionID: "v1"})
		},
		"its cell is drained": func(x *roll) { x.do(0, lrp.EvacuateRunning{DefinitionID: "v1", Instance: old}) },
	} {
		x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
		x.do(0, lrp.Start{DefinitionID: "v2", Instance: instanceOf(0, "v2"), Unready: true})
		lose(x)
		again := lrp.InstanceKey{InstanceGUID: "again", CellID: "cell-3"}
		x.do(0, lrp.Claim{DefinitionID: "v1", Instance: again})
		x.do(0, lrp.Start{DefinitionID: "v1", Instance: again})
		if x.look(); !slices.ContainsFunc(x.slots[0].Records, func(a lrp.ActualLRP) bool {
			return a.InstanceKey == again && a.State == lrp.Running
		}) {
			t.Errorf("%s: v1 does not run again: %+v", name, x.slots[0].Records)
		}
		x.now = x.now.Add(10 * time.Second)
		x.start(0, "v2")
		x.want(name+", and v2 is ready", "v2", x.stopped...)
		if !slices.Contains(x.stopped, "again") {
			t.Errorf("%s: v1 is not told to stop although v2 has proved healthy", name)
		}
	}
}

// The cell of the new instance is drained as well, before that has proved healthy: the
// old one, which is evacuated, stays recorded and serves on.
func TestAnInstanceThatIsEvacuatedBeforeItHasProvedHealthyEndsNoOtherEvacuation(t *testing.T) {
	for name, begin := range map[string]lrp.Command{
		"its start was recorded":      lrp.Start{DefinitionID: "v2", Instance: instanceOf(0, "v2")},
		"only its claim was recorded": lrp.Claim{DefinitionID: "v2", Instance: instanceOf(0, "v2")},
	} {
		x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
		x.do(0, lrp.EvacuateRunning{DefinitionID: "v1", Instance: instanceOf(0, "v1")})
		x.do(0, begin)
		x.do(0, lrp.EvacuateRunning{DefinitionID: "v2", Instance: instanceOf(0, "v2")})
		if !slices.ContainsFunc(x.slots[0].Records, func(r lrp.ActualLRP) bool {
			return r.InstanceKey == instanceOf(0, "v1") && r.State == lrp.Running
		}) {
			t.Errorf("%s: the record of v1 is gone: %+v", name, x.slots[0].Records)
		}
		if !x.do(0, lrp.EvacuateRunning{DefinitionID: "v1", Instance: instanceOf(0, "v1")}).KeepContainer {
			t.Errorf("%s: the container of v1 is given up", name)
		}
	}
}

// The cell of the old instance is missing, and nobody knows whether the instance runs.
// It keeps its record until the new one has proved healthy, and serves if it is back.
func TestASuspectStaysUntilAnInstanceOfTheNewDefinitionHasProvedHealthy(t *testing.T) {
	old := instanceOf(0, "v1")
	lost := func() *roll {
		x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: 10 * time.Second})
		x.do(0, lrp.MarkSuspect{CellID: old.CellID})
		x.start(0, "v2")
		x.do(0, lrp.RemoveSuspect{})
		return x
	}
	recorded := func(x *roll, presence lrp.Presence) bool {
		return slices.ContainsFunc(x.slots[0].Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == old && r.Presence == presence })
	}
	x := lost()
	if !recorded(x, lrp.Suspect) {
		t.Fatalf("the suspect is gone: %+v", x.slots[0].Records)
	}
	x.do(0, lrp.Claim{DefinitionID: "v1", Instance: old}) // it is not refused
	x.do(0, lrp.Start{DefinitionID: "v1", Instance: old})
	if x.do(0, lrp.Recover{CellID: old.CellID}); !recorded(x, lrp.Ordinary) {
		t.Errorf("the instance is back and gone: %+v", x.slots[0].Records)
	}
	for name, c := range map[string]lrp.Command{"RemoveSuspect": lrp.RemoveSuspect{}, "Recover": lrp.Recover{CellID: old.CellID}} {
		x := lost()
		x.now = x.now.Add(10 * time.Second)
		if _, err := lrp.Step(x.slots[0], x.d, lrp.Claim{DefinitionID: "v1", Instance: old}, x.now, lrp.Policy{}); err == nil {
			t.Error("the instance of the missing cell is not refused although v2 has proved healthy")
		}
		if x.do(0, c); recorded(x, lrp.Suspect) || recorded(x, lrp.Ordinary) {
			t.Errorf("%s keeps the suspect although v2 has proved healthy: %+v", name, x.slots[0].Records)
		}
	}
}

// In every order of events, what we do ourselves leaves an index an instance that
// is proven, if it had one.
func TestNoStepOfARolloutTakesTheOnlyProvenInstance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const least = 10 * time.Second
	ended := 0
	for range 300 {
		x := newRoll(t, 1+r.IntN(3), lrp.RolloutPolicy{MinHealthy: least, MaxInFlight: r.IntN(3)})
		for range 60 {
			before := len(x.stopped)
			i := r.IntN(len(x.slots))
			x.now = x.now.Add(time.Duration(r.IntN(8)) * time.Second)
			x.event(r, i)
			x.look()
			for _, guid := range x.stopped[before:] {
				if !slices.ContainsFunc(x.slots, func(s lrp.Slot) bool {
					return slices.ContainsFunc(s.Records, func(a lrp.ActualLRP) bool {
						return a.DefinitionID == "v2" && a.State == lrp.Running && a.Routable && fmt.Sprint("v1-", a.Index) == guid &&
							x.now.Sub(a.RunningSince) >= least
					})
				}) {
					t.Fatalf("%s is told to stop, and none of v2 has proved healthy there: %+v", guid, x.slots)
				}
			}
		}
		if x.d.HealthyDefinitionID == "v2" {
			ended++
		}
	}
	if ended == 0 {
		t.Error("no rollout came through")
	}
}

// event is something that a cell reports about index i, if it can.
func (x *roll) event(r *rand.Rand, i int) {
	s := x.slots[i]
	if len(s.Records) == 0 {
		return
	}
	a := s.Records[r.IntN(len(s.Records))]
	var c lrp.Command
	switch n := r.IntN(10); {
	case a.Presence != lrp.Ordinary:
		return
	case a.State == lrp.Running && a.DefinitionID == "v1" && slices.Contains(x.stopped, a.InstanceGUID):
		c = lrp.Remove{Instance: a.InstanceKey}
	case a.State == lrp.Running && a.DefinitionID == "v2" && (n == 0 || x.flaky && n > 3):
		c = lrp.Crash{DefinitionID: "v2", Instance: a.InstanceKey}
	case a.State == lrp.Running && a.DefinitionID == "v2" && n < 3:
		c = lrp.Start{DefinitionID: "v2", Instance: a.InstanceKey, Unready: n == 1}
	case a.State == lrp.Crashed:
		c = lrp.Restart{DefinitionID: a.DefinitionID}
	case a.State == lrp.Unclaimed:
		c = lrp.Start{DefinitionID: a.DefinitionID, Instance: lrp.InstanceKey{InstanceGUID: fmt.Sprint("new-", r.Uint64()), CellID: "cell"}}
	default:
		return
	}
	x.report(i, c)
}

// report is a report of a cell that gives its instance up where another one
// was faster.
func (x *roll) report(index int, c lrp.Command) {
	x.t.Helper()
	if _, err := lrp.Step(x.slots[index], x.d, c, x.now, lrp.Policy{}); !errors.Is(err, lrp.ErrCannotBeStarted) {
		x.do(index, c)
	}
}

func TestARolloutSaysWhichNewInstanceFindsNoRoomAndWhatIsShort(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{MaxInFlight: 2})
	var nearest *lrp.Shortage
	unplaced := func(what string, index int, reason lrp.PlacementError) {
		t.Helper()
		if got, want := x.status().Unplaced, (lrp.Unplaced{Index: index, PlacementError: reason, Nearest: nearest}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v is not placed, want %+v", what, got, want)
		}
	}
	unplaced("before anybody has tried", 0, lrp.PlacementError{})
	short := lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "of 3 cells 3 short of memory; the nearest, cell-1, lacks 512 MiB of memory"}
	x.do(1, lrp.Fail{DefinitionID: "v2", Error: short})
	nearest = &lrp.Shortage{CellID: "cell-1", Lacks: executor.Capacity{MemoryMB: 512}}
	unplaced("when the second one finds no room", 1, short)
	if text, err := json.Marshal(x.status()); err != nil || !strings.Contains(string(text), `"nearest":{"cell_id":"cell-1","lacks":{"memory_mb":512,`) {
		t.Errorf("the status is %s, %v", text, err)
	}
	nearest = nil
	other := lrp.PlacementError{Reason: lrp.NoCompatibleCells}
	x.do(0, lrp.Fail{DefinitionID: "v2", Error: other})
	unplaced("when none does", 0, other)
	if text, err := json.Marshal(x.status()); err != nil || !strings.Contains(string(text), `"unplaced":{"index":0,"placement_error":"found no compatible cells"}`) {
		t.Errorf("the status is %s, %v", text, err)
	}
	x.start(0, "v2")
	x.start(1, "v2")
	unplaced("when both run", 0, lrp.PlacementError{})
	if text, err := json.Marshal(x.status()); err != nil || strings.Contains(string(text), "unplaced") {
		t.Errorf("the status is %s, %v", text, err)
	}
}
