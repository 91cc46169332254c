package storage_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A rival is a store in which somebody else is faster: before each of the next
// few commits, others are committed.
type rival struct {
	storage.Store
	others  []func(storage.Store)
	commits int
	err     error
}

func (r *rival) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	r.commits++
	if len(r.others) > 0 {
		r.others[0](r.Store)
		r.others = r.others[1:]
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.Store.Commit(ctx, b)
}

func commit(t *testing.T, s storage.Store, b storage.Batch) {
	t.Helper()
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, s storage.Store, before *lrp.Deployment, edit func(*lrp.Deployment)) *lrp.Deployment {
	t.Helper()
	after := *before
	after.ModificationTag = before.ModificationTag.Next()
	edit(&after)
	commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{Before: before, After: &after}}})
	return &after
}

// instant are options that wait in no time and note for how long.
func instant(waits *[]time.Duration) *storage.Options {
	return &storage.Options{
		Random: func() float64 { return 0.5 },
		Sleep:  func(_ context.Context, d time.Duration) error { *waits = append(*waits, d); return nil },
	}
}

func step(c lrp.Command) func(lrp.Slot, *lrp.Deployment) (lrp.Decision, error) {
	return func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) { return lrp.Step(s, d, c, at, lrp.Policy{}) }
}

func TestApplyDecidesAgainOnWhatIsThereAfterAConflict(t *testing.T) {
	s := &rival{Store: memstore.New(nil)}
	d := deployment("p")
	commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}})
	// While an index is created, the process is scaled below it.
	s.others = []func(storage.Store){func(s storage.Store) {
		change(t, s, d, func(d *lrp.Deployment) { d.Instances = 1 })
	}}
	s.commits = 0
	var waits []time.Duration
	decision, _, err := storage.ApplySlot(t.Context(), s, "p", 3, instant(&waits), step(lrp.CreateMissing{}))
	if err != nil || len(decision.Writes) != 0 || len(waits) != 1 || s.commits != 1 {
		t.Errorf("decision %+v, error %v, waits %v, %d commits; want one attempt that conflicts and then nothing to do", decision, err, waits, s.commits)
	}
}

func TestARecordIsRemovedOnlyWhileTheDeploymentIsTheOneThatWasDecidedOn(t *testing.T) {
	s := &rival{Store: memstore.New(nil)}
	d := deployment("p")
	commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}})
	if _, _, err := storage.ApplySlot(t.Context(), s, "p", 3, nil, step(lrp.CreateMissing{})); err != nil {
		t.Fatal(err)
	}
	few := change(t, s, d, func(d *lrp.Deployment) { d.Instances = 1 })
	// While an extra instance is removed, the process is scaled up again. That
	// makes no instance at the index, because there is one.
	s.others = []func(storage.Store){func(s storage.Store) {
		change(t, s, few, func(d *lrp.Deployment) { d.Instances = 5 })
	}}
	var waits []time.Duration
	if _, _, err := storage.ApplySlot(t.Context(), s, "p", 3, instant(&waits), step(lrp.StopExtra{})); err != nil {
		t.Fatal(err)
	}
	slot, _, err := s.Slot(t.Context(), "p", 3)
	if err != nil || len(slot.Records) != 1 || len(waits) != 1 {
		t.Errorf("%d records are left after %d pauses: %v; want one record, because the index is desired again", len(slot.Records), len(waits), err)
	}
}

func TestApplyWaitsLongerEachTimeAndGivesUpWithTheConflict(t *testing.T) {
	s := &rival{Store: memstore.New(nil), err: &storage.ConflictError{Key: storage.TaskKey("t"), Err: storage.ErrConflict}}
	var waits []time.Duration
	o := instant(&waits)
	o.Attempts, o.MinWait, o.MaxWait = 6, 8*time.Millisecond, 40*time.Millisecond
	_, _, err := storage.ApplyTask(t.Context(), s, "t", o, func(tk *task.Task) (task.Decision, error) {
		return task.Step(tk, task.Desire{GUID: "t", Domain: "d", Definition: taskRecord("t").Definition}, at, task.Policy{})
	})
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != storage.TaskKey("t") || s.commits != 6 {
		t.Errorf("%v after %d attempts, want the conflict after 6", err, s.commits)
	}
	ms := time.Millisecond
	if want := []time.Duration{6 * ms, 12 * ms, 24 * ms, 30 * ms, 30 * ms}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestApplyReturnsOtherErrorsAtOnce(t *testing.T) {
	mine := errors.New("mine")
	for name, test := range map[string]struct {
		commitErr, decideErr, sleepErr error
	}{
		"of the decision":              {decideErr: mine},
		"of the commit":                {commitErr: mine},
		"of a context during the wait": {commitErr: storage.ErrConflict, sleepErr: mine},
	} {
		s := &rival{Store: memstore.New(nil), err: test.commitErr}
		o := &storage.Options{Sleep: func(context.Context, time.Duration) error { return test.sleepErr }}
		_, err := storage.Apply(t.Context(), s, o, func(context.Context, storage.Reader) (b storage.Batch, err error) {
			b.AddDomain("d", 0)
			return b, test.decideErr
		})
		if !errors.Is(err, mine) || s.commits > 1 {
			t.Errorf("%s: %v after %d commits", name, err, s.commits)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &rival{Store: memstore.New(nil), err: storage.ErrConflict}
	_, err := storage.Apply(ctx, s, &storage.Options{MinWait: time.Hour, MaxWait: time.Hour}, func(context.Context, storage.Reader) (b storage.Batch, err error) {
		b.AddDomain("d", 0)
		return b, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error at once", err)
	}
}

func TestADecisionWithNothingToWriteIsNotCommitted(t *testing.T) {
	s := &rival{Store: memstore.New(nil)}
	for name, apply := range map[string]func() error{
		"slot": func() error {
			_, _, err := storage.ApplySlot(t.Context(), s, "p", 0, nil, step(lrp.CreateMissing{}))
			return err
		},
		"task": func() error {
			_, _, err := storage.ApplyTask(t.Context(), s, "t", nil, func(tk *task.Task) (task.Decision, error) {
				if tk != nil {
					t.Errorf("a task that is not there is %+v, want nil", tk)
				}
				return task.Decision{}, nil
			})
			return err
		},
		"deployment": func() error {
			_, _, err := storage.ApplyDeployment(t.Context(), s, "p", nil, func(d *lrp.Deployment) (lrp.Change, error) {
				if d != nil {
					t.Errorf("a deployment that is not there is %+v, want nil", d)
				}
				return lrp.Change{}, nil
			})
			return err
		},
	} {
		if err := apply(); err != nil || s.commits > 0 {
			t.Errorf("%s: %v, %d commits", name, err, s.commits)
		}
	}
}

func TestADecisionThatChangesTheDeploymentIsMadeFromTheWholeOfIt(t *testing.T) {
	s := &rival{Store: memstore.New(nil)}
	d := deployment("p")
	commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}})
	instance := lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}
	// The routes change between the decision and its commit.
	s.others = []func(storage.Store){func(s storage.Store) {
		d = change(t, s, d, func(d *lrp.Deployment) { d.Routes = lrp.Routes{"http": []byte(`2`)} })
	}}
	var waits []time.Duration
	decision, cursor, err := storage.ApplySlot(t.Context(), s, "p", 0, instant(&waits), step(lrp.Start{
		DefinitionID: "d", Domain: "cf-apps", Instance: instance, NetInfo: lrp.NetInfo{Address: "10.0.0.1"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := *d
	want.HealthyDefinitionID, want.ModificationTag = "d", d.ModificationTag.Next()
	got, err := s.Deployment(t.Context(), "p")
	if err != nil || !reflect.DeepEqual(got, &want) {
		t.Errorf("deployment %+v, %v\nwant %+v", got, err, want)
	}
	if len(waits) != 1 || cursor != storage.Cursor(len(decision.Events)) {
		t.Errorf("waits %v, cursor %d for %d events", waits, cursor, len(decision.Events))
	}
	for e, err := range s.Events(t.Context(), 0, storage.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.LRP.Kind == lrp.DeploymentChanged && !reflect.DeepEqual(e.LRP.DeploymentAfter, &want) {
			t.Errorf("the event tells of %+v, want the whole deployment", e.LRP.DeploymentAfter)
		}
	}
}

func TestADeploymentThatIsDeletedBetweenTwoReadsIsGone(t *testing.T) {
	s := memstore.New(nil)
	d := deployment("p")
	commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}})
	calls := 0
	_, _, err := storage.ApplySlot(t.Context(), s, "p", 0, nil, func(slot lrp.Slot, got *lrp.Deployment) (lrp.Decision, error) {
		calls++
		if calls == 1 {
			commit(t, s, storage.Batch{Deployments: []storage.DeploymentWrite{{Before: d}}})
			return lrp.Decision{Deployment: got}, nil
		}
		if got != nil {
			t.Errorf("the deployment is %+v, want none", got)
		}
		return lrp.Decision{}, nil
	})
	if err != nil || calls != 2 {
		t.Errorf("%v after %d decisions, want 2", err, calls)
	}
}

func TestOptionsPutTheirFenceAndRequestIDIntoEveryBatch(t *testing.T) {
	s := memstore.New(nil)
	lease, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	desire := func(o *storage.Options, instances int) error {
		_, _, err := storage.ApplyDeployment(t.Context(), s, "p", o, func(d *lrp.Deployment) (lrp.Change, error) {
			if d == nil {
				return lrp.Change{After: deployment("p")}, nil
			}
			return d.Update(lrp.Update{Instances: &instances})
		})
		return err
	}
	if err := desire(&storage.Options{Fence: lease.Fence(), RequestID: "r"}, 1); err != nil {
		t.Fatal(err)
	}
	if err := desire(&storage.Options{Fence: lease.Fence(), RequestID: "r"}, 2); !errors.Is(err, storage.ErrDuplicate) {
		t.Errorf("the same request: %v, want ErrDuplicate", err)
	}
	if err := s.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := desire(&storage.Options{Fence: lease.Fence()}, 3); !errors.Is(err, storage.ErrFenced) {
		t.Errorf("without the lease: %v, want ErrFenced", err)
	}
}

func TestDecisionsAboutOneProcessGoIntoOneBatch(t *testing.T) {
	s := memstore.New(nil)
	created, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 2},
		DefinitionID: "v1", Definition: deployment("p").Definitions["d"],
	}, at)
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	b.AddChange(created)
	d := created.After
	for index, command := range []lrp.Command{
		lrp.CreateMissing{},
		lrp.Start{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}, Domain: "d"},
		lrp.CreateMissing{},
	} {
		slot := lrp.Slot{ProcessGUID: "p", Index: index}
		decision, err := lrp.Step(slot, d, command, at, lrp.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		b.AddLRP(slot, d, decision)
		if decision.Deployment != nil {
			d = decision.Deployment
		}
	}
	if len(b.Deployments) != 1 || b.Deployments[0].Before != nil || b.Deployments[0].After != d {
		t.Fatalf("deployment writes %+v, want one from nothing to the healthy version", b.Deployments)
	}
	commit(t, s, b)
	got, err := s.Deployment(t.Context(), "p")
	if err != nil || got.HealthyDefinitionID != "v1" {
		t.Errorf("%+v, %v", got, err)
	}
	// A decision from another version does not merge, and Check refuses it.
	b.AddLRP(lrp.Slot{}, deployment("p"), lrp.Decision{Writes: []lrp.Write{{After: &records()[0]}}})
	if err := b.Check(); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("two versions of one deployment: %v, want a validation error", err)
	}
}

// Two decisions that write different records of one slot must not both be
// committed: each was made with the other's record in view.
func TestADecisionIsCommittedOnlyWhileItsWholeSlotIsWhatItWas(t *testing.T) {
	s := memstore.New(nil)
	created, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 1},
		DefinitionID: "v1", Definition: deployment("p").Definitions["d"],
	}, at)
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	b.AddChange(created)
	commit(t, s, b)
	alpha := lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}
	decide := func(c lrp.Command) storage.Batch {
		t.Helper()
		slot, d, err := s.Slot(t.Context(), "p", 0)
		if err != nil {
			t.Fatal(err)
		}
		decision, err := lrp.Step(slot, d, c, at, lrp.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		var b storage.Batch
		b.AddLRP(slot, d, decision)
		return b
	}
	for _, c := range []lrp.Command{lrp.CreateMissing{}, lrp.Claim{Instance: alpha}, lrp.MarkSuspect{CellID: "c"}} {
		commit(t, s, decide(c))
	}
	crash := decide(lrp.Crash{Instance: alpha, Reason: "late"}) // removes the suspect
	commit(t, s, decide(lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "j", CellID: "e"}}))
	if _, err := s.Commit(t.Context(), crash); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// A store without Wait is asked again and again.
func TestWaitAsksAStoreThatIsNoWaiter(t *testing.T) {
	s := struct{ storage.Store }{memstore.New(nil)}
	done := make(chan error)
	go func() { done <- storage.Wait(t.Context(), s, 0, time.Millisecond) }()
	var b storage.Batch
	b.AddDomain("d", 0)
	commit(t, s, b)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := storage.Wait(ctx, s, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestErrorsNameWhatTheyAreAbout(t *testing.T) {
	r := records()[0]
	lease := storage.Lease{Kind: "cell", Name: "z1-3", Owner: "rep", Epoch: 7, ExpiresAt: at}
	for want, err := range map[string]error{
		`task "t": not found`:                                                                     &storage.NotFoundError{Key: storage.TaskKey("t")},
		`deployment "p": changed since it was read`:                                               &storage.ConflictError{Key: storage.DeploymentKey("p"), Err: storage.ErrConflict},
		`actual LRP p/3 definition "d" ORDINARY: exists already`:                                  &storage.ConflictError{Key: storage.ActualLRPKey(&r), Err: storage.ErrExists},
		`request "r": request was committed before, at event 9`:                                   &storage.DuplicateError{RequestID: "r", Cursor: 9},
		`cell lease "z1-3": lease is held by another owner, "rep", until ` + at.String():          &storage.HeldError{Lease: lease},
		`cell lease "z1-3": lease has a newer holder: epoch 7 is no longer good, the newest is 8`: &storage.FencedError{Fence: lease.Fence(), Epoch: 8},
		`event 4: record cannot be decoded: bits`:                                                 &storage.CorruptError{Key: storage.EventKey(4), Err: errors.New("bits")},
		`position is outside the log of events: after event 3, while the log holds 5 to 9`:        &storage.GoneError{After: 3, Extent: storage.Extent{Oldest: 5, Newest: 9}},
		`record of unknown kind 0: not found`:                                                     &storage.NotFoundError{},
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	}
}
