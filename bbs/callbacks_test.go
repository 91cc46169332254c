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
func calling(t *testing.T, post Post, limit int) (c *callbacks, complete func(domain, guid, url string)) {
	store := memstore.New(nil)
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	c = &callbacks{
		store: store, post: post, policy: task.CallbackPolicy{}.WithDefaults(), concurrency: 50, limit: cmp.Or(limit, 10_000),
		now: time.Now, metrics: auction.NoMetrics{}, logger: slog.New(slog.DiscardHandler),
		wake: make(chan struct{}, 1), jobs: map[callbackKey]*callbackJob{}, busyOf: map[string]int{},
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
		if len(c.jobs) > 0 || c.busy > 0 || len(c.busyOf) > 0 {
			t.Errorf("left: %d callbacks, %d attempts, %v", len(c.jobs), c.busy, c.busyOf)
		}
		if len(taken.took) != 170 || taken.most > 50 {
			t.Errorf("%d tasks were reported, up to %d at a time; want 170 and at most 50", len(taken.took), taken.most)
		}
	})
}

func TestADomainWithManyCallbacksLeavesRoomForOthers(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := consumer{took: map[string]time.Duration{}}
		c, complete := calling(t, taken.post(time.Now()), 100)
		for i := range 120 {
			complete("slow", fmt.Sprint("slow-", i), "http://slow")
		}
		complete("shop", "shop-1", "http://shop")
		complete("shop", "shop-2", "http://shop")
		of := map[string]int{}
		for _, j := range c.jobs {
			of[j.domain]++
		}
		if of["slow"] != 98 || of["shop"] != 2 {
			t.Errorf("waiting: %v, want 98 and 2", of)
		}
	})
}

func TestAControlPlaneRefusesCallbacksWithoutTimeForAnAnswer(t *testing.T) {
	var v executor.Validator
	o := DutiesOptions{Callbacks: task.CallbackPolicy{Timeout: -time.Second}}
	o.Validate(&v)
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), "callbacks.timeout: -1s: want") {
		t.Errorf("the error is %v", err)
	}
}
