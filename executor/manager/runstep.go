package manager

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A runStep runs a process: a job starts it, its exit comes from the backend,
// and a cancel is TERM, then KILL after the container's grace.
type runStep struct {
	builder builder
	action  executor.RunAction
	done    func(error)

	starting  *job
	process   executor.Process
	exit      *executor.Exit
	cancelled bool
	ended     bool
	kill      *timer // KILL, and then the end of patience
	rest      *job   // KILL for what the process has left behind
}

func (s *runStep) start() {
	e := s.builder.recipe.entry
	m := e.manager
	s.starting = m.submit(startPool, JobStart, e.guid, func(ctx context.Context) func() {
		if ctx.Err() != nil {
			return func() { s.started(nil, ctx.Err()) }
		}
		process, err := m.options.Backend.Start(ctx, e.guid, s.spec())
		return func() { s.started(process, err) }
	})
}

// spec is made when the process starts: a thousand that wait for that, each with
// thousands of variables, would take all memory. It is called without the lock.
func (s *runStep) spec() executor.ProcessSpec {
	e := s.builder.recipe.entry
	m := e.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	spec := executor.ProcessSpec{
		Path: s.action.Path, Args: s.action.Args, Dir: s.action.Dir, User: s.action.User, Limits: s.action.ResourceLimits,
		Env:    environment(e.container, e.endpoint, m.options.TrustedCertificates != "", e.credentials.path(), s.action.Env),
		Exited: func(exit executor.Exit) { m.post(func() { s.exited(exit) }) },
	}
	if stdout, stderr := s.builder.writers(s.action.SuppressLogOutput); stdout != nil {
		spec.Stdout, spec.Stderr = stdout, stderr
	}
	return spec
}

func (s *runStep) started(p executor.Process, err error) {
	s.starting = nil
	if err != nil {
		s.end(err)
		return
	}
	s.process = p
	if s.cancelled {
		s.terminate()
	} else {
		s.builder.begun()
	}
	if s.exit != nil { // it was faster than the news of its start
		s.exited(*s.exit)
	}
}

func (s *runStep) exited(exit executor.Exit) {
	s.exit = &exit
	switch {
	case s.process == nil:
	case s.cancelled && !s.builder.recipe.ending:
		// The container goes on without the step, and without what the step
		// has left behind. The step lasts until that is dead: otherwise a monitor
		// that times out could begin more than can be killed.
		s.killRest()
	case exit.Success():
		s.end(nil)
	default:
		s.end(fmt.Errorf("%s: %v", s.action.Path, exit))
	}
}

func (s *runStep) end(err error) {
	if s.ended {
		return
	}
	s.ended = true
	s.builder.recipe.entry.manager.forget(s.kill)
	if s.cancelled {
		err = errCancelled
	}
	s.done(brief(err))
}

func (s *runStep) cancel() {
	if s.ended {
		return
	}
	if s.cancelled {
		if s.rest != nil && s.builder.recipe.ending { // which kills everything in the container
			s.rest.stop(s.builder.recipe.entry.manager)
		}
		return
	}
	s.cancelled = true
	switch {
	case s.starting != nil:
		s.starting.stop(s.builder.recipe.entry.manager)
	case s.process != nil:
		s.terminate()
	}
}

// terminate asks the process to end, then makes it, then goes on without it.
func (s *runStep) terminate() {
	e := s.builder.recipe.entry
	s.signal(executor.Terminate, nil)
	s.kill = e.manager.after(e.grace, func() {
		// Where thousands are stopped, the signal may have to wait for its turn.
		s.signal(executor.Kill, func() {
			if s.ended || s.exit != nil {
				return
			}
			s.kill = e.manager.after(exitTimeout, func() {
				e.manager.options.Logger.Error("a process does not die", "guid", e.guid, "path", s.action.Path)
				s.end(errCancelled)
			})
		})
	})
}

// killRest kills what the process has left behind, and ends the step.
func (s *runStep) killRest() {
	e := s.builder.recipe.entry
	e.manager.forget(s.kill)
	s.rest = e.manager.submit(signalPool, JobSignal, e.guid, func(ctx context.Context) func() {
		if ctx.Err() == nil {
			s.send(executor.Kill)
		}
		return func() { s.end(nil) }
	})
}

// signal signals the process, and then calls sent unless it is nil.
func (s *runStep) signal(signal executor.Signal, sent func()) {
	e := s.builder.recipe.entry
	e.manager.submit(signalPool, JobSignal, e.guid, func(context.Context) func() {
		s.send(signal)
		return sent
	})
}

// send is for a job of a step that has a process, which does not change any more.
func (s *runStep) send(signal executor.Signal) {
	if err := s.process.Signal(signal); err != nil {
		e := s.builder.recipe.entry
		e.manager.options.Logger.Warn("a process could not be signalled", "guid", e.guid, "signal", signal, "error", err)
	}
}
