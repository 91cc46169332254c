package manager

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
)

// sessionStartTimeout is how long a program of a session may take to start.
const sessionStartTimeout = 30 * time.Second

// sessionPiece is how much of a stream is passed on at once, at most.
const sessionPiece = 32 << 10

// The sessions of a cell share two paces. 50 of them begin per second, because each
// leaves events. 1,000 pieces pass per second, in either direction, or 31 MiB if they
// are full, because they take processor time of the daemon, not of the container.
const (
	beginEvery, beginBurst = time.Second / 50, 100
	pieceEvery, pieceBurst = time.Second / 1000, 200
)

// A Visit is a place for one session in a container. It is for one goroutine: exactly
// one of its methods is called, once, and gives the place back when it is done.
type Visit struct {
	m       *Manager
	guid    string
	backend executor.SessionBackend
	// process is what processes of the session have in common with those of the
	// container.
	process executor.ProcessSpec
	leave   func()
}

// Exec runs a program in a container, for a caller without a name; see
// [Manager.Enter] and [Visit.Exec].
func (m *Manager) Exec(ctx context.Context, guid string, p executor.Program, s executor.Streams) (executor.Exit, error) {
	v, err := m.Enter(guid, "")
	if err != nil {
		return executor.Exit{}, err
	}
	return v.Exec(ctx, p, s)
}

// CopyIn copies a tar stream into a container, for a caller without a name; see
// [Manager.Enter] and [Visit.CopyIn].
func (m *Manager) CopyIn(ctx context.Context, guid, path string, tar io.Reader) error {
	v, err := m.Enter(guid, "")
	if err != nil {
		return err
	}
	return v.CopyIn(ctx, path, tar)
}

// CopyOut copies a file or directory out of a container, for a caller without a
// name; see [Manager.Enter] and [Visit.CopyOut].
func (m *Manager) CopyOut(ctx context.Context, guid, path string, tar io.Writer) error {
	v, err := m.Enter(guid, "")
	if err != nil {
		return err
	}
	return v.CopyOut(ctx, path, tar)
}

// Exec runs a program in the container and connects it with s until it ends. The
// program has the user, the directory, the environment and the limits of the process
// that the container's action runs: the first of parallel ones, the last of serial
// ones. Exec returns once the program has ended and all of its output is written. If
// ctx ends or a write fails, Exec kills the program with its descendants, and returns
// why.
//
// The error is an *executor.SessionError, an *executor.ValidationError, or the
// backend's.
func (v *Visit) Exec(ctx context.Context, p executor.Program, s executor.Streams) (executor.Exit, error) {
	defer v.leave()
	if err := v.begin(ctx); err != nil {
		return executor.Exit{}, err
	}
	var check executor.Validator
	if p.Validate(&check); check.Err() != nil {
		return executor.Exit{}, check.Err()
	}
	exited := make(chan executor.Exit, 1)
	spec := executor.SessionSpec{ProcessSpec: v.process, Terminal: p.Terminal}
	spec.Path, spec.Args = p.Command[0], p.Command[1:]
	spec.Exited = func(e executor.Exit) { exited <- e }
	if p.Terminal != nil && p.TerminalType != "" {
		spec.Env = append(spec.Env, executor.EnvVar{Name: "TERM", Value: p.TerminalType})
	}
	starting, started := context.WithTimeout(ctx, sessionStartTimeout)
	session, err := v.backend.StartSession(starting, v.guid, spec)
	started()
	if err != nil {
		return executor.Exit{}, err
	}
	defer session.Close()
	ctx, used, cancel := v.whileUsed(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { session.Close() })()
	go feed(ctx, session, s, used)
	var outputs sync.WaitGroup
	for _, o := range []struct {
		to   io.Writer
		from io.Reader
	}{{s.Stdout, session.Stdout()}, {s.Stderr, session.Stderr()}} {
		outputs.Go(func() {
			if o.to == nil {
				o.to = io.Discard
			}
			if _, err := io.Copy(usedWriter{o.to, used}, o.from); err != nil {
				cancel(err)
			}
		})
	}
	written := make(chan struct{})
	go func() {
		outputs.Wait()
		close(written)
	}()
	select {
	case <-written:
	case <-ctx.Done(): // nobody may ever take the rest
		return executor.Exit{}, context.Cause(ctx)
	}
	select {
	case end := <-exited:
		if ctx.Err() == nil {
			return end, nil
		}
	case <-ctx.Done():
	}
	return executor.Exit{}, context.Cause(ctx)
}

// begin waits for the turn of a session, and then returns why ctx has ended, if it
// has. A caller that has given up keeps its place until its turn comes: otherwise it
// could take any number of turns, and all others would wait for them.
func (v *Visit) begin(ctx context.Context) error {
	_ = v.m.begins.Wait(context.WithoutCancel(ctx), 1)
	return context.Cause(ctx)
}

// whileUsed returns a context that ends when used has not been called for
// Options.SessionIdle, with an *executor.SessionError as its cause. used is called for
// what is sent, with its length, and waits for the pace of the cell. It fails when the
// context ends.
func (v *Visit) whileUsed(ctx context.Context) (_ context.Context, used func(n int) error, cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(ctx)
	limit := v.m.options.SessionIdle
	idle := time.AfterFunc(limit, func() {
		cancel(&executor.SessionError{GUID: v.guid, Why: fmt.Sprintf("nothing was sent in either direction for %v, so it was ended", limit)})
	})
	context.AfterFunc(ctx, func() { idle.Stop() })
	return ctx, func(n int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		idle.Reset(limit)
		return v.m.pieces.Wait(ctx, max((n+sessionPiece-1)/sessionPiece, 1))
	}, cancel
}

// A usedReader says when something was read.
type usedReader struct {
	io.Reader
	used func(int) error
}

// Read implements [io.Reader].
func (r usedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if late := r.used(n); err == nil {
		err = late
	}
	return n, err
}

// A usedWriter says when something is written.
type usedWriter struct {
	io.Writer
	used func(int) error
}

// Write implements [io.Writer].
func (w usedWriter) Write(b []byte) (int, error) {
	if err := w.used(len(b)); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

// feed gives a session its input, and does what is asked, until ctx ends.
func feed(ctx context.Context, session executor.Session, s executor.Streams, used func(int) error) {
	go func() {
		if s.Stdin != nil {
			if _, err := io.Copy(session.Stdin(), usedReader{s.Stdin, used}); err != nil {
				// The program takes no more; what comes must not wait for it.
				_, _ = io.Copy(io.Discard, usedReader{s.Stdin, used})
			}
		}
		session.Stdin().Close()
	}()
	for {
		select {
		case c, open := <-s.Control:
			if !open {
				return
			}
			if used(0) != nil {
				return
			}
			// A resize or signal that fails is dropped.
			if c.Resize != nil {
				_ = session.Resize(*c.Resize)
			}
			if slices.Contains(executor.SessionSignals, c.Signal) {
				_ = session.Signal(c.Signal)
			}
		case <-ctx.Done():
			return
		}
	}
}

// CopyIn unpacks a tar stream with one file or directory in the container, with the
// rights of the user that Exec uses; see executor.SessionBackend. It fails like
// Exec.
func (v *Visit) CopyIn(ctx context.Context, path string, tar io.Reader) error {
	return v.copy(ctx, path, func(ctx context.Context, used func(int) error) error {
		// Small pieces, such as a header, would each take a turn.
		whole := bufio.NewReaderSize(usedReader{tar, used}, sessionPiece)
		return v.backend.CopyIn(ctx, v.guid, path, v.process.User, whole)
	})
}

// CopyOut writes a file or directory of the container as a tar stream, with the
// rights of the user that Exec uses; see executor.SessionBackend. It fails like
// Exec.
func (v *Visit) CopyOut(ctx context.Context, path string, tar io.Writer) error {
	return v.copy(ctx, path, func(ctx context.Context, used func(int) error) error {
		stream, err := v.backend.CopyOut(ctx, v.guid, path, v.process.User)
		if err != nil {
			return err
		}
		defer stream.Close()
		whole := bufio.NewWriterSize(usedWriter{tar, used}, sessionPiece)
		// Without WriteTo, which would pass small pieces on.
		if _, err := io.Copy(whole, struct{ io.Reader }{stream}); err != nil {
			return err
		}
		return whole.Flush()
	})
}

// copy calls f, and does not wait for it after ctx, the container or
// Options.SessionIdle has ended. It leaves only when f has ended: until then, a file
// system that hangs holds one of the daemon's threads, for example.
func (v *Visit) copy(ctx context.Context, path string, f func(ctx context.Context, used func(int) error) error) error {
	var check executor.Validator
	check.Check(path != "" && path[0] == '/', "path", path, "an absolute path in the container")
	err := v.begin(ctx)
	if err == nil {
		err = check.Err()
	}
	if err != nil {
		v.leave()
		return err
	}
	ctx, used, cancel := v.whileUsed(ctx)
	defer cancel(nil)
	defer v.m.endWith(v.guid, cancel)()
	done := make(chan error, 1)
	go func() {
		err := f(ctx, used)
		v.leave()
		done <- err
	}()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func errRemoved(guid string) error {
	return &executor.SessionError{GUID: guid, Why: "it is being removed"}
}

// endWith has the removal of a container call cancel, until forget is called.
func (m *Manager) endWith(guid string, cancel context.CancelCauseFunc) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	if e == nil || e.deleting {
		cancel(errRemoved(guid))
		return func() {}
	}
	if e.copies == nil {
		e.copies = map[*context.CancelCauseFunc]struct{}{}
	}
	e.copies[&cancel] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(e.copies, &cancel)
	}
}

// Enter takes a place for a session of a caller in a container that has been made
// and is not ending. A caller without a name, "", is not told apart from others, so
// only the limits of the cell and of the container hold for it. The error is a
// *GUIDError or an *executor.SessionError.
func (m *Manager) Enter(guid, caller string) (*Visit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	if e == nil {
		return nil, &GUIDError{guid, ErrNotFound}
	}
	backend, can := m.options.Backend.(executor.SessionBackend)
	var own *executor.RunAction
	if e.container.RunInfo != nil {
		own = mainRun(e.container.RunInfo.Action)
	}
	// One caller never has all of the cell.
	most := (m.options.Sessions + 3) / 4
	var err error
	refuse := func(format string, args ...any) {
		err = &executor.SessionError{GUID: guid, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case !can:
		refuse("the %s backend has no sessions", m.host.Backend)
	case m.options.Sessions < 0:
		refuse("the settings of the cell allow none")
	case e.recipe == nil:
		refuse("it is %v", e.container.State)
	case e.recipe.ending:
		refuse("it is ending")
	case own == nil:
		refuse("its action runs no process, so a session has no user to work as")
	case m.sessions >= m.options.Sessions:
		refuse("the cell has %d sessions, which is the most that its settings allow; end one", m.sessions)
	case e.sessions >= m.options.SessionsEach:
		refuse("it has %d sessions, which is the most that the settings of the cell allow; end one", e.sessions)
	case caller != "" && m.sessionsOf[caller] >= most:
		refuse("%q has %d sessions on the cell, and one caller may have a quarter of the %d that its settings allow; end one",
			caller, m.sessionsOf[caller], m.options.Sessions)
	}
	if err != nil {
		return nil, err
	}
	count := func(n int) {
		m.sessions += n
		e.sessions += n
		if m.sessionsOf[caller] += n; m.sessionsOf[caller] == 0 {
			delete(m.sessionsOf, caller)
		}
	}
	count(1)
	return &Visit{
		m: m, guid: guid, backend: backend,
		process: executor.ProcessSpec{
			Dir: own.Dir, User: own.User, Limits: own.ResourceLimits,
			Env: environment(e.container, e.endpoint, m.options.TrustedCertificates != "", e.credentials.path(), own.Env),
		},
		leave: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			count(-1)
		},
	}, nil
}

// Sessions returns how many sessions there are.
func (m *Manager) Sessions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions
}

// mainRun is the process that an action runs in the end, or nil.
func mainRun(a executor.Action) *executor.RunAction {
	var inner []executor.Action
	switch {
	case a.Run != nil:
		return a.Run
	case a.Timeout != nil:
		inner = []executor.Action{a.Timeout.Action}
	case a.Try != nil:
		inner = []executor.Action{a.Try.Action}
	case a.EmitProgress != nil:
		inner = []executor.Action{a.EmitProgress.Action}
	case a.Parallel != nil:
		inner = a.Parallel.Actions
	case a.Serial != nil:
		inner = slices.Clone(a.Serial.Actions)
		slices.Reverse(inner)
	case a.Codependent != nil:
		inner = a.Codependent.Actions
	}
	for _, next := range inner {
		if run := mainRun(next); run != nil {
			return run
		}
	}
	return nil
}
