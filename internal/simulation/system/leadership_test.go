package system_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestAControlPlaneCanBeAskedOnceItIsReady(t *testing.T) {
	plane, err := diego.New(diego.Options{
		Store: memstore.New(nil), Owner: "me",
		Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") },
	})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := plane.WaitReady(over); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nobody is known to lead") {
		t.Errorf("before it runs it says %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- plane.Run(ctx) }()
	if err := plane.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	if err := plane.BBS.Desire(ctx, desired("web", 1)); err != nil {
		t.Errorf("it is ready and says %v", err)
	}
	stop()
	<-ended
}

func TestALeaderThatMeetsItsNamesakeSaysSo(t *testing.T) {
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	var log bytes.Buffer
	lead := func() *bbs.Leadership {
		l, err := bbs.NewLeadership(bbs.LeadershipOptions{Store: store, Owner: "me", Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := lead(), lead()
	if log.Len() > 0 {
		t.Errorf("it says %s before anybody has noticed", &log)
	}
	if err := first.Tick(t.Context()); err != nil || !strings.Contains(log.String(), "another process has the same name") {
		t.Errorf("the first one says %q, %v", &log, err)
	}
	if leads, _ := second.Leading(); !leads {
		t.Error("the second one does not lead")
	}
	// One that was late has lost the leadership rightly.
	log.Reset()
	third := lead()
	clock.Advance(bbs.MaxPresenceTTL)
	fourth := lead()
	if err := third.Tick(t.Context()); err != nil || log.Len() > 0 {
		t.Errorf("one that was late says %q, %v", &log, err)
	}
	if leads, _ := fourth.Leading(); !leads {
		t.Error("the last one does not lead")
	}
}

// A failingStore fails to write while there is an error.
type failingStore struct {
	storage.Store
	commits, leases error
}

func (s *failingStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if s.commits != nil {
		return 0, s.commits
	}
	return s.Store.Commit(ctx, b)
}

func (s *failingStore) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.leases != nil {
		return storage.Lease{}, s.leases
	}
	return s.Store.Acquire(ctx, l, ttl)
}

func (s *failingStore) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.leases != nil {
		return storage.Lease{}, s.leases
	}
	return s.Store.Renew(ctx, l, ttl)
}

func TestALeaderThatWasPausedLongerThanItsLeaseBeginsAnew(t *testing.T) {
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	l, err := bbs.NewLeadership(bbs.LeadershipOptions{Store: store, Owner: "me", TTL: 15 * time.Second, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	epoch := func(pause time.Duration) int64 {
		t.Helper()
		clock.Advance(pause)
		if err := l.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		fence, err := l.Fence()
		if err != nil {
			t.Fatal(err)
		}
		return fence.Epoch
	}
	first := epoch(0)
	if next := epoch(15 * time.Second); next != first {
		t.Error("it begins anew though its lease has not ended before")
	}
	second := epoch(15*time.Second + time.Millisecond)
	if second == first {
		t.Error("it goes on as if it had led all the time")
	}
	if third := epoch(5 * time.Second); third != second {
		t.Error("it begins anew again")
	}
}

func TestCallersLearnWhyNobodyLeadsWhileTheStoreFails(t *testing.T) {
	full := errors.New("database or disk is full")
	for _, test := range []struct {
		name  string
		fails func(*failingStore)
	}{
		{"everything fails", func(s *failingStore) { s.commits, s.leases = full, full }},
		{"leases work and commits fail", func(s *failingStore) { s.commits = full }},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := memcell.NewClock()
			store := &failingStore{Store: memstore.New(&memstore.Options{Now: clock.Now})}
			plane, err := diego.New(diego.Options{
				Store: store, Owner: "me", Address: "https://me.example", Now: clock.Now,
				Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") },
			})
			if err != nil {
				t.Fatal(err)
			}
			turn := func(name string) error {
				if err := plane.Leadership.Tick(t.Context()); err != nil && !errors.Is(err, full) {
					t.Fatal(err)
				}
				err := plane.BBS.Desire(t.Context(), desired(name, 1))
				clock.Advance(5 * time.Second)
				return err
			}
			if err := turn("before"); err != nil {
				t.Fatal(err)
			}
			test.fails(store)
			var not *bbs.NotLeaderError
			for i := 0; !errors.As(err, &not); i++ { // until the lease has run out, or was given up
				if err = turn(fmt.Sprint("during-", i)); err == nil || i == 6 {
					t.Fatalf("while the disk is full: %v", err)
				}
			}
			if not.Leader != "" || not.Address != "" || !strings.Contains(err.Error(), "its store fails: ") || !strings.Contains(not.Why, full.Error()) {
				t.Errorf("while the disk is full: %v", err)
			}
			if body, err := httpapi.ProblemBody(not); err != nil || !strings.Contains(string(body), full.Error()) {
				t.Errorf("over HTTP: %s, %v", body, err)
			}
			store.commits, store.leases = nil, nil
			for i := range 6 {
				err = turn(fmt.Sprint("after-", i))
			}
			if err != nil {
				t.Errorf("once there is room: %v", err)
			}
		})
	}
}

// gauges keep the last value of each gauge.
type gauges struct {
	auction.NoMetrics
	last map[string]float64
}

func (g gauges) Gauge(name string, value float64, _ ...auction.Label) { g.last[name] = value }

// holders are the owners of the leases of leaders.
func holders(t *testing.T, store storage.Reader) (owners []string) {
	t.Helper()
	for lease, err := range store.Leases(t.Context(), storage.LeaderLease) {
		if err != nil {
			t.Fatal(err)
		}
		owners = append(owners, lease.Owner)
	}
	return owners
}

// A candidate wants to lead.
type candidate interface {
	Tick(context.Context) error
	Ready(context.Context) bbs.Readiness
}

func TestAProcessWithAnotherClockThanItsStoreDoesNotBeginToLead(t *testing.T) {
	dial := func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") }
	for role, candidate := range map[string]func(storage.Store, func() time.Time, time.Duration, auction.Metrics) (candidate, error){
		"bbs": func(store storage.Store, now func() time.Time, skew time.Duration, m auction.Metrics) (candidate, error) {
			return diego.New(diego.Options{Store: store, Dial: dial, Owner: "me", Now: now, MaxClockSkew: skew, Metrics: m})
		},
		"auctioneer": func(store storage.Store, now func() time.Time, skew time.Duration, m auction.Metrics) (candidate, error) {
			b, err := bbs.New(bbs.Options{Store: store})
			if err != nil {
				return nil, err
			}
			return auctioneer.New(auctioneer.Options{Store: store, BBS: b, Dial: dial, Owner: "me", Now: now, MaxClockSkew: skew, Metrics: m})
		},
	} {
		for _, c := range []struct {
			ahead time.Duration // the store's clock
			max   time.Duration
			leads bool
		}{
			{0, 0, true},
			{time.Minute, 0, true},
			{-time.Minute, 0, true},
			{time.Minute + time.Millisecond, 0, false},
			{-time.Minute - time.Millisecond, 0, false},
			{-24 * time.Hour, 0, false},
			{2 * time.Second, time.Second, false},
			{2 * time.Minute, 3 * time.Minute, true},
			{1000 * time.Hour, -1, true},
		} {
			t.Run(fmt.Sprintf("%s, store ahead by %v of %v", role, c.ahead, c.max), func(t *testing.T) {
				clock, figures := memcell.NewClock(), gauges{last: map[string]float64{}}
				ahead := c.ahead
				store := memstore.New(&memstore.Options{Now: func() time.Time { return clock.Now().Add(ahead) }})
				p, err := candidate(store, clock.Now, c.max, figures)
				if err != nil {
					t.Fatal(err)
				}
				err = p.Tick(t.Context())
				if c.leads {
					if err != nil || !p.Ready(t.Context()).Ready || !slices.Equal(holders(t, store), []string{"me"}) {
						t.Errorf("got %v, %+v, %q leads; want that it leads", err, p.Ready(t.Context()), holders(t, store))
					}
					return
				}
				var skew *bbs.ClockSkewError
				if !errors.As(err, &skew) || !errors.Is(err, bbs.ErrClockSkew) {
					t.Fatalf("got %v, want a *ClockSkewError", err)
				}
				if want := (bbs.ClockSkewError{Role: role, Store: clock.Now().Add(c.ahead), Process: clock.Now(), Max: cmp.Or(c.max, time.Minute)}); *skew != want {
					t.Errorf("got %+v, want %+v", *skew, want)
				}
				if r := p.Ready(t.Context()); r.Ready || !strings.Contains(r.Why, skew.Error()) {
					t.Errorf("it is %+v, want the reason", r)
				}
				if got := holders(t, store); got != nil {
					t.Errorf("the lease is held by %q, want it left alone", got)
				}
				if got := figures.last["store_clock_skew_seconds"]; got != c.ahead.Seconds() {
					t.Errorf("store_clock_skew_seconds is %v, want %v", got, c.ahead.Seconds())
				}
				ahead = 0
				if err := p.Tick(t.Context()); err != nil || !p.Ready(t.Context()).Ready {
					t.Errorf("the clock was mended; got %v, %+v", err, p.Ready(t.Context()))
				}
			})
		}
	}
}

func TestALeaderGoesOnWhenTheClockOfItsStoreJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			clock, figures := memcell.NewClock(), gauges{last: map[string]float64{}}
			var ahead time.Duration
			store := memstore.New(&memstore.Options{Now: func() time.Time { return clock.Now().Add(ahead) }})
			var log bytes.Buffer
			join := func(owner string, m auction.Metrics, w io.Writer) *bbs.Leadership {
				l, err := bbs.NewLeadership(bbs.LeadershipOptions{Store: store, Owner: owner, Now: clock.Now, Metrics: m, Logger: slog.New(slog.NewTextHandler(w, nil))})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			leader, standby := join("leader", figures, &log), join("standby", nil, io.Discard)
			if err := errors.Join(leader.Tick(t.Context()), standby.Tick(t.Context())); err != nil {
				t.Fatal(err)
			}
			ahead = jump
			// The standby comes first: it sees a lease that has expired, if the clock is ahead.
			for range 24 { // two minutes and the tick before them
				if err := standby.Tick(t.Context()); !errors.Is(err, bbs.ErrClockSkew) {
					t.Fatalf("the standby says %v, want a *ClockSkewError", err)
				}
				if err := leader.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := leader.Fence(); err != nil {
					t.Fatal(err)
				}
				clock.Advance(5 * time.Second)
			}
			if n := strings.Count(log.String(), "the clock of this process differs from its store's"); n != 2 {
				t.Errorf("the leader warned %d times in two minutes, want 2:\n%s", n, &log)
			}
			if got := figures.last["store_clock_skew_seconds"]; got != jump.Seconds() {
				t.Errorf("store_clock_skew_seconds is %v, want %v", got, jump.Seconds())
			}
		})
	}
}

// A pausingStore stops its caller's process for an hour after it has read the clock.
type pausingStore struct {
	storage.Store
	pause func()
}

func (s pausingStore) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	s.pause()
	return now, err
}

func (s pausingStore) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	s.pause()
	l, err := s.Store.Renew(ctx, l, ttl)
	s.pause()
	return l, err
}

func TestAPauseBetweenTheReadingsOfTwoClocksIsNoSkew(t *testing.T) {
	clock := memcell.NewClock()
	store := pausingStore{memstore.New(&memstore.Options{Now: clock.Now}), func() { clock.Advance(time.Hour) }}
	var log bytes.Buffer
	l, err := bbs.NewLeadership(bbs.LeadershipOptions{Store: store, Owner: "me", Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := holders(t, store.Store); log.Len() > 0 {
		t.Errorf("%q leads and logs %s", got, &log)
	}
}

func TestAProcessThatCannotAskForTheLeadershipSaysSo(t *testing.T) {
	store := &badStore{Store: memstore.New(nil), renew: errBroken}
	var log bytes.Buffer
	plane, err := diego.New(diego.Options{
		Store: store, Owner: "me", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("nobody") },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := plane.Leadership.Tick(t.Context()); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	}
	if r := plane.Ready(t.Context()); r.Ready || !strings.Contains(r.Why, errBroken.Error()) {
		t.Errorf("%+v, want the reason", r)
	}
	store.renew = nil
	if err := plane.Leadership.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := plane.Ready(t.Context()); !r.Ready {
		t.Errorf("%+v, want it ready", r)
	}
	if n := strings.Count(log.String(), "could not be asked for"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, log.String())
	}
}
