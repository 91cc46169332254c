package lrp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A past is a deployment with what a control plane does to it.
type past struct {
	t      *testing.T
	d      *lrp.Deployment
	policy lrp.Policy
	now    time.Time
	done   int // of the indices of the active definition
}

func newPast(t *testing.T, p lrp.Policy) *past {
	t.Helper()
	x := &past{t: t, policy: p, now: epoch}
	c, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: versioned("v1"), Settings: lrp.Settings{Instances: 3},
	}, x.now)
	x.commit(c, err)
	return x
}

func versioned(version string) lrp.Definition {
	d := runnable()
	d.Env = []executor.EnvVar{{Name: "VERSION", Value: version}}
	return d
}

// commit records a change of somebody's, a minute after the one before.
func (x *past) commit(c lrp.Change, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
	if c.IsZero() {
		return
	}
	before := x.d
	x.d = x.policy.Record(c, "ann", x.now).After
	if r := lrp.Ended(before, x.d); r != nil {
		r.Reached(x.done)
		x.done = 0
	}
	x.now = x.now.Add(time.Minute)
}

func (x *past) update(id string) {
	x.t.Helper()
	definition := versioned(id)
	x.commit(x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition}))
}

// healthy lets the active definition prove healthy; complete ends its rollout
// too.
func (x *past) healthy() {
	d := *x.d
	d.HealthyDefinitionID = d.ActiveDefinitionID
	x.d = &d
}

func (x *past) complete() {
	x.t.Helper()
	x.healthy()
	x.commit(x.d.EndRollout(func(string) bool { return false }), nil)
	x.done = x.d.Instances
}

// work is an update that works.
func (x *past) work(ids ...string) {
	x.t.Helper()
	for _, id := range ids {
		x.update(id)
		x.complete()
	}
}

func (x *past) abort()            { x.t.Helper(); x.commit(x.d.AbortRollout()) }
func (x *past) activate(s string) { x.t.Helper(); x.commit(x.d.Activate(s, x.now)) }
func (x *past) rollBack(n int)    { x.t.Helper(); x.commit(x.d.RollBack(n, x.now)) }
func (x *past) restart()          { x.t.Helper(); x.commit(x.d.RestartAll()) }

// fails pauses the rollout because of a crash.
func (x *past) fails() {
	d := *x.d
	d.RolloutState.Paused = lrp.PausedByFailure
	d.RolloutState.Failure = &lrp.RolloutFailure{DefinitionID: d.ActiveDefinitionID, Kind: lrp.RolloutCrashed, Index: 1, Detail: "exit status 1"}
	x.d = &d
}

// elsewhere is an update by a process that writes no history.
func (x *past) elsewhere(id string) {
	x.t.Helper()
	definition := versioned(id)
	c, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if err != nil {
		x.t.Fatal(err)
	}
	x.d = c.After
}

func (x *past) String() string {
	var lines []string
	for _, r := range x.d.History() {
		line := fmt.Sprintf("%d %s %v", r.Number, r.DefinitionID, r.Began)
		if r.End != lrp.RevisionActive {
			line += fmt.Sprintf(" %v", r.End)
		}
		if r.Healthy {
			line += " healthy"
		}
		if r.Failure != nil {
			line += ": " + r.Failure.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestTheHistorySaysWhichDefinitionsWereActiveAndWhatBecameOfThem(t *testing.T) {
	for name, c := range map[string]struct {
		keep int
		do   func(x *past)
		want string
	}{
		"a first definition": {0, func(*past) {}, "1 v1 CREATED"},
		"a first definition that never ran": {0, func(x *past) { x.update("v2") },
			"1 v1 CREATED SUPERSEDED; 2 v2 UPDATED"},
		"one that was complete": {0, func(x *past) { x.complete(); x.update("v2") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED"},
		"one that was overtaken": {0, func(x *past) { x.complete(); x.update("v2"); x.update("v3") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED SUPERSEDED; 3 v3 UPDATED"},
		"one that was aborted": {0, func(x *past) { x.complete(); x.update("v2"); x.abort() },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED GIVEN_UP: aborted; 3 v1 ROLLED_BACK healthy"},
		"one that was aborted after it had proved healthy": {0, func(x *past) { x.complete(); x.update("v2"); x.healthy(); x.abort() },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED GIVEN_UP healthy: aborted; 3 v1 ROLLED_BACK healthy"},
		"one that was paused by a failure and aborted": {0, func(x *past) { x.complete(); x.update("v2"); x.fails(); x.abort() },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED GIVEN_UP: aborted: instance 1 crashed: exit status 1; 3 v1 ROLLED_BACK healthy"},
		"one that was paused by a failure and overtaken": {0, func(x *past) { x.complete(); x.update("v2"); x.fails(); x.update("v3") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED SUPERSEDED: instance 1 crashed: exit status 1; 3 v3 UPDATED"},
		"one that was overtaken on the way back": {0, func(x *past) { x.complete(); x.update("v2"); x.abort(); x.update("v3") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED GIVEN_UP: aborted; 3 v1 ROLLED_BACK SUPERSEDED healthy; 4 v3 UPDATED"},
		"one that was overtaken on the way back by a rollback": {0, func(x *past) { x.complete(); x.update("v2"); x.rollBack(0); x.update("v3") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED SUPERSEDED; 3 v1 ROLLED_BACK SUPERSEDED healthy; 4 v3 UPDATED"},
		"one that had come back": {0, func(x *past) { x.complete(); x.update("v2"); x.abort(); x.complete(); x.update("v3") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED GIVEN_UP: aborted; 3 v1 ROLLED_BACK REPLACED healthy; 4 v3 UPDATED"},
		"one that is activated again": {0, func(x *past) { x.complete(); x.work("v2"); x.activate("v1") },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED REPLACED healthy; 3 v1 ACTIVATED"},
		"a rollback": {0, func(x *past) { x.complete(); x.work("v2"); x.rollBack(0) },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED REPLACED healthy; 3 v1 ROLLED_BACK"},
		"a rollback of a rollback": {0, func(x *past) { x.complete(); x.work("v2"); x.rollBack(0); x.complete(); x.rollBack(0) },
			"1 v1 CREATED REPLACED healthy; 2 v2 UPDATED REPLACED healthy; 3 v1 ROLLED_BACK REPLACED healthy; 4 v2 ROLLED_BACK"},
		"a restart": {0, func(x *past) { x.complete(); x.restart() },
			"1 v1 CREATED REPLACED healthy; 2 v1-restart-2 RESTARTED"},
		"what makes nothing else active": {0, func(x *past) {
			x.complete()
			n := 7
			x.commit(x.d.Update(lrp.Update{Instances: &n}))
			x.activate("v1")
			x.rollBack(1)
		}, "1 v1 CREATED healthy"},
		"more than is kept": {2, func(x *past) { x.complete(); x.work("v2", "v3", "v4") },
			"2 v2 UPDATED REPLACED healthy; 3 v3 UPDATED REPLACED healthy; 4 v4 UPDATED healthy"},
		"what a rollback goes back to stays": {2, func(x *past) {
			x.complete()
			x.work("v2")
			for _, id := range []string{"bad-1", "bad-2", "bad-3"} {
				x.update(id)
				x.abort()
			}
		}, "1 v1 CREATED REPLACED healthy; 7 bad-3 UPDATED GIVEN_UP: aborted; 8 v2 ROLLED_BACK healthy"},
		"nothing is kept": {-1, func(x *past) { x.complete(); x.work("v2", "v3") }, "3 v3 UPDATED healthy"},
		"a process of an earlier release": {0, func(x *past) { x.complete(); x.elsewhere("v2"); x.update("v3") },
			"1 v1 CREATED LOST healthy; 2 v2 UNKNOWN SUPERSEDED; 3 v3 UPDATED"},
		"the newest one cannot be decoded": {0, func(x *past) { x.complete(); x.work("v2", "v3"); x.undecodable(1, 2); x.update("v4") },
			"1 v1 CREATED REPLACED healthy; 2 v3 UNKNOWN REPLACED healthy; 3 v4 UPDATED"},
		"a deployment of an earlier release": {0, func(x *past) { x.d.Revisions = nil; x.complete(); x.update("v2") },
			"1 v1 UNKNOWN REPLACED healthy; 2 v2 UPDATED"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newPast(t, lrp.Policy{History: c.keep})
			c.do(x)
			got := strings.Replace(x.String(), " "+x.d.ActiveDefinitionID+" healthy", "", 1)
			history := x.d.History()
			if x.d.HealthyDefinitionID == x.d.ActiveDefinitionID {
				got += " healthy" // the newest revision says so when it is read
			}
			if got != c.want {
				t.Errorf("the history is %s, want %s", got, c.want)
			}
			for i, r := range history {
				last := i == len(history)-1
				if known := r.Began != lrp.BeganUnknown; known != (r.By == "ann") && r.Began != lrp.BeganRolledBack || known == r.BeganAt.IsZero() {
					t.Errorf("revision %d began at %v by %q", r.Number, r.BeganAt, r.By)
				}
				if ended := r.End != lrp.RevisionActive; ended == last || (r.End == lrp.RevisionLost) != (ended && r.EndedAt.IsZero()) {
					t.Errorf("revision %d ended %v at %v", r.Number, r.End, r.EndedAt)
				}
				if want := versioned(r.DefinitionID); !last && !reflect.DeepEqual(r.Definition, &want) {
					t.Errorf("revision %d has the definition %+v", r.Number, r.Definition)
				}
				if r.End == lrp.RevisionReplaced && (r.Done != 3 || r.Desired != 3) {
					t.Errorf("revision %d reached %d of %d", r.Number, r.Done, r.Desired)
				}
			}
		})
	}
}

func TestARollbackGoesToTheNewestRevisionThatProvedHealthyWithAnotherDefinition(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(x *past)
		revision int
		want     string // what is active then, or the refusal
	}{
		"the one before":                 {func(x *past) { x.complete(); x.work("v2") }, 0, "v1"},
		"from the middle of a rollout":   {func(x *past) { x.complete(); x.work("v2"); x.update("v3") }, 0, "v2"},
		"beyond what was given up":       {func(x *past) { x.complete(); x.work("v2"); x.update("v3"); x.healthy(); x.abort() }, 0, "v1"},
		"beyond what never proved":       {func(x *past) { x.complete(); x.update("v2"); x.update("v3") }, 0, "v1"},
		"beyond what has the same":       {func(x *past) { x.complete(); x.work("v2"); x.restart() }, 0, "v1"},
		"to one by its number":           {func(x *past) { x.complete(); x.work("v2", "v3", "v4") }, 2, "v2"},
		"to one that failed, if named":   {func(x *past) { x.complete(); x.update("v2"); x.abort() }, 2, "v2"},
		"to the active one":              {func(x *past) { x.complete(); x.work("v2") }, 2, "v2"},
		"without any before":             {func(x *past) { x.complete() }, 0, "it has had no other definition"},
		"with none that proved":          {func(x *past) { x.update("v2") }, 0, "no revision before the active one has proved healthy"},
		"to one that there never was":    {func(x *past) { x.complete(); x.work("v2") }, 7, "it has no revision 7; it has 1 and 2"},
		"to one that is not kept":        {(*past).crowded, 3, "it has no revision 3; it has 1, 8, 9, 10, 11 and 12"},
		"to one, where there is one":     {func(x *past) {}, 2, "it has no revision 2; it has only 1"},
		"to one below zero":              {func(x *past) {}, -1, "it has no revision -1; it has only 1"},
		"to an id that is in use anew":   {func(x *past) { x.complete(); x.work("v2"); x.reuse("v1") }, 1, `"v1" is in use for another definition`},
		"to one that was dropped unseen": {func(x *past) { x.complete(); x.elsewhere("v2"); x.dropped("v1") }, 1, "a process of an earlier release has dropped it"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newPast(t, lrp.Policy{})
			c.do(x)
			healthy := x.d.HealthyDefinitionID
			change, err := x.d.RollBack(c.revision, x.now)
			if err != nil {
				if !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), c.want) || strings.HasPrefix(c.want, "v") {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			x.commit(change, nil)
			if x.d.ActiveDefinitionID != c.want || !reflect.DeepEqual(x.d.Definitions[c.want], versioned(c.want)) {
				t.Errorf("%s is active with %+v, want %s", x.d.ActiveDefinitionID, x.d.Definitions[c.want], c.want)
			}
			if from := x.d.RolloutState.From; !change.IsZero() && healthy != c.want && (from != healthy || !x.d.RolloutState.ResumedAt.Equal(x.now.Add(-time.Minute))) {
				t.Errorf("the rollout is %+v, want one from %s that is judged from now on", x.d.RolloutState, healthy)
			}
		})
	}
}

// undecodable takes away what a store cannot decode.
func (x *past) undecodable(from, to int) {
	d := *x.d
	d.Revisions = slices.Delete(slices.Clone(d.Revisions), from, to+1)
	x.d = &d
}

// crowded is a past of many attempts, of which only the newest are kept.
func (x *past) crowded() {
	x.t.Helper()
	x.complete()
	x.work("v2")
	for i := range 5 {
		x.update(fmt.Sprint("bad-", i))
		x.abort()
	}
}

// reuse makes another definition active under an id that is used no more, and
// then a third one.
func (x *past) reuse(id string) {
	x.t.Helper()
	definition := versioned("another")
	x.commit(x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition}))
	x.healthy()
	x.update("third")
}

// dropped drops a definition as a process without history does.
func (x *past) dropped(id string) {
	x.healthy()
	d := *x.d
	d.RolloutState = lrp.RolloutState{}
	d.Definitions = map[string]lrp.Definition{d.ActiveDefinitionID: d.Definitions[d.ActiveDefinitionID]}
	x.d = &d
}

func TestADefinitionThatARevisionHasIsNotLost(t *testing.T) {
	x := newPast(t, lrp.Policy{})
	x.complete()
	x.work("v2", "v3")
	if ids := x.d.DefinitionIDs(); !slices.Equal(ids, []string{"v3"}) {
		t.Fatalf("%q are in use, want v3", ids)
	}
	if _, err := x.d.Activate("v9", x.now); err == nil || !strings.Contains(err.Error(), `it has no definition "v9"; it has ["v1" "v2" "v3"]`) {
		t.Errorf("%v, want a refusal that names what there is", err)
	}
	x.activate("v1")
	if want := versioned("v1"); x.d.ActiveDefinitionID != "v1" || !reflect.DeepEqual(x.d.Definitions["v1"], want) {
		t.Errorf("%s is active with %+v, want v1", x.d.ActiveDefinitionID, x.d.Definitions["v1"])
	}

	y := newPast(t, lrp.Policy{History: -1})
	y.complete()
	y.work("v2")
	if _, err := y.d.Activate("v1", y.now); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("without a history, activating what was dropped: %v, want a refusal", err)
	}
}

func TestTheHistoryOfLongDefinitionsIsShorter(t *testing.T) {
	x := newPast(t, lrp.Policy{History: lrp.MaxHistory})
	x.complete()
	filler := strings.Repeat("x", 1000<<10) // about 1 MiB
	for _, id := range []string{"v2", "v3", "v4", "v5", "v6", "v7", "v8"} {
		definition := versioned(id)
		definition.VolumeMountedFiles = []executor.File{{Path: "filler", Content: filler}}
		x.commit(x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition}))
		if id < "v5" {
			x.complete()
		}
	}
	data, err := json.Marshal(x.d.Revisions)
	if len(data) > 4<<20+4<<10 || err != nil {
		t.Errorf("the history has %d bytes, %v; want at most 4 MiB of definitions", len(data), err)
	}
	if got, want := x.String(), "3 v3 UPDATED REPLACED healthy; 4 v4 UPDATED REPLACED healthy; 6 v6 UPDATED SUPERSEDED; 7 v7 UPDATED SUPERSEDED; 8 v8 UPDATED"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
}

func TestTheHistorySaysHowFarEachDefinitionCame(t *testing.T) {
	x := newPast(t, lrp.Policy{})
	x.complete()
	x.done = 2 // an instance has crashed since
	x.update("v2")
	if r := x.d.Revisions[0]; r.Done != 2 || r.Desired != 3 || r.End != lrp.RevisionReplaced {
		t.Errorf("v1 is %+v, want it replaced, with 2 of 3 reached", r)
	}
	x.done = 2
	x.update("v3")
	if r := x.d.Revisions[1]; r.Done != 2 || r.Desired != 3 || r.End != lrp.RevisionSuperseded {
		t.Errorf("v2 is %+v, want 2 of 3 reached", r)
	}

	// It was through, and only nobody had looked.
	x.healthy()
	x.done = 3
	x.update("v4")
	if r := x.d.Revisions[2]; r.Done != 3 || r.End != lrp.RevisionReplaced {
		t.Errorf("v3 is %+v, want it replaced", r)
	}
	// Nobody records that v3 becomes active again, and then v5.
	again := *x.d
	again.ActiveDefinitionID = "v3"
	further := again
	further.ActiveDefinitionID = "v5"
	// The history is so short that v4 is dropped as soon as it has ended.
	definition := versioned("v5")
	id := "v5"
	c, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if err != nil {
		t.Fatal(err)
	}
	dropped := lrp.Policy{History: 1}.Record(c, "ann", x.now).After
	for what, r := range map[string]*lrp.Revision{
		"nobody records the change":   lrp.Ended(&again, &further),
		"nothing else becomes active": lrp.Ended(x.d, x.d), "a new deployment": lrp.Ended(nil, x.d), "a deletion": lrp.Ended(x.d, nil),
		"what has ended is not kept": lrp.Ended(x.d, dropped),
	} {
		if r != nil {
			t.Errorf("%s: %+v is counted", what, r)
		}
	}
}

// The event of a change is read by all who follow, and the history of a process
// is of interest to few.
func TestEventsHaveNoRevisions(t *testing.T) {
	x := newPast(t, lrp.Policy{})
	x.complete()
	id, definition := "v2", versioned("v2")
	c, err := x.d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if err != nil {
		t.Fatal(err)
	}
	c = x.policy.Record(c, "ann", x.now)
	if len(c.Before.Revisions) != 1 || len(c.After.Revisions) != 2 {
		t.Fatalf("%d revisions before and %d after, want 1 and 2", len(c.Before.Revisions), len(c.After.Revisions))
	}
	for _, e := range c.Events {
		if e.DeploymentBefore.Revisions != nil || e.DeploymentAfter.Revisions != nil || e.DeploymentAfter.ActiveDefinitionID != "v2" {
			t.Errorf("%v has %+v and %+v", e.Kind, e.DeploymentBefore, e.DeploymentAfter)
		}
	}
	if data, err := json.Marshal(c.After); err != nil || strings.Contains(string(data), "revision") {
		t.Errorf("%s, %v; want no revisions", data, err)
	}
}

// A crash may end a rollout in the commit that reports it.
func TestAFailureIsRecordedByTheStepThatSeesIt(t *testing.T) {
	x := newRoll(t, 2, lrp.RolloutPolicy{MinHealthy: time.Minute, OnFailure: lrp.RollBackOnFailure})
	x.start(0, "v2")
	for range 4 {
		x.do(0, lrp.Crash{Instance: instanceOf(0, "v2"), Reason: "exit status 1"})
		if x.d.ActiveDefinitionID == "v2" {
			x.start(0, "v2")
		}
	}
	history := x.d.History()
	failed, now := history[len(history)-2], history[len(history)-1]
	if failed.DefinitionID != "v2" || failed.End != lrp.RevisionGivenUp || failed.Failure == nil || failed.Failure.Kind != lrp.RolloutCrashed || failed.Definition == nil ||
		now.DefinitionID != "v1" || now.Began != lrp.BeganRolledBack || now.By != "" || !now.BeganAt.Equal(x.now) {
		t.Errorf("the history is %+v", history)
	}
}

func TestARestartReplacesEveryInstanceByOneOfTheSameDefinition(t *testing.T) {
	x := newRoll(t, 3, lrp.RolloutPolicy{})
	x.settle()
	x.wantRuns("before", "v2 v2 v2", lrp.WaitNothing, -1)
	definition := x.d.Definitions["v2"]
	c, err := x.d.RestartAll()
	x.call("restart", c, err)
	x.settle()
	x.wantRuns("after", "v2-restart-2 v2-restart-2 v2-restart-2", lrp.WaitNothing, -1)
	if !reflect.DeepEqual(x.d.Definitions["v2-restart-2"], definition) {
		t.Errorf("the definition is %+v, want %+v", x.d.Definitions["v2-restart-2"], definition)
	}

	y := newPast(t, lrp.Policy{})
	y.complete()
	for range 3 {
		y.restart()
		y.complete()
	}
	if got, want := y.d.ActiveDefinitionID, "v1-restart-4"; got != want {
		t.Errorf("after three restarts %q is active, want %q", got, want)
	}
	y.update("v5")
	y.update("v5-restart-8")
	y.activate("v5")
	if y.restart(); y.d.ActiveDefinitionID != "v5-restart-9" {
		t.Errorf("where an id is taken, it is %q, want the next one", y.d.ActiveDefinitionID)
	}
	long := strings.Repeat("ü", 127)
	y.update(long)
	y.restart()
	if got, want := y.d.ActiveDefinitionID, strings.Repeat("ü", 122)+"-restart-10"; got != want {
		t.Errorf("the restart of a long id is %q, want %q", got, want)
	}
}
