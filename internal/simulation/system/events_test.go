package system_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// take reads n events of a subscription and ends it.
func take(t *testing.T, b bbs.API, after storage.Cursor, f storage.EventFilter, n int) (list []storage.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := b.Subscribe(ctx, after, f)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, e); len(list) == n {
			break
		}
	}
	return list
}

func TestASubscriberThatResumesMissesNothingAndSeesNothingTwice(t *testing.T) {
	s := newSystem(t, 2, nil)
	for i := range 5 {
		s.must(s.BBS.Desire(s.ctx, desired(fmt.Sprintf("web-%d", i), 1)))
		s.step()
	}
	log, err := s.store.Log(s.ctx)
	s.must(err)
	all := take(t, s.BBS, bbs.FromStart, storage.EventFilter{}, int(log.Newest))
	var parts []storage.Event
	for position := storage.Cursor(0); position < log.Newest; {
		part := take(t, s.BBS, position, storage.EventFilter{}, min(7, int(log.Newest-position)))
		parts = append(parts, part...)
		position = part[len(part)-1].Sequence
	}
	if len(parts) != len(all) {
		t.Fatalf("got %d events in parts and %d at once", len(parts), len(all))
	}
	for i := range all {
		if all[i].Sequence != storage.Cursor(i+1) || parts[i].Sequence != all[i].Sequence {
			t.Fatalf("event %d has number %d at once and %d in parts", i+1, all[i].Sequence, parts[i].Sequence)
		}
	}
	// Another process goes on where this one was.
	other := s.plane("plane-2", nil)
	if rest := take(t, other.BBS, log.Newest-1, storage.EventFilter{}, 1); rest[0].Sequence != log.Newest {
		t.Errorf("got event %d, want %d", rest[0].Sequence, log.Newest)
	}
}

func TestASubscriptionFromNowBeginsWhenItIsMade(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.UpsertDomain(s.ctx, "before", 0))
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	events, err := s.BBS.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
	s.must(err)
	s.must(s.BBS.UpsertDomain(s.ctx, "after", 0))
	for e, err := range events {
		if ctx.Err() != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's error in the end", err)
			}
			continue
		}
		if s.must(err); e.Domain.Domain != "after" {
			t.Errorf("got %+v", e.Domain)
		}
		cancel()
	}
}

func TestASubscriberGetsWhatItsFilterWants(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.must(s.BBS.Desire(s.ctx, desired("other", 1)))
	s.step()
	for _, e := range take(t, s.BBS, bbs.FromStart, storage.EventFilter{
		ProcessGUIDs: []string{"web"}, CellIDs: []string{"cell-2"}, Kinds: []string{lrp.InstanceChanged.String()},
	}, 2) {
		if subject := e.Subject(); subject.ProcessGUID != "web" || subject.CellAfter != "cell-2" {
			t.Errorf("got an event about %+v", subject)
		}
	}
}

func TestASubscriberThatIsTooSlowForTheLogIsTold(t *testing.T) {
	s := newSystem(t, 1, nil)
	small := memstore.New(&memstore.Options{Now: s.clock.Now, Events: 10})
	plane := s.plane("plane-2", func(o *diego.Options) { o.Store = small })
	s.must(plane.Tick(s.ctx))
	events, err := plane.BBS.Subscribe(s.ctx, bbs.FromStart, storage.EventFilter{})
	s.must(err)
	for i := range 50 {
		s.must(plane.BBS.UpsertDomain(s.ctx, fmt.Sprint("domain-", i), 0))
	}
	var last error
	for _, err := range events {
		last = err
	}
	if !errors.Is(last, storage.ErrGone) {
		t.Errorf("got %v, want ErrGone", last)
	}
}

// Who wants few events is told how far the log is, and goes on from there after
// a cut: its last event may have left the log long ago.
func TestASubscriberThatWantsFewEventsStaysInTheLog(t *testing.T) {
	s := newSystem(t, 0, nil)
	small := memstore.New(&memstore.Options{Now: s.clock.Now, Events: 10})
	plane := s.plane("plane-2", func(o *diego.Options) { o.Store = small })
	s.must(plane.Tick(s.ctx))
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: plane.BBS, AllowPlain: true, Heartbeat: time.Millisecond})
	s.must(err)
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/bbs/events?after=start&domain=quiet", nil)
	s.must(err)
	answer, err := http.DefaultClient.Do(request)
	s.must(err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 50 {
		s.must(plane.BBS.UpsertDomain(s.ctx, fmt.Sprint("domain-", i), 0))
		log, err := small.Log(s.ctx)
		s.must(err)
		for want := fmt.Sprint("id: ", log.Newest); lines.Text() != want; {
			if !lines.Scan() {
				t.Fatalf("the position %d was never told: %v", log.Newest, lines.Err())
			}
		}
	}
}

func TestASubscriberReadsTheLogPageByPage(t *testing.T) {
	b, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	for range 1234 {
		if err := b.UpsertDomain(t.Context(), "apps", 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range take(t, b, bbs.FromStart, storage.EventFilter{Domains: []string{"apps"}}, 1234) {
		if e.Sequence != storage.Cursor(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Sequence)
		}
	}
}

// nothing carries out no effects.
type nothing struct{}

func (nothing) Carry([]lrp.Effect, []task.Effect) {}

// Subscribers that keep up, fall behind what the others read together, or leave
// while all wait for them to read on: each gets every event once.
func TestSubscribersOfAnyPaceMissNothing(t *testing.T) {
	const events = 400
	b, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: nothing{}, EventTail: 4})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	follow := func(ctx context.Context, until int, pause func()) {
		list, err := b.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			next := storage.Cursor(1)
			for e, err := range list {
				if err != nil || e.Sequence != next {
					t.Errorf("got event %d, %v; want %d", e.Sequence, err, next)
					return
				}
				if next++; next > storage.Cursor(until) {
					return
				}
				pause()
			}
		})
	}
	goOn := make(chan struct{})
	for range 4 {
		follow(t.Context(), events, func() {})
	}
	follow(t.Context(), events, func() { <-goOn })
	ctx, leave := context.WithCancel(t.Context())
	gone, err := b.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() {
		for _, err := range gone {
			if err != nil {
				return
			}
		}
	})
	for i := range events {
		if err := b.UpsertDomain(t.Context(), "apps", 0); err != nil {
			t.Fatal(err)
		}
		if i == events/2 {
			leave()
		}
	}
	close(goOn)
	group.Wait()
	leave()
}

func TestATimelineTellsWhatHappenedToAnInstanceAndWhy(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.step()
	s.cells[0].Crash("web", 0, "exit status 137: out of memory")
	s.cells.Step(s.ctx)
	s.step()
	entries, err := s.BBS.Timeline(s.ctx, "web", 0)
	s.must(err)
	var texts []string
	for i, e := range entries {
		if texts = append(texts, e.Text); e.Event.Kind == lrp.GroupChanged || i > 0 && e.Sequence <= entries[i-1].Sequence {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
	for _, want := range []string{"placed on cell-1", "crashed: exit status 137: out of memory (crash 1, restarts at once)"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in\n\t%s", want, strings.Join(texts, "\n\t"))
		}
	}
}

func TestASubscriptionBeginsNowhereElse(t *testing.T) {
	s := newSystem(t, 1, nil)
	if _, err := s.BBS.Subscribe(s.ctx, -7, storage.EventFilter{}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("after event -7: %v", err)
	}
	for kind, known := range map[string]bool{"lrp_created": false, "actual_lrp_crashed": true, "task_created": true, "domain_upserted": true} {
		events, err := s.BBS.Subscribe(s.ctx, bbs.FromNow, storage.EventFilter{Kinds: []string{kind}})
		if known != (err == nil && events != nil) || err != nil && !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("events of kind %s: %v", kind, err)
		}
	}
}

func TestOneCallerCannotTakeAllSubscriptions(t *testing.T) {
	a := newAuthority(t)
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.BBS, MaxSubscriptions: 5})
	s.must(err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = a.server("bbs-1", "diego-bbs")
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	// subscribe opens a subscription and holds it until end is called.
	subscribe := func(name string) (end func(), err error) {
		client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{
			Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, name, "diego-consumer"), Pause: time.Millisecond, Patience: time.Millisecond,
		})
		s.must(err)
		ctx, cancel := context.WithCancel(t.Context())
		events, err := client.Subscribe(ctx, bbs.FromStart, storage.EventFilter{})
		s.must(err)
		next, stop := iter.Pull2(events)
		_, err, _ = next()
		return func() { cancel(); stop() }, err
	}
	eachMayHaveTwo(t, "subscription", subscribe, "router", "")
}

// eachMayHaveTwo opens four of what one caller may have two of at a time, and one
// for each of the others. All end with the test; end ends the first.
func eachMayHaveTwo(t *testing.T, what string, open func(name string) (end func(), err error), others ...string) (end func()) {
	t.Helper()
	for i := range 4 {
		ends, err := open("greedy")
		t.Cleanup(ends)
		if i == 0 {
			end = ends
		}
		var many *problem.TooManyError
		if i < 2 && err != nil || i >= 2 && (!errors.As(err, &many) || many.Limit != 2 || !strings.Contains(err.Error(), `"greedy"`)) {
			t.Errorf("%s %d of one caller: got %v", what, i+1, err)
		}
	}
	for _, name := range others {
		ends, err := open(name)
		t.Cleanup(ends)
		if err != nil {
			t.Errorf("the first %s of %q: %v", what, name, err)
		}
	}
	return end
}

func TestASubscriptionTooManyIsRefusedWithTheLimit(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	figures := new(httpapi.Prometheus)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.BBS, AllowPlain: true, MaxSubscriptions: 1, Metrics: figures})
	s.must(err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true, Pause: time.Millisecond, Patience: time.Millisecond})
	s.must(err)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	events, err := client.Subscribe(ctx, bbs.FromStart, storage.EventFilter{})
	s.must(err)
	for _, err := range events {
		s.must(err)
		second, err := client.Subscribe(ctx, bbs.FromStart, storage.EventFilter{})
		s.must(err)
		var last error
		for _, last = range second {
		}
		var many *problem.TooManyError
		if !errors.As(last, &many) || many.Limit != 1 {
			t.Errorf("the second one ends with %v", last)
		}
		break
	}
	if got := text(t, figures); !strings.Contains(got, "diego_subscriptions_refused_total") {
		t.Errorf("the figures are\n%s", got)
	}
}
