package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// ErrBusy: the transfers in progress take more disk than they may, and this one has held
// the most of it for the longest.
var ErrBusy = errors.New("too much is being transferred")

// A progress is the disk that all transfers of a Fetcher take until they are over.
// Tenants decide how many there are, how large and how slow, and nobody has reserved
// that disk. If they take too much, the one gives way whose bytes times its age are the
// most: otherwise a few that hardly get on would keep others from ending.
type progress struct {
	limit int64

	mu    sync.Mutex
	taken int64
	parts map[*part]bool
}

// A part of a progress is what one transfer takes.
type part struct {
	of     *progress
	cancel context.CancelCauseFunc

	// The mutex of the progress guards these.
	began time.Time // of writing; waits before it do not count
	taken int64
}

// begin returns the part of a transfer, and a context that ends with ErrBusy if the
// transfer is to give way. Somebody must call end.
func (p *progress) begin(ctx context.Context) (context.Context, *part) {
	ctx, cancel := context.WithCancelCause(ctx)
	n := &part{of: p, cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts == nil {
		p.parts = make(map[*part]bool)
	}
	p.parts[n] = true
	return ctx, n
}

// end is for when the transfer takes nothing any more.
func (p *part) end() {
	p.cancel(nil)
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.remove(p)
}

func (p *progress) remove(n *part) {
	if p.parts[n] {
		p.taken -= n.taken
		delete(p.parts, n)
	}
}

// writer returns a writer to w that counts what it writes. What an earlier writer has
// written is gone.
func (p *part) writer(w io.Writer) io.Writer {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.parts[p] {
		p.of.taken -= p.taken
	}
	p.taken, p.began = 0, time.Now()
	return partWriter{p, w}
}

type partWriter struct {
	*part
	w io.Writer
}

// Write implements [io.Writer].
func (w partWriter) Write(b []byte) (int, error) {
	if err := w.of.take(w.part, int64(len(b))); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

// take lets a part take n bytes more. The file of one that gives way is removed when
// its transfer has noticed. That does not wait for a server, but for the file system of a
// container that does not answer while the file is unpacked into it.
func (p *progress) take(n *part, bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.parts[n] {
		return p.busy()
	}
	p.taken += bytes
	n.taken += bytes
	now := time.Now()
	for p.taken > p.limit {
		most := n
		for other := range p.parts {
			if other.held(now) > most.held(now) {
				most = other
			}
		}
		p.remove(most)
		most.cancel(p.busy())
		if most == n {
			return p.busy()
		}
	}
	return nil
}

// held is how many bytes the part has, times the seconds since it began.
func (p *part) held(now time.Time) float64 { return float64(p.taken) * now.Sub(p.began).Seconds() }

func (p *progress) busy() error {
	return fmt.Errorf("%w: all transfers of the cell that are in progress may take %d bytes of disk, twice the larger of MaxDownloadBytes and MaxContentBytes, and the one that has held most of them for the longest gives way", ErrBusy, p.limit)
}

// outcome is the error of a transfer that failed in ctx.
func outcome(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrBusy) {
		return cause
	}
	return err
}
