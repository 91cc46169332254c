package rep

import (
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

func TestOnlyAHealthyInstanceThatWasReplacedWaitsForRouters(t *testing.T) {
	for i := range 16 {
		f := Farewell{Replaced: i&1 > 0, Ready: i&2 > 0, Routed: i&4 > 0, Paused: i&8 > 0}
		row := DecideStop(f)
		want := []Step{StopContainer}
		switch {
		case f.Replaced && f.Ready && f.Routed && !f.Paused:
			want = []Step{WithdrawLRP, AwaitRouters}
		case f.Replaced && f.Ready && !f.Paused:
			want = []Step{AwaitRouters}
		}
		if got := fmt.Sprint(row.Steps); got != fmt.Sprint(want) || row.Reason == "" {
			t.Errorf("%+v: %s, want %v", f, got, want)
		}
	}
}

// replacedBy is a slot with the instance of the stage and one of a newer
// definition that runs.
func replacedBy(t *testing.T, me LRPSituation, definitionID string) lrp.Slot {
	t.Helper()
	s := slotOf(t, me)
	for i := range s.Records {
		s.Records[i].Routable = true
	}
	other := slotOf(t, LRPRunningOmega).Records[0]
	other.DefinitionID = definitionID
	s.Records = append(s.Records, other)
	return s
}

// A moment is something that happens on a cell, and what the rep asks for then.
type moment struct {
	after time.Duration // since the moment before
	what  func(*stage)
	want  []string
}

func TestAnInstanceEndsOnceRoutersHaveHeardOfIt(t *testing.T) {
	stop := func(s *stage) {
		if err := s.StopLRP(s.t.Context(), lrpItem.Key.LRP(), alpha); err != nil {
			s.t.Error(err)
		}
	}
	withdrawn := func(s *stage) {
		if !s.bbs.start.Unready {
			s.t.Errorf("the rep told %+v", s.bbs.start)
		}
		s.bbs.slot.Records[0].Routable = false
	}
	gone := func(s *stage) { s.bbs.slot = replacedBy(s.t, LRPNone, "d1") }
	nothing := func(*stage) {}
	for _, c := range []struct {
		name      string
		slot      func(*testing.T) lrp.Slot
		evacuates bool
		change    func(*stage)
		moments   []moment
	}{
		{"a rollout has replaced it", func(t *testing.T) lrp.Slot { return replacedBy(t, LRPRunningAlpha, "d2") }, false, nil, []moment{
			{0, stop, []string{StartLRP.String()}},
			{time.Second, withdrawn, nil},
			{3 * time.Second, stop, nil}, // convergence asks again
			{time.Second, nothing, []string{"stop"}},
		}},
		{"the BBS does not answer when it is to withdraw the route", func(t *testing.T) lrp.Slot { return replacedBy(t, LRPRunningAlpha, "d2") }, false, nil, []moment{
			{0, func(s *stage) { s.bbs.fail[StartLRP] = errHeld; stop(s) }, []string{StartLRP.String()}},
			{5 * time.Second, func(s *stage) { delete(s.bbs.fail, StartLRP) }, []string{StartLRP.String()}},
			{4 * time.Second, withdrawn, nil},
			{time.Second, nothing, []string{"stop"}},
		}},
		{"a rollout has replaced it, and it is not ready", func(t *testing.T) lrp.Slot { return replacedBy(t, LRPRunningAlpha, "d2") }, false,
			func(s *stage) {
				c := s.exe.containers[alpha.InstanceGUID]
				s.exe.containers[c.GUID], _ = c.SetRoutable(false)
			}, []moment{
				{0, stop, []string{"stop"}},
			}},
		{"its consumer stops it", func(t *testing.T) lrp.Slot { return slotOf(t, LRPRunningAlpha) }, false, nil, []moment{
			{0, stop, []string{"stop"}},
		}},
		{"it is one too many", func(t *testing.T) lrp.Slot { return replacedBy(t, LRPNone, "d1") }, false, nil, []moment{
			{0, func(s *stage) { s.syncWithin(0) }, nil},
			{4 * time.Second, nothing, nil},
			{time.Second, nothing, []string{DeleteContainer.String()}},
		}},
		{"its cell was missing and is refused", func(t *testing.T) lrp.Slot { return slotOf(t, LRPSuspectAlpha) }, false, nil, []moment{
			{0, func(s *stage) {
				s.bbs.slot = replacedBy(s.t, LRPSuspectAlpha, "d1")
				s.bbs.fail[StartLRP] = &lrp.TransitionError{}
				s.syncWithin(0)
			}, []string{StartLRP.String()}},
			{5 * time.Second, gone, []string{DeleteContainer.String()}},
		}},
		{"it is evacuated", func(t *testing.T) lrp.Slot { return slotOf(t, LRPEvacuatingAlpha) }, true, nil, []moment{
			{0, func(s *stage) { s.bbs.keep = true; s.Evacuate(s.t.Context()) }, []string{EvacuateRunningLRP.String()}},
			// The replacement runs by the time that the BBS answers.
			{10 * time.Second, func(s *stage) { s.bbs.keep = false; s.o.BBS = &replacedLate{s.bbs, func() { gone(s) }} }, []string{EvacuateRunningLRP.String()}},
			{4 * time.Second, nothing, nil},
			{time.Second, nothing, []string{EvacuateRunningLRP.String(), DeleteContainer.String()}},
		}},
		{"it is evacuated, and its replacement crashes", func(t *testing.T) lrp.Slot { return replacedBy(t, LRPNone, "d1") }, true, nil, []moment{
			{0, func(s *stage) { s.Evacuate(s.t.Context()) }, []string{EvacuateRunningLRP.String()}},
			{5 * time.Second, func(s *stage) { s.bbs.slot, s.bbs.keep = slotOf(s.t, LRPUnclaimed), true }, []string{EvacuateRunningLRP.String()}},
			{10 * time.Second, func(s *stage) { gone(s); s.bbs.keep = false }, []string{EvacuateRunningLRP.String()}},
			{5 * time.Second, nothing, []string{EvacuateRunningLRP.String(), DeleteContainer.String()}},
		}},
		{"nobody wants it any more", func(t *testing.T) lrp.Slot { return slotOf(t, LRPNone) }, true, nil, []moment{
			{0, func(s *stage) { s.Evacuate(s.t.Context()) }, []string{EvacuateRunningLRP.String(), DeleteContainer.String()}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := start
			s := newStage(t, func(o *Options) { o.StopPause, o.Now, o.SyncInterval = 0, func() time.Time { return now }, time.Hour })
			s.play(scene{container: containerOf(t, lrpItem, executor.Running, executor.RunResult{}), slot: c.slot(t)})
			for i := range s.bbs.slot.Records {
				s.bbs.slot.Records[i].NetInfo = netInfo(s.exe.containers[alpha.InstanceGUID], lrp.PreferNone)
			}
			if c.change != nil {
				c.change(s)
			}
			s.nextSync = now.Add(time.Hour)
			for i, m := range c.moments {
				now = now.Add(m.after)
				m.what(s)
				s.Tick(t.Context())
				got := s.bbs.journal.take()
				if fmt.Sprint(got) != fmt.Sprint(m.want) {
					t.Fatalf("moment %d: the rep asked for %q, want %q", i, got, m.want)
				}
			}
		})
	}
}

// Next returns the end of a pause, so that a caller that waits does not miss it.
func TestTheEndOfAPauseIsDue(t *testing.T) {
	now := start
	s := newStage(t, func(o *Options) { o.StopPause, o.Now = 3*time.Second, func() time.Time { return now } })
	s.play(scene{container: containerOf(t, lrpItem, executor.Running, executor.RunResult{}), slot: replacedBy(t, LRPNone, "d1")})
	s.Tick(t.Context())
	s.must()
	if got := s.Next(); !got.Equal(now.Add(3 * time.Second)) {
		t.Errorf("the next thing is due in %v", got.Sub(now))
	}
}
