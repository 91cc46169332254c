package rep

import (
	"errors"
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
