package system_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A tally adds up counters and counts observations, by names and labels.
type tally struct {
	auction.NoMetrics
	mu sync.Mutex
	of map[string]int64
}

func (a *tally) Count(name string, n int64, labels ...auction.Label) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range labels {
		name += " " + l.Value
	}
	a.of[name] += n
}

func (a *tally) Observe(name string, _ float64, labels ...auction.Label) {
	a.Count(name, 1, labels...)
}

// only are those of the names.
func (a *tally) only(names ...string) map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := map[string]int64{}
	for _, name := range names {
		if n, counted := a.of[name]; counted {
			found[name] = n
		}
	}
	return found
}

func TestCountersFollowWhatHappensToInstancesAndTasks(t *testing.T) {
	counted := &tally{of: map[string]int64{}}
	s := newSystem(t, 1, func(o *diego.Options) { o.Metrics = counted })
	check := func(what string, want map[string]int64) {
		t.Helper()
		if diff := cmp.Diff(want, counted.only("lrp_crashes_total", "tasks_started_total", "tasks_succeeded_total", "tasks_failed_total")); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("well", "")))
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("cancelled", "")))
	check("nothing has begun", map[string]int64{})
	s.must(s.BBS.CancelTask(s.ctx, "cancelled"))
	check("a task is cancelled", map[string]int64{"tasks_failed_total": 1})
	start := task.Start{CellID: "cell-1", InstanceGUID: "i"}
	for range 2 { // the second one changes nothing
		if _, err := s.BBS.StartTask(s.ctx, "well", start); err != nil {
			t.Fatal(err)
		}
	}
	check("a task begins", map[string]int64{"tasks_failed_total": 1, "tasks_started_total": 1})
	s.must(s.BBS.CompleteTask(s.ctx, "well", task.Complete{CellID: start.CellID, InstanceGUID: start.InstanceGUID}))
	check("it ends", map[string]int64{"tasks_failed_total": 1, "tasks_started_total": 1, "tasks_succeeded_total": 1})
	me := lrp.InstanceKey{InstanceGUID: "j", CellID: "cell-1"}
	s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: me}))
	s.must(s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: me, Reason: "a test"}))
	check("an instance crashes", map[string]int64{"tasks_failed_total": 1, "tasks_started_total": 1, "tasks_succeeded_total": 1, "lrp_crashes_total": 1})
}

func TestEachRequestIsCountedByItsCallAndStatus(t *testing.T) {
	counted := &tally{of: map[string]int64{}}
	s := newSystem(t, 1, nil)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.BBS, AllowPlain: true, Metrics: counted})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s.must(b.UpsertDomain(s.ctx, "apps", 0))
	if err := b.UpsertDomain(s.ctx, "", 0); err == nil {
		t.Error("a domain without a name is accepted")
	}
	gather(s, b.ActualLRPs(s.ctx, storage.ActualLRPFilter{}))
	ctx, cancel := context.WithCancel(s.ctx)
	events, err := b.Subscribe(ctx, 0, storage.EventFilter{})
	s.must(err)
	for range events {
		break
	}
	cancel()
	server.CloseClientConnections()
	server.Close() // waits for the end of requests
	want := map[string]int64{
		"requests_total UpsertDomain 200": 1, "requests_total UpsertDomain 400": 1, "request_duration_seconds UpsertDomain": 2,
		"requests_total ActualLRPs 200": 1, "request_duration_seconds ActualLRPs": 1,
		"requests_total Subscribe 200": 1,
	}
	names := []string{"request_duration_seconds Subscribe"}
	for name := range want {
		names = append(names, name)
	}
	if diff := cmp.Diff(want, counted.only(names...)); diff != "" {
		t.Error(diff)
	}
}
