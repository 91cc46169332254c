package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/rate"
)

// A recipe is what runs in one container from CREATED to COMPLETED:
//
//	setup → action ‖ sidecars ‖ probes of health ‖ probes of readiness
//
// The first thing that ends it decides the result: a failure of the setup, the
// action, a sidecar or an established health, the start timeout, success of
// an action that nothing monitors, or a stop. Then everything is cancelled,
// and when nothing runs any more the container is COMPLETED. All methods are
// called with the Manager's lock.
type recipe struct {
	entry *entry

	running   []step   // at the top, in the order in which they started
	probes    []*probe // of health
	readiness []*probe
	probing   rate.Rate // of both
	startTime *timer
	healthy   bool
	began     bool // the action has
	daemon    bool // the action has ended well, and the probes go on

	readySince time.Time
	hold       time.Duration // between the last loss of readiness and holdUntil
	holdUntil  time.Time     // before then, it is not ready again
	heldBack   *timer        // its checks succeed, and it will be ready

	ending     bool
	result     executor.RunResult
	killTime   time.Time // when what the steps leave behind is killed
	signalling bool      // TERM is on its way to a daemon
	finished   bool
}

func (r *recipe) info() *executor.RunInfo { return r.entry.container.RunInfo }

func (r *recipe) builder() builder { return builder{recipe: r, source: r.info().LogSource} }

// start begins with the setup.
func (r *recipe) start() {
	if d := r.info().StartTimeout(); d > 0 {
		r.startTime = r.entry.manager.after(d, func() { r.startedTooLate(d) })
	}
	layers := layerDownloads(*r.info())
	b := r.builder()
	r.each(len(layers), func(i int, done func(error)) step { return b.download(layers[i], done) }, "image layer", executor.NeverBegan, func() {
		n := 0
		if r.info().Setup != nil {
			n = 1
		}
		r.each(n, func(_ int, done func(error)) step { return b.build(*r.info().Setup, done) }, "setup", executor.Failed, r.main)
	})
}

// each carries out n steps one after the other, and then continues. A failure
// ends the recipe.
func (r *recipe) each(n int, build func(i int, done func(error)) step, what string, failed func(string) executor.RunResult, then func()) {
	var next func(i int)
	next = func(i int) {
		switch {
		case r.ending:
		case i == n:
			then()
		default:
			r.launch(func(done func(error)) step { return build(i, done) }, func(err error) {
				if err != nil {
					r.end(failed(fmt.Sprintf("%s failed: %v", what, err)))
					return
				}
				next(i + 1)
			})
		}
	}
	next(0)
}

// launch starts a step at the top and handles its end.
func (r *recipe) launch(build func(done func(error)) step, ended func(error)) {
	var s step
	s = build(func(err error) {
		r.running = slices.DeleteFunc(r.running, func(other step) bool { return other == s })
		if !r.ending {
			ended(err)
		}
		r.finish()
	})
	r.running = append(r.running, s)
	s.start()
}

// main begins the work itself.
func (r *recipe) main() {
	info := r.info()
	health := r.builder()
	health.health = true
	r.probes = health.probes(*info)
	if info.Check != nil {
		r.readiness = health.from(info.Check.LogSource).checks(info.Check.ReadinessChecks)
	}
	action := r.builder()
	action.begin = r.actionBegan
	r.launch(func(done func(error)) step { return action.build(info.Action, done) }, r.actionEnded)
	for _, s := range info.Sidecars {
		if r.ending {
			return
		}
		b := r.builder()
		r.launch(func(done func(error)) step { return b.build(s.Action, done) }, r.sidecarEnded)
	}
	for _, p := range r.probes {
		if !r.ending {
			p.run(r.probed)
		}
	}
}

// actionBegan is called once or more while the action starts. Without a
// monitor the container is healthy as soon as its action runs.
func (r *recipe) actionBegan() {
	if r.began || r.ending {
		return
	}
	r.began = true
	if len(r.probes) == 0 {
		r.becomeHealthy()
	}
}

// actionEnded: an action that ends well under a monitor has left a daemon
// behind, and the monitor goes on (002 §Monitoring Health).
func (r *recipe) actionEnded(err error) {
	switch {
	case err != nil:
		r.end(executor.Failed(err.Error()))
	case len(r.probes) > 0:
		r.daemon = true
	default:
		r.actionBegan() // an action without a process begins as it ends
		r.end(executor.Succeeded())
	}
}

func (r *recipe) sidecarEnded(err error) {
	if err == nil {
		err = errors.New("exit status 0")
	}
	r.end(executor.Failed(fmt.Sprintf("a sidecar has ended: %v", err)))
}

// probed handles the outcome of every probe of health.
func (r *recipe) probed(p *probe) {
	if !p.ok && r.healthy {
		r.entry.manager.options.Observer.CheckFailed(BecameUnhealthy)
		r.end(executor.Failed(fmt.Sprintf("instance became unhealthy: %v", p.err)))
		return
	}
	for _, p := range r.probes {
		if !p.ok {
			return
		}
	}
	if !r.healthy {
		r.becomeHealthy()
	}
}

func (r *recipe) becomeHealthy() {
	r.healthy = true
	r.entry.manager.forget(r.startTime)
	r.entry.run()
	for _, p := range r.readiness {
		p.run(func(*probe) { r.judgeReadiness() })
	}
}

// A container that loses its readiness within a minute is not called ready again for a
// second, and each further time for twice as long, up to a minute. A minute of readiness
// starts this over. A check may be asked 50 times a second, and each change of its answer
// would cost the cell, the database and all who watch.
const firstHold, longestHold = time.Second, time.Minute

// judgeReadiness: a container that is not ready gets no traffic, and lives.
func (r *recipe) judgeReadiness() {
	m := r.entry.manager
	now := m.options.Now()
	was, ready := r.entry.container.Routable, true
	for _, p := range r.readiness {
		ready = ready && p.ok
	}
	m.forget(r.heldBack)
	switch {
	case was && !ready:
		m.options.Observer.CheckFailed(NotReady)
		r.hold = min(max(firstHold, 2*r.hold), longestHold)
		if now.Sub(r.readySince) >= longestHold {
			r.hold = 0
		}
		r.holdUntil = now.Add(r.hold)
	case !was && ready:
		if now.Before(r.holdUntil) {
			r.heldBack = m.after(r.holdUntil.Sub(now), r.judgeReadiness)
			return
		}
		r.readySince = now
	}
	r.entry.setRoutable(ready)
}

func (r *recipe) startedTooLate(after time.Duration) {
	reason := fmt.Sprintf("instance was never healthy within %v", after)
	for _, p := range r.probes {
		if p.err != nil {
			reason += fmt.Sprintf(": %v", p.err)
			break
		}
	}
	r.entry.manager.options.Observer.CheckFailed(NeverHealthy)
	r.end(executor.Failed(reason))
}

// end decides the result, if nothing has, and cancels everything.
func (r *recipe) end(result executor.RunResult) {
	if r.ending {
		return
	}
	r.ending, r.result = true, result
	m := r.entry.manager
	m.forget(r.startTime)
	m.forget(r.heldBack)
	r.killTime = m.options.Now().Add(r.entry.grace)
	for _, p := range r.probes {
		p.stop()
	}
	for _, p := range r.readiness {
		p.stop()
	}
	if r.daemon {
		r.signalling = true
		r.signal(executor.Terminate, func() {
			r.signalling = false
			r.finish()
		})
	}
	for _, s := range slices.Clone(r.running) {
		s.cancel()
	}
	r.finish()
}

// pollInterval is between two looks at whether a daemon has ended.
const pollInterval = 100 * time.Millisecond

// finish goes on once the container is ending and its steps have ended: to wait
// for a daemon, to kill what is left, and to complete.
func (r *recipe) finish() {
	if !r.ending || r.finished || r.signalling || len(r.running) > 0 {
		return
	}
	for _, p := range r.probes {
		if p.step != nil {
			return
		}
	}
	for _, p := range r.readiness {
		if p.step != nil {
			return
		}
	}
	r.finished = true
	if r.daemon {
		r.awaitDaemon()
		return
	}
	r.kill()
}

// awaitDaemon gives processes that no step knows the same grace as all.
func (r *recipe) awaitDaemon() {
	e, m := r.entry, r.entry.manager
	m.submit(probePool, JobProbe, e.guid, func(ctx context.Context) func() {
		used, err := m.options.Backend.Usage(ctx, e.guid)
		return func() {
			if err != nil || used.PIDs == 0 || !m.options.Now().Before(r.killTime) {
				r.kill()
				return
			}
			m.after(pollInterval, r.awaitDaemon)
		}
	})
}

// kill makes sure that a container that is COMPLETED runs nothing.
func (r *recipe) kill() {
	r.signal(executor.Kill, func() { r.entry.complete(r.result) })
}

// signalTimeout bounds the wait for processes that do not die: the deletion
// will see to them.
const signalTimeout = 10 * time.Second

// signal signals everything in the container, and then goes on.
func (r *recipe) signal(s executor.Signal, then func()) {
	e, m := r.entry, r.entry.manager
	m.submit(signalPool, JobSignal, e.guid, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeout(ctx, signalTimeout)
		defer cancel()
		err := m.options.Backend.Signal(ctx, e.guid, s)
		if err != nil && !errors.Is(err, executor.ErrNoContainer) {
			m.options.Logger.Warn("a container could not be signalled", "guid", e.guid, "signal", s, "error", err)
		}
		return then
	})
}
