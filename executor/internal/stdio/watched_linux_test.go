package stdio_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/stdio"
)

// openers are the ways to make a Pipe.
func openers(t *testing.T) map[string]func(io.Writer, *stdio.Pace) (*stdio.Pipe, error) {
	w := &watcher{watches: map[int32]chan struct{}{}}
	t.Cleanup(func() {
		if left := w.left(); left != 0 {
			t.Errorf("%d watches are left", left)
		}
	})
	return map[string]func(io.Writer, *stdio.Pace) (*stdio.Pipe, error){
		"with a goroutine": stdio.New,
		"watched": func(out io.Writer, pace *stdio.Pace) (*stdio.Pipe, error) {
			return stdio.NewWatched(out, pace, new(stdio.Guard), w)
		},
	}
}

// A watcher has a goroutine for each pipe, which looks again and again.
type watcher struct {
	mu      sync.Mutex
	key     int32
	watches map[int32]chan struct{}
	refuse  atomic.Bool
}

func (w *watcher) Watch(fd int, ready func() bool) (int32, error) {
	if w.refuse.Load() {
		return 0, errors.New("there are too many")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.key++
	key, over := w.key, make(chan struct{})
	w.watches[key] = over
	go func() {
		defer w.Forget(key)
		for {
			select {
			case <-over:
				return
			default:
			}
			polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, _ := unix.Poll(polled, 0); n > 0 {
				if !ready() {
					return
				}
			} else {
				runtime.Gosched()
			}
		}
	}()
	return key, nil
}

func (w *watcher) Forget(key int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if over := w.watches[key]; over != nil {
		delete(w.watches, key)
		close(over)
	}
}

func (w *watcher) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

// held is a writer whose writes wait.
type held struct {
	mu   sync.Mutex
	out  bytes.Buffer
	free chan struct{}
}

func (h *held) Write(p []byte) (int, error) {
	<-h.free
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.Write(p)
}

func (h *held) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for began := time.Now(); !condition(); time.Sleep(time.Millisecond) { // between two looks
		if time.Since(began) > time.Minute {
			t.Fatalf("waited a minute until %s", what)
		}
	}
}

func TestAWriterThatTakesItsTimeDoesNotHoldUpTheWatcher(t *testing.T) {
	w := &watcher{watches: map[int32]chan struct{}{}}
	slow, fast := &held{free: make(chan struct{})}, &held{free: make(chan struct{})}
	close(fast.free)
	var ready sync.Mutex // one call at a time, as of the poller of a backend
	one := oneByOne{w, &ready}
	first, err := stdio.NewWatched(slow, new(stdio.Pace), new(stdio.Guard), one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := stdio.NewWatched(fast, new(stdio.Pace), new(stdio.Guard), one)
	if err != nil {
		t.Fatal(err)
	}
	first.Child.WriteString("slow")
	second.Child.WriteString("fast")
	await(t, "the fast one has its output", func() bool { return fast.String() == "fast" })
	first.Child.WriteString(" and more")
	close(slow.free)
	await(t, "the slow one has its output", func() bool { return slow.String() == "slow and more" })
	for _, p := range []*stdio.Pipe{first, second} {
		if p.Done() {
			t.Error("it is done while it is open")
		}
		p.Started()
		await(t, "it is done", p.Done)
		p.Close()
	}
	await(t, "nothing is watched", func() bool { return w.left() == 0 })
}

type oneByOne struct {
	*watcher
	mu *sync.Mutex
}

func (o oneByOne) Watch(fd int, ready func() bool) (int32, error) {
	return o.watcher.Watch(fd, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return ready()
	})
}

func TestOutputIsNotLostIfItCannotBeWatchedForAWhile(t *testing.T) {
	w := &watcher{watches: map[int32]chan struct{}{}}
	out := &held{free: make(chan struct{})}
	close(out.free)
	p, err := stdio.NewWatched(out, new(stdio.Pace), new(stdio.Guard), w)
	if err != nil {
		t.Fatal(err)
	}
	w.refuse.Store(true)
	if _, err := stdio.NewWatched(out, new(stdio.Pace), new(stdio.Guard), w); err == nil {
		t.Error("a pipe that nobody watches was made")
	}
	for _, text := range []string{"1", "2", "3"} {
		before := out.String()
		p.Child.WriteString(text)
		await(t, "it has arrived", func() bool { return out.String() == before+text })
	}
	w.refuse.Store(false)
	await(t, "it is watched again", func() bool { return w.left() == 1 })
	p.Started()
	await(t, "it is done", p.Done)
	p.Close()
	if got := out.String(); !strings.HasSuffix(got, "123") {
		t.Errorf("it got %q", got)
	}
}

// A refiller has another byte written to the pipe for each piece that comes out of it.
type refiller struct{ pipe, pieces atomic.Int64 }

func (r *refiller) Write(p []byte) (int, error) {
	r.pieces.Add(1)
	_, _ = unix.Write(int(r.pipe.Load()), []byte{'x'})
	return len(p), nil
}

// A process can have each byte that it writes read by itself, and what it leaves behind
// goes on with that after its end. The drain has no pace.
func TestADrainTakesFewReadsThoughAFloodComesByteByByte(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			var out refiller
			p, err := open(&out, new(stdio.Pace))
			if err != nil {
				t.Fatal(err)
			}
			flood, err := unix.Dup(int(p.Child.Fd()))
			if err == nil {
				_, err = unix.FcntlInt(uintptr(flood), unix.F_SETFL, unix.O_DIRECT)
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Started()
			defer unix.Close(flood)
			out.pipe.Store(int64(flood))
			_, _ = unix.Write(flood, []byte{'x'})
			p.Drain()
			pieces := out.pieces.Load()
			out.pipe.Store(-1)
			p.Close()
			if pieces > 400 { // what the carrier takes meanwhile included
				t.Errorf("it takes %d reads", pieces)
			}
		})
	}
}
