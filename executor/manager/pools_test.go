package manager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A poolRun submits, stops, takes and ends jobs at random, and keeps its own count.
type poolRun struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	m        *Manager
	now      time.Time
	delays   bool
	jobs     []*job
	outcomes map[*job]int
	begun    []*job // whose outcome has not come
}

func TestEveryJobHasItsPlaceAndOneOutcomeAndPoolsKeepTheirBounds(t *testing.T) {
	for seed := range uint64(100) {
		r := &poolRun{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_700_000_000, 0), delays: seed%2 == 0, outcomes: map[*job]int{}}
		workers := 1 + r.random.IntN(6)
		r.m = &Manager{options: Options{Now: func() time.Time { return r.now }, Downloads: workers, Uploads: workers,
			DeleteWorkers: workers, CreateWorkers: workers, ProcessWorkers: workers,
			Delay: func(Job) time.Duration { return time.Duration(r.random.IntN(3)) * 700 * time.Millisecond },
		}, loop: loop{wake: make(chan struct{}, 1)}, entries: map[string]*entry{}}
		for i := range 4 { // two more have no entry, and so no domain
			r.m.entries[fmt.Sprint(i)] = &entry{container: executor.Container{Tags: map[string]string{executor.TagDomain: domainOf(fmt.Sprint(i))}}}
		}
		for range 600 {
			r.step()
			r.count()
		}
		r.drain()
	}
}

func (r *poolRun) step() {
	switch r.random.IntN(8) {
	case 0, 1, 2:
		r.submit()
	case 3:
		if len(r.jobs) > 0 {
			r.jobs[r.random.IntN(len(r.jobs))].stop(r.m)
		}
	case 4:
		r.now = r.now.Add(time.Duration(r.random.IntN(1500)) * time.Millisecond)
	case 5, 6:
		r.end()
	case 7:
		r.take()
	}
}

func domainOf(sharer string) string {
	return map[string]string{"0": "a", "1": "b", "2": "a", "3": "b"}[sharer]
}

func (r *poolRun) submit() {
	var j *job
	guid := fmt.Sprint(r.random.IntN(6))
	j = r.m.submit(pool(r.random.IntN(int(pools))), JobProbe, guid, func(context.Context) func() {
		return func() { r.outcomes[j]++ }
	})
	r.jobs = append(r.jobs, j)
}

func (r *poolRun) end() {
	if len(r.begun) == 0 {
		return
	}
	i := r.random.IntN(len(r.begun))
	j := r.begun[i]
	r.begun = append(r.begun[:i], r.begun[i+1:]...)
	r.m.carryOut(r.t.Context(), j)
	r.m.advance()
}

// take takes all that there is, and asks Next before and after.
func (r *poolRun) take() {
	now := func() bool {
		next, known := r.m.Next()
		return known && !next.After(r.now)
	}
	for {
		announced := now()
		j := r.m.take(r.delays)
		if j == nil {
			if now() {
				r.t.Fatalf("seed %d: nothing is left, and Next says that something is", r.seed)
			}
			return
		}
		if !announced {
			r.t.Fatalf("seed %d: Next did not announce %+v", r.seed, j)
		}
		j.prepare(r.t.Context())
		r.begun = append(r.begun, j)
		r.count()
	}
}

// count compares what the pools say with the jobs.
func (r *poolRun) count() {
	type key struct {
		pool   pool
		sharer string
	}
	has, waiting := map[key]int{}, map[key]int{}
	var taken, late [pools]int
	takenOf, lateOf, readyOf := map[key]int{}, map[key]int{}, map[key]int{} // by domain
	for _, j := range r.jobs {
		k := key{j.sharer.pool, j.sharer.name}
		d := key{k.pool, domainOf(k.sharer)}
		switch {
		case r.outcomes[j] > 0:
		case j.placed:
			has[k]++
			if j.late {
				late[k.pool]++
				lateOf[d]++
			} else {
				taken[k.pool]++
				takenOf[d]++
			}
		case !j.cancelled:
			waiting[k]++
		}
	}
	for p := range pools {
		pl := &r.m.loop.places[p]
		if pl.late != late[p] || len(pl.taken) != taken[p] || p < volumePool && taken[p] > r.m.workers(p) {
			r.t.Fatalf("seed %d: pool %d has %d taken and %d late; they are %d and %d, with %d workers", r.seed, p, len(pl.taken), pl.late, taken[p], late[p], r.m.workers(p))
		}
		for _, s := range pl.sharers {
			k := key{p, s.name}
			if wants := waiting[k] > 0 && has[k] < r.m.most(p); s.has != has[k] || s.waiting.Len() != waiting[k] || has[k] > r.m.most(p) || (s.inLine != nil) != wants {
				r.t.Fatalf("seed %d: sharer %v has %d of %d, and %d wait, in line: %v; they are %d and %d", r.seed, k, s.has, r.m.most(p), s.waiting.Len(), s.inLine != nil, has[k], waiting[k])
			}
			if waiting[k] > 0 && has[k] < r.m.most(p) {
				readyOf[key{p, domainOf(s.name)}]++
			}
			delete(has, k)
			delete(waiting, k)
		}
		ready := 0
		for _, d := range pl.domains {
			k := key{p, d.name}
			most := max(1, r.m.workers(p)-1)
			if p >= volumePool {
				most = len(r.jobs)
			}
			wants := readyOf[k] > 0 && takenOf[k] < most
			if d.taken != takenOf[k] || d.late != lateOf[k] || d.line.Len() != readyOf[k] || takenOf[k] > most || (d.inLine != nil) != wants {
				r.t.Fatalf("seed %d: domain %v has %d of %d and %d late, and %d are ready, in line: %v; they are %d, %d and %d", r.seed, k, d.taken, most, d.late, d.line.Len(), d.inLine != nil, takenOf[k], lateOf[k], readyOf[k])
			}
			if (p == downloadPool || p == uploadPool) && lateOf[k] > 3*most {
				r.t.Fatalf("seed %d: domain %v has %d late", r.seed, k, lateOf[k])
			}
			ready += readyOf[k]
			delete(takenOf, k)
			delete(lateOf, k)
		}
		if pl.ready != ready {
			r.t.Fatalf("seed %d: pool %d says that %d are ready, which are %d", r.seed, p, pl.ready, ready)
		}
	}
	if len(takenOf)+len(lateOf) > 0 {
		r.t.Fatalf("seed %d: domains are forgotten: %v have places, and %v are late", r.seed, takenOf, lateOf)
	}
	if len(has)+len(waiting) > 0 {
		r.t.Fatalf("seed %d: sharers are forgotten: %v have places, and %v wait", r.seed, has, waiting)
	}
}

// drain lets everything come to its end.
func (r *poolRun) drain() {
	for {
		r.take()
		for len(r.begun) > 0 {
			r.end()
			r.count()
		}
		next, known := r.m.Next()
		if !known {
			break
		}
		if next.After(r.now) {
			r.now = next
		}
	}
	for _, j := range r.jobs {
		if r.outcomes[j] != 1 {
			r.t.Fatalf("seed %d: a job of pool %d has %d outcomes", r.seed, j.sharer.pool, r.outcomes[j])
		}
	}
	for p := range pools {
		if pl := &r.m.loop.places[p]; len(pl.sharers)+len(pl.domains)+pl.ready+pl.line.Len()+len(pl.taken)+pl.late > 0 {
			r.t.Fatalf("seed %d: pool %d keeps %+v", r.seed, p, pl)
		}
	}
}
