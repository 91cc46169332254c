package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// A cell is a Manager over a scripted backend in virtual time.
type cell struct {
	*manager.Manager
	t       *testing.T
	now     time.Time
	backend *scripted.Backend
	news    executor.Subscription
	history []string
	faults  map[scripted.Op]error
	delays  map[manager.JobKind]time.Duration
}

func newCell(t *testing.T, edit ...func(*manager.Options)) *cell {
	t.Helper()
	c := &cell{t: t, now: epoch, faults: map[scripted.Op]error{}, delays: map[manager.JobKind]time.Duration{}}
	clock := func() time.Time { return c.now }
	c.backend = scripted.New(scripted.Options{Now: clock, Fault: func(op scripted.Op, _ string) error { return c.faults[op] }})
	o := manager.Options{
		Backend: c.backend, Now: clock, Delay: func(j manager.Job) time.Duration { return c.delays[j.Kind] },
		Capacity: manager.Capacity{MemoryMB: 1000, DiskMB: 2000, Containers: 10, PIDs: 5000},
	}
	for _, e := range edit {
		e(&o)
	}
	m, err := manager.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.Manager, c.news = m, m.Subscribe()
	c.advance(0)
	return c
}

// advance lets virtual time pass and notes the events, with the time since the
// epoch.
func (c *cell) advance(d time.Duration) {
	c.t.Helper()
	end := c.now.Add(d)
	for range 1_000_000 {
		c.Tick(context.Background())
		c.note()
		next, ok := c.Next()
		if !ok || next.After(end) {
			c.now = end
			return
		}
		if next.After(c.now) {
			c.now = next
		}
	}
	c.t.Fatal("time does not pass")
}

func (c *cell) note() {
	for {
		e, ok, err := c.news.Poll()
		if err != nil {
			c.t.Fatal(err)
		}
		if !ok {
			return
		}
		c.history = append(c.history, fmt.Sprintf("%v %s", c.now.Sub(epoch), describe(e.Container)))
	}
}

// describe is a container's state and result in a few words.
func describe(c executor.Container) string {
	s := c.State.String()
	r := c.RunResult
	switch {
	case c.State == executor.Running && !c.Routable:
		s += " not ready"
	case c.State != executor.Completed:
	case r.Stopped:
		s += " stopped"
	case r.Expired:
		s += " expired"
	case r.Retryable:
		s += " never began: " + r.FailureReason
	case r.Failed:
		s += " failed: " + r.FailureReason
	default:
		s += " well"
	}
	return s
}

// told is what subscribers have heard since it was last asked.
func (c *cell) told() string {
	s := strings.Join(c.history, "\n")
	c.history = nil
	return s
}

func (c *cell) mustTell(want ...string) {
	c.t.Helper()
	if got, want := c.told(), strings.Join(want, "\n"); got != want {
		c.t.Errorf("subscribers heard\n%s\nwant\n%s", got, want)
	}
}

// launch reserves a container and gives it its work.
func (c *cell) launch(guid string, w manager.Work) {
	c.t.Helper()
	c.launchFor("", guid, w)
}

// launchFor launches a container for a tenant.
func (c *cell) launchFor(domain, guid string, w manager.Work) {
	c.t.Helper()
	if domain != "" {
		w.Tags = map[string]string{executor.TagDomain: domain}
	}
	c.reserve(guid)
	c.note()
	c.told() // the reservation
	if err := c.Initialize(guid, w); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cell) reserve(guid string) {
	c.t.Helper()
	for _, r := range c.Reserve(manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 100, DiskMB: 100}}) {
		c.t.Fatal(r.Err)
	}
}

func (c *cell) stop(guid string) {
	c.t.Helper()
	if err := c.Stop(guid); err != nil {
		c.t.Errorf("Stop: %v", err)
	}
}

// mustBeClean checks that nothing is left: no container, here and on the host,
// and all resources.
func (c *cell) mustBeClean() {
	c.t.Helper()
	if list := c.List(); len(list) != 0 {
		c.t.Errorf("%d containers are left, the first is %s %s", len(list), list[0].GUID, describe(list[0]))
	}
	if guids, _ := c.backend.List(context.Background()); len(guids) != 0 {
		c.t.Errorf("the host still has %q", guids)
	}
	if !c.Remaining().Equal(c.Total()) {
		c.t.Errorf("%+v remains of %+v", c.Remaining(), c.Total())
	}
}

// do is a process that carries out statements.
func do(statements ...string) executor.Action {
	return executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: statements, User: "app"}}
}

func work(a executor.Action) manager.Work {
	return manager.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: a}}
}

func with(w manager.Work, edit func(*manager.Work)) manager.Work {
	edit(&w)
	return w
}

func ptr[T any](x T) *T { return &x }

func serial(actions ...executor.Action) executor.Action {
	return executor.Action{Serial: &executor.SerialAction{Actions: actions}}
}

func parallel(actions ...executor.Action) executor.Action {
	return executor.Action{Parallel: &executor.ParallelAction{Actions: actions}}
}

func codependent(actions ...executor.Action) executor.Action {
	return executor.Action{Codependent: &executor.CodependentAction{Actions: actions}}
}

func try(a executor.Action) executor.Action {
	return executor.Action{Try: &executor.TryAction{Action: a}}
}

func timeout(ms int64, a executor.Action) executor.Action {
	return executor.Action{Timeout: &executor.TimeoutAction{TimeoutMs: ms, Action: a}}
}
