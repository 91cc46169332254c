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
	// Guard makes the calls on their pipes and terminals, if it is not nil.
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
	for i, f := range e.own {
		switch {
		case f == nil:
		case i > 0 && f == e.own[i-1]: // a terminal
			session.own[i] = session.own[i-1]
		default:
			session.own[i] = &file{f: f, guard: s.Guard}
		}
	}
	session.stdout.own, session.stderr.own = session.own[1], session.own[2]
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
		s.Guard.Watch(e.Close)
		return nil, err
	}
	s.Guard.Watch(e.Started)
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
	own            [3]*file // as in Ends
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
func (s *Session) Stdin() io.WriteCloser { return input{s} }

// Stdout implements [executor.Session].
func (s *Session) Stdout() io.Reader { return &s.stdout }

// Stderr implements [executor.Session].
func (s *Session) Stderr() io.Reader { return &s.stderr }

// Resize implements [executor.Session].
func (s *Session) Resize(size executor.TerminalSize) error {
	if !s.ends.Terminal {
		return nil
	}
	return s.own[0].resize(size)
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
		for _, f := range s.own {
			if f != nil {
				_ = f.close()
			}
		}
		s.among.mu.Lock()
		defer s.among.mu.Unlock()
		delete(s.among.open, s)
	})
}

// A file is the session's end of a pipe or terminal.
type file struct {
	f     *os.File
	guard *Guard

	deadlines sync.Mutex
	closed    bool // guarded by deadlines
	// using is held by those who use the file. The last of them would close an *os.File
	// in place of close, and nobody would watch that.
	using sync.RWMutex
}

// limit says how long reads may wait, and reports whether the file is open.
func (f *file) limit(until time.Time) (open bool) {
	f.deadlines.Lock()
	defer f.deadlines.Unlock()
	if !f.closed {
		_ = f.f.SetReadDeadline(until)
	}
	return !f.closed
}

func (f *file) open() bool {
	f.deadlines.Lock()
	defer f.deadlines.Unlock()
	return !f.closed
}

func (f *file) close() error {
	f.deadlines.Lock()
	again := f.closed
	f.closed = true
	_ = f.f.SetDeadline(time.Unix(1, 0)) // so that those who use it come back
	f.deadlines.Unlock()
	if again {
		return os.ErrClosed
	}
	f.using.Lock()
	defer f.using.Unlock()
	var err error
	f.guard.Watch(func() { err = f.f.Close() })
	return err
}

// read reads once, when there is something.
func (f *file) read(p []byte) (int, error) {
	return f.transfer(syscall.RawConn.Read, syscall.Read, p)
}

// transfer reads or writes once, when that is possible. After close the error is
// os.ErrClosed, and after a deadline os.ErrDeadlineExceeded.
func (f *file) transfer(whenReady func(syscall.RawConn, func(uintptr) bool) error, action func(int, []byte) (int, error), p []byte) (n int, err error) {
	if !f.open() { // or it would wait for the end of the close
		return 0, os.ErrClosed
	}
	f.using.RLock()
	defer f.using.RUnlock()
	raw, err := f.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = whenReady(raw, func(fd uintptr) bool {
		n, failed = f.guard.once(action, fd, p)
		return failed != syscall.EAGAIN
	})
	switch {
	case !f.open():
		return 0, os.ErrClosed
	case err == nil:
		return n, failed
	}
	return 0, err
}

// there reads what is there now, or nothing.
func (f *file) there(p []byte) (n int) {
	f.using.RLock()
	defer f.using.RUnlock()
	raw, err := f.f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = f.guard.once(syscall.Read, fd, p) })
	return n
}

// resize is for the master of a terminal.
func (f *file) resize(size executor.TerminalSize) (err error) {
	if !f.open() {
		return os.ErrClosed
	}
	f.using.RLock()
	defer f.using.RUnlock()
	f.guard.call(func() { err = resize(f.f, size) })
	return err
}

// An input writes to a process.
type input struct{ session *Session }

// Write implements [io.Writer].
func (i input) Write(p []byte) (int, error) {
	for written := 0; ; {
		n, err := i.session.own[0].transfer(syscall.RawConn.Write, syscall.Write, p[written:])
		if written += n; err != nil || written == len(p) {
			return written, err
		}
	}
}

// Close implements [io.Closer].
func (i input) Close() error {
	if i.session.ends.Terminal {
		return nil
	}
	return i.session.own[0].close()
}

// An output reads what a process writes. It has none if own is nil.
type output struct {
	own   *file
	ended atomic.Bool
	taken int       // since the end
	until time.Time // how long to wait for more; zero before the end
}

func (o *output) end() {
	o.ended.Store(true)
	if o.own != nil {
		o.own.limit(time.Now().Add(drainWait))
	}
}

// Read implements [io.Reader].
func (o *output) Read(p []byte) (int, error) {
	if o.own == nil {
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
			if !o.own.limit(o.until) {
				return 0, io.EOF
			}
			if n := o.own.there(p); n > 0 { // even after the deadline, for a reader that is late
				o.taken += max(n, page)
				return n, nil
			}
		}
		n, err := o.own.read(p)
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
