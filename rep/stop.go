package rep

import (
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// An instance that another one has replaced, by an evacuation or a rollout, is
// healthy, and routers send it requests until they have heard of its end. So
// its route is withdrawn first, and it is stopped Options.StopPause later. What
// stops for another reason has no successor that could serve those requests
// meanwhile, and is stopped at once.

// A Farewell holds what matters to the end of an instance whose container is
// RUNNING.
type Farewell struct {
	// Replaced is true while another instance serves the index.
	Replaced bool
	// Ready is true if the container is ready for traffic.
	Ready bool
	// Routed is true if the instance has an ORDINARY record that routers follow.
	Routed bool
	// Paused is true once routers have had their time.
	Paused bool
}

// DecideStop says what to do about a RUNNING container that the BBS wants
// stopped.
func DecideStop(f Farewell) Row {
	switch {
	case !f.lingers():
		return stopNow
	case f.Routed:
		return stopRouted
	}
	return stopWithdrawn
}

// lingers reports whether the end of the instance is to wait.
func (f Farewell) lingers() bool { return f.Replaced && f.Ready && !f.Paused }

var (
	stopNow       = Row{do(StopContainer), lrp.Expected, "the BBS wants it to end, and nobody needs it", added}
	stopRouted    = Row{do(WithdrawLRP, AwaitRouters), lrp.Expected, "routers hear of its end before it comes", added}
	stopWithdrawn = Row{do(AwaitRouters), lrp.Expected, "routers have not had the time to hear of its end", added}
)

// farewell is how the end of an instance stands. c is its container.
func (r *Rep) farewell(slot lrp.Slot, me lrp.InstanceKey, c executor.Container, n note) Farewell {
	f := Farewell{Ready: c.State == executor.Running && c.Routable && r.o.StopPause > 0}
	f.Paused = !n.until.IsZero() && !r.o.Now().Before(n.until)
	for i := range slot.Records {
		record := &slot.Records[i]
		if record.State != lrp.Running || record.Presence != lrp.Ordinary {
			continue
		}
		if record.InstanceKey == me {
			f.Routed = record.Routable
		} else {
			f.Replaced = true
		}
	}
	return f
}

// A pause ends at a time. Then the subject is looked at again.
type pause struct {
	subject
	until time.Time
}

// awaitRouters begins the pause of an instance, unless it has begun.
func (r *Rep) awaitRouters(s subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.notes[s.guid]
	if !n.until.IsZero() {
		return
	}
	n.until = r.o.Now().Add(r.o.StopPause)
	r.notes[s.guid] = n
	r.pauses = append(r.pauses, pause{s, n.until}) // all are equally long, so they end in this order
	r.wakeUp()
}

// endPauses queues the instances whose pause is over.
func (r *Rep) endPauses() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pauses) > 0 && !r.o.Now().Before(r.pauses[0].until) {
		r.queue.add(r.pauses[0].subject)
		r.pauses = r.pauses[1:]
	}
}
