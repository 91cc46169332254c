package system_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// realTime is a clock for model cells whose containers take no time.
func realTime(f memcell.Fleet) memcell.Fleet {
	for _, c := range f {
		c.Now = time.Now
	}
	return f
}

// A notifyingCell steps when it is spoken to.
type notifyingCell struct {
	*memcell.Cell
	spoken chan<- *memcell.Cell
}

func (c notifyingCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	defer func() { c.spoken <- c.Cell }()
	return c.Cell.Perform(ctx, w)
}

func (c notifyingCell) StopLRP(ctx context.Context, key lrp.Key, i lrp.InstanceKey) error {
	defer func() { c.spoken <- c.Cell }()
	return c.Cell.StopLRP(ctx, key, i)
}

// everybody is the leader of two control planes, as cells see it.
type everybody struct {
	rep.BBS
	planes []*diego.ControlPlane
}

func (e everybody) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	return onLeader(e.planes, func(b *bbs.BBS) error { return b.ClaimLRP(ctx, guid, index, c) })
}

func (e everybody) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	return onLeader(e.planes, func(b *bbs.BBS) error { return b.StartLRP(ctx, guid, index, c) })
}

func (e everybody) RemoveLRP(ctx context.Context, guid string, index int, c lrp.Remove) error {
	return onLeader(e.planes, func(b *bbs.BBS) error { return b.RemoveLRP(ctx, guid, index, c) })
}

func (e everybody) StartTask(ctx context.Context, guid string, c task.Start) (should bool, err error) {
	err = onLeader(e.planes, func(b *bbs.BBS) (err error) { should, err = b.StartTask(ctx, guid, c); return err })
	return should, err
}

func (e everybody) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	return onLeader(e.planes, func(b *bbs.BBS) error { return b.CompleteTask(ctx, guid, c) })
}

func onLeader(planes []*diego.ControlPlane, f func(*bbs.BBS) error) (err error) {
	for _, p := range planes {
		if err = f(p.BBS); !errors.Is(err, bbs.ErrNotLeader) {
			return err
		}
	}
	return err
}

// Two control planes run at the same time, with all their goroutines; the one
// that leads is stopped, and the other goes on.
func TestAnotherControlPlaneTakesOverWhileBothRun(t *testing.T) {
	store := memstore.New(nil)
	fleet := realTime(memcell.NewFleet(3, memcell.NewClock()))
	spoken := make(chan *memcell.Cell, 1000)
	posted := make(chan string, 10)
	plane := func(owner string, leading chan struct{}) *diego.ControlPlane {
		p, err := diego.New(diego.Options{
			Store: store, Owner: owner, Guard: converge.Guard{Grace: -1}, LeaderTTL: 3 * time.Second,
			Metrics: &signals{leading: leading},
			Dial: func(p bbs.CellPresence) (auction.CellClient, error) {
				c, err := fleet.Dial(p)
				if err != nil {
					return nil, err
				}
				return notifyingCell{c.(*memcell.Cell), spoken}, nil
			},
			Post: func(_ context.Context, _ string, r task.CallbackResponse) int { posted <- r.TaskGUID; return 200 },
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	firstLeads, secondLeads := make(chan struct{}), make(chan struct{})
	planes := []*diego.ControlPlane{plane("first", firstLeads), plane("second", secondLeads)}
	fleet.ReportTo(everybody{planes[0].BBS, planes})
	if err := fleet.Announce(t.Context(), store); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	firstCtx, stopFirst := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { _ = planes[0].Run(firstCtx) })
	<-firstLeads
	group.Go(func() { _ = planes[1].Run(ctx) })
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

	// until waits for events until n instances of web are RUNNING.
	until := func(n int) {
		t.Helper()
		events, err := planes[1].BBS.Subscribe(ctx, bbs.FromNow, storage.EventFilter{ProcessGUIDs: []string{"web"}})
		if err != nil {
			t.Fatal(err)
		}
		running := func() (count int) {
			for _, err := range store.ActualLRPs(ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
				if err != nil {
					t.Fatal(err)
				}
				count++
			}
			return count
		}
		if running() == n {
			return
		}
		for _, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if running() == n {
				return
			}
		}
	}
	if err := planes[0].BBS.Desire(ctx, desired("web", 20)); err != nil {
		t.Fatal(err)
	}
	until(20)
	stopFirst()
	<-secondLeads
	for _, n := range []int{30, 5} {
		if err := planes[1].BBS.UpdateDeployment(ctx, "web", lrp.Update{Instances: &n}); err != nil {
			t.Fatal(err)
		}
		until(n)
	}
	if err := planes[1].BBS.DesireTask(ctx, desiredTask("job", "http://consumer.example/")); err != nil {
		t.Fatal(err)
	}
	if guid := <-posted; guid != "job" {
		t.Errorf("got the completion of %q", guid)
	}
	cancel()
	group.Wait()
	stopFirst()
}
