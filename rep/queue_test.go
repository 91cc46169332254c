package rep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A tenant may have any number of containers that need a look, and decides how long
// the BBS takes to answer about them.
func TestContainersThatTakeLongLeaveThoseOfAnotherDomainAPlace(t *testing.T) {
	for _, c := range []struct {
		name   string
		settle func(*stage, context.Context)
		later  bool // the other domain's comes when all others have begun
	}{
		{"in Run", func(s *stage, ctx context.Context) { _ = s.Run(ctx) }, true},
		{"in a Sync", func(s *stage, ctx context.Context) { _ = s.Sync(ctx) }, false},
	} {
		for _, lifecycle := range []string{executor.LifecycleLRP, executor.LifecycleTask} {
			t.Run(fmt.Sprint(lifecycle, " ", c.name), func(t *testing.T) {
				testenv.Bubble(t, func(t *testing.T) {
					b := &hangingBBS{}
					s := newStage(t, func(o *Options) { o.Concurrency, b.fakeBBS, o.BBS = 0, o.BBS.(*fakeBBS), b })
					for i := range 200 {
						s.look(executor.Container{GUID: fmt.Sprint("slow-", i), Tags: map[string]string{
							executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "slow",
							executor.TagProcessIndex: fmt.Sprint(i), executor.TagDomain: "slow",
						}})
					}
					other := executor.Container{GUID: "other", Tags: map[string]string{
						executor.TagLifecycle: lifecycle, executor.TagDomain: "other",
						executor.TagProcessGUID: "other", executor.TagProcessIndex: "0",
						executor.TagTaskGUID: "other", executor.TagTaskAttempt: "1.0",
					}}
					if !c.later {
						s.look(other)
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan struct{})
					go func() { c.settle(s, ctx); close(ended) }()
					synctest.Wait() // no time passes
					if c.later {
						s.look(other)
						synctest.Wait()
					}
					if hang, others := b.hang.Load(), b.others.Load(); hang != DefaultConcurrency-1 || others != 1 {
						t.Errorf("%d calls hang, and %d of the other domain were made", hang, others)
					}
					cancel()
					<-ended
				})
			})
		}
	}
}

// A hangingBBS does not answer about the process "slow".
type hangingBBS struct {
	*fakeBBS
	hang, others atomic.Int64
}

func (b *hangingBBS) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	if processGUID == "slow" {
		b.hang.Add(1)
		<-ctx.Done()
		return lrp.Slot{}, ctx.Err()
	}
	b.others.Add(1)
	return b.fakeBBS.Slot(ctx, processGUID, index)
}

func (b *hangingBBS) Task(ctx context.Context, guid string) (*task.Task, error) {
	b.others.Add(1)
	return b.fakeBBS.Task(ctx, guid)
}

// A slowQueue is what a queue does, in the plainest way: it looks at everything each
// time.
type slowQueue struct {
	most    int
	waiting []subject // those that are taken may be among them
	taken   []subject
	turns   []string // the domains of which a subject may be taken, the next one first
}

func (q *slowQueue) isTaken(s subject) bool { return slices.Contains(q.taken, s) }

// first is the next subject of a domain, if one may be taken.
func (q *slowQueue) first(domain string) (first subject, ok bool) {
	n := 0
	for _, s := range q.taken {
		if s.domain == domain {
			n++
		}
	}
	i := slices.IndexFunc(q.waiting, func(s subject) bool { return s.domain == domain && !q.isTaken(s) })
	if i < 0 || n >= q.most {
		return subject{}, false
	}
	return q.waiting[i], true
}

// line has those domains take turns that may.
func (q *slowQueue) line() {
	q.turns = slices.DeleteFunc(q.turns, func(domain string) bool { _, ok := q.first(domain); return !ok })
	for _, s := range q.waiting {
		if _, ok := q.first(s.domain); ok && !slices.Contains(q.turns, s.domain) {
			q.turns = append(q.turns, s.domain)
		}
	}
}

func (q *slowQueue) add(s subject) {
	if !slices.Contains(q.waiting, s) {
		q.waiting = append(q.waiting, s)
	}
	q.line()
}

func (q *slowQueue) take() (s subject, ok bool) {
	if len(q.turns) == 0 {
		return subject{}, false
	}
	s, _ = q.first(q.turns[0])
	q.turns = q.turns[1:]
	q.waiting = slices.DeleteFunc(q.waiting, func(other subject) bool { return other == s })
	q.taken = append(q.taken, s)
	q.line()
	return s, true
}

func (q *slowQueue) done(s subject) {
	q.taken = slices.DeleteFunc(q.taken, func(other subject) bool { return other == s })
	if i := slices.Index(q.waiting, s); i >= 0 { // it waits from now on
		q.waiting = append(slices.Delete(q.waiting, i, i+1), s)
	}
	q.line()
}

func TestAQueueDoesWhatASlowOneDoes(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		callers := 1 + rng.IntN(4)
		q, slow := newQueue(callers), &slowQueue{most: max(1, callers-1)}
		for step := range 400 {
			what := "add"
			switch rng.IntN(4) {
			case 0, 1:
				n := rng.IntN(12)
				s := subject{guid: fmt.Sprint(n), domain: []string{"a", "a", "a", "b", "b", ""}[n%6]}
				q.add(s)
				slow.add(s)
			case 2:
				what = "take"
				if len(slow.taken) == callers {
					break
				}
				got, ok := q.take()
				if want, wanted := slow.take(); got != want || ok != wanted {
					t.Fatalf("seed %d, step %d: it gave %v, want %v", seed, step, got, want)
				}
			case 3:
				what = "done"
				if len(slow.taken) > 0 {
					s := slow.taken[rng.IntN(len(slow.taken))]
					q.done(s)
					slow.done(s)
				}
			}
			if some := len(slow.waiting)+len(slow.taken) > 0; (len(q.known) > 0) != some || (len(q.domains) > 0) != some || len(q.line) != len(slow.turns) {
				t.Fatalf("seed %d, step %d: after %s it has %v, %v and %v, want %+v", seed, step, what, q.known, q.domains, q.line, slow)
			}
		}
	}
}
