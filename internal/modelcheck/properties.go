package modelcheck

import (
	"fmt"

	"github.com/diegosdk/diego/lrp"
)

// A Property is what must hold in every history.
type Property string

// The properties.
const (
	// Budget: nothing that the control plane or a cell decides takes an instance
	// away that serves its index before another one does. RECREATE does, and leaves
	// no more desired indices unserved than the budget allows, including those that
	// were lost otherwise. Not meant are indices that are not desired any more, cells
	// whose time to evacuate has passed, and EVACUATING records that were not renewed.
	Budget Property = "budget"
	// OneDefinition: once the rollout has passed an index, no second definition has a
	// RUNNING record there for as long as the active one has.
	OneDefinition Property = "one-definition"
	// Ends: when nothing disturbs it any more and all definitions work, a rollout
	// ends on the active definition, or on the one before if it has failed already.
	Ends Property = "ends"
	// AbortEnds: an aborted rollout ends on the definition from which it began, even if
	// no other works.
	AbortEnds Property = "abort-ends"
	// NextStep: a rollout that is not complete has something to do, or says what it
	// waits for.
	NextStep Property = "next-step"
	// Invariants: no command breaks an invariant of records or fails otherwise than
	// by a refusal.
	Invariants Property = "invariants"
)

// A violation is a property that does not hold.
type violation struct {
	property Property
	why      string
}

// stays reports whether the instance is RUNNING and was not told to stop.
func (r *record) stays() bool { return r.state == lrp.Running && !r.stopping }

// serves reports whether an instance really serves a desired index: a record that
// is not SUSPECT routes to it, it was not told to stop, its container runs, and its
// cell is seen. Where there is a budget, it must be ready.
func (m *model) serves(s *state, index int) bool {
	return s.slots[index].has(func(r *record) bool {
		return r.stays() && r.presence != lrp.Suspect && (r.routable || !m.world.budgeted()) && m.works(s, r)
	})
}

// works reports whether the container that a record names runs and stays, ready
// where there is a budget.
func (m *model) works(s *state, r *record) bool {
	if r.holder == 0 || s.cells[r.cell].absent {
		return false
	}
	b := &s.boxes[r.holder-1]
	return b.phase == running && !b.stopping && (b.ready || !m.world.budgeted())
}

// seemsToServe reports whether an instance serves the index after a move, in truth
// or as far as the control plane can know: what a container did by itself, and
// the loss of a cell, it may not have heard of, and a late call may have made a
// record that is wrong for a while. An instance that was told to stop does not.
func (m *model) seemsToServe(before, s *state, index int) bool {
	return s.slots[index].has(func(r *record) bool {
		if m.works(s, r) && !r.stopping {
			return true
		}
		if !r.stays() || m.world.budgeted() && !r.routable {
			return false
		}
		b, was := s.boxes[r.holder-1], before.boxes[r.holder-1]
		return b.phase == running && !b.stopping || b == was
	})
}

// unavailable counts the desired indices that have no instance by the records that
// RECREATE goes by.
func (m *model) unavailable(s *state) (n int) {
	for i := range s.slots {
		if s.deployment.desires(i) && !s.slots[i].has(func(r *record) bool {
			return r.presence == lrp.Ordinary && r.stays() && (r.routable || !m.world.budgeted())
		}) {
			n++
		}
	}
	return n
}

// edge judges a move from one state to the next, and updates what the rollout has
// passed.
func (m *model) edge(v *move, s, next *state) *violation {
	if m.fault != "" {
		found := &violation{Invariants, m.fault}
		m.fault = ""
		return found
	}
	if v.voluntary && v.call.kind != prune {
		if found := m.budget(v, s, next); found != nil {
			return found
		}
	}
	next.passed = s.passed
	for i := range next.slots {
		if next.deployment.active != s.deployment.active || !next.slots[i].has(func(r *record) bool {
			return r.presence == lrp.Ordinary && r.stays() && r.definition == next.deployment.active
		}) {
			next.passed &^= 1 << i
		}
		if next.passed>>i&1 == 1 {
			if n := definitionsRunning(&next.slots[i]); n > 1 {
				return &violation{OneDefinition, fmt.Sprintf("the rollout had passed index %d, and now %d definitions run there", i, n)}
			}
		}
		if next.deployment.desires(i) && m.passes(next, i) {
			next.passed |= 1 << i
		}
	}
	return nil
}

// budget judges a decision.
func (m *model) budget(v *move, s, next *state) *violation {
	for i := range next.slots {
		if !next.deployment.desires(i) || !s.deployment.desires(i) || !m.serves(s, i) || m.seemsToServe(s, next, i) {
			continue
		}
		n, allowed := m.unavailable(next), 0
		if m.world.Strategy == lrp.Recreate && v.call.kind == evacuateRunning {
			allowed = m.allowance(int(next.deployment.instances))
		}
		if allowed == 0 || n > allowed {
			return &violation{Budget, fmt.Sprintf("index %d loses the instance that serves it; %d of %d indices are unavailable, and %d may be", i, max(n, 1), next.deployment.instances, allowed)}
		}
	}
	return nil
}

// allowance is how many indices a budget leaves to RECREATE, by its documentation.
func (m *model) allowance(instances int) int {
	if !m.world.budgeted() {
		return 1
	}
	b := m.world.Policies.Disruption
	return max(1, b.MaxUnavailable, b.MaxUnavailablePercent*instances/100)
}

func definitionsRunning(s *slot) (n int) {
	var seen [maxDefinitions + 1]bool
	for i := range s.records[:s.n] {
		if r := &s.records[i]; r.presence == lrp.Ordinary && r.state == lrp.Running && !seen[r.definition] {
			seen[r.definition] = true
			n++
		}
	}
	return n
}

// passes reports whether the rollout is through with an index: only the active
// definition has an ORDINARY record, whose instance has nothing to prove.
func (m *model) passes(s *state, index int) bool {
	proved := false
	for i := range s.slots[index].records[:s.slots[index].n] {
		r := &s.slots[index].records[i]
		if r.presence != lrp.Ordinary {
			continue
		}
		if r.definition != s.deployment.active || !r.stays() || m.world.readiness() && !r.routable || m.world.ages() && r.ran == 0 {
			return false
		}
		proved = true
	}
	return proved
}

// stuck judges a state by itself.
func (m *model) stuck(s *state) *violation {
	p := m.look(s)
	st := p.status
	if st.Complete() || st.WaitsFor != lrp.WaitNothing || len(p.calls) > 0 || p.tidies || st.Stalled > 0 {
		return nil
	}
	return &violation{NextStep, fmt.Sprintf("%d of %d indices are done; there is nothing to do, and the rollout says nothing that it waits for", st.Done, s.deployment.instances)}
}
