package system_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// rollingOut is a process of three instances of v1 when v2 becomes active.
func rollingOut(t *testing.T, p lrp.RolloutPolicy) *system {
	t.Helper()
	s := newSystem(t, 2, nil)
	s.must(s.BBS.CreateDeployment(s.ctx, lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition(), Settings: lrp.Settings{Instances: 3, Policies: lrp.Policies{Rollout: &p}},
	}))
	s.step()
	s.pass(10 * time.Second)
	s.wantInstances("v1", 3)
	id, next := "v2", definition()
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
	return s
}

// wantInstances makes sure that so many instances of the definition run.
func (s *system) wantInstances(definitionID string, want int) {
	s.t.Helper()
	got := 0
	for r, err := range s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}, States: []lrp.State{lrp.Running}}) {
		if s.must(err); r.DefinitionID == definitionID {
			got++
		}
	}
	if got != want {
		s.t.Fatalf("%d instances of %s run, want %d: %v", got, definitionID, want, s.records())
	}
}

func (s *system) wantRollout(want lrp.RolloutStatus) {
	s.t.Helper()
	if got, err := s.BBS.RolloutStatus(s.ctx, "web"); err != nil || got != want {
		s.t.Fatalf("the rollout is %+v, %v; want %+v", got, err, want)
	}
}

func TestACanaryIsConfirmedOrAbortedByACall(t *testing.T) {
	for name, c := range map[string]struct {
		decide  func(*system) error
		v1, v2  int
		active  string
		failure lrp.FailureKind
	}{
		"confirmed": {func(s *system) error { return s.BBS.ConfirmRollout(s.ctx, "web") }, 0, 3, "v2", 0},
		"aborted":   {func(s *system) error { return s.BBS.AbortRollout(s.ctx, "web") }, 3, 0, "v1", lrp.RolloutAborted},
	} {
		t.Run(name, func(t *testing.T) {
			s := rollingOut(t, lrp.RolloutPolicy{Canary: 1, MinHealthy: 5 * time.Second})
			s.pass(2 * time.Minute)
			s.wantInstances("v2", 1)
			s.wantInstances("v1", 2)
			s.wantRollout(lrp.RolloutStatus{Done: 1, Pending: 2, HeldBy: 1, WaitsFor: lrp.WaitConfirmed})
			s.must(c.decide(s))
			s.must(c.decide(s)) // the second time it does nothing
			s.pass(2 * time.Minute)
			s.wantInstances("v1", c.v1)
			s.wantInstances("v2", c.v2)
			s.wantRollout(lrp.RolloutStatus{Done: 3, HeldBy: -1})
			d, err := s.BBS.Deployment(s.ctx, "web")
			s.must(err)
			if f := d.RolloutState.Failure; d.ActiveDefinitionID != c.active || d.HealthyDefinitionID != c.active || len(d.Definitions) != 1 || d.RolloutState.From != "" ||
				(f == nil) != (c.failure == 0) || f != nil && f.Kind != c.failure {
				t.Errorf("got %+v, want the rollout to have ended", d)
			}
		})
	}
}

// Nothing else happens that would make the leader look again.
func TestAFirstDefinitionIsNotedAsHealthyWhenItIs(t *testing.T) {
	s := newSystem(t, 1, nil)
	l := desired("web", 1)
	l.Rollout = &lrp.RolloutPolicy{MinHealthy: 5 * time.Second}
	s.must(s.BBS.Desire(s.ctx, l))
	healthy := func() bool {
		d, err := s.BBS.Deployment(s.ctx, "web")
		s.must(err)
		return d.HealthyDefinitionID != ""
	}
	s.step()
	s.pass(4 * time.Second)
	if healthy() {
		t.Error("it is healthy too early")
	}
	if s.pass(3 * time.Second); !healthy() {
		t.Error("it is not healthy in time")
	}
}

func TestAPausedRolloutWaitsForTheCallThatResumesIt(t *testing.T) {
	s := rollingOut(t, lrp.RolloutPolicy{MinHealthy: 5 * time.Second})
	s.must(s.BBS.PauseRollout(s.ctx, "web"))
	s.pass(2 * time.Minute)
	s.wantInstances("v1", 3)
	if got, err := s.BBS.RolloutStatus(s.ctx, "web"); err != nil || got.WaitsFor != lrp.WaitResumed || got.HeldBy != 0 || got.Complete() {
		t.Errorf("the rollout is %+v, %v", got, err)
	}
	s.must(s.BBS.ResumeRollout(s.ctx, "web"))
	s.pass(2 * time.Minute)
	s.wantInstances("v2", 3)
	s.wantRollout(lrp.RolloutStatus{Done: 3, HeldBy: -1})
	for name, call := range map[string]error{
		"PauseRollout": s.BBS.PauseRollout(s.ctx, "web"), "ResumeRollout": s.BBS.ResumeRollout(s.ctx, "web"),
		"ConfirmRollout": s.BBS.ConfirmRollout(s.ctx, "web"), "AbortRollout": s.BBS.AbortRollout(s.ctx, "web"),
	} {
		if !errors.Is(call, lrp.ErrRefused) {
			t.Errorf("%s without a rollout: %v, want it to be refused", name, call)
		}
	}
	if err := s.BBS.PauseRollout(s.ctx, "none"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("pausing what does not exist: %v", err)
	}
}

// Two definitions that fail: one crashes, the other is never placed. Nobody has
// to do anything, and every instance of the old definition goes on running.
func TestADefinitionThatFailsIsRolledBackByItself(t *testing.T) {
	for name, c := range map[string]struct {
		memory int64
		kind   lrp.FailureKind
	}{
		"it crashes": {0, lrp.RolloutCrashed}, "it is never placed": {1 << 30, lrp.RolloutLate},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, 2, nil)
			s.must(s.BBS.CreateDeployment(s.ctx, lrp.DeploymentDefinition{
				ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition(), Settings: lrp.Settings{
					Instances: 3, Policies: lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: 5 * time.Second, OnFailure: lrp.RollBackOnFailure, Deadline: time.Minute}},
				},
			}))
			s.step()
			s.pass(10 * time.Second)
			id, next := "v2", definition()
			next.MemoryMB = c.memory
			s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
			unplaced := false
			for range 100 {
				for r, err := range s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
					if s.must(err); r.DefinitionID == "v2" {
						for _, cell := range s.cells {
							cell.End(r.InstanceGUID, executor.Failed("exit status 1"))
						}
					}
				}
				s.pass(time.Second)
				s.wantInstances("v1", 3)
				if got, err := s.BBS.RolloutStatus(s.ctx, "web"); err == nil && strings.Contains(got.Unplaced.PlacementError.Detail, "short of memory") {
					unplaced = true
				}
			}
			if unplaced != (c.kind == lrp.RolloutLate) {
				t.Errorf("that memory is short was said: %v", unplaced)
			}
			s.wantRollout(lrp.RolloutStatus{Done: 3, HeldBy: -1})
			d, err := s.BBS.Deployment(s.ctx, "web")
			if s.must(err); d.ActiveDefinitionID != "v1" || len(d.Definitions) != 1 || d.RolloutState.Failure == nil || d.RolloutState.Failure.Kind != c.kind {
				t.Errorf("got %+v, want to be back at v1 because of v2", d)
			}
		})
	}
}
