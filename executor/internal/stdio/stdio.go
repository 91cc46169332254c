//go:build unix

// Package stdio connects the output of a process to a writer.
//
// It is what backends share to keep the promises of
// [executor.ProcessSpec.Stdout]: a process has ended when it has ended,
// even if others still hold its output open, and what it wrote is not lost.
package stdio

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
)

const (
	// bufferSize is one read. Buffers are shared: a silent process holds none.
	bufferSize = 64 << 10
	// drainLimit bounds Drain where children write without end. No pipe holds
	// more, unless an administrator has raised the system's limit.
	drainLimit = 1 << 20
	// gap is between two reads of one container's pipes at least. A flood waits in
	// the pipe and in the process that makes it: a container carries at most one
	// buffer in this time, 21 MB/s, and costs at most 334 reads a second.
	gap = 3 * time.Millisecond
)

// A Pace bounds what the output of a container costs. Its pipes take turns: however
// many processes write, they are read as often as one that writes as much. The zero
// value is ready for use.
type Pace struct {
	mu   sync.Mutex
	next time.Time // when the last turn that was given is over
}

// pause gives a pipe its next turn, and returns how long it has to wait for that.
func (p *Pace) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(gap)
	return p.next.Sub(now)
}

// MaxProcesses is how many processes of a container a backend runs at once, and
// in how many it holds the output open for what they have left behind. Each
// costs the daemon two descriptors.
const MaxProcesses = 128

// Begin reserves one of a container's MaxProcesses places, or fails if all are
// taken. The caller calls begun once the process is in processes or has failed to
// start. Begin removes finished processes, and counts in beginning those that have
// neither started nor failed. lock guards all of these; finished is called while
// it is held.
func Begin[P comparable](lock sync.Locker, guid string, processes map[P]struct{}, finished func(P) bool, beginning *int) (begun func(), err error) {
	lock.Lock()
	defer lock.Unlock()
	for p := range processes {
		if finished(p) {
			delete(processes, p)
		}
	}
	if len(processes)+*beginning >= MaxProcesses {
		return nil, &executor.BackendError{Kind: executor.ErrProcesses, GUID: guid, Detail: fmt.Sprintf(
			"%d of its processes run or have left children that hold their output open; end some of them, or start them from one script", MaxProcesses)}
	}
	*beginning++
	return func() {
		lock.Lock()
		defer lock.Unlock()
		*beginning--
	}, nil
}

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A Pipe carries the output of a process to a writer.
type Pipe struct {
	// Child is the end for the process.
	Child *os.File

	pace   *Pace
	reader *os.File        // nil if the process writes by itself
	raw    syscall.RawConn // of reader
	owned  bool            // whether Started closes Child
	done   chan struct{}   // closed when nothing will be carried any more
	stop   chan struct{}   // closed by Close
	once   sync.Once       // of Close

	mu sync.Mutex // held from a read to the end of its write
	w  io.Writer
}

// Both returns the Pipes of a process: one for both outputs if they go to the
// same writer, which then gets them in the order in which they were written.
func Both(stdout, stderr io.Writer, pace *Pace) (out, err *Pipe, failed error) {
	if out, failed = New(stdout, pace); failed != nil {
		return nil, nil, failed
	}
	if (stdout == nil || reflect.ValueOf(stdout).Comparable()) && stdout == stderr {
		return out, out, nil
	}
	if err, failed = New(stderr, pace); failed != nil {
		out.Started()
		out.Close()
		return nil, nil, failed
	}
	return out, err, nil
}

// New returns a Pipe to w. An *os.File is given to the process as it is, and
// nil becomes the null device; neither is copied by anybody. The pace is that of the
// container.
func New(w io.Writer, pace *Pace) (*Pipe, error) {
	p := &Pipe{w: w, pace: pace, done: make(chan struct{}), stop: make(chan struct{})}
	if f, isFile := w.(*os.File); isFile {
		p.Child = f
		close(p.done)
		return p, nil
	}
	if w == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		p.Child, p.owned = null, true
		close(p.done)
		return p, nil
	}
	reader, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	raw, err := reader.SyscallConn()
	if err != nil {
		reader.Close()
		child.Close()
		return nil, err
	}
	p.Child, p.owned, p.reader, p.raw = child, true, reader, raw
	go p.carry()
	return p, nil
}

// Started closes the caller's copy of Child, once the process has its own or
// will never have one.
func (p *Pipe) Started() {
	if p.owned {
		p.Child.Close()
	}
}

// Drain returns once everything that was in the pipe when it was called has
// reached the writer. It waits for nobody who holds the other end open.
func (p *Pipe) Drain() {
	if p.reader == nil {
		return
	}
	p.raw.Control(func(fd uintptr) {
		for total := 0; total < drainLimit; {
			n, state := p.move(fd)
			if state != moved {
				return
			}
			total += n
		}
	})
}

// Close stops carrying, once what is in the pipe has reached the writer, and
// returns when the writer is no longer used. Who writes afterwards gets EPIPE.
func (p *Pipe) Close() {
	if p.reader == nil {
		return
	}
	p.Drain()
	p.once.Do(func() { close(p.stop) })
	p.reader.Close()
	<-p.done
}

// Done reports whether nothing will come any more.
func (p *Pipe) Done() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// carry moves output until every holder of the other end has closed it or
// Close is called. Between two moves it waits for its turn and then in the runtime's
// poller, without a thread and without a buffer.
func (p *Pipe) carry() {
	defer close(p.done)
	pause := time.NewTimer(gap)
	defer pause.Stop()
	for {
		state := ended
		err := p.raw.Read(func(fd uintptr) bool {
			_, state = p.move(fd)
			return state != empty
		})
		if err != nil || state == ended {
			p.reader.Close()
			return
		}
		pause.Reset(p.pace.pause())
		select {
		case <-pause.C:
		case <-p.stop:
		}
	}
}

type moveState uint8

const (
	ended moveState = iota // nobody can write any more
	empty                  // nothing to read now
	moved
)

// move carries at most one buffer. The writer's errors change nothing for the
// process.
func (p *Pipe) move(fd uintptr) (int, moveState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := syscall.Read(int(fd), buffer[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, empty
		case err != nil || n <= 0:
			return 0, ended
		}
		p.w.Write(buffer[:n])
		return n, moved
	}
}
