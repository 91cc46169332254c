package transfer

import (
	"context"
	"io"
	"sync"
	"time"
)

// packRate is how many bytes per second all uploads together read and compress, after as
// many at once. That takes processor time of the daemon, and a file with nothing but holes
// costs a tenant nothing.
const packRate = 64 << 20

// A rate bounds what readers that share it read.
type rate struct {
	mu   sync.Mutex
	next time.Time // when what was read so far is due at the rate
}

// reader returns a reader of r at the rate. It ends with ctx.
func (s *rate) reader(ctx context.Context, r io.Reader) io.Reader { return &rated{ctx, s, r} }

type rated struct {
	ctx  context.Context
	rate *rate
	r    io.Reader
}

func (r *rated) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	timer := time.NewTimer(r.rate.take(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return n, err
	case <-r.ctx.Done():
		return n, context.Cause(r.ctx)
	}
}

// take returns how long to wait for n bytes.
func (s *rate) take(n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.next.Before(now) {
		s.next = now
	}
	s.next = s.next.Add(time.Duration(n) * time.Second / packRate)
	return max(0, s.next.Sub(now)-time.Second)
}
