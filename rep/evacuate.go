package rep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A drain is the evacuation of the cell (000 §LRP Evacuation, §Evacuation).
// The zero value has not begun.
type drain struct {
	since time.Time
	// finishing is true once nothing is waited for any more: no container is
	// left, or the time is over. What is still recorded then is taken back.
	finishing bool
	finish    time.Time // when finishing began
	over      bool
	err       error // why it is over with something left
}

func (d *drain) begun() bool { return !d.since.IsZero() }

// overdue reports whether the cell ends what is left because it has had the
// timeout to leave.
func (d *drain) overdue(timeout time.Duration) bool {
	return d.finishing && d.finish.Sub(d.since) >= timeout
}

// While the cell evacuates it looks every evacuationCheck whether it is empty,
// which costs nothing. While it finishes it asks the BBS every finishInterval.
const (
	evacuationCheck = time.Second
	finishInterval  = time.Second
)

// due is when to look again.
func (d *drain) due(now time.Time) time.Time {
	return now.Add(evacuationCheck)
}

// Evacuate begins to empty the cell and returns at once. From now on the cell
// refuses work, and [DecideEvacuation] settles what it has, at once and every
// EvacuationInterval. When nothing is left, or after EvacuationTimeout, the Rep
// takes back the records of what is still there, running tasks fail with
// task.ReasonEvacuationTimedOut, the cell's presence ends, and Run returns. A
// second call does nothing.
func (r *Rep) Evacuate(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drain.begun() {
		return nil
	}
	now := r.o.Now()
	r.drain.since, r.nextSync = now, now
	r.wakeUp()
	r.o.Metrics.Gauge("rep_evacuating", 1)
	r.o.Logger.Info("the cell evacuates", "timeout", r.o.EvacuationTimeout)
	return nil
}

// ErrEvacuationEnds is wrapped by the error of [Rep.CancelEvacuation] when it comes
// too late.
var ErrEvacuationEnds = errors.New("the evacuation is ending and can no longer be cancelled")

// CancelEvacuation implements [Cordoner]. An instance whose replacement already runs
// still ends. The BBS forgets the evacuation of every other one when the cell next
// compares its container with the records.
func (r *Rep) CancelEvacuation(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.drain.begun():
		return nil
	case r.drain.finishing:
		return fmt.Errorf("cell %q is empty, or its time for the evacuation is over: %w; start the cell again to give it work", r.o.CellID, ErrEvacuationEnds)
	}
	r.drain = drain{}
	for guid, n := range r.notes {
		if n.waits = ""; n == (note{}) {
			delete(r.notes, guid)
			continue
		}
		r.notes[guid] = n
	}
	r.nextSync = r.o.Now()
	r.wakeUp()
	r.o.Metrics.Gauge("rep_evacuating", 0)
	r.o.Logger.Info("the evacuation is cancelled")
	return nil
}

// Cordon implements [Cordoner].
func (r *Rep) Cordon(_ context.Context, cordoned bool) error {
	r.cordoning.Lock()
	defer r.cordoning.Unlock()
	if r.o.KeepCordon != nil {
		if err := r.o.KeepCordon(cordoned); err != nil {
			return fmt.Errorf("the cordon of cell %q could not be saved, so nothing has changed: %w", r.o.CellID, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cordoned != cordoned {
		r.o.Logger.Info("the cordon of the cell has changed", "cordoned", cordoned)
	}
	r.setCordoned(cordoned)
	return nil
}

// setCordoned is called with the lock.
func (r *Rep) setCordoned(cordoned bool) {
	r.cordoned = cordoned
	figure := 0.0
	if cordoned {
		figure = 1
	}
	r.o.Metrics.Gauge("rep_cordoned", figure)
}

// Evacuated reports whether an evacuation is over. The cell then has no records
// and can be switched off.
func (r *Rep) Evacuated() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drain.over
}

// Evacuation returns when an evacuation began, when it ends at the latest, and
// whether it is over. The times are zero if none has begun.
func (r *Rep) Evacuation() (began, deadline time.Time, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.drain.begun() {
		return time.Time{}, time.Time{}, false
	}
	return r.drain.since, r.drain.since.Add(r.o.EvacuationTimeout + r.o.FinishTimeout), r.drain.over
}

// Waiting says what an evacuating cell waits for: for each container that it
// keeps, sorted by guid, which work it belongs to and why it stays. The part
// that depends on the BBS is as old as the last Sync.
func (r *Rep) Waiting() (list []string) {
	r.mu.Lock()
	evacuating := r.drain.begun()
	r.mu.Unlock()
	if !evacuating {
		return nil
	}
	for _, c := range r.o.Executor.List() {
		s, ours := subjectOf(c)
		n := r.noteOf(c.GUID)
		switch {
		case !ours || n.deleting || c.State == executor.Completed:
		case s.isTask():
			list = append(list, s.name()+": a task is not moved and runs to its end")
		case n.waits != "":
			list = append(list, s.name()+": "+n.waits)
		}
	}
	return list
}

// waitsFor says why an evacuating cell keeps a container, by what was read of
// its index.
func (op *operation) waitsFor() string {
	if op.farewell().lingers() {
		return "its replacement runs; it ends once routers have had time to learn of that"
	}
	me, waits := op.me(op.subject), "its replacement has been asked for"
	for i := range op.index.Records {
		switch r := &op.index.Records[i]; {
		case r.Presence == lrp.Ordinary && r.InstanceKey == me:
			waits = "the control plane has been asked to move it; with the strategy RECREATE it stays while too many other instances are down"
		case r.Presence != lrp.Ordinary:
		case r.State == lrp.Unclaimed && r.PlacementError != lrp.PlacementError{}:
			waits = "no cell takes its replacement: " + r.PlacementError.String()
		case r.State == lrp.Claimed:
			waits = fmt.Sprintf("its replacement starts on cell %q", r.CellID)
		case r.State == lrp.Running && !r.Routable:
			waits = fmt.Sprintf("its replacement runs on cell %q and is not ready", r.CellID)
		}
	}
	return waits
}

// evacuationLeft is the time until the evacuation ends at the latest.
func (r *Rep) evacuationLeft() time.Duration {
	_, deadline, _ := r.Evacuation()
	return deadline.Sub(r.o.Now())
}

// keepEvacuating looks again before the first of the EVACUATING records
// expires. Asking about its instance renews it.
func (r *Rep) keepEvacuating(s *survey) {
	now := r.o.Now()
	for _, i := range s.instances {
		for _, record := range s.records[i.guid] {
			if record.Presence == lrp.Evacuating {
				r.syncWithin(max(finishInterval, record.ExpiresAt.Sub(now)/2))
			}
		}
	}
}

// advanceEvacuation goes on to finish once nothing is left to wait for.
func (r *Rep) advanceEvacuation() {
	r.mu.Lock()
	waits := r.drain.begun() && !r.drain.finishing
	r.mu.Unlock()
	if !waits {
		return
	}
	empty := r.empty()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	timedOut := now.Sub(r.drain.since) >= r.o.EvacuationTimeout
	if !r.drain.begun() || r.drain.finishing || !empty && !timedOut {
		return
	}
	r.drain.finishing, r.drain.finish, r.nextSync = true, now, now
	r.wakeUp()
	if !empty {
		r.o.Logger.Warn("the evacuation has timed out; the instances and tasks that are left are ended")
	}
}

// empty reports whether the cell has none of its work's containers.
func (r *Rep) empty() bool {
	for _, c := range r.o.Executor.List() {
		if _, ours := subjectOf(c); ours && !r.noteOf(c.GUID).deleting || ours && c.State != executor.Completed {
			return false
		}
	}
	return true
}

// finish ends a finishing evacuation when a survey has found nothing any more,
// or the BBS has not answered for too long.
func (r *Rep) finish(found int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.drain.finishing || r.drain.over {
		return
	}
	done := found == 0 && err == nil
	if !done && r.o.Now().Sub(r.drain.finish) < r.o.FinishTimeout {
		return
	}
	r.drain.over = true
	if !done {
		r.drain.err = fmt.Errorf("the evacuation of cell %q is over; instances and tasks left for convergence to find: %d (last error: %w)", r.o.CellID, found, err)
		if err == nil {
			r.drain.err = fmt.Errorf("the evacuation of cell %q is over; instances and tasks left for convergence to find: %d", r.o.CellID, found)
		}
	}
	r.o.Logger.Info("the evacuation is over", "took", r.o.Now().Sub(r.drain.since), "left", found)
}
