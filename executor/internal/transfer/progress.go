package transfer

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrBusy: the transfers in progress take as much disk as they may.
var ErrBusy = errors.New("too much is being transferred")

// A progress is the disk that all transfers of a Fetcher take until they are over.
// Tenants decide how many there are, how large and how slow, and nobody has reserved
// that disk.
type progress struct {
	limit int64

	mu    sync.Mutex
	taken int64
}

// A part of a progress is what one transfer takes. It is used by one goroutine at a
// time.
type part struct {
	of    *progress
	taken int64
}

// writer returns a writer to w that fails rather than take too much. What an earlier
// writer has taken is given back.
func (p *part) writer(w io.Writer) io.Writer {
	p.giveBack()
	return partWriter{p, w}
}

type partWriter struct {
	*part
	w io.Writer
}

// Write implements [io.Writer].
func (w partWriter) Write(b []byte) (int, error) {
	if err := w.take(int64(len(b))); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

func (p *part) take(n int64) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if n > p.of.limit-p.of.taken {
		return fmt.Errorf("%w: all transfers of the cell that are in progress may take %d bytes of disk, twice the larger of MaxDownloadBytes and MaxContentBytes", ErrBusy, p.of.limit)
	}
	p.of.taken += n
	p.taken += n
	return nil
}

// giveBack is for when the transfer takes nothing any more.
func (p *part) giveBack() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.taken -= p.taken
	p.taken = 0
}
