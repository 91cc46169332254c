package system_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// history shows the revisions of a process, which remote reads.
func (s *system) history(remote bbs.API) string {
	s.t.Helper()
	list, err := remote.Revisions(s.ctx, "web")
	s.must(err)
	var lines []string
	for _, r := range list {
		line := fmt.Sprintf("%d %s %v by %s, %d of %d, %v", r.Number, r.DefinitionID, r.Began, r.By, r.Done, r.Desired, r.End)
		if r.Failure != nil {
			line += ": " + r.Failure.String()
		}
		if r.Definition == nil || r.BeganAt.IsZero() || r.EndedAt.IsZero() != (r.End == lrp.RevisionActive) {
			s.t.Errorf("%+v, want a definition and times", r)
		}
		lines = append(lines, strings.Replace(line, " by ,", ",", 1))
	}
	return strings.Join(lines, "\n")
}

func TestTheHistoryOfAProcessIsReadOverHTTPAndRolledBackTo(t *testing.T) {
	s := newSystem(t, 3, nil)
	remote := overHTTP(t, s.ControlPlane)
	s.must(s.BBS.CreateDeployment(bbs.WithCaller(s.ctx, "ann"), lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition(),
		Settings: lrp.Settings{Instances: 3, Policies: lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: 5 * time.Second, Canary: 2, OnFailure: lrp.RollBackOnFailure}}},
	}))
	s.step()
	s.pass(time.Minute)
	update := func(id string, memory int64) {
		next := definition()
		next.MemoryMB = memory
		s.must(s.BBS.UpdateDeployment(bbs.WithCaller(s.ctx, "ben"), "web", lrp.Update{DefinitionID: &id, Definition: &next}))
	}
	want := func(what, want string) {
		t.Helper()
		if got := s.history(remote); got != want {
			t.Fatalf("%s: the history is\n%s\nwant\n%s", what, got, want)
		}
	}
	want("at first", "1 v1 CREATED by ann, 3 of 3, ACTIVE")

	// The canary crashes when it has come to one of its two indices.
	update("v2", 65)
	s.pass(10 * time.Second)
	for range 4 {
		s.crashV2(1)
		s.pass(3 * time.Second)
	}
	s.pass(time.Minute)
	v1 := "1 v1 CREATED by ann, 3 of 3, REPLACED\n"
	failed := "2 v2 UPDATED by ben, 1 of 3, GIVEN_UP: instance 1 crashed: exit status 1\n3 v1 ROLLED_BACK, 3 of 3, "
	want("after a failure", v1+failed+"ACTIVE")
	if err := remote.RollBack(s.ctx, "web", 0); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("a rollback without another definition that worked: %v, want a refusal", err)
	}

	// One that works, and one that is overtaken in the middle.
	update("v3", 66)
	s.must(remote.ConfirmRollout(s.ctx, "web"))
	s.pass(5 * time.Minute)
	update("v4", 67)
	s.pass(10 * time.Second)
	s.must(remote.RollBack(s.ctx, "web", 0)) // to what is healthy still, so without a canary
	s.pass(5 * time.Minute)
	middle := v1 + failed + "REPLACED\n4 v3 UPDATED by ben, 3 of 3, REPLACED\n5 v4 UPDATED by ben, 1 of 3, SUPERSEDED\n"
	want("after a rollback", middle+"6 v3 ROLLED_BACK, 3 of 3, ACTIVE")
	s.wantInstances("v3", 3)

	// Every instance is replaced, and the oldest revision is forgotten.
	s.must(remote.RestartDeployment(s.ctx, "web"))
	const id = "v3-restart-7"
	s.must(remote.ConfirmRollout(s.ctx, "web"))
	s.pass(5 * time.Minute)
	s.wantInstances(id, 3)
	s.wantInstances("v3", 0)
	want("after a restart", strings.TrimPrefix(middle, v1)+"6 v3 ROLLED_BACK, 3 of 3, REPLACED\n7 "+id+" RESTARTED, 3 of 3, ACTIVE")
	s.must(remote.RollBack(s.ctx, "web", 3))
	s.must(remote.ConfirmRollout(s.ctx, "web"))
	s.pass(5 * time.Minute)
	s.wantInstances("v1", 3)

	for what, err := range map[string]error{
		"reading":      second(remote.Revisions(s.ctx, "none")),
		"rolling back": remote.RollBack(s.ctx, "none", 0),
		"restarting":   remote.RestartDeployment(s.ctx, "none"),
	} {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s what does not exist: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// crashV2 ends what runs of v2 at an index.
func (s *system) crashV2(index int) {
	s.t.Helper()
	for r, err := range s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{Indices: []int{index}, States: []lrp.State{lrp.Running}}) {
		if s.must(err); r.DefinitionID == "v2" {
			for _, cell := range s.cells {
				cell.End(r.InstanceGUID, executor.Failed("exit status 1"))
			}
		}
	}
}
