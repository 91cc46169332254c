package system_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

// consumer is a BBS over the same store in a process that never leads, or in a
// transaction.
func consumer(t *testing.T, store storage.Store, now func() time.Time) *bbs.BBS {
	t.Helper()
	b, err := bbs.New(bbs.Options{Store: store, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// No time passes here but that of the looks at the log, and the domain is never
// fresh: convergence would neither start nor stop anything.
func TestTheLeaderDoesWhatOthersHaveCommitted(t *testing.T) {
	posted := 0
	s := newSystem(t, 2, func(o *diego.Options) {
		o.Post = func(context.Context, string, task.CallbackResponse) int { posted++; return 200 }
	})
	for _, c := range s.cells {
		c.TaskTakes = time.Hour
	}
	other := consumer(t, s.store, s.clock.Now)
	settle := func() {
		for range 4 {
			s.step()
		}
	}
	s.must(other.Desire(s.ctx, desired("web", 3)))
	s.wantRecords()
	settle()
	if got := s.instances(); len(got) != 3 {
		t.Fatalf("got instances %v, want 3", got)
	}
	one := 1
	s.must(other.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &one}))
	settle()
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	s.must(updateTo("v2")(s.ctx, other))
	settle()
	if r := s.record("web", 0); r.DefinitionID != "v2" || r.State != lrp.Running {
		t.Errorf("got %v of %s, want the new definition to run", r.State, r.DefinitionID)
	}
	s.must(other.DeleteDeployment(s.ctx, "web"))
	settle()
	if s.wantRecords(); s.containers() != 0 {
		t.Errorf("got %d containers, want none", s.containers())
	}

	s.must(other.DesireTask(s.ctx, desiredTask("job", "http://consumer.example/")))
	settle()
	if got := s.task("job"); got.State != task.Running {
		t.Fatalf("the task is %v, want RUNNING", got.State)
	}
	s.must(other.CancelTask(s.ctx, "job"))
	settle()
	if s.containers() != 0 || posted != 1 {
		t.Errorf("got %d containers and %d callbacks, want 0 and 1", s.containers(), posted)
	}
	if err := other.Retire(s.ctx, "web", 0, ""); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("Retire without Effects: got %v, want ErrRefused", err)
	}
}

func TestATransactionOfTheUsersStartsAndStopsInstances(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "diego.db")
	open := func() *sqlstore.Store {
		store, err := sqlstore.Open(t.Context(), dsn, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	leaders, users := open(), open() // as two processes have them
	s := newSystem(t, 2, func(o *diego.Options) { o.Store, o.Now = leaders, time.Now })
	s.must(s.cells.Announce(s.ctx, leaders))
	settle := func() {
		for range 5 {
			s.step()
		}
	}
	running := func() (n int) {
		for _, err := range leaders.ActualLRPs(s.ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
			s.must(err)
			n++
		}
		return n
	}
	transact := func(keep bool, call func(b *bbs.BBS) error) {
		t.Helper()
		tx, err := users.BeginTx(s.ctx, nil)
		s.must(err)
		s.must(call(consumer(t, users.WithTx(tx), nil)))
		if keep {
			s.must(tx.Commit())
		} else {
			s.must(tx.Rollback())
		}
		settle()
	}
	desire := func(b *bbs.BBS) error { return b.Desire(s.ctx, desired("web", 4)) }
	scale := func(n int) func(*bbs.BBS) error {
		return func(b *bbs.BBS) error { return b.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &n}) }
	}
	remove := func(b *bbs.BBS) error { return b.DeleteDeployment(s.ctx, "web") }
	for _, step := range []struct {
		name string
		keep bool
		call func(*bbs.BBS) error
		want int
	}{
		{"desired and rolled back", false, desire, 0},
		{"desired", true, desire, 4},
		{"scaled down and rolled back", false, scale(1), 4},
		{"scaled down", true, scale(1), 1},
		{"scaled up", true, scale(3), 3},
		{"deleted and rolled back", false, remove, 3},
		{"deleted", true, remove, 0},
	} {
		transact(step.keep, step.call)
		if got := running(); got != step.want || s.containers() != step.want {
			t.Errorf("%s: %d instances run in %d containers, want %d", step.name, got, s.containers(), step.want)
		}
	}
}

// errDied is what a process sees that dies between two commits.
var errDied = errors.New("this process is dead")

func TestInstancesStopThoughTheLeaderDiesRightAfterTheDeletion(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 2, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	s.must(s.BBS.Desire(s.ctx, desired("web", 3)))
	s.step()
	// The deletion is committed, and nothing else is done by this process.
	s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
	bad.before = func() error { return errDied }
	s.clock.Advance(20 * time.Second)
	s.ControlPlane = s.plane("plane-2", nil)
	s.BBS = s.asked(s.ControlPlane)
	s.cells.ReportTo(s.BBS)
	for range 4 {
		s.step()
	}
	if s.wantRecords(); s.containers() != 0 {
		t.Errorf("got %d containers, want none", s.containers())
	}
}

func TestANewLeaderSearchesTheLogFromWhereTheOldOneWas(t *testing.T) {
	s := newSystem(t, 2, nil)
	var middle storage.Extent
	for i := range 60 {
		s.must(s.BBS.Desire(s.ctx, desired(fmt.Sprint("app-", i), 1)))
		s.pass(time.Second)
		if i == 30 {
			log, err := s.store.Log(s.ctx)
			s.must(err)
			middle = log
		}
	}
	counted := &countingStore{Store: s.store}
	s.clock.Advance(20 * time.Second)
	s.ControlPlane = s.plane("plane-2", func(o *diego.Options) { o.Store = counted })
	s.must(s.Tick(s.ctx))
	if counted.lists != 1 || counted.from < middle.Newest {
		t.Errorf("the log was read %d times, from %d on; want once, from %d or later", counted.lists, counted.from, middle.Newest)
	}
}

// A gappyStore has no position between the log's oldest event and its end.
type gappyStore struct{ storage.Store }

func (s gappyStore) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		if log, err := s.Store.Log(ctx); err == nil && after >= log.Oldest {
			yield(storage.Event{}, &storage.GoneError{After: after, Extent: log})
			return
		}
		s.Store.Events(ctx, after, f)(yield)
	}
}

func TestANewLeaderSearchesTheWholeLogIfItHasLostTheOldOnesPlace(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	for i := range 4 { // so that the leader keeps its place again and again
		s.must(s.BBS.Desire(s.ctx, desired(fmt.Sprint("other-", i), 1)))
		s.pass(11 * time.Second)
	}
	s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
	s.clock.Advance(20 * time.Second)
	s.ControlPlane = s.plane("plane-2", func(o *diego.Options) { o.Store = gappyStore{s.store} })
	s.BBS = s.asked(s.ControlPlane)
	s.cells.ReportTo(s.BBS)
	for range 4 {
		s.step()
	}
	if got := s.instances(); len(got) != 4 || s.containers() != 4 {
		t.Errorf("got instances %v in %d containers, want the four that are desired", got, s.containers())
	}
}

// A deafCell does not hear what it is to stop.
type deafCell struct {
	auction.CellClient
	deaf *bool
}

func (c deafCell) StopLRP(ctx context.Context, key lrp.Key, i lrp.InstanceKey) error {
	if *c.deaf {
		return errBroken
	}
	return c.CellClient.StopLRP(ctx, key, i)
}

func TestAStopThatACellDidNotHearIsRepeatedInADomainThatIsNotFresh(t *testing.T) {
	deaf := true
	s := newSystem(t, 2, func(o *diego.Options) {
		dial := o.Dial
		o.Dial = func(p bbs.CellPresence) (auction.CellClient, error) {
			c, err := dial(p)
			return deafCell{c, &deaf}, err
		}
	})
	s.must(s.BBS.Desire(s.ctx, desired("web", 3)))
	s.step()
	s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
	s.pass(5 * time.Second)
	deaf = false
	s.pass(40 * time.Second)
	if s.wantRecords(); s.containers() != 0 {
		t.Errorf("got %d containers, want none", s.containers())
	}
}

// A cell that cannot be told, as its presence has ended for a moment, is like
// one that did not hear.
func TestAStopForACellThatIsAwayForAMomentIsRepeatedInADomainThatIsNotFresh(t *testing.T) {
	for _, scaleDown := range []bool{false, true} {
		s := newSystem(t, 4, nil)
		s.must(s.BBS.Desire(s.ctx, desired("web", 4)))
		s.step()
		for range 20 { // without a word from the cells, whose containers run on
			s.clock.Advance(time.Second)
			s.must(s.Tick(s.ctx))
		}
		want := 0
		if scaleDown {
			want = 1
			s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &want}))
		} else {
			s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
		}
		s.must(s.Tick(s.ctx))
		s.pass(5 * time.Minute)
		if got := s.instances(); len(got) != want || s.containers() != want {
			t.Errorf("got instances %v in %d containers, want %d", got, s.containers(), want)
		}
	}
}

func TestInstancesThatCouldNotFollowAreTriedAgain(t *testing.T) {
	bad := &badStore{}
	s := newSystem(t, 2, func(o *diego.Options) { bad.Store = o.Store; o.Store = bad })
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	bad.after = func() error { // the first commit is the desire itself
		bad.before = func() error { return errBroken }
		return nil
	}
	three := 3
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &three}))
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	bad.before, bad.after = nil, nil
	s.pass(3 * time.Second)
	if got := s.instances(); len(got) != 3 {
		t.Errorf("got instances %v, want 3", got)
	}
}

// A countingStore counts the lists of events that are read.
type countingStore struct {
	storage.Store
	lists int
	// from is the position of the last one.
	from storage.Cursor
}

func (s *countingStore) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	s.lists, s.from = s.lists+1, after
	return s.Store.Events(ctx, after, f)
}

func TestTheLeaderDoesNotReadWhatItHasCommittedItself(t *testing.T) {
	counted := &countingStore{}
	s := newSystem(t, 2, func(o *diego.Options) { counted.Store = o.Store; o.Store = counted })
	before := counted.lists
	for i := range 20 {
		s.must(s.BBS.Desire(s.ctx, desired(fmt.Sprint("app-", i), 2)))
		s.must(s.BBS.DesireTask(s.ctx, desiredTask(fmt.Sprint("job-", i), "")))
		s.must(s.Tick(s.ctx))
		s.cells.Step(s.ctx)
	}
	if counted.lists != before {
		t.Errorf("the log was read %d times", counted.lists-before)
	}
}

// Convergence would take an hour.
func TestALeaderThatRunsHearsOfOthersCommitsSoon(t *testing.T) {
	store := memstore.New(nil)
	fleet := realTime(memcell.NewFleet(2, memcell.NewClock()))
	spoken, leading := make(chan *memcell.Cell, 1000), make(chan struct{})
	p, err := diego.New(diego.Options{
		Store: store, Owner: "leader", Guard: converge.Guard{Grace: -1}, ConvergenceInterval: time.Hour, Metrics: &signals{leading: leading},
		Dial: func(p bbs.CellPresence) (auction.CellClient, error) {
			c, err := fleet.Dial(p)
			if err != nil {
				return nil, err
			}
			return notifyingCell{c.(*memcell.Cell), spoken}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	fleet.ReportTo(p.BBS)
	if err := fleet.Announce(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { _ = p.Run(ctx) })
	group.Go(func() {
		for {
			select {
			case c := <-spoken:
				c.Step(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	<-leading
	other := consumer(t, store, nil)
	until := func(kind lrp.EventKind, n int) {
		t.Helper()
		events, err := other.Subscribe(ctx, bbs.FromStart, storage.EventFilter{Kinds: []string{kind.String()}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if n--; n == 0 {
				return
			}
		}
	}
	if err := other.Desire(ctx, desired("web", 3)); err != nil {
		t.Fatal(err)
	}
	until(lrp.GroupCreated, 3)
	if err := other.DeleteDeployment(ctx, "web"); err != nil {
		t.Fatal(err)
	}
	until(lrp.InstanceRemoved, 3)
}
