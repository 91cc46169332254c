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
	"time"

	"github.com/diegosdk/diego/executor"
)

const (
	// bufferSize is one read. Buffers are shared: a silent process holds none.
	bufferSize = 64 << 10
	// drainLimit bounds Drain where children write without end. No pipe holds
	// more, unless an administrator has raised the system's limit.
	drainLimit = 1 << 20
	// page is what a read counts for at least where drainLimit counts. A process can
	// have each byte that it writes to a pipe read by itself (O_DIRECT), but a pipe
	// holds no more of those than pages.
	page = 4 << 10
	// gap is between two reads of one container's pipes at least. A flood waits in
	// the pipe and in the process that makes it: a container carries at most one
	// buffer in this time, 21 MB/s, and costs at most 334 reads a second.
	gap = 3 * time.Millisecond
)

// A Pace bounds what the output of a container costs. Its pipes take turns: however
// many processes write, together they are read no more often than one that writes
// all of it. The zero value is ready for use.
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

	owned   bool          // whether Started closes Child
	guard   *Guard        // nil if nobody looks
	carrier carrier       // nil if the process writes by itself
	done    chan struct{} // closed when nothing will be carried any more
}

// A carrier moves what is in a pipe to the writer, by itself and when it is asked to.
type carrier interface {
	// drain moves what is there now, up to drainLimit.
	drain()
	// close ends it, and returns when the writer is no longer used.
	close()
}

// Both returns the Pipes of a process: one for both outputs if they go to the
// same writer, which then gets them in the order in which they were written. open
// is New, or makes Pipes that are watched.
func Both(stdout, stderr io.Writer, open func(io.Writer) (*Pipe, error)) (out, err *Pipe, failed error) {
	if out, failed = open(stdout); failed != nil {
		return nil, nil, failed
	}
	if (stdout == nil || reflect.ValueOf(stdout).Comparable()) && stdout == stderr {
		return out, out, nil
	}
	if err, failed = open(stderr); failed != nil {
		out.Started()
		out.Close()
		return nil, nil, failed
	}
	return out, err, nil
}

// New returns a Pipe to w, with a goroutine of its own. An *os.File is given to the
// process as it is, and nil becomes the null device; neither is copied by anybody.
// The pace is that of the container.
func New(w io.Writer, pace *Pace) (*Pipe, error) {
	if p, err := direct(w); p != nil || err != nil {
		return p, err
	}
	done := make(chan struct{})
	c, child, err := carry(w, pace, done)
	if err != nil {
		return nil, err
	}
	return &Pipe{Child: child, owned: true, carrier: c, done: done}, nil
}

// direct is the Pipe of a process that writes by itself, or nil if w takes a
// carrier.
func direct(w io.Writer) (*Pipe, error) {
	f, isFile := w.(*os.File)
	if w != nil && !isFile {
		return nil, nil
	}
	p := &Pipe{Child: f, owned: !isFile, done: make(chan struct{})}
	close(p.done)
	if isFile {
		return p, nil
	}
	var err error
	p.Child, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Started closes the caller's copy of Child, once the process has its own or
// will never have one.
func (p *Pipe) Started() {
	if p.owned {
		p.guard.Watch(func() { p.Child.Close() })
	}
}

// Drain returns once everything that was in the pipe when it was called has
// reached the writer. It waits for nobody who holds the other end open.
func (p *Pipe) Drain() {
	if p.carrier != nil {
		p.carrier.drain()
	}
}

// Close stops carrying, once what is in the pipe has reached the writer, and
// returns when the writer is no longer used. Who writes afterwards gets EPIPE.
func (p *Pipe) Close() {
	p.Drain()
	if p.carrier != nil {
		p.carrier.close()
	}
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

type moveState uint8

const (
	ended moveState = iota // nobody can write any more
	empty                  // nothing to read now
	moved
)
