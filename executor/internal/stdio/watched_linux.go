package stdio

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Watcher waits for many pipes at once.
type Watcher interface {
	// Watch calls ready, which must not wait, whenever there may be something to
	// read or an end, until it returns false or Forget is called.
	Watch(fd int, ready func() bool) (key int32, err error)
	Forget(key int32)
}

// NewWatched is New without a goroutine: the Watcher says when there is something
// to carry.
func NewWatched(w io.Writer, pace *Pace, guard *Guard, watcher Watcher) (*Pipe, error) {
	if p, err := direct(w); p != nil || err != nil {
		return p, err
	}
	done := make(chan struct{})
	c, child, err := watch(w, pace, guard, watcher, done)
	if err != nil {
		return nil, err
	}
	return &Pipe{Child: child, owned: true, guard: guard, carrier: c, done: done}, nil
}

// watched carries what comes out of a pipe. While nothing comes, it takes no
// goroutine.
type watched struct {
	watcher Watcher
	guard   *Guard
	w       io.Writer
	pace    *Pace
	done    chan struct{} // closed when nothing will be carried any more
	stop    chan struct{} // closed by close
	once    sync.Once     // of close

	mu  sync.Mutex // held from a read to the end of its write
	fd  int        // -1 once it is closed
	key int32      // of the latest watch
}

func watch(w io.Writer, pace *Pace, guard *Guard, watcher Watcher, done chan struct{}) (*watched, *os.File, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	p := &watched{watcher: watcher, guard: guard, w: w, pace: pace, done: done, stop: make(chan struct{}), fd: ends[0]}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := os.NewSyscallError("fcntl", unix.SetNonblock(p.fd, true))
	if err == nil {
		p.key, err = watcher.Watch(p.fd, p.news)
	}
	if err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, nil, err
	}
	return p, os.NewFile(uintptr(ends[1]), "output"), nil
}

// news leaves all calls on the pipe to a goroutine, because they may wait after all; see
// [Guard].
func (p *watched) news() bool {
	go p.carry()
	return false
}

// carry moves output, one buffer in each turn, until there is none. Then it has the
// pipe watched again.
func (p *watched) carry() {
	for first := true; ; first = false {
		if !first {
			select {
			case <-time.After(p.pace.pause()):
			case <-p.stop:
			}
		}
		p.mu.Lock()
		_, state := p.move()
		if state == empty {
			p.watcher.Forget(p.key)
			var err error
			if p.key, err = p.watcher.Watch(p.fd, p.news); err != nil { // too many are watched
				state = moved
			}
		}
		p.mu.Unlock()
		if state != moved {
			return
		}
	}
}

// move carries at most one buffer. The writer's errors change nothing for the
// process. The caller holds mu.
func (p *watched) move() (int, moveState) {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	n, state := p.read(buffer[:])
	switch state {
	case moved:
		p.w.Write(buffer[:n])
	case ended:
		p.finish()
	}
	return n, state
}

func (p *watched) read(buffer []byte) (int, moveState) {
	if p.fd < 0 {
		return 0, ended
	}
	n, err := p.guard.once(syscall.Read, uintptr(p.fd), buffer)
	switch {
	case err == unix.EAGAIN:
		return 0, empty
	case err != nil || n == 0:
		return 0, ended
	}
	return n, moved
}

// finish frees the pipe. The caller holds mu.
func (p *watched) finish() {
	if p.fd < 0 {
		return
	}
	p.watcher.Forget(p.key)
	p.guard.call(func() { unix.Close(p.fd) })
	p.fd = -1
	close(p.done)
}

// drain implements carrier.
func (p *watched) drain() {
	for total := 0; total < drainLimit; {
		p.mu.Lock()
		n, state := p.move()
		p.mu.Unlock()
		if state != moved {
			return
		}
		total += max(n, page)
	}
}

// close implements carrier.
func (p *watched) close() {
	p.once.Do(func() { close(p.stop) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}
