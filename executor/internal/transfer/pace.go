package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// ErrSlow: the other side sends or takes hardly anything. It holds one of a few
// places that all containers share.
var ErrSlow = errors.New("the transfer does not get on")

const (
	// DefaultPace is the time in which minPace bytes have to be carried.
	DefaultPace = time.Minute
	minPace     = 1 << 20
)

// A pacer is a reader that ends a transfer that does not get on.
type pacer struct {
	r     io.Reader
	moved atomic.Int64
	over  atomic.Bool // whether r has ended
}

// pace returns a reader of r, and ends with ErrSlow if there are less than
// minPace bytes in each so long a time until r has ended, or ctx.
func pace(ctx context.Context, cancel context.CancelCauseFunc, every time.Duration, r io.Reader) io.Reader {
	p := &pacer{r: r}
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil || p.over.Load():
		case p.moved.Swap(0) < minPace:
			cancel(fmt.Errorf("%w: less than %d KiB in %v, which is fixed", ErrSlow, minPace>>10, every))
		default:
			time.AfterFunc(every, look)
		}
	}
	time.AfterFunc(every, look)
	return p
}

func (p *pacer) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.moved.Add(int64(n))
	if err != nil {
		p.over.Store(true)
	}
	return n, err
}
