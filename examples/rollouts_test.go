package examples_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A rolling process gets requests while its definitions replace each other.
type rolling struct {
	*cluster
	guid string
	web  lrp.DesiredLRP
	// What the events say, guarded by seen.mu.
	seen  *history
	at    map[int]bool // the indices at which the second definition had a record
	least int          // of the indices with an instance that was ready
}

// rollingInstances is how many instances a rolling process has.
const rollingInstances = 3

// newRolling starts a process that will be rolled from "v1" to "v2".
func (c *cluster) newRolling(guid string) *rolling {
	c.t.Helper()
	r := &rolling{cluster: c, guid: guid, web: c.app(guid, rollingInstances, "serve"), at: map[int]bool{}, least: rollingInstances}
	// On a busy machine an answer may take longer than checks usually wait.
	check := executor.HTTPCheck{Port: 8080, Path: "/", IntervalMs: 100, RequestTimeoutMs: 20_000}
	ready := check
	ready.Path = "/ready"
	r.web.Check = &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &check}}, ReadinessChecks: []executor.Check{{HTTP: &ready}}}
	r.web.Disruption = &lrp.Disruption{MaxUnavailable: 1}
	r.web.Routes = lrp.Routes{lrp.InternalRouter: fmt.Appendf(nil, `[{"hostname":%q}]`, guid), "http": []byte("[]")}
	if err := c.client.CreateDeployment(within(c.t), lrp.DeploymentDefinition{
		ProcessGUID: guid, Domain: domain, Settings: r.web.Settings, DefinitionID: "v1", Definition: r.web.Definition,
	}); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// watch begins to follow what happens to the process, which runs.
func (r *rolling) watch() {
	r.seen = r.follow(r.guid)
	r.seen.mu.Lock()
	defer r.seen.mu.Unlock()
	r.seen.looks = func() {
		ready := map[int]bool{}
		for _, a := range r.seen.records {
			if a.DefinitionID == "v2" {
				r.at[a.Index] = true
			}
			if a.State == lrp.Running && a.Routable {
				ready[a.Index] = true
			}
		}
		r.least = min(r.least, len(ready))
	}
}

// took is at how many indices "v2" had a record so far, and the least number of
// indices that had an instance that was ready.
func (r *rolling) took() (indices, least int) {
	r.seen.mu.Lock()
	defer r.seen.mu.Unlock()
	return len(r.at), r.least
}

// roll begins a rollout to "v2", whose app has other arguments.
func (r *rolling) roll(p lrp.RolloutPolicy, args ...string) {
	r.t.Helper()
	p.MinHealthy = time.Second
	id, next := "v2", r.web.Definition
	run := *next.Action.Run
	run.Args, next.Action, next.LogSource = append([]string{"serve"}, args...), executor.Action{Run: &run}, id
	if err := r.client.UpdateDeployment(within(r.t), r.guid, lrp.Update{DefinitionID: &id, Definition: &next, Rollout: &p}); err != nil {
		r.t.Fatal(err)
	}
}

// waits waits until the rollout waits for something at an index.
func (r *rolling) waits(wait lrp.RolloutWait, at int) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the rollout of %s waits for %v at %d", r.guid, wait, at), func() (bool, error) {
		status, err := r.client.RolloutStatus(within(r.t), r.guid)
		if err != nil || status.WaitsFor != wait || status.HeldBy != at {
			return false, fmt.Errorf("it is %+v, %v", status, err)
		}
		return true, nil
	})
}

// serves waits until all indices run one definition, and nothing else is left.
// It returns the instances in the order of their indices.
func (r *rolling) serves(definition string) (guids []string) {
	r.t.Helper()
	r.waits(lrp.WaitNothing, -1)
	for _, a := range r.running(r.guid, rollingInstances) {
		if a.DefinitionID != definition {
			r.t.Errorf("instance %d is of %s, want %s", a.Index, a.DefinitionID, definition)
		}
		guids = append(guids, a.InstanceGUID)
	}
	return guids
}

// keeps waits until the first definition is the only one again, and checks that
// its instances are those.
func (r *rolling) keeps(instances []string) {
	r.t.Helper()
	if now := r.serves("v1"); !slices.Equal(now, instances) {
		r.t.Errorf("the instances of %s are %v, want %v", r.guid, now, instances)
	}
}

func (r *rolling) abort() {
	r.t.Helper()
	if err := r.client.AbortRollout(within(r.t), r.guid); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rolling) confirm() {
	r.t.Helper()
	if err := r.client.ConfirmRollout(within(r.t), r.guid); err != nil {
		r.t.Fatal(err)
	}
}

// briefly is the process whose second version is ready and ends after
// 0.8 s. Requests that it has not answered by then fail: no router can know
// beforehand.
const briefly = "ready-for-800-ms"

// rollouts are the ways of a rollout from "v1" to "v2", which go on together.
var rollouts = []struct {
	guid    string
	policy  lrp.RolloutPolicy
	args    []string // of the app of "v2"
	indices int      // how many "v2" takes
	// intervene waits for a point of the rollout and does something about it.
	intervene func(r *rolling)
	// end waits for the end. The process had these instances before.
	end func(r *rolling, before []string)
}{
	{"aborted-in-mid-roll", lrp.RolloutPolicy{}, []string{"-ready-below", "1"}, 2,
		func(r *rolling) {
			r.waits(lrp.WaitReady, 1)
			r.abort()
		},
		func(r *rolling, before []string) { r.keeps(append(r.serves("v1")[:2], before[2:]...)) }},
	{"canary-aborted", lrp.RolloutPolicy{Canary: 1}, nil, 1,
		func(r *rolling) {
			r.waits(lrp.WaitConfirmed, 1)
			r.abort()
		},
		func(r *rolling, before []string) { r.keeps(append(r.serves("v1")[:1], before[1:]...)) }},
	{"canary-confirmed", lrp.RolloutPolicy{Canary: 1}, nil, rollingInstances,
		func(r *rolling) {
			r.waits(lrp.WaitConfirmed, 1)
			r.confirm()
		},
		func(r *rolling, _ []string) { r.serves("v2") }},
	{"never-ready", lrp.RolloutPolicy{}, []string{"-ready-below", "0"}, 1,
		func(r *rolling) {
			r.waits(lrp.WaitReady, 0)
			r.abort()
		}, (*rolling).keeps},
	{"lives-for-300-ms", lrp.RolloutPolicy{OnFailure: lrp.RollBackOnFailure}, []string{"-for", "300ms", "-ready-below", "0"}, 1, (*rolling).givenUp, (*rolling).keeps},
	{briefly, lrp.RolloutPolicy{OnFailure: lrp.RollBackOnFailure}, []string{"-for", "800ms"}, 1, (*rolling).givenUp, (*rolling).keeps},
	{"rolled-back-by-history", lrp.RolloutPolicy{}, nil, rollingInstances,
		func(r *rolling) {
			r.serves("v2")
			if err := r.client.RollBack(within(r.t), r.guid, 0); err != nil {
				r.t.Fatal(err)
			}
		},
		func(r *rolling, before []string) {
			for _, guid := range r.serves("v1") {
				if slices.Contains(before, guid) {
					r.t.Errorf("%s of v1 was there before the rollback", guid)
				}
			}
		}},
	{"good", lrp.RolloutPolicy{}, nil, rollingInstances, func(*rolling) {}, func(r *rolling, _ []string) { r.serves("v2") }},
}

// givenUp waits until the second version has failed.
func (r *rolling) givenUp() {
	r.t.Helper()
	r.eventually("v2 of "+r.guid+" is given up", func() (bool, error) {
		d, err := r.client.Deployment(within(r.t), r.guid)
		return err == nil && d.RolloutState.Failure != nil && d.ActiveDefinitionID == "v1", err
	})
}

// The app answers for 2 s after it was told to stop. The cells tell it so 2 s
// after they have removed its route. So a router that hears late has 4 s.
func TestRolloutsUnderTrafficLoseNoRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)
	drained := []string{"cell-1", "cell-2"}
	for _, id := range append(drained, "cell-3") {
		c.startCell(id, "--stop-pause", "2s", "--evacuation-interval", "500ms")
	}
	var processes []*rolling
	for _, o := range rollouts {
		processes = append(processes, c.newRolling(o.guid))
	}
	last := c.newRolling("drained-in-mid-roll")
	before := map[string][]string{}
	for _, r := range append(processes, last) {
		before[r.guid] = r.serves("v1")
		r.watch()
	}

	router := c.newRouter()
	var lost atomic.Int64
	var stops []func()
	for _, r := range append(processes, last) {
		stops = append(stops, router.traffic(func(to lrp.ActualLRP, err error) {
			if to.ProcessGUID == briefly && to.DefinitionID == "v2" {
				lost.Add(1)
			} else {
				t.Errorf("%s: %v", time.Now().Format(time.StampMilli), err)
			}
		}, r.guid))
	}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for i, o := range rollouts {
		processes[i].roll(o.policy, o.args...)
	}
	for i, o := range rollouts {
		o.intervene(processes[i])
	}
	for i, o := range rollouts {
		r := processes[i]
		o.end(r, before[o.guid])
		c.agree(r.seen, o.guid)
		if took, least := r.took(); took != o.indices || least < rollingInstances {
			t.Errorf("v2 of %s had %d indices, want %d; at least %d of %d were ready", o.guid, took, o.indices, least, rollingInstances)
		}
		stops[i]()
		if err := c.client.DeleteDeployment(within(t), o.guid); err != nil {
			t.Fatal(err)
		}
	}

	last.roll(lrp.RolloutPolicy{Canary: 1})
	last.waits(lrp.WaitConfirmed, 1)
	last.confirm()
	for _, id := range drained {
		if err := c.cells[id].cmd.Process.Signal(terminate); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range drained {
		if status := c.cells[id].status(); status != 0 {
			t.Errorf("%s ended with status %d", id, status)
		}
	}
	last.serves("v2")
	c.agree(last.seen, last.guid)
	if _, least := last.took(); least < rollingInstances-1 {
		t.Errorf("while two cells were drained, %d of %d were ready", least, rollingInstances)
	}
	t.Logf("%d requests were answered; %d failed because their instance ended by itself", router.served[lrp.PreferNone].Load(), lost.Load())
}
