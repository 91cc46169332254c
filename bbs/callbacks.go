package bbs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A Post sends a completion to a task's callback URL and returns the status of
// the answer, 0 if none came. It is called concurrently.
type Post func(ctx context.Context, url string, r task.CallbackResponse) (status int)

// PostJSON returns a Post that sends JSON with the given client. A nil client
// reaches the addresses that a control plane reaches by default, without
// Options.CallbackAllow and CallbackDeny. An invalid URL, or one that leads to a
// denied address, gets the status 400.
//
// Unless the client has a rule for redirects, PostJSON follows those that repeat
// the request unchanged. Any other redirect would drop the completion, so its own
// status is returned.
func PostJSON(client *http.Client) Post {
	if client == nil {
		client = callbackClient(reach.Policy{})
	}
	return postJSON(client, slog.New(slog.DiscardHandler))
}

// callbackClient returns a client that keeps little of each answer, because many servers
// may answer slowly at a time. Of headers, only a Location counts.
func callbackClient(policy reach.Policy) *http.Client {
	client := policy.Client(0)
	client.Transport.(*http.Transport).MaxResponseHeaderBytes = 16 << 10
	return client
}

func postJSON(client *http.Client, logger *slog.Logger) Post {
	own := *client
	if own.CheckRedirect == nil {
		own.CheckRedirect = keepPosting
	}
	return func(ctx context.Context, url string, r task.CallbackResponse) int {
		body, err := json.Marshal(r)
		if err != nil {
			return 0
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return http.StatusBadRequest // the URL is at fault, and will be
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := own.Do(request)
		var refused *reach.RefusedError
		if errors.As(err, &refused) { // err has the URL, with what is secret in it
			logger.Warn("a task's callback was not sent to an address that may not be reached; Options.CallbackAllow (setting callback_allow) allows addresses", "task", r.TaskGUID, "err", refused)
			return http.StatusBadRequest
		}
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		// Reading up to this much of the body lets the connection be used again.
		_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
		return answer.StatusCode
	}
}

func keepPosting(next *http.Request, via []*http.Request) error {
	const most = 5
	if next.Method != http.MethodPost || len(via) >= most {
		return http.ErrUseLastResponse
	}
	return nil
}

// callbacks notify consumers of completed tasks, at least once each. A task is
// resolved before and deleted after its callback; if a failure or a restart
// interrupts that, convergence requests the callback again (000 §Resolving
// Completed Tasks).
//
// A server decides how long its callbacks take, up to the timeout of each. So neither
// a host nor a domain can keep the callbacks of others from being made; see take and
// add.
type callbacks struct {
	store       storage.Store
	post        Post
	policy      task.CallbackPolicy // with its defaults
	tasks       task.Policy
	concurrency int
	limit       int
	now         func() time.Time
	metrics     auction.Metrics
	logger      *slog.Logger
	wake        chan struct{}
	atStore     chan struct{} // holds one for each use of the store

	mu     sync.Mutex
	jobs   map[callbackKey]*callbackJob
	jobsOf map[string]int // how many by domain
	added  int            // so far
	busy   int            // attempts that run has begun
	busyOf map[string]int // the same by domain
	busyAt map[string]int // the same by host
}

const (
	// callbackPlaces is how many callbacks are made at a time by default. They are so
	// many because most of those that take long only wait. With the default limit, each
	// is tried at least once before its task expires, unless its own host has very many
	// that hang.
	callbackPlaces = 1000
	// callbackStoreUses is how many callbacks use the store at a time. Others need it too.
	callbackStoreUses = 50
)

func newCallbacks(store storage.Store, o DutiesOptions) *callbacks {
	return &callbacks{
		store: store, post: o.Post, policy: o.Callbacks.WithDefaults(), tasks: o.Tasks,
		concurrency: cmp.Or(o.Concurrency, callbackPlaces), limit: cmp.Or(o.MaxCallbacks, 10_000),
		now: o.Now, metrics: o.Metrics, logger: o.Logger,
		wake: make(chan struct{}, 1), atStore: make(chan struct{}, callbackStoreUses),
		jobs: map[callbackKey]*callbackJob{}, jobsOf: map[string]int{}, busyOf: map[string]int{}, busyAt: map[string]int{},
	}
}

// A callbackKey names one task. A later task with the same guid has another key.
type callbackKey struct {
	guid  string
	epoch int64
}

type callbackJob struct {
	key      callbackKey
	number   int // in the order in which they were added
	domain   string
	url      string
	host     string // that of the URL, with its port
	again    bool   // it was requested before, and its task was RESOLVING meanwhile
	attempts int
	due      time.Time // zero: at once
	busy     bool
}

// turn is 0 for a callback that was never tried, 1 for a repeat.
func (j *callbackJob) turn() int {
	if j.attempts > 0 || j.again {
		return 1
	}
	return 0
}

// hostOf returns the host and the port of a URL, or nothing if the URL is invalid.
func hostOf(callbackURL string) string {
	u, err := url.Parse(callbackURL)
	if err != nil {
		return ""
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
}

// add takes a COMPLETED task with a callback URL. A task that is already here
// is not added twice, and one whose time is up stays COMPLETED: convergence
// removes it. If as many wait as may, one of a domain that has more gives way; see
// surplus.
func (c *callbacks) add(t *task.Task) {
	if _, over := task.Overdue(t, c.now(), c.tasks).(task.ExpireCompleted); over {
		return
	}
	key := callbackKey{t.GUID, t.ModificationTag.Epoch}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[key] != nil {
		return
	}
	if len(c.jobs) >= c.limit {
		c.metrics.Count("effects_lost_total", 1, auction.Label{Name: "kind", Value: task.CallBack.String()})
		surplus := c.surplus(t.Domain)
		if surplus == nil {
			return
		}
		c.drop(surplus)
	}
	c.jobsOf[t.Domain]++
	c.added++
	c.jobs[key] = &callbackJob{
		key: key, number: c.added, domain: t.Domain, url: t.CompletionCallbackURL, host: hostOf(t.CompletionCallbackURL),
		again: t.UpdatedAt.After(t.FirstCompletedAt),
	}
	c.signal()
}

// surplus returns the job that gives way to a new one of domain: a job of the domain
// with the most jobs, or nil if no domain has more than this one would have. A job
// that was not tried yet goes first, because its task is still COMPLETED and its
// callback is soon requested again. surplus is called with the lock.
func (c *callbacks) surplus(domain string) (surplus *callbackJob) {
	enough, more := c.jobsOf[domain]+1, false
	for _, n := range c.jobsOf {
		more = more || n > enough
	}
	if !more { // a domain with very many callbacks comes here for each of them
		return nil
	}
	for _, j := range c.jobs {
		if n := c.jobsOf[j.domain]; !j.busy && n > enough && (surplus == nil || cmp.Or(
			cmp.Compare(n, c.jobsOf[surplus.domain]), cmp.Compare(surplus.attempts, j.attempts), cmp.Compare(j.key.guid, surplus.key.guid)) > 0) {
			surplus = j
		}
	}
	return surplus
}

// drop is called with the lock.
func (c *callbacks) drop(j *callbackJob) {
	delete(c.jobs, j.key)
	if c.jobsOf[j.domain]--; c.jobsOf[j.domain] == 0 {
		delete(c.jobsOf, j.domain)
	}
}

func (c *callbacks) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// tick makes one attempt at each callback that is due.
func (c *callbacks) tick(ctx context.Context) {
	now := c.now()
	var due []*callbackJob
	c.mu.Lock()
	for _, j := range c.jobs {
		if !j.busy && !now.Before(j.due) {
			j.busy = true
			due = append(due, j)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b *callbackJob) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key.guid, b.key.guid))
	})
	parallel.Each(len(due), c.concurrency, func(i int) {
		done := c.attempt(ctx, due[i])
		c.mu.Lock()
		defer c.mu.Unlock()
		due[i].busy = false
		if done {
			c.drop(due[i])
		}
	})
}

// attempt reports whether the job is over.
func (c *callbacks) attempt(ctx context.Context, j *callbackJob) (done bool) {
	var t *task.Task // read for each attempt, because a job that waits must be small
	if j.attempts > 0 {
		t = c.resolving(ctx, j.key)
	} else if resolved, err := c.step(ctx, j.key, task.Resolve{}); err == nil {
		t = resolved
	}
	if t == nil {
		// Another process handles it, or convergence requests it again.
		return true
	}
	j.attempts++
	postCtx, cancel := context.WithTimeout(ctx, c.policy.Timeout)
	status := c.post(postCtx, j.url, t.CallbackResponse())
	cancel()
	verdict := c.policy.Next(task.CallbackOutcome{Status: status}, j.attempts)
	c.metrics.Count("callbacks_total", 1, auction.Label{Name: "verdict", Value: verdict.Action.String()})
	switch verdict.Action {
	case task.TryAgain:
		j.due = c.now().Add(verdict.Wait)
		return false
	case task.Delivered:
		if _, err := c.step(ctx, j.key, task.Delete{}); err != nil && !errors.Is(err, task.ErrInvalidTransition) {
			c.logger.Warn("a task's callback succeeded and the task could not be deleted; the callback will be repeated", "task", j.key.guid, "err", err)
		}
	case task.LeaveIt:
		c.logger.Warn("a task's callback did not succeed; the task can be polled until it expires", "task", j.key.guid, "status", status, "reason", verdict.Reason)
	}
	return true
}

// resolving returns this very task if it is still RESOLVING, and nil if not. While an
// attempt waits for its turn, the consumer may delete the task, or another leader may
// have made the callback.
func (c *callbacks) resolving(ctx context.Context, key callbackKey) *task.Task {
	c.atStore <- struct{}{}
	defer func() { <-c.atStore }()
	t, err := c.store.Task(ctx, key.guid)
	if err != nil || t.ModificationTag.Epoch != key.epoch || t.State != task.Resolving {
		return nil
	}
	return t
}

// step applies a command to this very task. It returns the task afterwards, nil
// if it is gone or another task has its guid.
func (c *callbacks) step(ctx context.Context, key callbackKey, command task.Command) (*task.Task, error) {
	c.atStore <- struct{}{}
	defer func() { <-c.atStore }()
	d, _, err := storage.ApplyTask(ctx, c.store, key.guid, nil, func(t *task.Task) (task.Decision, error) {
		if t == nil || t.ModificationTag.Epoch != key.epoch {
			return task.Decision{}, nil
		}
		return task.Step(t, command, c.now(), c.tasks)
	})
	return d.Write.After, err
}

// take begins an attempt at a callback that is due, if there is a place for it. The
// rule: first attempts go before repeats; among each, the host with the fewest places
// goes first, then the domain with the fewest. Of what is equal so far, the callback
// with the most attempts goes first, because its task is RESOLVING for a limited time,
// and then the one that waits longest.
//
// A host has at most an eighth of the places, and at least one. A quarter of the places,
// and at least one if there are several, is kept for domains that have none. If no
// callback can begin, take returns how long to wait, unless a signal comes.
func (c *callbacks) take() (job *callbackJob, wait time.Duration) {
	now := c.now()
	wait = time.Hour
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy >= c.concurrency {
		return nil, wait // the end of an attempt signals
	}
	perHost, shared := max(1, c.concurrency/8), c.concurrency-(c.concurrency+3)/4
	var at, of int // the places of the job's host and domain
	for _, j := range c.jobs {
		if j.busy {
			continue
		}
		if now.Before(j.due) {
			wait = min(wait, j.due.Sub(now))
			continue
		}
		jAt, jOf := c.busyAt[j.host], c.busyOf[j.domain]
		if jAt >= perHost || jOf > 0 && c.busy >= shared {
			continue
		}
		if job == nil || cmp.Or(cmp.Compare(j.turn(), job.turn()), cmp.Compare(jAt, at), cmp.Compare(jOf, of),
			cmp.Compare(job.attempts, j.attempts), j.due.Compare(job.due), cmp.Compare(j.number, job.number)) < 0 {
			job, at, of = j, jAt, jOf
		}
	}
	if job != nil {
		job.busy = true
		c.busy++
		c.busyOf[job.domain]++
		c.busyAt[job.host]++
	}
	return job, wait
}

// carryOut makes the attempt that take has begun.
func (c *callbacks) carryOut(ctx context.Context, j *callbackJob) {
	done := c.attempt(ctx, j)
	c.mu.Lock()
	defer c.mu.Unlock()
	j.busy = false
	if done {
		c.drop(j)
	}
	c.busy--
	if c.busyOf[j.domain]--; c.busyOf[j.domain] == 0 {
		delete(c.busyOf, j.domain)
	}
	if c.busyAt[j.host]--; c.busyAt[j.host] == 0 {
		delete(c.busyAt, j.host)
	}
	c.signal()
}

// run makes callbacks as they are due, until ctx ends.
func (c *callbacks) run(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for ctx.Err() == nil {
		job, wait := c.take()
		if job != nil {
			attempts.Go(func() { c.carryOut(ctx, job) })
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-time.After(wait):
		}
	}
}
