package bbs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A consumer takes callbacks. Those for "slow" get no answer until their time is
// up.
type consumer struct {
	mu   sync.Mutex
	took map[string]time.Duration // by task
	open int
	most int
}

// of returns when a task was last reported, and whether it was.
func (c *consumer) of(guid string) (after time.Duration, called bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	after, called = c.took[guid]
	return after, called
}

func (c *consumer) post(began time.Time) Post {
	return func(ctx context.Context, url string, r task.CallbackResponse) int {
		c.mu.Lock()
		c.took[r.TaskGUID] = time.Since(began)
		c.open++
		c.most = max(c.most, c.open)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open--
		}()
		if url == "http://slow" {
			<-ctx.Done()
			return 0
		}
		return 200
	}
}

// calling returns the callbacks of a control plane, and a function that completes a
// task and requests its callback.
func calling(t testing.TB, post Post, limit int) (c *callbacks, complete func(domain, guid, url string)) {
	store := memstore.New(nil)
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	c = &callbacks{
		store: store, post: post, policy: task.CallbackPolicy{}.WithDefaults(), concurrency: 50, limit: cmp.Or(limit, 10_000),
		now: time.Now, metrics: auction.NoMetrics{}, logger: slog.New(slog.DiscardHandler),
		wake: make(chan struct{}, 1), jobs: map[callbackKey]*callbackJob{}, jobsOf: map[string]int{}, busyOf: map[string]int{},
	}
	return c, func(domain, guid, url string) {
		if err := b.DesireTask(t.Context(), task.Desire{GUID: guid, Domain: domain, Definition: task.Definition{
			RunInfo: executor.RunInfo{
				RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
			},
			CompletionCallbackURL: url,
		}}); err != nil {
			t.Fatal(err)
		}
		if err := b.CancelTask(t.Context(), guid); err != nil {
			t.Fatal(err)
		}
		done, err := b.Task(t.Context(), guid)
		if err != nil {
			t.Fatal(err)
		}
		c.add(done)
	}
}

func TestCallbacksOfADomainWithoutAnswersHoldUpNoOther(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := consumer{took: map[string]time.Duration{}}
		c, complete := calling(t, taken.post(time.Now()), 0)
		for i := range 150 {
			complete("slow", fmt.Sprint("slow-", i), "http://slow")
		}
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.run(ctx) })
		synctest.Wait()
		for i := range 20 {
			complete("shop", fmt.Sprint("shop-", i), "http://shop")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for i := range 20 {
			if at, called := taken.of(fmt.Sprint("shop-", i)); !called || at > time.Second {
				t.Errorf("shop-%d: called: %t, after %v", i, called, at)
			}
		}
		time.Sleep(5 * time.Minute) // in which every slow one is tried three times
		synctest.Wait()
		end()
		running.Wait()
		if len(c.jobs) > 0 || len(c.jobsOf) > 0 || c.busy > 0 || len(c.busyOf) > 0 {
			t.Errorf("left: %d callbacks, %v, %d attempts, %v", len(c.jobs), c.jobsOf, c.busy, c.busyOf)
		}
		if len(taken.took) != 170 || taken.most > 50 {
			t.Errorf("%d tasks were reported, up to %d at a time; want 170 and at most 50", len(taken.took), taken.most)
		}
	})
}

func TestADomainWithManyCallbacksLeavesRoomForOthers(t *testing.T) {
	for _, tried := range []bool{false, true} {
		t.Run(fmt.Sprint("tried ", tried), func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				c, complete := calling(t, func(context.Context, string, task.CallbackResponse) int { return 503 }, 100)
				for i := range 120 {
					complete("slow", fmt.Sprint("slow-", i), "http://slow")
				}
				if tried { // and all wait for the next attempt
					c.tick(t.Context())
				}
				complete("shop", "shop-1", "http://shop")
				complete("shop", "shop-2", "http://shop")
				if c.jobsOf["slow"] != 98 || c.jobsOf["shop"] != 2 || len(c.jobs) != 100 {
					t.Errorf("waiting: %v, want 98 and 2", c.jobsOf)
				}
			})
		})
	}
}

func TestACallbackWithAttemptsGoesBeforeOthersOfItsDomain(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		var order []string
		c, complete := calling(t, func(_ context.Context, _ string, r task.CallbackResponse) int {
			time.Sleep(3 * time.Second)
			order = append(order, r.TaskGUID)
			return 503
		}, 0)
		c.concurrency = 1
		for _, guid := range []string{"a", "b", "c"} {
			complete("slow", guid, "http://slow")
		}
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.run(ctx) })
		time.Sleep(time.Minute)
		synctest.Wait()
		end()
		running.Wait()
		if got := strings.Join(order, ""); got != "abababccc" {
			t.Errorf("attempts in the order %s", got)
		}
	})
}

func TestOfFewPlacesOneIsForOtherDomains(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := consumer{took: map[string]time.Duration{}}
		c, complete := calling(t, taken.post(time.Now()), 0)
		c.concurrency = 2
		for i := range 10 {
			complete("slow", fmt.Sprint("slow-", i), "http://slow")
		}
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.run(ctx) })
		synctest.Wait()
		complete("shop", "shop", "http://shop")
		time.Sleep(time.Second)
		if at, called := taken.of("shop"); !called || at > 0 {
			t.Errorf("shop: called: %t, after %v", called, at)
		}
		end()
		running.Wait()
	})
}

// A domain may complete far more tasks than can wait. Each costs the same then.
func BenchmarkCallbacksThatFindNoRoom(b *testing.B) {
	c, _ := calling(b, nil, 0)
	t := task.Task{Definition: task.Definition{CompletionCallbackURL: "http://slow"}, Domain: "slow"}
	for i := range c.limit + b.N {
		if i == c.limit {
			b.ResetTimer()
		}
		one := t
		one.GUID = fmt.Sprint(i)
		c.add(&one)
	}
}

func TestAControlPlaneRefusesCallbacksWithoutTimeForAnAnswer(t *testing.T) {
	var v executor.Validator
	o := DutiesOptions{Callbacks: task.CallbackPolicy{Timeout: -time.Second}}
	o.Validate(&v)
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), "callbacks.timeout: -1s: want") {
		t.Errorf("the error is %v", err)
	}
}
