package system_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A badStore fails as it is told.
type badStore struct {
	storage.Store
	// before is called before every Commit; its error is the Commit's.
	before func() error
	// after is called after every Commit that succeeds; its error is the
	// Commit's, although everything is written.
	after func() error
	// renew is the error of every Acquire and Renew.
	renew error
}

func (s *badStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if s.before != nil {
		if err := s.before(); err != nil {
			return 0, err
		}
	}
	c, err := s.Store.Commit(ctx, b)
	if err == nil && s.after != nil {
		err = s.after()
	}
	return c, err
}

func (s *badStore) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.renew != nil {
		return storage.Lease{}, s.renew
	}
	return s.Store.Acquire(ctx, l, ttl)
}

func (s *badStore) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.renew != nil {
		return storage.Lease{}, s.renew
	}
	return s.Store.Renew(ctx, l, ttl)
}

var errBroken = errors.New("the store is broken")

func TestEffectsThatAreLostAfterTheCommitAreAskedForAgain(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2))) // and this plane is never heard of again
	s.wantRecords("web/0 UNCLAIMED ORDINARY", "web/1 UNCLAIMED ORDINARY")
	s.clock.Advance(20 * time.Second)
	s.ControlPlane = s.plane("plane-2", nil)
	s.BBS = s.asked(s.ControlPlane)
	s.cells.ReportTo(s.BBS)
	s.pass(5 * time.Second) // another control plane may still be about it
	s.wantRecords("web/0 UNCLAIMED ORDINARY", "web/1 UNCLAIMED ORDINARY")
	s.pass(10 * time.Second)
	s.wantRecords("web/0 RUNNING ORDINARY cell-1", "web/1 RUNNING ORDINARY cell-2")
}

// A wrappedCell fails to answer as it is told.
type wrappedCell struct {
	auction.CellClient
	perform func(context.Context, auction.Work) ([]auction.Rejection, error)
}

func (c wrappedCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	return c.perform(ctx, w)
}

func TestAnAuctioneerThatDiesWithABatchInHandLosesNothing(t *testing.T) {
	ctx, die := context.WithCancel(t.Context())
	died := false
	s := newSystem(t, 1, func(o *diego.Options) {
		dial := o.Dial
		o.Dial = func(p bbs.CellPresence) (auction.CellClient, error) {
			c, err := dial(p)
			return wrappedCell{c, func(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
				if !died {
					died = true
					die()
					return nil, ctx.Err()
				}
				return c.Perform(ctx, w)
			}}, err
		}
	})
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	if err := s.Tick(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it to die", err)
	}
	s.wantRecords("web/0 UNCLAIMED ORDINARY")
	s.pass(61 * time.Second)
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
}

func TestACellThatAnswersAfterItsDeadlineRunsWhatItGotOnce(t *testing.T) {
	s := newSystem(t, 2, func(o *diego.Options) {
		dial := o.Dial
		o.Dial = func(p bbs.CellPresence) (auction.CellClient, error) {
			c, err := dial(p)
			return wrappedCell{c, func(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
				if _, err := c.Perform(ctx, w); err != nil {
					return nil, err
				}
				return nil, context.DeadlineExceeded
			}}, err
		}
	})
	s.must(s.BBS.Desire(s.ctx, desired("web", 3)))
	s.pass(2 * time.Minute)
	if got := s.instances(); len(got) != 3 || s.containers() != 3 {
		t.Errorf("got instances %v in %d containers, want 3 in 3", got, s.containers())
	}
}

func TestAStoreThatIsDownForHalfAMinuteHarmsNobody(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 2, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.step()
	before := s.instances()
	bad.before, bad.renew = func() error { return errBroken }, errBroken
	for range 30 {
		s.clock.Advance(time.Second)
		s.must(s.cells.Announce(s.ctx, s.store)) // the cells have another way to it
		_ = s.Tick(s.ctx)
		s.cells.Poll(s.ctx)
	}
	if err := s.BBS.Desire(s.ctx, desired("other", 1)); err == nil {
		t.Error("a call succeeded without a store")
	}
	bad.before, bad.renew = nil, nil
	s.must(s.Tick(s.ctx))
	s.must(s.BBS.Desire(s.ctx, desired("other", 1)))
	s.pass(35 * time.Second)
	if got := s.instances(); len(got) != 3 || !slices.Contains(got, before[0]) || !slices.Contains(got, before[1]) {
		t.Errorf("got instances %v, want %v and another", got, before)
	}
}

// lifecycle is what consumers and cells do while the BBS is killed.
func lifecycle(s *system) {
	retry := func(f func(context.Context) error, id string) {
		for range 10 {
			if err := f(bbs.WithRequestID(s.ctx, id)); err == nil {
				return
			}
			s.clock.Advance(time.Second)
			_ = s.Tick(s.ctx)
		}
		s.t.Errorf("%s never succeeded", id)
	}
	retry(func(ctx context.Context) error { return s.BBS.Desire(ctx, desired("web", 2)) }, "desire")
	retry(func(ctx context.Context) error { return s.BBS.DesireTask(ctx, desiredTask("job", "")) }, "task")
	steps := func(n int) {
		for range n {
			s.clock.Advance(5 * time.Second)
			s.must(s.cells.Announce(s.ctx, s.store))
			_ = s.Tick(s.ctx)
			s.cells.Poll(s.ctx)
		}
	}
	steps(3)
	s.cells[0].Crash("web", 0, "out of memory")
	steps(3)
	one := 1
	retry(func(ctx context.Context) error {
		return s.BBS.UpdateDeployment(ctx, "web", lrp.Update{Instances: &one})
	}, "scale")
	retry(func(ctx context.Context) error { return s.BBS.UpsertDomain(ctx, "apps", 0) }, "domain")
	steps(20)
}

// The control plane is killed before or after its n-th commit, for every n, and
// another takes over.
func TestABBSThatIsKilledAtAnyPointOfALifecycleIsReplaced(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when+" each commit", func(t *testing.T) {
			n := 1
			for killAt(t, when, n) {
				n++
			}
			if n < 10 {
				t.Errorf("the lifecycle has only %d commits", n-1)
			}
		})
	}
}

// killAt reports whether there was an n-th commit to die at.
func killAt(t *testing.T, when string, n int) (killed bool) {
	bad := &badStore{}
	var s *system
	count := 0
	kill := func() error {
		if count++; count < n {
			return nil
		}
		if !killed {
			killed = true
			s.clock.Advance(20 * time.Second) // the lease of the dead runs out
			s.ControlPlane = s.plane("plane-2", nil)
			_ = s.Tick(s.ctx)
			s.BBS = s.asked(s.ControlPlane)
			s.cells.ReportTo(s.BBS)
		}
		return errBroken
	}
	s = newSystem(t, 2, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	if when == "before" {
		bad.before = kill
	} else {
		bad.after = kill
	}
	lifecycle(s)
	if got := s.instances(); len(got) != 1 || s.containers() != 1 {
		t.Errorf("killed %s commit %d: got instances %v in %d containers, want 1 in 1: %v", when, n, got, s.containers(), s.records())
	}
	runs := 0
	for _, c := range s.cells {
		runs += c.TaskBegun("job")
	}
	if runs > 1 {
		t.Errorf("killed %s commit %d: the task was run %d times", when, n, runs)
	}
	return killed
}

func TestALeaderThatIsPausedInTheMiddleOfACommitCommitsNothing(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 1, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	bad.before = func() error { // three TTLs pass between the decision and the store
		bad.before = nil
		s.clock.Advance(45 * time.Second)
		next := s.plane("plane-2", nil)
		s.must(next.Tick(s.ctx))
		if leading, _ := next.Leadership.Leading(); !leading {
			t.Fatal("nobody took over")
		}
		s.must(next.BBS.Desire(s.ctx, desired("web", 1)))
		return nil
	}
	err := s.BBS.Desire(s.ctx, desired("late", 1))
	if !errors.Is(err, storage.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	s.wantRecords("web/0 UNCLAIMED ORDINARY")
	if err := s.BBS.Desire(s.ctx, desired("late", 1)); !errors.Is(err, bbs.ErrNotLeader) {
		t.Errorf("got %v, want ErrNotLeader", err)
	}
}

func TestALeaderThatCannotCommitResignsWithinOneTTL(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 1, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	other := s.plane("plane-2", nil)
	bad.before = func() error { return errBroken } // and yet its lease is renewed
	for second := range 16 {
		if leading, _ := s.Leadership.Leading(); !leading {
			s.must(other.Tick(s.ctx))
			if leading, _ := other.Leadership.Leading(); !leading {
				t.Error("the other does not take over")
			}
			return
		}
		_ = s.BBS.UpsertDomain(s.ctx, fmt.Sprintf("domain-%d", second), 0)
		s.clock.Advance(time.Second)
		_ = s.Tick(s.ctx)
	}
	t.Error("it still leads after 16 s")
}

func TestOneFailedCommitIsNoReasonToResign(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 1, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	bad.before = func() error { bad.before = nil; return errBroken }
	if err := s.BBS.UpsertDomain(s.ctx, "apps", 0); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	s.pass(20 * time.Second)
	if leading, _ := s.Leadership.Leading(); !leading {
		t.Error("it has resigned")
	}
}

func TestLosingAllPresencesForOneTTLRestartsNoHealthyInstance(t *testing.T) {
	s := newSystem(t, 4, nil)
	s.must(s.BBS.UpsertDomain(s.ctx, "apps", 0))
	s.must(s.BBS.Desire(s.ctx, desired("web", 8)))
	s.step()
	before := s.instances()
	for range 30 { // 15 s until the leases end, and 15 s more
		s.clock.Advance(time.Second)
		s.must(s.Tick(s.ctx))
		s.cells.Poll(s.ctx)
	}
	s.pass(time.Minute)
	if got := s.instances(); !slices.Equal(got, before) || s.containers() != 8 {
		t.Errorf("got instances %v in %d containers, want %v", got, s.containers(), before)
	}
}

func TestACellThatVanishesIsNoticedWhenItsPresenceEnds(t *testing.T) {
	s := newSystem(t, 3, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	all := s.cells
	s.cells = all[1:]
	s.pass(14 * time.Second)
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	s.pass(2 * time.Second)
	s.wantRecords("web/0 RUNNING ORDINARY cell-2")

	// The cell comes back with the instance that was replaced, and gives it up.
	s.cells = all
	s.step()
	all[0].Poll(s.ctx)
	s.wantRecords("web/0 RUNNING ORDINARY cell-2")
	if s.containers() != 1 {
		t.Errorf("got %d containers, want 1", s.containers())
	}
}

func TestATaskWhoseCellVanishesFailsOnceAndIsToldOfOnce(t *testing.T) {
	var told []task.CallbackResponse
	s := newSystem(t, 3, func(o *diego.Options) {
		o.Post = func(_ context.Context, _ string, r task.CallbackResponse) int {
			told = append(told, r)
			return 200
		}
	})
	for _, c := range s.cells {
		c.TaskTakes = time.Hour
	}
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "http://consumer.example/")))
	s.step()
	running := s.task("job")
	if running.State != task.Running {
		t.Fatalf("got %v, want RUNNING", running.State)
	}
	s.cells = slices.DeleteFunc(slices.Clone(s.cells), func(c *memcell.Cell) bool { return c.Presence.CellID == running.CellID })
	s.pass(5 * time.Minute)
	if len(told) != 1 || told[0].FailureReason != task.ReasonCellMissing {
		t.Errorf("the consumer was told %+v, want once that the cell is missing", told)
	}
	if _, err := s.BBS.Task(s.ctx, "job"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want the task to be gone", err)
	}
}

// What a cell said of an instance comes again, in every order, when another
// instance runs already.
func TestCallsThatComeTwiceAndInAnyOrderDisturbNobody(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	old := s.record("web", 0).InstanceKey
	for _, c := range s.cells {
		c.Crash("web", 0, "out of memory")
		c.Step(s.ctx)
	}
	s.pass(3 * time.Second)
	want := s.record("web", 0)
	if want.State != lrp.Running || want.InstanceKey == old || want.CrashCount != 1 {
		t.Fatalf("got %+v, want another instance to run after one crash", want)
	}
	late := []func() error{
		func() error { return s.BBS.ClaimLRP(s.ctx, "web", 0, lrp.Claim{Instance: old}) },
		func() error { return s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: old, Domain: "apps"}) },
		func() error { return s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: old, Domain: "apps"}) },
		func() error { return s.BBS.RemoveLRP(s.ctx, "web", 0, lrp.Remove{Instance: old}) },
	}
	var each func(order []int)
	each = func(order []int) {
		if len(order) < len(late) {
			for i := range late {
				if !slices.Contains(order, i) {
					each(append(slices.Clip(order), i))
				}
			}
			return
		}
		for _, i := range append(order, order...) {
			var refused *lrp.TransitionError
			if err := late[i](); err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
		}
		if got := s.record("web", 0); !got.Equal(&want) {
			t.Errorf("in the order %v: got %+v, want %+v", order, got, want)
		}
	}
	each(nil)
	s.pass(time.Minute)
	if got := s.instances(); len(got) != 1 || got[0] != want.InstanceGUID || s.containers() != 1 {
		t.Errorf("got instances %v in %d containers, want %s", got, s.containers(), want.InstanceGUID)
	}
}
