package rep

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
)

// takesWork asks the stage to take an instance, and checks that State and
// Perform agree.
func (s *stage) takesWork() bool {
	s.t.Helper()
	state, err := s.State(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	item := lrpItem
	item.Index = 7
	refused, err := s.Perform(s.t.Context(), auction.Work{CellID: alpha.CellID, Items: []auction.Item{item}})
	if err != nil {
		s.t.Fatal(err)
	}
	if state.Settling != (len(refused) > 0) || len(refused) > 0 && refused[0].Reason != string(auction.Settling) {
		s.t.Errorf("the state is settling: %t, and refused is %v", state.Settling, refused)
	}
	return len(refused) == 0
}

func TestACellTakesNoWorkBeforeItHasReportedWhatAnEarlierRunHasLeft(t *testing.T) {
	announcer, now := &fakeAnnouncer{err: errHeld}, start
	s := newStage(t, func(o *Options) {
		o.Announcer, o.Now = announcer, func() time.Time { return now }
	})
	s.bbs.slot = slotOf(t, LRPRunningAlpha)
	gone := errors.New("the BBS does not answer")
	for _, moment := range []struct {
		name   string
		before func()
		want   []string
		takes  bool
	}{
		{"at first", func() {}, nil, false},
		{"another run is present", func() { s.Tick(t.Context()) }, nil, false},
		{"the list was cut off", func() { announcer.err, s.bbs.listErr = nil, gone; s.Tick(t.Context()) }, []string{RemoveLRP.String()}, false},
		{"the report failed", func() { s.bbs.listErr, s.bbs.fail[RemoveLRP] = nil, gone; s.Tick(t.Context()) }, []string{RemoveLRP.String()}, false},
		{"the report was heard", func() { delete(s.bbs.fail, RemoveLRP); s.Tick(t.Context()) }, []string{RemoveLRP.String()}, true},
	} {
		moment.before()
		s.must(moment.want...)
		if s.takesWork() != moment.takes {
			t.Errorf("%s: it takes work: %t, want %t", moment.name, !moment.takes, moment.takes)
		}
		now = now.Add(DefaultAnnounceInterval)
	}

	// Another run may have had the name while this one was not heard of.
	clear(s.exe.containers)
	now = now.Add(time.Minute)
	announcer.err, s.bbs.fail[RemoveLRP] = nil, gone
	s.Tick(t.Context())
	if s.takesWork() {
		t.Error("it takes work after it was away and before it has reported what is gone")
	}
	delete(s.bbs.fail, RemoveLRP)
	now = now.Add(DefaultAnnounceInterval)
	s.Tick(t.Context())
	if !s.takesWork() {
		t.Error("it takes no work after it has reported what is gone")
	}
}

func TestACellWithoutAnythingToReportTakesWorkAfterItsFirstSync(t *testing.T) {
	s := newStage(t)
	if s.takesWork() {
		t.Error("it takes work before its first Sync")
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.takesWork() {
		t.Error("it takes no work")
	}
}

// A clearingExecutor removes something from its host.
type clearingExecutor struct {
	*fakeExecutor
	cleared chan struct{}
}

func (e clearingExecutor) Cleared() <-chan struct{} { return e.cleared }

// What an earlier run has started may still run: nobody must hear that it is
// gone, and replace it.
func TestNothingIsReportedAsGoneBeforeTheHostIsCleared(t *testing.T) {
	for _, announces := range []bool{false, true} {
		announcer, cleared := &fakeAnnouncer{}, make(chan struct{})
		s := newStage(t, func(o *Options) {
			if o.Executor = (clearingExecutor{o.Executor.(*fakeExecutor), cleared}); announces {
				o.Announcer = announcer
			}
		})
		s.bbs.slot = slotOf(t, LRPRunningAlpha)
		s.Tick(t.Context())
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.must()
		if s.Present() || s.takesWork() || announcer.ticks != 0 {
			t.Errorf("announces %v: it is present: %v, and announced %d times", announces, s.Present(), announcer.ticks)
		}
		close(cleared)
		s.Tick(t.Context())
		if announces {
			s.must(RemoveLRP.String())
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !announces {
			s.must(RemoveLRP.String())
		}
		if !s.Present() || !s.takesWork() {
			t.Errorf("announces %v: it is cleared and takes no work: %v", announces, s.Absent())
		}
	}
}

func TestNextIsAheadWhileTheHostIsNotCleared(t *testing.T) {
	announcer, cleared := &fakeAnnouncer{}, make(chan struct{})
	s := newStage(t, func(o *Options) {
		o.Executor, o.Announcer = clearingExecutor{o.Executor.(*fakeExecutor), cleared}, announcer
		o.Now = func() time.Time { return start }
	})
	s.Tick(t.Context())
	if got := s.Next(); !got.Equal(start.Add(DefaultRetryInterval)) {
		t.Errorf("a caller is to come back after %v, want %v", got.Sub(start), DefaultRetryInterval)
	}
	close(cleared)
	if got := s.Next(); got.After(start) {
		t.Errorf("once the host is cleared, a caller is to come after %v, want at once", got.Sub(start))
	}
}

func TestRunWaitsUntilTheHostIsCleared(t *testing.T) {
	cleared, ctx := make(chan struct{}), t.Context()
	s := newStage(t, func(o *Options) { o.Executor = clearingExecutor{o.Executor.(*fakeExecutor), cleared} })
	s.bbs.slot = slotOf(t, LRPRunningAlpha)
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	if s.takesWork() {
		t.Error("it takes work before its host is cleared")
	}
	close(cleared)
	for { // until what is gone is reported
		state, err := s.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !state.Settling {
			break
		}
		runtime.Gosched()
	}
	if !s.takesWork() {
		t.Error("it takes no work once what is gone is reported")
	}
	s.must(RemoveLRP.String())
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
