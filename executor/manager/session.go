package manager

import (
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

// Exec runs a program in a container that has been made and is not ending, and
// connects it with s until it ends. The program has the user, the directory, the
// environment and the limits of the process that the container's action runs: the
// first of parallel ones, the last of serial ones. Exec returns once the program has
// ended and all of its output is written. If ctx ends or a write fails, Exec kills
// the program with its descendants, and returns why.
//
// The error is a *GUIDError, an *executor.SessionError, an
// *executor.ValidationError, or the backend's.
func (m *Manager) Exec(ctx context.Context, guid string, p executor.Program, s executor.Streams) (executor.Exit, error) {
	var v executor.Validator
	if p.Validate(&v); v.Err() != nil {
		return executor.Exit{}, v.Err()
	}
	room, leave, err := m.enter(guid)
	if err != nil {
		return executor.Exit{}, err
	}
	defer leave()
	exited := make(chan executor.Exit, 1)
	spec := executor.SessionSpec{ProcessSpec: room.process, Terminal: p.Terminal}
	spec.Path, spec.Args = p.Command[0], p.Command[1:]
	spec.Exited = func(e executor.Exit) { exited <- e }
	if p.Terminal != nil && p.TerminalType != "" {
		spec.Env = append(spec.Env, executor.EnvVar{Name: "TERM", Value: p.TerminalType})
	}
	starting, started := context.WithTimeout(ctx, sessionStartTimeout)
	session, err := room.backend.StartSession(starting, guid, spec)
	started()
	if err != nil {
		return executor.Exit{}, err
	}
	defer session.Close()
	ctx, used, cancel := m.whileUsed(ctx, guid)
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

// whileUsed returns a context that ends when used has not been called for
// Options.SessionIdle, with an *executor.SessionError as its cause.
func (m *Manager) whileUsed(ctx context.Context, guid string) (_ context.Context, used func(), cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(ctx)
	limit := m.options.SessionIdle
	idle := time.AfterFunc(limit, func() {
		cancel(&executor.SessionError{GUID: guid, Why: fmt.Sprintf("nothing was sent in either direction for %v, so it was ended", limit)})
	})
	context.AfterFunc(ctx, func() { idle.Stop() })
	return ctx, func() {
		if ctx.Err() == nil {
			idle.Reset(limit)
		}
	}, cancel
}

// A usedReader says when something was read.
type usedReader struct {
	io.Reader
	used func()
}

// Read implements [io.Reader].
func (r usedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.used()
	return n, err
}

// A usedWriter says when something was written.
type usedWriter struct {
	io.Writer
	used func()
}

// Write implements [io.Writer].
func (w usedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.used()
	return n, err
}

// feed gives a session its input, and does what is asked, until ctx ends.
func feed(ctx context.Context, session executor.Session, s executor.Streams, used func()) {
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
			used()
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

// CopyIn unpacks a tar stream with one file or directory in a container, with the
// rights of the user that Exec uses; see executor.SessionBackend. It fails like
// Exec.
func (m *Manager) CopyIn(ctx context.Context, guid, path string, tar io.Reader) error {
	room, leave, err := m.copying(guid, path)
	if err != nil {
		return err
	}
	return m.copy(ctx, guid, leave, func(ctx context.Context, used func()) error {
		return room.backend.CopyIn(ctx, guid, path, room.process.User, usedReader{tar, used})
	})
}

// CopyOut writes a file or directory of a container as a tar stream, with the
// rights of the user that Exec uses; see executor.SessionBackend. It fails like
// Exec.
func (m *Manager) CopyOut(ctx context.Context, guid, path string, tar io.Writer) error {
	room, leave, err := m.copying(guid, path)
	if err != nil {
		return err
	}
	return m.copy(ctx, guid, leave, func(ctx context.Context, used func()) error {
		stream, err := room.backend.CopyOut(ctx, guid, path, room.process.User)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, err = io.Copy(usedWriter{tar, used}, stream)
		return err
	})
}

// copy calls f, and does not wait for it after ctx, the container or
// Options.SessionIdle has ended. It calls leave only when f has ended: until then, a file system that hangs
// holds one of the daemon's threads, for example.
func (m *Manager) copy(ctx context.Context, guid string, leave func(), f func(ctx context.Context, used func()) error) error {
	ctx, used, cancel := m.whileUsed(ctx, guid)
	defer cancel(nil)
	defer m.endWith(guid, cancel)()
	done := make(chan error, 1)
	go func() {
		err := f(ctx, used)
		leave()
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

func (m *Manager) copying(guid, path string) (room, func(), error) {
	var v executor.Validator
	v.Check(path != "" && path[0] == '/', "path", path, "an absolute path in the container")
	if v.Err() != nil {
		return room{}, nil, v.Err()
	}
	return m.enter(guid)
}

// A room is a container that somebody works in.
type room struct {
	backend executor.SessionBackend
	// process is what processes of the session have in common with those of the
	// container.
	process executor.ProcessSpec
}

// enter takes a place for a session in a container, until leave is called.
func (m *Manager) enter(guid string) (r room, leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	if e == nil {
		return r, nil, &GUIDError{guid, ErrNotFound}
	}
	refuse := func(format string, args ...any) error {
		return &executor.SessionError{GUID: guid, Why: fmt.Sprintf(format, args...)}
	}
	backend, can := m.options.Backend.(executor.SessionBackend)
	var own *executor.RunAction
	if e.container.RunInfo != nil {
		own = mainRun(e.container.RunInfo.Action)
	}
	switch {
	case !can:
		err = refuse("the %s backend has no sessions", m.host.Backend)
	case m.options.Sessions < 0:
		err = refuse("the settings of the cell allow none")
	case e.recipe == nil:
		err = refuse("it is %v", e.container.State)
	case e.recipe.ending:
		err = refuse("it is ending")
	case own == nil:
		err = refuse("its action runs no process, so a session has no user to work as")
	case m.sessions >= m.options.Sessions:
		err = refuse("the cell has %d sessions, which is the most that its settings allow; end one", m.sessions)
	case e.sessions >= m.options.SessionsEach:
		err = refuse("it has %d sessions, which is the most that the settings of the cell allow; end one", e.sessions)
	}
	if err != nil {
		return r, nil, err
	}
	m.sessions++
	e.sessions++
	r = room{backend, executor.ProcessSpec{
		Dir: own.Dir, User: own.User, Limits: own.ResourceLimits,
		Env: environment(e.container, e.endpoint, m.options.TrustedCertificates != "", e.credentials.path(), own.Env),
	}}
	return r, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sessions--
		e.sessions--
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
