package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/logfile"
)

// A step carries out one action. It never waits: start begins, and the step
// calls its done function exactly once when it has ended, perhaps before start
// returns. cancel asks a step that has started to end soon; done is called all
// the same. Steps are used with the Manager's lock.
type step interface {
	start()
	cancel()
}

// errCancelled is how a step ends that was cancelled before it could fail or
// succeed.
var errCancelled = errors.New("cancelled")

// A builder makes steps of actions.
type builder struct {
	recipe *recipe
	health bool   // output goes to the log of health
	source string // of what is written
	begin  func() // called whenever a process or transfer has begun; may be nil
}

// from is b for a step that writes under its own source; an empty source means
// that of b.
func (b builder) from(source string) builder {
	if source != "" {
		b.source = source
	}
	return b
}

// build returns the step for an action, which has been validated.
func (b builder) build(a executor.Action, done func(error)) step {
	b = b.from(a.LogSource())
	switch {
	case a.Run != nil:
		return &runStep{builder: b, action: *a.Run, done: done}
	case a.Download != nil:
		return b.download(downloadOf(*a.Download), done)
	case a.Upload != nil:
		return b.upload(*a.Upload, done)
	case a.Timeout != nil:
		s := &timeoutStep{manager: b.recipe.entry.manager, limit: a.Timeout.Timeout(), done: done}
		s.inner = b.build(a.Timeout.Action, s.ended)
		return s
	case a.Try != nil:
		s := &tryStep{done: done}
		s.inner = b.build(a.Try.Action, s.ended)
		return s
	case a.EmitProgress != nil:
		stdout, stderr := b.writers(false)
		s := &progressStep{entry: b.recipe.entry, action: *a.EmitProgress, stdout: stdout, stderr: stderr, done: done}
		s.inner = b.build(a.EmitProgress.Action, s.ended)
		return s
	case a.Parallel != nil:
		return b.parallel(a.Parallel.Actions, false, done)
	case a.Codependent != nil:
		return b.parallel(a.Codependent.Actions, true, done)
	default:
		return &serialStep{builder: b, actions: a.Serial.Actions, done: done}
	}
}

func (b builder) writers(suppress bool) (stdout, stderr *logfile.Writer) {
	return b.recipe.entry.logs.writers(b.health, suppress, b.source)
}

func (b builder) begun() {
	if b.begin != nil {
		b.begin()
	}
}

// A serialStep carries out actions in order, up to the first failure.
type serialStep struct {
	builder   builder
	actions   []executor.Action
	done      func(error)
	current   step
	cancelled bool
}

func (s *serialStep) start() { s.next(0) }

func (s *serialStep) next(i int) {
	switch {
	case s.cancelled:
		s.done(errCancelled)
	case i == len(s.actions):
		s.done(nil)
	default:
		s.current = s.builder.build(s.actions[i], func(err error) {
			if err != nil {
				s.done(err)
				return
			}
			s.next(i + 1)
		})
		s.current.start()
	}
}

func (s *serialStep) cancel() {
	s.cancelled = true
	if s.current != nil {
		s.current.cancel()
	}
}

// A parallelStep carries out actions at once and ends when all have. If it is
// codependent, the first end of one cancels the others and is a failure.
type parallelStep struct {
	steps       []step
	codependent bool
	done        func(error)
	started     []bool
	errs        []error
	left        int
	first       error // of a codependent one
	cancelled   bool
}

func (b builder) parallel(actions []executor.Action, codependent bool, done func(error)) step {
	s := &parallelStep{codependent: codependent, done: done, started: make([]bool, len(actions)),
		errs: make([]error, len(actions)), left: len(actions)}
	for i, a := range actions {
		s.steps = append(s.steps, b.build(a, func(err error) { s.ended(i, err) }))
	}
	return s
}

func (s *parallelStep) start() {
	for i, inner := range s.steps {
		if s.cancelled {
			s.ended(i, errCancelled)
			continue
		}
		s.started[i] = true
		inner.start()
	}
}

func (s *parallelStep) ended(i int, err error) {
	s.errs[i] = err
	s.left--
	if s.codependent && s.first == nil {
		s.first = err
		if err == nil {
			s.first = errors.New("one of the codependent actions has ended")
		}
		s.cancel()
	}
	if s.left > 0 {
		return
	}
	if s.codependent {
		s.done(s.first)
		return
	}
	s.done(brief(errors.Join(s.errs...)))
}

// cancel reaches those that have started, ended ones included; the others are
// never started.
func (s *parallelStep) cancel() {
	if s.cancelled {
		return
	}
	s.cancelled = true
	for i, inner := range s.steps {
		if s.started[i] {
			inner.cancel()
		}
	}
}

// A timeoutStep cancels its action when its time is over.
type timeoutStep struct {
	manager *Manager
	inner   step
	limit   time.Duration
	done    func(error)
	timer   *timer
	late    bool
}

func (s *timeoutStep) start() {
	s.timer = s.manager.after(s.limit, func() {
		s.late = true
		s.inner.cancel()
	})
	s.inner.start()
}

func (s *timeoutStep) ended(err error) {
	s.manager.forget(s.timer)
	if s.late {
		err = fmt.Errorf("timed out after %v", s.limit)
	}
	s.done(err)
}

func (s *timeoutStep) cancel() { s.inner.cancel() }

// A tryStep succeeds even if its action fails, unless it is cancelled.
type tryStep struct {
	inner     step
	done      func(error)
	cancelled bool
}

func (s *tryStep) start() { s.inner.start() }

func (s *tryStep) ended(error) {
	if s.cancelled {
		s.done(errCancelled)
		return
	}
	s.done(nil)
}

func (s *tryStep) cancel() {
	s.cancelled = true
	s.inner.cancel()
}

// A progressStep writes messages around its action.
type progressStep struct {
	entry          *entry
	inner          step
	action         executor.EmitProgressAction
	stdout, stderr *logfile.Writer
	done           func(error)
}

func (s *progressStep) start() {
	s.entry.say(s.stdout, s.action.StartMessage)
	s.inner.start()
}

func (s *progressStep) ended(err error) {
	switch {
	case err == nil:
		s.entry.say(s.stdout, s.action.SuccessMessage)
	case s.action.FailureMessagePrefix != "":
		s.entry.say(s.stderr, fmt.Sprintf("%s: %v", s.action.FailureMessagePrefix, err))
	}
	s.done(err)
}

func (s *progressStep) cancel() { s.inner.cancel() }

// brief cuts what a step says of its failure to the length of a reason. A tenant decides
// how long it is, because it may contain a path, and each step around this one handles it
// with the lock, again and again.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= executor.MaxReasonBytes {
		return err
	}
	return errors.New(executor.CutReason(text))
}

// emit writes a message, for which it waits for the disk. So it is for jobs; with the lock,
// use say.
func emit(w *logfile.Writer, message string) {
	if w != nil && message != "" {
		_, _ = w.Write([]byte(message + "\n"))
	}
}

// say has a message written soon. It keeps its place among the output of processes, because
// the next of them to write to the log writes it first.
func (e *entry) say(w *logfile.Writer, message string) {
	if w != nil && message != "" {
		w.WriteLater(message + "\n")
		e.flush()
	}
}

// flush writes what was said, if nobody else has.
func (e *entry) flush() {
	if e.flushing || !e.logs.wait() {
		return
	}
	e.flushing = true
	e.manager.submit(logPool, JobLog, e.guid, func(context.Context) func() {
		e.logs.flush()
		return func() {
			e.flushing = false
			e.flush() // what was said meanwhile
		}
	})
}
