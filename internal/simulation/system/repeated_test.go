package system_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// mine is the instance of web/0, and gone that of web/1.
var (
	mine = lrp.InstanceKey{InstanceGUID: "mine", CellID: "cell-1"}
	gone = lrp.InstanceKey{InstanceGUID: "gone", CellID: "cell-1"}
)

// onceCalls are the calls that carry a request id, with what goes before each.
var onceCalls = map[string]struct {
	before, call func(ctx context.Context, b bbs.API) error
}{
	"Desire": {nil, func(ctx context.Context, b bbs.API) error { return b.Desire(ctx, desired("new", 1)) }},
	"CreateDeployment": {nil, func(ctx context.Context, b bbs.API) error {
		return b.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: "new", Domain: "apps", DefinitionID: "v1", Definition: definition()})
	}},
	"UpdateDeployment":   {nil, updateTo("v2")},
	"ActivateDefinition": {updateTo("v2"), func(ctx context.Context, b bbs.API) error { return b.ActivateDefinition(ctx, "web", "web") }},
	"DeleteDeployment":   {nil, func(ctx context.Context, b bbs.API) error { return b.DeleteDeployment(ctx, "web") }},
	"PauseRollout":       {rolling, func(ctx context.Context, b bbs.API) error { return b.PauseRollout(ctx, "web") }},
	"ResumeRollout": {
		inOrder(rolling, func(ctx context.Context, b bbs.API) error { return b.PauseRollout(ctx, "web") }),
		func(ctx context.Context, b bbs.API) error { return b.ResumeRollout(ctx, "web") },
	},
	"ConfirmRollout":    {rolling, func(ctx context.Context, b bbs.API) error { return b.ConfirmRollout(ctx, "web") }},
	"AbortRollout":      {rolling, func(ctx context.Context, b bbs.API) error { return b.AbortRollout(ctx, "web") }},
	"RollBack":          {updateTo("v2"), func(ctx context.Context, b bbs.API) error { return b.RollBack(ctx, "web", 1) }},
	"RestartDeployment": {nil, func(ctx context.Context, b bbs.API) error { return b.RestartDeployment(ctx, "web") }},
	"Retire":            {nil, func(ctx context.Context, b bbs.API) error { return b.Retire(ctx, "web", 0, "") }},
	"DesireTask":        {nil, func(ctx context.Context, b bbs.API) error { return b.DesireTask(ctx, desiredTask("new", "")) }},
	"CancelTask":        {nil, cancelJob},
	"ResolveTask":       {cancelJob, resolveJob},
	"DeleteTask": {inOrder(cancelJob, resolveJob), func(ctx context.Context, b bbs.API) error {
		return b.DeleteTask(ctx, "job")
	}},
	"UpdateDesiredLRP": {nil, func(ctx context.Context, b bbs.API) error {
		_, err := b.UpdateDesiredLRP(ctx, desired("web", 2), "")
		return err
	}},
	"ResolveAndDeleteTask": {cancelJob, func(ctx context.Context, b bbs.API) error {
		return b.ResolveAndDeleteTask(ctx, "job")
	}},
	"FailTask": {nil, func(ctx context.Context, b bbs.API) error { return b.FailTask(ctx, "job", "no reason") }},
	"RemoveLRP": {nil, func(ctx context.Context, b bbs.API) error {
		return b.RemoveLRP(ctx, "web", 0, lrp.Remove{Instance: mine})
	}},
	"EvacuateClaimedLRP": {
		func(ctx context.Context, b bbs.API) error {
			return b.ClaimLRP(ctx, "web", 1, lrp.Claim{Instance: gone})
		}, func(ctx context.Context, b bbs.API) error {
			_, err := b.EvacuateClaimedLRP(ctx, "web", 1, lrp.EvacuateClaimed{Instance: gone})
			return err
		},
	},
	"EvacuateStoppedLRP": {nil, func(ctx context.Context, b bbs.API) error {
		_, err := b.EvacuateStoppedLRP(ctx, "web", 0, lrp.EvacuateStopped{Instance: mine})
		return err
	}},
	"RemoveEvacuatingLRP": {
		func(ctx context.Context, b bbs.API) error {
			_, err := b.EvacuateRunningLRP(ctx, "web", 0, lrp.EvacuateRunning{Instance: mine})
			return err
		}, func(ctx context.Context, b bbs.API) error {
			return b.RemoveEvacuatingLRP(ctx, "web", 0, lrp.RemoveEvacuating{Instance: mine})
		},
	},
	"StartTask": {nil, startJob},
	"CompleteTask": {startJob, func(ctx context.Context, b bbs.API) error {
		return b.CompleteTask(ctx, "job", task.Complete{CellID: "cell-1", InstanceGUID: "mine"})
	}},
	"RejectStartedTask": {startJob, func(ctx context.Context, b bbs.API) error {
		return b.RejectStartedTask(ctx, "job", task.Reject{CellID: "cell-1", InstanceGUID: "mine", Reason: "busy"})
	}},
	"ReportSessions": {nil, func(ctx context.Context, b bbs.API) error {
		return b.ReportSessions(ctx, "cell-1", []storage.SessionEvent{sessionOf("cell-1", "web", 0)})
	}},
	"RejectTask": {nil, func(ctx context.Context, b bbs.API) error {
		_, _, err := b.RejectTask(ctx, "job", task.Attempt{}, "no cell")
		return err
	}},
}

func updateTo(definitionID string) func(context.Context, bbs.API) error {
	next := definition()
	next.MemoryMB = 64
	return func(ctx context.Context, b bbs.API) error {
		return b.UpdateDeployment(ctx, "web", lrp.Update{DefinitionID: &definitionID, Definition: &next})
	}
}

// rolling begins a rollout with a canary.
func rolling(ctx context.Context, b bbs.API) error {
	return errors.Join(b.UpdateDeployment(ctx, "web", lrp.Update{Rollout: &lrp.RolloutPolicy{Canary: 1}}), updateTo("v2")(ctx, b))
}

func cancelJob(ctx context.Context, b bbs.API) error  { return b.CancelTask(ctx, "job") }
func resolveJob(ctx context.Context, b bbs.API) error { return b.ResolveTask(ctx, "job") }

func startJob(ctx context.Context, b bbs.API) error {
	should, err := b.StartTask(ctx, "job", task.Start{CellID: "cell-1", InstanceGUID: "mine"})
	if err == nil && !should {
		return errors.New("the cell is told not to run the task that it started")
	}
	return err
}

func inOrder(calls ...func(context.Context, bbs.API) error) func(context.Context, bbs.API) error {
	return func(ctx context.Context, b bbs.API) error {
		for _, call := range calls {
			if err := call(ctx, b); err != nil {
				return err
			}
		}
		return nil
	}
}

// A forgetfulStore cannot be asked for requests while err is set.
type forgetfulStore struct {
	storage.Store
	err error
}

func (s *forgetfulStore) Remembers(ctx context.Context, requestID string) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	return s.Store.Remembers(ctx, requestID)
}

func TestACallThatWasCarriedOutIsNeverRefusedWhenItIsRepeated(t *testing.T) {
	for _, c := range httpapi.Calls() {
		if _, tested := onceCalls[c.Name]; c.Service == "bbs" && !c.Repeatable && !tested {
			t.Errorf("%s carries a request id and is not tested", c.Name)
		}
	}
	for name, test := range onceCalls {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, 0, nil)
			s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
			s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: mine}))
			s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
			if test.before != nil {
				s.must(test.before(s.ctx, s.BBS))
			}
			once := bbs.WithRequestID(s.ctx, "4711")
			s.must(test.call(once, s.BBS))

			store := &forgetfulStore{Store: s.store}
			other := s.plane("plane-2", func(o *diego.Options) { o.Store = store })
			standby := s.asked(other)
			s.must(other.Tick(s.ctx))
			repeat := func(where string) {
				log, err := s.store.Log(s.ctx)
				s.must(err)
				if err := test.call(once, standby); err != nil && !errors.Is(err, bbs.ErrNotLeader) {
					t.Errorf("%s: got %v, want success or to be sent to the leader", where, err)
				}
				if after, err := s.store.Log(s.ctx); err != nil || after.Newest != log.Newest {
					t.Errorf("%s: the repeated call made %d events, %v", where, after.Newest-log.Newest, err)
				}
			}
			repeat("at a standby")
			store.err = errBroken
			if err := test.call(once, standby); slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) {
				t.Errorf("with the store away it is refused: %v", err)
			}
			store.err = nil

			s.clock.Advance(20 * time.Second)
			s.must(other.Tick(s.ctx))
			if leading, _ := other.Leadership.Leading(); !leading {
				t.Fatal("the other control plane does not lead")
			}
			repeat("after a fail-over")
			store.err = errBroken
			if err := test.call(once, standby); slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) {
				t.Errorf("with the new leader's store away it is refused: %v", err)
			}
		})
	}
}

// refusals are what says that a call was not carried out.
var refusals = []error{
	storage.ErrExists, storage.ErrNotFound, lrp.ErrRefused, lrp.ErrNotFound, lrp.ErrCannotBeRemoved, lrp.ErrCannotBeRetired,
	task.ErrNotFound, task.ErrExists, task.ErrInvalidTransition, task.ErrRunningElsewhere, task.ErrOtherAttempt,
}

// repeatableCalls are the calls that change something and need no request id. Those of
// leases are not among them: any process answers these.
var repeatableCalls = map[string]func(ctx context.Context, b bbs.API) error{
	"ContinueRollout": func(ctx context.Context, b bbs.API) error { return b.ContinueRollout(ctx, "web") },
	"UpsertDomain":    func(ctx context.Context, b bbs.API) error { return b.UpsertDomain(ctx, "apps", time.Minute) },
	"ClaimLRP": func(ctx context.Context, b bbs.API) error {
		return b.ClaimLRP(ctx, "web", 0, lrp.Claim{Instance: mine})
	},
	"StartLRP": func(ctx context.Context, b bbs.API) error {
		return b.StartLRP(ctx, "web", 0, lrp.Start{Instance: mine, DefinitionID: "web", Domain: "apps"})
	},
	"CrashLRP": func(ctx context.Context, b bbs.API) error {
		return b.CrashLRP(ctx, "web", 0, lrp.Crash{Instance: mine})
	},
	"EvacuateRunningLRP": func(ctx context.Context, b bbs.API) error {
		_, err := b.EvacuateRunningLRP(ctx, "web", 0, lrp.EvacuateRunning{Instance: mine})
		return err
	},
	"EvacuateCrashedLRP": func(ctx context.Context, b bbs.API) error {
		_, err := b.EvacuateCrashedLRP(ctx, "web", 0, lrp.EvacuateCrashed{Instance: mine})
		return err
	},
	"FailActualLRP": func(ctx context.Context, b bbs.API) error {
		return b.FailActualLRP(ctx, lrp.Key{ProcessGUID: "web"}, lrp.PlacementError{Reason: lrp.NoCompatibleCells})
	},
}

// The clock of a standby may be far from the store's, which is why it does not lead:
// what it would refuse, or answer without a commit, the leader may not.
func TestAStandbyDecidesNothing(t *testing.T) {
	calls := maps.Clone(repeatableCalls)
	for name, once := range onceCalls {
		calls[name] = once.call
	}
	for _, c := range httpapi.Calls() {
		changes := slices.Contains(c.Roles, httpapi.CellRole) || slices.Contains(c.Roles, httpapi.AuctioneerRole)
		if _, tested := calls[c.Name]; changes && !tested && c.Service == "bbs" && !slices.Contains(c.Roles, httpapi.ConsumerRole) &&
			!slices.Contains([]string{"Announce", "Leave"}, c.Name) {
			t.Errorf("%s is for cells or auctioneers and is not tested", c.Name)
		}
	}
	for state, prepare := range map[string]func(*system){
		"empty": func(*system) {},
		"full": func(s *system) {
			s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
			s.must(s.BBS.Desire(s.ctx, desired("new", 1)))
			s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: mine}))
			s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
			s.must(s.BBS.DesireTask(s.ctx, desiredTask("new", "")))
		},
		"taken": func(s *system) {
			s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
			s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: gone}))
		},
	} {
		s := newSystem(t, 0, nil)
		prepare(s)
		standby := s.plane("plane-2", nil)
		s.must(standby.Tick(s.ctx))
		wrapped, err := bbs.New(bbs.Options{
			Store: storage.Passthrough{Store: standby.Leadership.Store(s.store)}, Effects: nothing{}, Now: s.clock.Now,
		})
		s.must(err)
		for where, b := range map[string]bbs.API{"a standby": standby.BBS, "a BBS over a wrapped store": wrapped} {
			for name, call := range calls {
				for _, ctx := range []context.Context{s.ctx, bbs.WithRequestID(s.ctx, "4712")} {
					if err := call(ctx, b); !errors.Is(err, bbs.ErrNotLeader) {
						t.Errorf("%s of %s with %s records: got %v, want ErrNotLeader", name, where, state, err)
					}
				}
			}
		}
	}
}
