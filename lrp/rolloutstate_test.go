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

// call makes a change of the deployment, which must be allowed.
func (x *roll) call(name string, change lrp.Change, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatalf("%s: %v", name, err)
	}
	if !change.IsZero() {
		x.d = change.After
	}
}

func (x *roll) pause() { c, err := x.d.PauseRollout(); x.call("pause", c, err) }

func (x *roll) resume() { c, err := x.d.ResumeRollout(x.now); x.call("resume", c, err) }

func (x *roll) confirm() { c, err := x.d.ConfirmRollout(); x.call("confirm", c, err) }

func (x *roll) abort() { c, err := x.d.AbortRollout(); x.call("abort", c, err) }

func (x *roll) status() lrp.RolloutStatus {
	r := lrp.NewRollout(x.d, x.now, lrp.Policy{})
	for _, s := range x.slots {
		r.Visit(s)
	}
	return r.Status()
}

// inUse reports whether a record names the definition.
func (x *roll) inUse(id string) bool {
	return slices.ContainsFunc(x.slots, func(s lrp.Slot) bool {
		return slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return r.DefinitionID == id })
	})
}

// tidy is what convergence does when it has looked at all slots.
func (x *roll) tidy() {
	if x.d.RolloutState.From != "" && x.status().Complete() {
		x.call("end", x.d.EndRollout(x.inUse), nil)
	} else {
		x.call("prune", x.d.PruneDefinitions(x.inUse), nil)
	}
}

// obey makes the cells do what they were told, and start what waits.
func (x *roll) obey() {
	x.t.Helper()
	for i := range x.slots {
		for _, a := range slices.Clone(x.slots[i].Records) {
			switch {
			case a.Presence != lrp.Ordinary:
			case a.State == lrp.Running && slices.Contains(x.stopped, a.InstanceGUID):
				x.do(i, lrp.Remove{Instance: a.InstanceKey})
			case a.State == lrp.Unclaimed:
				x.starts++
				x.report(i, lrp.Start{DefinitionID: a.DefinitionID, Instance: lrp.InstanceKey{InstanceGUID: fmt.Sprint("obedient-", x.starts), CellID: "cell"}})
			}
		}
	}
}

// settle lets the rollout go on with a working definition until nothing happens.
func (x *roll) settle() {
	x.t.Helper()
	for range 20 + 6*len(x.slots) {
		x.look()
		x.obey()
		x.tidy()
		x.now = x.now.Add(30 * time.Second)
	}
}

func (x *roll) runs() string {
	var parts []string
	for _, s := range x.slots {
		var here []string
		for _, a := range s.Records {
			if a.State == lrp.Running && a.Presence == lrp.Ordinary {
				here = append(here, a.DefinitionID)
			}
		}
		parts = append(parts, strings.Join(here, "+"))
	}
	return strings.Join(parts, " ")
}

func (x *roll) wantRuns(what, runs string, wait lrp.RolloutWait, heldBy int) {
	x.t.Helper()
	if s := x.status(); x.runs() != runs || s.WaitsFor != wait || s.HeldBy != heldBy || s.Complete() != (wait == lrp.WaitNothing) {
		x.t.Fatalf("%s: it runs %q and is %+v; want %q, waiting for %v at %d", what, x.runs(), s, runs, wait, heldBy)
	}
}

func TestACanaryWaitsUntilItIsConfirmedAndTheOldDefinitionStaysTheHealthyOne(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{Canary: 1})
	x.settle()
	x.wantRuns("unconfirmed", "v2 v1 v1", lrp.WaitConfirmed, 1)
	if x.d.HealthyDefinitionID != "v1" || !x.d.RolloutState.Proved {
		t.Errorf("%s is healthy, %+v; want v1, and that the canary has proved healthy", x.d.HealthyDefinitionID, x.d.RolloutState)
	}
	x.do(2, lrp.Crash{DefinitionID: "v1", Instance: instanceOf(2, "v1")})
	x.settle()
	x.wantRuns("after a crash of the old definition", "v2 v1 v1", lrp.WaitConfirmed, 1)
	x.confirm()
	x.settle()
	x.wantRuns("confirmed", "v2 v2 v2", lrp.WaitNothing, -1)
	if x.d.HealthyDefinitionID != "v2" || !x.d.RolloutState.IsZero() || len(x.d.Definitions) != 1 {
		t.Errorf("the rollout has not ended: %+v", x.d)
	}
}

// Otherwise nothing would be left to go back to.
func TestACanaryAtEveryIndexKeepsTheOldDefinitionUntilItIsConfirmed(t *testing.T) {
	x := newRoll(t, 1, lrp.RolloutPolicy{Canary: 1})
	x.settle()
	x.wantRuns("unconfirmed", "v2", lrp.WaitConfirmed, -1)
	x.abort()
	x.settle()
	x.wantRuns("aborted", "v1", lrp.WaitNothing, -1)
}

func TestAPausedRolloutChangesNothingAndGoesOnWhenItIsResumed(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{})
	x.pause()
	x.start(0, "v2") // it was on its way
	x.settle()
	x.wantRuns("paused", "v1+v2 v1 v1", lrp.WaitResumed, 0)
	if x.d.HealthyDefinitionID != "v1" || len(x.stopped) > 0 {
		t.Errorf("%s is healthy and %q are told to stop while the rollout is paused", x.d.HealthyDefinitionID, x.stopped)
	}
	x.do(0, lrp.Crash{DefinitionID: "v1", Instance: instanceOf(0, "v1")})
	x.do(1, lrp.Crash{DefinitionID: "v1", Instance: instanceOf(1, "v1")})
	x.settle()
	x.wantRuns("after crashes", "v1+v2 v1 v1", lrp.WaitResumed, 0)
	x.resume()
	x.settle()
	x.wantRuns("resumed", "v2 v2 v2", lrp.WaitNothing, -1)
}

// crashes makes v2 crash until its record at index 0 is CRASHED.
func (x *roll) crashes() {
	x.t.Helper()
	for n := range 8 {
		me := lrp.InstanceKey{InstanceGUID: fmt.Sprintf("attempt-%d-%d", x.now.UnixNano(), n), CellID: "cell-v2"}
		x.do(0, lrp.Start{DefinitionID: "v2", Instance: me})
		x.do(0, lrp.Crash{DefinitionID: "v2", Instance: me, Reason: "exit status 1"})
		if slices.ContainsFunc(x.slots[0].Records, func(a lrp.ActualLRP) bool { return a.DefinitionID == "v2" && a.State == lrp.Crashed }) {
			return
		}
	}
	x.t.Fatal("v2 is not CRASHED")
}

func TestWhatHappensWhenADefinitionFails(t *testing.T) {
	const least, deadline = 10 * time.Second, time.Minute
	crashed := func(x *roll) { x.crashes() }
	late := func(x *roll) {
		x.do(0, lrp.Start{DefinitionID: "v2", Instance: instanceOf(0, "v2"), Unready: true})
		x.now = x.now.Add(deadline - 1)
		if x.look(); x.d.RolloutState.Failure != nil {
			t.Errorf("v2 has failed before its time: %v", x.d.RolloutState.Failure)
		}
		x.now = x.now.Add(1)
	}
	unplaced := func(x *roll) {
		x.do(0, lrp.Fail{DefinitionID: "v2", Error: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "memory"}})
		x.now = x.now.Add(deadline)
	}
	for name, c := range map[string]struct {
		fail func(*roll)
		kind lrp.FailureKind
		text string
	}{
		"crashed":  {crashed, lrp.RolloutCrashed, "instance 0 crashed: exit status 1"},
		"late":     {late, lrp.RolloutLate, "instance 0 did not prove healthy in time"},
		"unplaced": {unplaced, lrp.RolloutLate, "instance 0 did not prove healthy in time: "},
	} {
		for _, policy := range []lrp.OnFailure{lrp.KeepTrying, lrp.PauseOnFailure, lrp.RollBackOnFailure} {
			t.Run(name+"/"+policy.String(), func(t *testing.T) {
				x := newRoll(t, 3, lrp.RolloutPolicy{MinHealthy: least, Deadline: deadline, OnFailure: policy})
				c.fail(x)
				x.look()
				s := x.d.RolloutState
				if policy == lrp.KeepTrying {
					if s.Failure != nil || s.Paused != lrp.NotPaused || x.d.ActiveDefinitionID != "v2" {
						t.Fatalf("got %+v, want the rollout to go on", s)
					}
					return
				}
				if s.Failure == nil || s.Failure.Kind != c.kind || s.Failure.DefinitionID != "v2" || s.Failure.Index != 0 || !strings.HasPrefix(s.Failure.String(), c.text) {
					t.Fatalf("the failure is %v, want %s of v2 at index 0", s.Failure, c.text)
				}
				if policy == lrp.RollBackOnFailure {
					x.settle()
					x.wantRuns("rolled back", "v1 v1 v1", lrp.WaitNothing, -1)
					if x.d.ActiveDefinitionID != "v1" || x.d.HealthyDefinitionID != "v1" || x.d.RolloutState.Failure.DefinitionID != "v2" || len(x.d.Definitions) != 1 {
						t.Errorf("got %+v, want v1 alone, and to know that v2 has failed", x.d)
					}
					return
				}
				if s.Paused != lrp.PausedByFailure || x.d.ActiveDefinitionID != "v2" {
					t.Fatalf("got %+v, want a pause", s)
				}
				if s := x.status(); s.WaitsFor != lrp.WaitResumed || s.HeldBy != 0 {
					t.Errorf("%+v", s)
				}
				// Resumed, it has another chance: what has failed does not count.
				x.now = x.now.Add(time.Second)
				x.resume()
				if x.look(); x.d.RolloutState.Failure != nil {
					t.Fatalf("it has failed again at once: %v", x.d.RolloutState.Failure)
				}
				x.now = x.now.Add(deadline)
				if x.look(); x.d.RolloutState.Failure == nil || x.d.RolloutState.Failure.Kind != lrp.RolloutLate {
					t.Errorf("it is not late a deadline after it was resumed: %+v", x.d.RolloutState)
				}
			})
		}
	}
}

// A definition that has proved healthy at one index does not fail at another: the
// rollout goes on without that index, as 003 says, even if the instance runs there
// and is not ready.
func TestAnIndexThatIsNeverReadyIsGivenUpAtTheDeadline(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{MinHealthy: 10 * time.Second, Deadline: time.Minute, OnFailure: lrp.RollBackOnFailure})
	x.start(0, "v2")
	x.now = x.now.Add(10 * time.Second)
	x.look()
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	x.look()
	x.do(1, lrp.Start{DefinitionID: "v2", Instance: instanceOf(1, "v2"), Unready: true})
	x.now = x.now.Add(time.Minute - 1)
	x.look()
	x.wantRuns("before the deadline", "v2 v1+v2 v1", lrp.WaitReady, 1)
	x.now = x.now.Add(1)
	x.look()
	if s := x.status(); s.Stalled != 1 || !slices.Equal(x.begun(), []int{0, 1, 2}) || x.d.ActiveDefinitionID != "v2" {
		t.Errorf("%+v, v2 is at %v; want index 1 to be given up and 2 begun", s, x.begun())
	}
}

// The default of the deadline leaves time to prove healthy.
func TestTheDeadlineIsThatOfThePolicyOrTheTimeToGiveUpAndToProveHealthy(t *testing.T) {
	for _, c := range []struct {
		rollout lrp.RolloutPolicy
		policy  lrp.Policy
		want    time.Duration
	}{
		{lrp.RolloutPolicy{}, lrp.Policy{}, 10 * time.Minute},
		{lrp.RolloutPolicy{MinHealthy: time.Hour}, lrp.Policy{}, 70 * time.Minute},
		{lrp.RolloutPolicy{MinHealthy: time.Hour}, lrp.Policy{RolloutGiveUp: time.Minute}, 61 * time.Minute},
		{lrp.RolloutPolicy{MinHealthy: time.Second, Deadline: 5 * time.Second}, lrp.Policy{}, 5 * time.Second},
	} {
		c.rollout.OnFailure = lrp.RollBackOnFailure
		x := newRoll(t, 1, c.rollout)
		for after, want := range map[time.Duration]lrp.Command{c.want - 1: nil, c.want: lrp.FailRollout{}} {
			if got := lrp.NewRollout(x.d, x.now.Add(after), c.policy).Visit(x.slots[0]); got != want {
				t.Errorf("%+v, after %v: %v, want %v", c.rollout, after, got, want)
			}
		}
	}
}

func TestACanaryThatCrashesFailsEvenIfItHasProvedHealthy(t *testing.T) {
	x := newRoll(t, 2, lrp.RolloutPolicy{Canary: 1, OnFailure: lrp.RollBackOnFailure, Deadline: time.Minute})
	x.settle()
	x.now = x.now.Add(48 * time.Hour)
	x.look()
	x.wantRuns("two days later", "v2 v1", lrp.WaitConfirmed, 1)
	for x.d.ActiveDefinitionID == "v2" {
		r := x.slots[0].Records[0]
		x.do(0, lrp.Crash{DefinitionID: "v2", Instance: r.InstanceKey, Reason: "exit status 1"})
		if r = x.slots[0].Records[0]; r.State == lrp.Unclaimed {
			if x.look(); x.d.ActiveDefinitionID != "v2" {
				t.Fatal("it has failed although it was restarted at once")
			}
			x.obey()
		}
	}
	if f := x.d.RolloutState.Failure; f == nil || f.Kind != lrp.RolloutCrashed {
		t.Errorf("%+v", x.d.RolloutState)
	}
	x.settle()
	x.wantRuns("rolled back", "v1 v1", lrp.WaitNothing, -1)
}

func TestCallsAboutARolloutAreRefusedWithoutOneAndDoNothingTheSecondTime(t *testing.T) {
	calls := map[string]func(*lrp.Deployment) (lrp.Change, error){
		"PauseRollout": (*lrp.Deployment).PauseRollout, "ConfirmRollout": (*lrp.Deployment).ConfirmRollout, "AbortRollout": (*lrp.Deployment).AbortRollout,
		"ResumeRollout": func(d *lrp.Deployment) (lrp.Change, error) { return d.ResumeRollout(epoch.Add(time.Hour)) },
	}
	for name, call := range calls {
		x := newRoll(t, 1, lrp.RolloutPolicy{Canary: 1})
		first, err := call(x.d)
		if name != "ResumeRollout" && (err != nil || first.IsZero() || first.Events[0].Kind != lrp.DeploymentChanged || first.Events[1].Kind != lrp.DesiredChanged || first.Events[0].Cause.Command != name) {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		if first.IsZero() {
			first.After = x.d
		}
		if again, err := call(first.After); err != nil || !again.IsZero() {
			t.Errorf("%s the second time: %+v, %v", name, again, err)
		}
		x.settle()
		x.confirm()
		x.settle()
		if _, err := call(x.d); !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), "no rollout is under way") {
			t.Errorf("%s without a rollout: %v", name, err)
		}
		change, err := lrp.Create(lrp.DeploymentDefinition{ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: runnable()}, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call(change.After); !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), "no definition has proved healthy yet") {
			t.Errorf("%s of a first definition: %v", name, err)
		}
	}
	if _, err := newRoll(t, 1, lrp.RolloutPolicy{}).d.ConfirmRollout(); !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), "no canary") {
		t.Errorf("confirming what has no canary: %v", err)
	}
}

func TestEveryNewActiveDefinitionResetsTheStateOfTheRollout(t *testing.T) {
	x := newRoll(t, 2, lrp.RolloutPolicy{Canary: 1})
	x.confirm()
	x.pause()
	id, definition := "v3", runnable()
	change, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if want := (lrp.RolloutState{From: "v1"}); err != nil || change.After.RolloutState != want {
		t.Errorf("%+v, %v, want %+v", change.After.RolloutState, err, want)
	}
	change, err = x.d.Activate("v1", x.now)
	if err != nil || !change.After.RolloutState.IsZero() {
		t.Errorf("back at the healthy definition: %+v, %v", change.After.RolloutState, err)
	}
	x.call("activate", change, err)
	x.settle()
	x.wantRuns("back", "v1 v1", lrp.WaitNothing, -1)
}

// The time of the proof is over, but nobody has asked since.
func TestADefinitionIsNotedAsHealthyIfThePolicyStopsAskingForProof(t *testing.T) {
	x := newRoll(t, 1, lrp.RolloutPolicy{MinHealthy: time.Hour})
	x.start(0, "v2")
	change, err := x.d.Update(lrp.Update{Rollout: &lrp.RolloutPolicy{}})
	x.call("update", change, err)
	x.look()
	x.want("without MinHealthy", "v2", "v1-0")
}

// The leader is told when to look again, also before anything is rolled out.
func TestAStartThatHasStillToProveHealthyAsksForAnotherLook(t *testing.T) {
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: runnable(),
		Settings: lrp.Settings{Instances: 1, Policies: lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: time.Minute}}},
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	x := &roll{t: t, d: change.After, now: epoch, slots: []lrp.Slot{{ProcessGUID: "web"}}}
	decision := x.do(0, lrp.Start{DefinitionID: "v1", Instance: instanceOf(0, "v1")})
	if !slices.ContainsFunc(decision.Effects, func(e lrp.Effect) bool { return e.Kind == lrp.ContinueRollout }) {
		t.Errorf("the effects are %+v, want another look", decision.Effects)
	}
	if next := x.look(); next != time.Minute {
		t.Errorf("the next look is in %v, want 1m", next)
	}
	x.now = x.now.Add(time.Minute)
	x.look()
	x.want("after a minute", "v1")
}

func TestAStateOfARolloutIsTheSameAfterJSON(t *testing.T) {
	want := lrp.RolloutState{
		From: "v1", Paused: lrp.PausedByFailure, ResumedAt: epoch, Proved: true, Confirmed: true,
		Failure: &lrp.RolloutFailure{DefinitionID: "v2", Kind: lrp.RolloutLate, Index: 3, Detail: "no room"},
	}
	data, err := json.Marshal(want)
	var got lrp.RolloutState
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, %v", data, got, err)
	}
	if data, err := json.Marshal(lrp.Deployment{}); err != nil || strings.Contains(string(data), "rollout_state") {
		t.Errorf("a deployment without a rollout says so: %s, %v", data, err)
	}
	for _, wrong := range []string{`{"paused":"SOMEBODY"}`, `{"failure":{"kind":"NONE"}}`, `{"failure":{"kind":""}}`} {
		if err := json.Unmarshal([]byte(wrong), new(lrp.RolloutState)); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// Events of cells, calls and looks of the leader come in random orders.
func TestInEveryOrderOfEventsARolloutKeepsToItsPolicy(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	met := map[string]int{}
	for range 400 {
		p := lrp.RolloutPolicy{
			MinHealthy: time.Duration(r.IntN(2)) * 10 * time.Second, MaxInFlight: r.IntN(3), Canary: r.IntN(3),
			OnFailure: lrp.OnFailure(r.IntN(3)), Deadline: time.Duration(r.IntN(3)) * 20 * time.Second,
		}
		x := newRoll(t, 1+r.IntN(4), p)
		x.flaky = r.IntN(2) == 0
		aborts := r.IntN(4) == 0
		for range 60 {
			x.now = x.now.Add(time.Duration(r.IntN(8)) * time.Second)
			x.event(r, r.IntN(len(x.slots)))
			if x.d.RolloutState.From != "" {
				switch n := r.IntN(40); {
				case n == 0:
					x.pause()
				case n < 4:
					x.resume()
				case n == 5 && p.Canary > 0:
					x.confirm()
				case n == 4 && aborts:
					x.abort()
				}
			}
			x.lookAndCheck(p, met)
			x.tidy()
		}
		s := x.d.RolloutState
		switch {
		case s.Failure != nil && s.From == "":
			met["given up: "+s.Failure.Kind.String()]++
			x.mend()
			x.settle()
			if want := strings.TrimSpace(strings.Repeat("v1 ", len(x.slots))); x.runs() != want || len(x.d.Definitions) != 1 {
				t.Fatalf("it was given up (%v), and runs %q at the end, want %q: %+v", s.Failure, x.runs(), want, x.d)
			}
		case x.d.HealthyDefinitionID == "v2":
			met["proved"]++
		}
	}
	for _, name := range []string{"paused", "canary", "begun", "proved", "given up: ABORTED", "given up: CRASHED", "given up: LATE"} {
		if met[name] == 0 {
			t.Errorf("no history has shown %q: %v", name, met)
		}
	}
}

// lookAndCheck is one look of the leader, in which nothing else happens.
func (x *roll) lookAndCheck(p lrp.RolloutPolicy, met map[string]int) {
	x.t.Helper()
	before, slots, stopped := *x.d, slices.Clone(x.slots), len(x.stopped)
	had := x.begun()
	inFlight := 0
	for i, s := range x.slots {
		for _, a := range s.Records {
			if a.DefinitionID == "v2" && a.Presence == lrp.Ordinary && i < len(x.slots) &&
				!(a.State == lrp.Running && (p.MinHealthy == 0 || a.Routable && x.now.Sub(a.RunningSince) >= p.MinHealthy)) {
				inFlight++
			}
		}
	}
	x.look()
	begun := slices.DeleteFunc(x.begun(), func(i int) bool { return slices.Contains(had, i) })
	if len(begun) > 0 {
		met["begun"]++
	}
	if before.RolloutState.Paused != lrp.NotPaused {
		met["paused"]++
		if len(begun) > 0 || len(x.stopped) != stopped || x.d.HealthyDefinitionID != before.HealthyDefinitionID || !reflect.DeepEqual(guidsOf(slots), guidsOf(x.slots)) {
			x.t.Fatalf("a paused rollout has changed %+v to %+v, begun %v and stopped %v", slots, x.slots, begun, x.stopped[stopped:])
		}
	}
	if before.ActiveDefinitionID == "v2" && p.Canary > 0 && !before.RolloutState.Confirmed && before.RolloutState.From != "" {
		met["canary"]++
		if list := x.begun(); len(list) > 0 && list[len(list)-1] >= p.Canary {
			x.t.Fatalf("v2 is at %v, and a canary of %d is not confirmed", list, p.Canary)
		}
	}
	stalled := lrp.NewRollout(&before, x.now, lrp.Policy{})
	for _, s := range slots {
		stalled.Visit(s)
	}
	if most := max(1, p.MaxInFlight); len(begun) > 0 && before.ActiveDefinitionID == "v2" && inFlight+len(begun)-stalled.Status().Stalled > most {
		// A higher index may have been done before, and have crashed since.
		if lower := slices.IndexFunc(had, func(i int) bool { return i > begun[0] }); lower < 0 {
			x.t.Fatalf("v2 has begun at %v beside %d in flight, want at most %d: %+v", begun, inFlight, most, slots)
		}
	}
}

// guidsOf are the instances that run, by their guids.
func guidsOf(slots []lrp.Slot) (list []string) {
	for _, s := range slots {
		for _, a := range s.Records {
			if a.State == lrp.Running {
				list = append(list, a.InstanceGUID)
			}
		}
	}
	return list
}

// mend makes all that has crashed start again, and what is not ready ready.
func (x *roll) mend() {
	x.t.Helper()
	x.now = x.now.Add(long)
	for i := range x.slots {
		for _, a := range slices.Clone(x.slots[i].Records) {
			switch {
			case a.State == lrp.Crashed:
				x.do(i, lrp.Restart{DefinitionID: a.DefinitionID})
			case a.State == lrp.Running && !a.Routable && a.Presence == lrp.Ordinary:
				x.do(i, lrp.Start{DefinitionID: a.DefinitionID, Instance: a.InstanceKey})
			}
		}
	}
}

// Index 1 still has an instance of v1 that has crashed long ago.
func TestADefinitionThatIsActivatedAgainIsNotJudgedByWhatItDidBefore(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{OnFailure: lrp.RollBackOnFailure})
	for range 4 {
		x.do(1, lrp.Crash{Instance: instanceOf(1, "v1"), Reason: "old"})
		if r := x.slots[1].Records[0]; r.State == lrp.Crashed {
			break
		}
		x.start(1, "v1")
	}
	x.start(0, "v2")
	x.do(0, lrp.Remove{Instance: instanceOf(0, "v1")})
	x.now = x.now.Add(time.Second)
	change, err := x.d.Activate("v1", x.now)
	x.call("activate", change, err)
	x.look()
	if x.d.ActiveDefinitionID != "v1" || x.d.RolloutState.Failure != nil {
		t.Errorf("v1 is activated, and then %s is active: %v", x.d.ActiveDefinitionID, x.d.RolloutState.Failure)
	}
}

// Two processes of the control plane look at the same time, and a definition
// becomes active between the look of the first and its steps.
func TestAStepThatWasPlannedForADefinitionIsNotTakenForTheOneAfterIt(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{})
	x.settle()
	update := func(id string) {
		definition := runnable()
		c, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
		x.call("update", c, err)
	}
	plan := func() map[int]lrp.Command {
		steps, r := map[int]lrp.Command{}, lrp.NewRollout(x.d, x.now, lrp.Policy{})
		for i, s := range x.slots {
			if c := r.Visit(s); c != nil {
				steps[i] = c
			}
		}
		return steps
	}
	update("v3")
	x.look()
	x.obey() // index 0 runs v3, so the next step is for index 1
	x.look()
	x.obey()
	late := plan()
	if c := late[1]; c != (lrp.AdvanceRollout{DefinitionID: "v3"}) {
		t.Fatalf("the steps of v3 are %+v, want one at index 1", late)
	}
	update("v4")
	for i, c := range plan() {
		x.do(i, c)
	}
	for i, c := range late {
		x.do(i, c)
	}
	var inFlight []int
	for i, s := range x.slots {
		if slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return r.DefinitionID == "v4" }) {
			inFlight = append(inFlight, i)
		}
	}
	if !slices.Equal(inFlight, []int{0}) {
		t.Errorf("v4 is on its way at %v, want only index 0", inFlight)
	}
}
