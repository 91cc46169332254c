package modelcheck

import (
	"github.com/diegosdk/diego/lrp"
)

// A World says what there is, and what may disturb it.
type World struct {
	// Name is for people and for the command line.
	Name string
	// Says is what the world is for, in one sentence.
	Says string
	// Indices is how many instances are desired, at most 3; Definitions is how many
	// definitions there may be, at most 3. In the beginning the first definition
	// runs everywhere, is ready, and has proved healthy.
	Indices, Definitions int
	// Room is how many containers a cell can have.
	Room int
	// Strategy and Policies are the deployment's. A wait longer than nothing is one
	// tick, and a deadline two.
	Strategy lrp.UpdateStrategy
	Policies lrp.Policies
	// ImmediateRestarts is the control plane's; negative means none.
	ImmediateRestarts int
	// Broken means that instances of later definitions than the first may crash
	// without a disturbance.
	Broken bool
	// Updated has the histories begin with an update to the second definition, which
	// does not count as a disturbance.
	Updated bool
	// Disturbances is how many disturbances a history has, at most. An update is one
	// of them.
	Disturbances int
	// Without lists the kinds of disturbances that do not happen.
	Without []Disturbance
}

// A Disturbance is a fault, or a wish of the consumer.
type Disturbance uint8

// The disturbances.
const (
	Update Disturbance = iota + 1
	Activation
	Pause
	Resume
	Confirm
	Abort
	Scale
	Crash      // of one container
	Vanish     // of one container, without a trace
	Unready    // an instance that was ready
	Slow       // a tick passes though somebody has something to do
	Late       // a call that comes late, or twice
	LostStop   // an order to stop that does not reach its cell
	Silence    // the control plane does not see a cell that works
	PowerCut   // a cell loses its containers, and is switched off
	Drain      // of a cell
	DrainLimit // the time that a cell has to evacuate passes
)

// countsCrashes reports whether the crash count of a record decides anything.
func (w *World) countsCrashes() bool { return w.ImmediateRestarts > 0 }

// ages reports whether it matters for how long an instance has been RUNNING.
func (w *World) ages() bool {
	return w.countsCrashes() || w.Policies.Rollout != nil && w.Policies.Rollout.MinHealthy > 0
}

// readiness reports whether it matters whether an instance is ready.
func (w *World) readiness() bool {
	return w.budgeted() || w.Policies.Rollout != nil && w.Policies.Rollout.MinHealthy > 0
}

func (w *World) budgeted() bool {
	return w.Policies.Disruption != nil && *w.Policies.Disruption != lrp.Disruption{}
}

// policy is the control plane's.
func (w *World) policy() lrp.Policy {
	return lrp.Policy{
		Restart: lrp.RestartPolicy{
			ImmediateRestarts: w.ImmediateRestarts, MaxRestarts: -1, MinBackoff: tick, MaxBackoff: tick, ResetAfter: tick,
		},
		StaleUnclaimed: tick, EvacuationTimeout: evacuateTicks * tick, RolloutGiveUp: deadlineTicks * tick,
	}
}

// first is the state in which the histories of the world begin.
func (m *model) first() (s state) {
	w := m.world
	s.deployment = deployment{instances: uint8(w.Indices), definitions: 1 << 1, active: 1, healthy: 1}
	for i := range w.Indices {
		s.slots[i] = slot{n: 1}
		s.slots[i].records[0] = record{
			definition: 1, state: lrp.Running, holder: uint8(i + 1), cell: uint8(i % numCells), ran: 1, age: deadlineTicks, routable: true,
		}
		s.boxes[i] = box{phase: running, index: uint8(i), definition: 1, cell: uint8(i % numCells), ready: true}
	}
	if w.Updated {
		s.setDeployment(m.change(wish{s.deployment, Update, 2}))
	}
	return s
}
