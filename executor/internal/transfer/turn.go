package transfer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A server decides how long a transfer lasts, and a tenant may have any number of
// servers. So a transfer keeps its place only for a Turn. Then it goes on without
// it, beside at most LateEach others for each place: each takes disk.
const (
	Turn     = 30 * time.Second
	LateEach = 3
)

// Places are those of the downloads. The domains of those who wait take turns. One domain
// takes all places but one, and as many late places as belong to these.
type places struct {
	most int

	mu          sync.Mutex
	taken, late int
	domains     map[string]*domain
	line        []*domain // those with somebody who waits, the next one first
}

// A domain is what one tenant has. It is forgotten when it has nothing.
type domain struct {
	taken, late int
	waiting     []chan struct{} // each is closed when it has its place
}

// MostOfDomain is how many of some places the transfers of one domain may take: all but one,
// so that one of another domain begins at once.
func MostOfDomain(places int) int { return max(1, places-1) }

// enter waits for a place for somebody of a domain. The caller leaves it at the end.
func (p *places) enter(ctx context.Context, of string, turn time.Duration) (leave func(), err error) {
	p.mu.Lock()
	d := p.domains[of]
	if d == nil {
		d = &domain{}
		p.domains[of] = d
	}
	mine := make(chan struct{})
	d.waiting = append(d.waiting, mine)
	if len(d.waiting) == 1 {
		p.line = append(p.line, d)
	}
	p.admit()
	p.mu.Unlock()
	select {
	case <-mine:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(d.waiting, mine); i >= 0 {
			d.waiting = slices.Delete(d.waiting, i, i+1)
			if len(d.waiting) == 0 {
				p.line = slices.DeleteFunc(p.line, func(other *domain) bool { return other == d })
			}
		} else {
			p.taken--
			d.taken--
		}
		p.settle(of, d)
		return nil, ctx.Err()
	}
	over, late := false, false
	var end *time.Timer
	p.mu.Lock()
	defer p.mu.Unlock()
	end = time.AfterFunc(turn, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case over:
		case p.late < LateEach*p.most && d.late < LateEach*MostOfDomain(p.most):
			late = true
			p.taken--
			d.taken--
			p.late++
			d.late++
			p.admit()
		default:
			end.Reset(min(turn, time.Second)) // until one of those without a place is over
		}
	})
	return func() {
		end.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		over = true
		if late {
			p.late--
			d.late--
		} else {
			p.taken--
			d.taken--
		}
		p.settle(of, d)
	}, nil
}

// settle is for when somebody of a domain has gone.
func (p *places) settle(of string, d *domain) {
	if d.taken+d.late+len(d.waiting) == 0 {
		delete(p.domains, of)
	}
	p.admit()
}

// admit gives the free places away.
func (p *places) admit() {
	for p.taken < p.most {
		i := slices.IndexFunc(p.line, func(d *domain) bool { return d.taken < MostOfDomain(p.most) })
		if i < 0 {
			return
		}
		d := p.line[i]
		p.line = slices.Delete(p.line, i, i+1)
		close(d.waiting[0])
		d.waiting = d.waiting[1:]
		p.taken++
		d.taken++
		if len(d.waiting) > 0 {
			p.line = append(p.line, d)
		}
	}
}
