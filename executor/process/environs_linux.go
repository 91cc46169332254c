package process

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A looker takes one census after another. It does not wait for ever for the
// environment of a process, which cannot be read while the process waits for a file
// system that hangs. A census leaves it out until its reading returns; the process is
// known by its session and parents meanwhile.
type looker struct {
	proc string
	// patience is how long one census waits for environments that do not come.
	patience time.Duration
	last     *census

	mu    sync.Mutex
	stuck map[string]*stuckFile // by name; one goroutine and one thread wait for each
}

// A stuckFile is an environment whose reading has not returned.
type stuckFile struct {
	name string
	told atomic.Bool
}

const (
	lookPatience = 2 * time.Second
	// maxStuck bounds the threads that wait. Beyond it, nobody looks until one returns.
	maxStuck = 64
)

var errStuck = errors.New("reading it does not return")

func newLooker(proc string, patience time.Duration) *looker {
	return &looker{proc: proc, patience: patience, stuck: make(map[string]*stuckFile)}
}

// take returns the next census.
func (l *looker) take() (*census, error) {
	c, err := takeCensus(l.proc, l.last, &environs{looker: l, left: l.patience, buffer: new(bytes.Buffer)})
	if err == nil {
		l.last = c
	}
	return c, err
}

// environs reads environments for one census.
type environs struct {
	looker *looker
	left   time.Duration // of its patience
	buffer *bytes.Buffer // of all, because an environment may have megabytes
	unread []*stuckFile
}

// marks are those in a file. The error is errStuck if reading it does not return; any
// other that is not hidden means that nobody may look.
func (e *environs) marks(name string, read func(*bytes.Buffer) ([]string, error)) ([]string, error) {
	l := e.looker
	l.mu.Lock()
	f, n := l.stuck[name], len(l.stuck)
	l.mu.Unlock()
	if f != nil {
		e.unread = append(e.unread, f)
		return nil, errStuck
	}
	if n >= maxStuck {
		return nil, fmt.Errorf("%d files in %s cannot be read: nobody can look", n, l.proc)
	}
	type result struct {
		marks []string
		err   error
	}
	done := make(chan result, 1)
	buffer := e.buffer
	go func() {
		marks, err := read(buffer)
		done <- result{marks, err}
	}()
	began := time.Now()
	select {
	case r := <-done:
		return r.marks, r.err
	case <-time.After(max(e.left, l.patience/maxStuck)):
	}
	e.left -= time.Since(began)
	e.buffer = new(bytes.Buffer) // the other one is in use
	f = &stuckFile{name: name}
	l.mu.Lock()
	l.stuck[name] = f
	l.mu.Unlock()
	go func() {
		<-done
		l.mu.Lock()
		delete(l.stuck, name)
		l.mu.Unlock()
	}()
	e.unread = append(e.unread, f)
	return nil, errStuck
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
