package rep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// A Rep represents the containers of one cell to the BBS, and the cell to the
// auctioneer: it is the cell's [auction.CellClient].
//
// [Rep.Run] keeps it going. A test or a simulation calls [Rep.Tick] instead, in
// its own time; [Rep.Sync] is the reconciliation alone. All methods may be
// called concurrently.
//
// Besides its containers a Rep knows only short-lived notes, so a rep that
// starts again finds everything in the containers and the records.
type Rep struct {
	o       Options
	queue   *queue
	wake    chan struct{}   // for Run: something is due
	cleared <-chan struct{} // see Clearer; closed if the Executor is none

	reports   reports    // of sessions, for the BBS
	refusals  refusals   // of sessions
	cordoning sync.Mutex // held while the cordon is remembered and changed

	mu       sync.Mutex
	cordoned bool
	news     executor.Subscription
	notes    map[string]note // by guid of a container that is there
	pauses   []pause
	present  bool      // this run of the cell is the present one, as of heard
	heard    time.Time // when it asked, the last time that the answer was yes
	rival    rival     // another run that is present
	absent   error     // why this one is not, as far as it knows
	past     past
	nextSync time.Time
	announce time.Time // when to announce next
	left     bool      // the presence was ended
	drain    drain
	test     selfTestState
}

// A note is what the rep remembers of a container.
type note struct {
	deleting bool // it is being deleted, and nobody needs a report
	stop     bool // the BBS wants it stopped
	asked    bool // it asked to start its task; the answer may have got lost
	// waits is what an evacuating cell waits for before the container goes.
	waits string
	// until is when routers have had the time to hear of its end; zero while it
	// does not end.
	until time.Time
}

var (
	_ auction.CellClient = (*Rep)(nil)
	_ Cordoner           = (*Rep)(nil)
	_ SessionAuditor     = (*Rep)(nil)
)

// New returns a Rep and starts nothing. It fails with an
// *executor.ValidationError if a required option is missing.
func New(o Options) (*Rep, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Rep{
		o: o, queue: newQueue(o.Concurrency), wake: make(chan struct{}, 1), reports: newReports(o.BBS),
		news: o.Executor.Subscribe(), notes: map[string]note{},
	}
	r.setCordoned(o.Cordoned)
	if c, ok := o.Executor.(Clearer); ok {
		r.cleared = c.Cleared()
	} else {
		nothing := make(chan struct{})
		close(nothing)
		r.cleared = nothing
	}
	return r, nil
}

// isCleared reports whether nothing of an earlier run is left on the host.
func (r *Rep) isCleared() bool {
	select {
	case <-r.cleared:
		return true
	default:
		return false
	}
}

// Sync compares the containers with the records about this cell and settles
// every difference (000 §Polling vs Events). A difference is only a reason to
// look: before the Rep does anything about a container, it reads its record and
// its state once more.
//
// With Options.Concurrency above 1, a worker ends when it finds nothing to take. So a
// container that comes up later may wait for an operation of another domain, although
// that domain leaves a place.
//
// A list that could not be read to its end proves nothing absent; Sync settles
// only what the list names. The error joins everything that went wrong, and the
// next Sync tries again.
func (r *Rep) Sync(ctx context.Context) error {
	_, err := r.survey(ctx)
	return errors.Join(err, r.settleAll(ctx))
}

// Tick does what is due: it announces the cell, takes the events of the
// executor, makes a Sync if it is time, advances the self-test and the
// evacuation, settles what has come up, and reports sessions to the BBS. It does
// nothing before the Executor has cleared its host; see [Clearer]. With
// Options.Concurrency above 1, what comes up meanwhile may have to wait as in Sync; in
// Run, the place that a domain leaves stays open. Tick replaces Run for callers with a
// loop of their own.
func (r *Rep) Tick(ctx context.Context) {
	if !r.isCleared() {
		return
	}
	r.renew(ctx)
	r.hear()
	r.keep(ctx)
	_ = r.settleAll(ctx) // what fails is logged, counted and tried again
	r.tellSessions(ctx)
	if r.Evacuated() {
		r.leave(ctx)
	}
}

// Next returns when Tick will have something to do, as far as that is known
// now. Events of the executor may come before. Before the Executor has cleared
// its host, Next returns a time Options.RetryInterval ahead.
func (r *Rep) Next() time.Time {
	if !r.isCleared() {
		return r.o.Now().Add(r.o.RetryInterval)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.nextDue()
	if t, waits := r.reports.due(); waits && t.Before(next) {
		next = t
	}
	if r.o.Announcer != nil && !r.drain.over && r.announce.Before(next) {
		next = r.announce
	}
	return next
}

// Run does what Tick does, with goroutines and timers, until ctx ends or an
// evacuation is over; then it ends the cell's presence. It returns ctx's error.
// After an evacuation it returns nil, or the reason why what was left could not
// be reported to the BBS. The containers belong to the executor and live on.
func (r *Rep) Run(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-r.cleared:
	case <-ctx.Done():
	}
	var wg sync.WaitGroup
	wg.Go(func() { r.settleAlways(running) })
	wg.Go(func() { r.listen(running) })
	wg.Go(func() { r.renewAlways(running) })
	wg.Go(func() { r.tellSessionsAlways(running) })
	r.keepAlways(running)
	cancel()
	wg.Wait()

	last, end := context.WithTimeout(context.WithoutCancel(ctx), r.o.CallTimeout)
	defer end()
	r.reports.last()
	r.tellSessions(last)
	r.leave(last)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news.Close()
	if r.drain.over {
		return r.drain.err
	}
	return ctx.Err()
}

// hear queues the events of the executor so far. A subscription that fell behind
// is replaced, and a Sync finds what it missed.
func (r *Rep) hear() {
	r.mu.Lock()
	news := r.news
	r.mu.Unlock()
	for {
		e, ok, err := news.Poll()
		if err != nil {
			news = r.resubscribe(err)
			continue
		}
		if !ok {
			return
		}
		r.look(e.Container)
	}
}

// listen queues the events of the executor until ctx ends.
func (r *Rep) listen(ctx context.Context) {
	r.mu.Lock()
	news := r.news
	r.mu.Unlock()
	for {
		e, err := news.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			news = r.resubscribe(err)
		default:
			r.look(e.Container)
		}
	}
}

func (r *Rep) resubscribe(err error) executor.Subscription {
	r.o.Logger.Warn("the rep missed news of its containers and looks at all of them", "err", err)
	news := r.o.Executor.Subscribe()
	r.mu.Lock()
	r.news = news
	r.mu.Unlock()
	r.syncWithin(0)
	return news
}

// look queues a container that has changed.
func (r *Rep) look(c executor.Container) {
	if s, ours := subjectOf(c); ours {
		r.queue.add(s)
	} else if c.Tags[executor.TagLifecycle] == executor.LifecycleSelfTest {
		r.wakeUp() // it may have ended
	}
}

// settleAll settles what waits, until nothing does.
func (r *Rep) settleAll(ctx context.Context) error {
	if r.o.Concurrency == 1 {
		return r.settleSome(ctx)
	}
	var wg sync.WaitGroup
	errs := make([]error, r.o.Concurrency)
	for i := range errs {
		wg.Go(func() { errs[i] = r.settleSome(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *Rep) settleSome(ctx context.Context) (err error) {
	failed := 0
	for ctx.Err() == nil {
		s, ok := r.queue.take()
		if !ok {
			break
		}
		if e := r.settleOne(ctx, s); e != nil {
			if failed++; failed <= maxErrors {
				err = errors.Join(err, e)
			}
		}
	}
	if failed > maxErrors {
		err = errors.Join(err, fmt.Errorf("and %d more", failed-maxErrors))
	}
	return err
}

// maxErrors is how many errors a Sync returns in full, for each of its workers.
const maxErrors = 10

// settleAlways settles what comes up, until ctx ends.
func (r *Rep) settleAlways(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, r.o.Concurrency)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		s, ok := r.queue.take()
		if ok {
			wg.Go(func() {
				_ = r.settleOne(ctx, s) // what fails is logged, counted and tried again
				<-free
			})
			continue
		}
		<-free
		select {
		case <-r.queue.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Rep) settleOne(ctx context.Context, s subject) error {
	defer r.queue.done(s)
	err := r.settle(ctx, s)
	if err == nil {
		r.mu.Lock()
		r.past.settled(s.guid)
		r.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%v: %w", s, err)
		r.o.Logger.Warn("a container could not be settled; it is tried again", "err", err)
		r.syncWithin(r.o.RetryInterval)
	}
	return err
}

// keep makes a Sync's survey if it is time, and advances self-test and
// evacuation.
func (r *Rep) keep(ctx context.Context) {
	r.selfTest()
	r.endPauses()
	r.mu.Lock()
	due := !r.o.Now().Before(r.nextSync) && !r.drain.over
	r.mu.Unlock()
	if due {
		found, err := r.survey(ctx)
		if err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("the rep could not read what is recorded about this cell; it tries again", "err", err)
			r.syncWithin(r.o.RetryInterval)
		}
		r.finish(found, err)
	}
	r.advanceEvacuation()
}

// keepAlways does what keep does whenever it is time, until ctx ends or an
// evacuation is over.
func (r *Rep) keepAlways(ctx context.Context) {
	for ctx.Err() == nil {
		r.keep(ctx)
		r.mu.Lock()
		over, next := r.drain.over, r.nextDue()
		r.mu.Unlock()
		if over {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(next.Sub(r.o.Now())):
		case <-r.wake:
		}
	}
}

// nextDue is when keep has something to do. It is called with the lock.
func (r *Rep) nextDue() time.Time {
	next := r.nextSync
	if t, ok := r.test.due(r.o.SelfTest, r.drain.begun()); ok && t.Before(next) {
		next = t
	}
	if len(r.pauses) > 0 && r.pauses[0].until.Before(next) {
		next = r.pauses[0].until
	}
	if t := r.drain.due(r.o.Now()); r.drain.begun() && t.Before(next) {
		next = t
	}
	return next
}

// syncWithin makes the next Sync come in at most d.
func (r *Rep) syncWithin(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.o.Now().Add(d); t.Before(r.nextSync) {
		r.nextSync = t
		r.wakeUp()
	}
}

func (r *Rep) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// renew announces the cell if it is time. Once this run of the cell is known
// to be the present one, it answers for all records that name the cell; until
// then another run may have the containers for them.
func (r *Rep) renew(ctx context.Context) {
	r.mu.Lock()
	now := r.o.Now()
	due := r.o.Announcer != nil && !r.drain.over && !now.Before(r.announce)
	if due {
		r.announce = now.Add(r.o.AnnounceInterval)
	}
	r.mu.Unlock()
	if !due {
		return
	}
	call, cancel := context.WithTimeout(ctx, r.o.AnnounceInterval)
	defer cancel()
	err := r.o.Announcer.Tick(call)
	r.mu.Lock()
	before := r.answers()
	switch {
	case err == nil:
		r.present, r.heard, r.rival, r.absent = true, now, rival{}, nil
	case errors.Is(err, storage.ErrHeld):
		r.present = false
		r.rival = r.rival.seen(err)
		r.absent = r.rival.explain(r.o.CellID, err)
	default:
		r.absent = fmt.Errorf("cell %q could not be announced; it tries again: %w", r.o.CellID, err)
	}
	appeared, alive, told := r.answers() && !before, r.rival.alive && errors.Is(err, storage.ErrHeld), r.absent
	if appeared {
		r.past = past{}
	}
	r.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		r.o.Metrics.Count("rep_announce_failures_total", 1)
		level := slog.LevelWarn
		if alive {
			level = slog.LevelError
		}
		r.o.Logger.Log(ctx, level, "the cell is not present", "err", told)
	}
	if appeared {
		r.syncWithin(0)
	}
}

// answers reports whether this run of the cell answers for all records that
// name the cell. A run that has been silent for three intervals may have been
// replaced by another. It is called with the lock.
func (r *Rep) answers() bool {
	return r.isCleared() && (r.o.Announcer == nil || r.present && r.o.Now().Sub(r.heard) < 3*r.o.AnnounceInterval)
}

// Present reports whether this run of the cell is the present one, as far as it
// knows. Without an Announcer it always is.
func (r *Rep) Present() bool { return r.Absent() == nil }

// Absent returns nil if this run of the cell is the present one; otherwise it
// says why not, and what to do. The error wraps storage.ErrHeld if another run
// is present.
func (r *Rep) Absent() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.answers():
		return nil
	case !r.isCleared():
		return fmt.Errorf("cell %q waits until what an earlier run left on its host is removed", r.o.CellID)
	case r.absent == nil:
		return fmt.Errorf("cell %q has not been announced yet", r.o.CellID)
	}
	return r.absent
}

// renewAlways announces the cell until ctx ends.
func (r *Rep) renewAlways(ctx context.Context) {
	if r.o.Announcer == nil {
		return
	}
	for {
		r.renew(ctx)
		r.mu.Lock()
		over, wait := r.drain.over, r.announce.Sub(r.o.Now())
		r.mu.Unlock()
		if over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// leave ends the presence. Once is enough.
func (r *Rep) leave(ctx context.Context) {
	r.mu.Lock()
	left := r.left || r.o.Announcer == nil
	r.left = true
	r.mu.Unlock()
	if left {
		return
	}
	if err := r.o.Announcer.Leave(ctx); err != nil {
		r.o.Logger.Warn("the cell's presence could not be ended; it ends by itself", "err", err)
	}
}
