package process

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A looker takes one census after another. It does not wait for ever for a file in
// /proc: the environment of a process cannot be read while the kernel holds the
// process's memory, which may be as long as a hung file system likes. Such a file is
// left out until its reading returns. Its process is known by its session and parents.
type looker struct {
	proc     string
	patience time.Duration // how long one file may take
	last     *census

	mu    sync.Mutex
	stuck map[string]*stuckFile // by name; one goroutine and one thread wait for each
}

// A stuckFile is a file in /proc whose reading has not returned.
type stuckFile struct {
	name string
	told atomic.Bool
}

const (
	lookPatience = 2 * time.Second
	// maxPatience is how much longer a file may take after some were given up: on a host
	// without a free processor they may only be slow, and then each look begins anew.
	maxPatience = 8
	// maxStuck bounds the threads that wait. Beyond it, nobody looks until one returns.
	maxStuck = 64
)

var (
	errStuck     = errors.New("reading it does not return")
	errAbandoned = errors.New("nobody waits for this look")
)

// take returns the next census, without the files that are stuck. It fails if /proc
// itself is, or if too many files are.
func (l *looker) take() (*census, error) {
	for patience := l.patience; ; patience = min(2*patience, maxPatience*l.patience) {
		l.mu.Lock()
		n := len(l.stuck)
		l.mu.Unlock()
		if n >= maxStuck {
			return nil, fmt.Errorf("%d files in %s: %w", n, l.proc, errStuck)
		}
		r := &reading{looker: l}
		var c *census
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err = takeCensus(l.proc, l.last, r)
			_ = r.begin("")
		}()
		if !r.await(done, patience) {
			continue
		}
		if err == nil {
			l.last = c
		}
		return c, err
	}
}

// A reading is one look. It says at which file it is. A nil reading is never stuck.
type reading struct {
	looker *looker
	steps  atomic.Int64

	// Guarded by looker.mu.
	now       string
	abandoned bool
	unread    []*stuckFile
}

// begin says which file is read next. An error means that it must not be read.
func (r *reading) begin(name string) error {
	if r == nil {
		return nil
	}
	r.steps.Add(1)
	l := r.looker
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.abandoned {
		delete(l.stuck, r.now)
		return errAbandoned
	}
	r.now = name
	if f := l.stuck[name]; f != nil {
		r.unread = append(r.unread, f)
		return fmt.Errorf("%s: %w", name, errStuck)
	}
	return nil
}

// await waits for the end of the reading. It abandons one that is at the same file for
// too long, and then returns false.
func (r *reading) await(done chan struct{}, patience time.Duration) (ended bool) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for seen := int64(-1); ; {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
		if now := r.steps.Load(); now != seen {
			seen = now
			continue
		}
		if r.abandon() {
			return false
		}
	}
}

func (r *reading) abandon() bool {
	l := r.looker
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.now == "" { // it is about to end
		return false
	}
	r.abandoned = true
	l.stuck[r.now] = &stuckFile{name: r.now}
	return true
}

// tell says once for each file what was not read.
func (c *census) tell(log *slog.Logger) {
	for _, f := range c.unread {
		if f.told.CompareAndSwap(false, true) {
			log.Warn("a process of the host cannot be looked at: reading its file does not return. Stops go on without it; "+
				"if it belongs to a container, has left its session and outlives its parents, it may outlive the container", "file", f.name)
		}
	}
}
