package rep

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// A SessionReporter is a [BBS] that takes reports of sessions in containers into its
// log of events. Without it, only the cell's log has them. Its method may be called
// concurrently. A call that is repeated with its request id is carried out once.
type SessionReporter interface {
	ReportSessions(ctx context.Context, cellID string, list []storage.SessionEvent) error
}

// maxReports is how many reports wait for a BBS that does not answer.
const maxReports = 1000

// reports are what the BBS has yet to hear of sessions, in their order. The zero
// value reports nothing.
type reports struct {
	to   SessionReporter // nil if the BBS is none
	wake chan struct{}   // something waits

	telling sync.Mutex // held during a call

	mu      sync.Mutex
	waiting []storage.SessionEvent
	// The first so many are in a call under that request id, which is repeated as it
	// is until it is known to have been carried out.
	called int
	id     string
	again  time.Time // when to call after a failure
	lost   int       // for lack of room, since the last call that succeeded
	ended  bool      // nobody calls regularly any more
}

func newReports(b BBS) reports {
	to, _ := b.(SessionReporter)
	return reports{to: to, wake: make(chan struct{}, 1)}
}

// reportSession leaves a report of a session in a container of this cell's work, and
// nothing if it has no ID.
func (r *Rep) reportSession(ctx context.Context, e storage.SessionEvent) {
	q := &r.reports
	if q.to == nil || e.ID == "" {
		return
	}
	var v executor.Validator
	if e.Validate(&v); v.Err() != nil { // it would take others with it
		r.o.Logger.Error("a session cannot be reported", "err", v.Err())
		return
	}
	q.mu.Lock()
	full, ended := len(q.waiting) >= maxReports, q.ended
	if full {
		q.lost++
	} else {
		q.waiting = append(q.waiting, e)
	}
	q.mu.Unlock()
	switch {
	case full:
		r.o.Logger.Warn("a session is missing from the BBS's log of events, because too many wait for the BBS", "waiting", maxReports)
	case ended:
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.CallTimeout)
		defer cancel()
		r.tellSessions(call)
	default:
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// last says that nobody calls tellSessions regularly any more. Reports of sessions
// that end later are made at once.
func (q *reports) last() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended, q.again = true, time.Time{}
}

// due is when tellSessions has something to do, and false if nothing waits.
func (q *reports) due() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.again, len(q.waiting) > 0
}

// tellSessions reports what waits, if it is time, until nothing does or a call
// fails.
func (r *Rep) tellSessions(ctx context.Context) {
	q := &r.reports
	q.telling.Lock()
	defer q.telling.Unlock()
	for ctx.Err() == nil {
		q.mu.Lock()
		if len(q.waiting) == 0 || r.o.Now().Before(q.again) {
			q.mu.Unlock()
			return
		}
		if q.called == 0 {
			q.called, q.id = min(len(q.waiting), storage.MaxSessionEvents), r.o.NewGUID()
		}
		list := q.waiting[:q.called:q.called]
		call, cancel := context.WithTimeout(storage.WithRequestID(ctx, q.id), r.o.CallTimeout)
		q.mu.Unlock()
		err := q.to.ReportSessions(call, r.o.CellID, list)
		cancel()
		q.mu.Lock()
		refused := errors.Is(err, executor.ErrInvalid)
		if err == nil || refused {
			q.waiting, q.called = q.waiting[q.called:], 0
		} else {
			q.again = r.o.Now().Add(r.o.RetryInterval)
		}
		lost := q.lost
		if err == nil {
			q.lost = 0
		}
		q.mu.Unlock()
		switch {
		case refused:
			r.o.Logger.Error("the BBS refuses a report of sessions; they are missing from its log of events", "sessions", len(list), "err", err)
		case err != nil && ctx.Err() == nil:
			r.o.Logger.Warn("sessions could not be reported; it is tried again", "err", err)
		case err == nil && lost > 0:
			r.o.Logger.Warn("sessions are missing from the BBS's log of events, because too many waited for the BBS", "missing", lost)
		}
	}
}

// tellSessionsAlways does what tellSessions does whenever it is time, until ctx
// ends.
func (r *Rep) tellSessionsAlways(ctx context.Context) {
	for {
		r.tellSessions(ctx)
		var due <-chan time.Time
		if at, waits := r.reports.due(); waits {
			due = time.After(at.Sub(r.o.Now()))
		}
		select {
		case <-r.reports.wake:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}
