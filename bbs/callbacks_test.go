package bbs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A consumer takes callbacks. Those for hosts whose names begin with "slow" get no
// answer until their time is up.
type consumer struct {
	mu     sync.Mutex
	took   map[string]time.Duration // by task
	open   int
	most   int
	openAt map[string]int // by URL
	mostAt int
}

func newConsumer() *consumer {
	return &consumer{took: map[string]time.Duration{}, openAt: map[string]int{}}
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
		c.openAt[url]++
		c.mostAt = max(c.mostAt, c.openAt[url])
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open--
			c.openAt[url]--
		}()
		if strings.HasPrefix(url, "http://slow") {
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
	c = newCallbacks(store, DutiesOptions{
		Post: post, MaxCallbacks: limit, Now: time.Now, Metrics: auction.NoMetrics{}, Logger: slog.New(slog.DiscardHandler),
	})
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
		taken := newConsumer()
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
		if len(c.jobs) > 0 || len(c.jobsOf) > 0 || c.busy > 0 || len(c.busyOf) > 0 || len(c.busyAt) > 0 {
			t.Errorf("left: %d callbacks, %v, %d attempts, %v, %v", len(c.jobs), c.jobsOf, c.busy, c.busyOf, c.busyAt)
		}
		if len(taken.took) != 170 || taken.mostAt > 125 {
			t.Errorf("%d tasks were reported, up to %d at a time to one host; want 170 and at most 125", len(taken.took), taken.mostAt)
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

func TestFirstAttemptsGoBeforeRepeatsAndTheMostRepeatedNext(t *testing.T) {
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
		if got := strings.Join(order, ""); got != "abcababcc" {
			t.Errorf("attempts in the order %s", got)
		}
	})
}

func TestOfFewPlacesOneIsForOtherDomains(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := newConsumer()
		c, complete := calling(t, taken.post(time.Now()), 0)
		c.concurrency = 2
		for i := range 10 {
			complete("slow", fmt.Sprint("slow-", i), fmt.Sprint("http://slow-", i))
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

func TestManyCallbacksWithoutAnswersHoldUpNoNeighbour(t *testing.T) {
	for name, hanging := range map[string]func(i int) (domain, url string){
		"one host, the neighbour's domain":   func(int) (string, string) { return "shared", "http://slow" },
		"one host, many domains":             func(i int) (string, string) { return fmt.Sprint("slow-", i%100), "http://slow" },
		"many hosts, the neighbour's domain": func(i int) (string, string) { return "shared", fmt.Sprint("http://slow-", i) },
		"many hosts, many domains":           func(i int) (string, string) { return fmt.Sprint("slow-", i), fmt.Sprint("http://slow-", i) },
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				taken := newConsumer()
				c, complete := calling(t, taken.post(time.Now()), 0)
				for i := range 600 {
					domain, url := hanging(i)
					complete(domain, fmt.Sprint("job-", i), url)
				}
				ctx, end := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { c.run(ctx) })
				time.Sleep(9500 * time.Millisecond) // the first have been tried, and are due again
				began := 9500 * time.Millisecond
				complete("shared", "shop", "http://shop")
				time.Sleep(2 * time.Minute)
				if at, called := taken.of("shop"); !called || at-began > time.Second {
					t.Errorf("the neighbour was called: %t, after %v", called, at-began)
				}
				end()
				running.Wait()
				if taken.mostAt > 125 || taken.most > 1000 {
					t.Errorf("up to %d callbacks at a time, up to %d of one host; want at most 1000 and 125", taken.most, taken.mostAt)
				}
			})
		})
	}
}

// There are ten times as many callbacks as places, as with the defaults of both.
func TestTheLastOfAllThatMayWaitIsTriedBeforeItsTaskExpires(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := newConsumer()
		c, complete := calling(t, taken.post(time.Now()), 200)
		c.concurrency = 20
		for i := range 199 {
			complete(fmt.Sprint("slow-", i), fmt.Sprint("job-", i), fmt.Sprint("http://slow-", i))
		}
		complete("shop", "shop", "http://shop")
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.run(ctx) })
		time.Sleep(2 * time.Minute)
		if at, called := taken.of("shop"); !called || at > 80*time.Second {
			t.Errorf("shop: called: %t, after %v; want at most 80 s", called, at)
		}
		end()
		running.Wait()
	})
}

func TestACallbackThatIsRequestedAgainIsARepeat(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		c, _ := calling(t, nil, 0)
		add := func(guid string, demoted time.Duration) {
			now := time.Now()
			c.add(&task.Task{
				GUID: guid, Domain: guid, Definition: task.Definition{CompletionCallbackURL: "http://" + guid},
				State: task.Completed, FirstCompletedAt: now, UpdatedAt: now.Add(demoted),
			})
		}
		add("again", 30*time.Second) // it was RESOLVING meanwhile
		add("new", 0)
		for _, want := range []string{"new", "again"} {
			if job, _ := c.take(); job == nil || job.key.guid != want {
				t.Errorf("taken: %+v, want %s", job, want)
			}
		}
	})
}

func TestAPlaceGoesToTheHostThenToTheDomainWithTheFewestThenToTheOldest(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		c, _ := calling(t, nil, 0)
		for _, at := range []struct{ guid, domain, url string }{
			{"z-1", "a", "http://one"},
			{"y-2", "b", "http://one"},
			{"x-3", "a", "https://two"},
			{"w-4", "a", "http://One.:80/path?query"},
			{"v-5", "b", "https://two:443"},
			{"u-6", "b", "https://two:444"},
		} {
			c.add(&task.Task{
				GUID: at.guid, Domain: at.domain, Definition: task.Definition{CompletionCallbackURL: at.url},
				State: task.Completed, FirstCompletedAt: time.Now(), UpdatedAt: time.Now(),
			})
		}
		var order []string
		for job, _ := c.take(); job != nil; job, _ = c.take() {
			order = append(order, job.key.guid)
		}
		if got := strings.Join(order, " "); got != "z-1 v-5 u-6 x-3 y-2 w-4" {
			t.Errorf("taken in the order %s", got)
		}
	})
}

// A busyStore counts the transactions that callbacks make at a time.
type busyStore struct {
	storage.Passthrough
	mu         sync.Mutex
	open, most int
}

func (s *busyStore) slow() {
	s.mu.Lock()
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
}

func (s *busyStore) Task(ctx context.Context, guid string) (*task.Task, error) {
	s.slow()
	return s.Passthrough.Task(ctx, guid)
}

func TestCallbacksLeaveTheStoreToOthers(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		taken := newConsumer()
		c, complete := calling(t, taken.post(time.Now()), 0)
		store := &busyStore{Passthrough: storage.Passthrough{Store: c.store}}
		c.store = store
		for i := range 600 {
			complete("slow", fmt.Sprint("job-", i), fmt.Sprint("http://slow-", i))
		}
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.run(ctx) })
		time.Sleep(20 * time.Second) // with repeats
		end()
		running.Wait()
		if store.most != 50 || len(taken.took) != 600 {
			t.Errorf("%d at a time at the store, and %d callbacks; want 50 and 600", store.most, len(taken.took))
		}
	})
}

// A server that never ends its headers holds memory for a while.
func TestACallbackReadsFewHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 20<<10))
	}))
	defer server.Close()
	client := callbackClient(reach.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	defer client.CloseIdleConnections()
	if status := PostJSON(client)(t.Context(), server.URL, task.CallbackResponse{TaskGUID: "job", CreatedAt: time.Unix(1, 0)}); status != 0 {
		t.Errorf("the status is %d, want none", status)
	}
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
