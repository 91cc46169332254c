//go:build unix

package stdio

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
)

// drainWait is how long output is waited for, in all, after its process has ended. Then
// it counts as complete. The descendants of the process are dead by then, so only a
// process that has escaped can still hold the other end, and write now and then.
const drainWait = time.Second

// Ends are both ends of the pipes, or of the terminal, between a process and its
// session.
type Ends struct {
	// Child are for the process: its stdin, stdout and stderr.
	Child [3]*os.File
	// Terminal says that they are a terminal, which the process is to control.
	Terminal bool

	own [3]*os.File // the other ends; a terminal is the first two
}

// OpenEnds makes the ends of a session: three pipes, or the terminal that open
// makes.
func OpenEnds(size *executor.TerminalSize, open func() (master, slave *os.File, err error)) (e *Ends, err error) {
	e = &Ends{Terminal: size != nil}
	if e.Terminal {
		master, slave, err := open()
		if err != nil {
			return nil, err
		}
		e.Child, e.own = [3]*os.File{slave, slave, slave}, [3]*os.File{master, master, nil}
		if err := resize(master, *size); err != nil {
			e.Close()
			return nil, err
		}
		return e, nil
	}
	for i := range e.Child {
		in, out, err := os.Pipe()
		if err != nil {
			e.Close()
			return nil, err
		}
		if i == 0 {
			e.Child[i], e.own[i] = in, out
		} else {
			e.own[i], e.Child[i] = in, out
		}
	}
	return e, nil
}

// Started closes the ends of the process, once it has its own or will never
// have them.
func (e *Ends) Started() {
	for _, f := range e.Child {
		if f != nil {
			f.Close()
		}
	}
}

// Close closes all ends.
func (e *Ends) Close() {
	e.Started()
	for _, f := range e.own {
		if f != nil {
			f.Close()
		}
	}
}

// Sessions are those of a container. The zero value has none.
type Sessions struct {
	// Guard makes the calls on their pipes, if it is not nil.
	Guard *Guard

	mu   sync.Mutex
	open map[*Session]struct{}
}

// Free closes the files of all sessions. It is for a container that is being
// deleted, whose processes are dead.
func (s *Sessions) Free() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, session := range all {
		session.free()
	}
}

// A Target is the process of a session.
type Target interface {
	executor.Process
	Send(executor.SessionSignal) error
}

// Start makes a session of the process that run starts with that spec and stdin.
// It closes the ends if that fails.
func (s *Sessions) Start(e *Ends, spec executor.ProcessSpec, run func(executor.ProcessSpec, *os.File) (Target, error)) (executor.Session, error) {
	session := &Session{ends: e, among: s}
	session.stdout.f, session.stderr.f = e.own[1], e.own[2]
	session.stdout.guard, session.stderr.guard = s.Guard, s.Guard
	started := make(chan struct{}) // Exited may be called before run returns
	exited := spec.Exited
	spec.Stdout, spec.Stderr = e.Child[1], e.Child[2]
	spec.Exited = func(end executor.Exit) {
		<-started
		session.exited()
		if exited != nil {
			exited(end)
		}
	}
	var err error
	if session.target, err = run(spec, e.Child[0]); err != nil {
		s.Guard.watch(e.Close)
		return nil, err
	}
	s.Guard.watch(e.Started)
	s.mu.Lock()
	if s.open == nil {
		s.open = map[*Session]struct{}{}
	}
	s.open[session] = struct{}{}
	s.mu.Unlock()
	close(started)
	return session, nil
}

// A Session implements [executor.Session].
type Session struct {
	ends           *Ends
	among          *Sessions
	target         Target
	stdout, stderr output
	once           sync.Once
}

// exited is called when the process has ended: it kills what the process has left
// behind, and lets the output end.
func (s *Session) exited() {
	_ = s.target.Signal(executor.Kill) // what is left ends with the container
	s.stdout.end()
	s.stderr.end()
}

// Stdin implements [executor.Session].
func (s *Session) Stdin() io.WriteCloser { return input{s.ends, s.among.Guard} }

// Stdout implements [executor.Session].
func (s *Session) Stdout() io.Reader { return &s.stdout }

// Stderr implements [executor.Session].
func (s *Session) Stderr() io.Reader { return &s.stderr }

// Resize implements [executor.Session].
func (s *Session) Resize(size executor.TerminalSize) error {
	if !s.ends.Terminal {
		return nil
	}
	return resize(s.ends.own[0], size)
}

// Signal implements [executor.Session].
func (s *Session) Signal(signal executor.SessionSignal) error { return s.target.Send(signal) }

// Close implements [executor.Session].
func (s *Session) Close() error {
	err := s.target.Signal(executor.Kill)
	s.free()
	return err
}

func (s *Session) free() {
	s.once.Do(func() {
		for _, f := range s.ends.own {
			if f != nil {
				_ = f.SetDeadline(time.Now()) // or who uses it would close it, unwatched
			}
		}
		s.among.Guard.watch(s.ends.Close)
		s.among.mu.Lock()
		defer s.among.mu.Unlock()
		delete(s.among.open, s)
	})
}

// An input writes to a process.
type input struct {
	ends  *Ends
	guard *Guard
}

// Write implements [io.Writer].
func (i input) Write(p []byte) (int, error) {
	for written := 0; ; {
		n, err := i.guard.transfer(i.ends.own[0], syscall.RawConn.Write, syscall.Write, p[written:])
		if written += max(n, 0); err != nil || written == len(p) {
			return written, err
		}
	}
}

// Close implements [io.Closer].
func (i input) Close() error {
	if i.ends.Terminal {
		return nil
	}
	var err error
	i.guard.watch(func() { err = i.ends.own[0].Close() })
	return err
}

// An output reads what a process writes. It has none if f is nil.
type output struct {
	f     *os.File
	guard *Guard
	ended atomic.Bool
	taken int       // since the end
	until time.Time // how long to wait for more; zero before the end
}

func (o *output) end() {
	o.ended.Store(true)
	if o.f != nil {
		_ = o.f.SetReadDeadline(time.Now().Add(drainWait))
	}
}

// Read implements [io.Reader].
func (o *output) Read(p []byte) (int, error) {
	if o.f == nil {
		return 0, io.EOF
	}
	for {
		ended := o.ended.Load()
		if ended {
			if o.taken >= drainLimit {
				return 0, io.EOF
			}
			if o.until.IsZero() {
				o.until = time.Now().Add(drainWait)
			}
			_ = o.f.SetReadDeadline(o.until)
			if n := o.there(p); n > 0 { // even after the deadline, for a reader that is late
				o.taken += max(n, page)
				return n, nil
			}
		}
		n, err := o.guard.transfer(o.f, syscall.RawConn.Read, syscall.Read, p)
		if n == 0 && err == nil && len(p) > 0 {
			err = io.EOF
		}
		if ended {
			o.taken += max(n, page)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			continue // the process ended meanwhile, and what it wrote may not have been read
		}
		// A terminal that nobody holds any more is EIO.
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) || isEIO(err) {
			err = io.EOF
		}
		return n, err
	}
}

// there reads what is there now, or nothing.
func (o *output) there(p []byte) (n int) {
	raw, err := o.f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = o.guard.once(syscall.Read, fd, p) })
	return n
}
