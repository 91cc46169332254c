package transfer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPlacesKeepTheirBoundsAndForgetThoseWhoHaveGone(t *testing.T) {
	const most = 4
	p := places{most: most, domains: map[string]*domain{}}
	var inside atomic.Int64
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(20))*time.Millisecond)
			defer cancel()
			leave, err := p.enter(ctx, fmt.Sprint(i%3), time.Millisecond)
			if err != nil {
				return
			}
			if n := inside.Add(1); n > most+most*LateEach {
				t.Errorf("%d are inside", n)
			}
			p.mu.Lock()
			for name, d := range p.domains {
				if d.taken > most-1 || d.late > LateEach*(most-1) || p.taken > most || p.late > LateEach*most {
					t.Errorf("domain %s has %d places, and %d late ones, of %d and %d", name, d.taken, d.late, p.taken, p.late)
				}
			}
			p.mu.Unlock()
			time.Sleep(rand.N(4 * time.Millisecond))
			inside.Add(-1)
			leave()
		})
	}
	all.Wait()
	if len(p.domains)+len(p.line)+p.taken+p.late > 0 {
		t.Errorf("what is left: domains %v, %d in line, %d places, %d late", p.domains, len(p.line), p.taken, p.late)
	}
}
