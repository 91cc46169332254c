package modelcheck

import (
	"fmt"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// When nothing disturbs a state any more, what is due happens in a fixed order:
// cells return, late calls arrive, containers start and become ready, cells
// report, work is placed, convergence takes its steps, the operator answers what
// the rollout waits for, and then a tick passes. Each state so has one next state,
// and where they lead does not depend on how the state was reached.

// calm is the next state, with working the definitions that work, a bit for each.
// It is false at the end.
func (m *model) calm(s *state, working uint8) (v move, next state, goesOn bool) {
	try := func(w move, to *state) {
		if !goesOn && *to != *s {
			v, next, goesOn = w, *to, true
		}
	}
	calmly := func(w move, to *state) {
		if w.disturbance == 0 {
			try(w, to)
		}
	}
	m.powers(s, false, calmly)
	if goesOn {
		return
	}
	m.deliver(s, calmly)
	for i := range s.boxes {
		if goesOn {
			return
		}
		if b := s.boxes[i]; b.phase == starting && working>>b.definition&1 == 0 {
			to := *s
			to.boxes[i] = b.ended(crashed)
			try(move{what: "%s crashes", call: call{index: b.index, definition: b.definition, holder: uint8(i + 1), cell: b.cell}}, &to)
		} else {
			m.contain(s, i, false, func(w move, to *state) {
				if to.boxes[i].phase != crashed {
					calmly(w, to)
				}
			})
		}
	}
	for _, actor := range [...]func(){
		func() {
			if to := *s; s.cells[0].life == draining && s.cells[1].life == draining { // neither has a place to go to
				to.cells[0].life = finishing
				try(move{what: "cell %s has no more time to evacuate"}, &to)
			}
		},
		func() { m.settle(s, false, calmly) },
		func() { m.place(s, calmly) },
		func() { m.converge(s, false, calmly) },
		func() { m.operate(s, try) },
		func() {
			to := *s
			to.pass()
			try(move{what: "a tick passes"}, &to)
		},
	} {
		if actor(); goesOn {
			return
		}
	}
	return
}

// operate does what docs/deployments.md advises the operator to do.
func (m *model) operate(s *state, try func(move, *state)) {
	var want Disturbance
	switch m.look(s).status.WaitsFor {
	case lrp.WaitConfirmed:
		want = Confirm
	case lrp.WaitResumed:
		want = Resume
	default:
		return
	}
	to := *s
	to.setDeployment(m.change(wish{s.deployment, want, 0}))
	if want == Resume {
		to.forgive()
	}
	try(move{what: fmt.Sprintf("the operator answers %v", m.look(s).status.WaitsFor), wish: true}, &to)
}

// A future is where states lead when nothing disturbs them any more.
type future struct {
	working uint8
	states  *table
	ends    []deployment // of each state, what its last state desires; zero while its end is looked for
	path    []uint32
}

func newFuture(working uint8) *future { return &future{working: working, states: newTable()} }

// of follows a state to its end. It is a violation if there is none, or if
// something else runs there than the active definition.
func (f *future) of(m *model, s *state, p Property) (end deployment, found *violation) {
	f.path = f.path[:0]
	for cur := *s; ; {
		id, isNew := f.states.add(&cur)
		if !isNew {
			end = f.ends[id]
			if end == (deployment{}) {
				found = &violation{p, "it goes round in circles"}
			}
			break
		}
		f.ends = append(f.ends, deployment{})
		f.path = append(f.path, id)
		_, next, goesOn := m.calm(&cur, f.working)
		if m.fault != "" {
			found = &violation{Invariants, m.fault}
			m.fault = ""
			break
		}
		if !goesOn {
			end = cur.deployment
			if why := m.unfinished(&cur); why != "" {
				found = &violation{p, why}
			}
			break
		}
		cur = next
	}
	if found == nil {
		for _, id := range f.path {
			f.ends[id] = end
		}
	}
	return end, found
}

// unfinished says what is wrong with a last state, or "".
func (m *model) unfinished(s *state) string {
	d := s.deployment
	p := m.look(s)
	switch {
	case !p.status.Complete() || d.from != 0:
		return fmt.Sprintf("its last state is a rollout with %d of %d indices done, which waits for %v", p.status.Done, d.instances, p.status.WaitsFor)
	case d.healthy != d.active || d.definitions != 1<<d.active:
		return "in its last state there are other definitions than the active one, or that is not healthy"
	}
	for i := range s.slots {
		n := 0
		if d.desires(i) {
			n = 1
		}
		if int(s.slots[i].n) != n || n == 1 && !m.passes(s, i) {
			return fmt.Sprintf("in its last state, index %d does not have one instance that runs and nothing else", i)
		}
	}
	boxes := slices.DeleteFunc(slices.Clone(s.boxes[:]), func(b box) bool { return b.phase == noBox })
	if len(boxes) != int(d.instances) {
		return fmt.Sprintf("in its last state there are %d containers", len(boxes))
	}
	return ""
}

// calmEnd judges where a state leads.
func (m *model) calmEnd(all *future, s *state) *violation {
	end, found := all.of(m, s, Ends)
	switch d := s.deployment; {
	case found != nil:
		return found
	case end.active != d.active && (end.active != d.from || !end.failed):
		return &violation{Ends, fmt.Sprintf("it ends on %s", definitionNames[end.active])}
	}
	return nil
}

// abortEnd judges where a state leads in which the rollout is aborted. Only the
// definition works from which the rollout began.
func (m *model) abortEnd(futures []*future, s *state) *violation {
	from := s.deployment.from
	after := m.change(wish{s.deployment, Abort, 0})
	if from == 0 || after == s.deployment {
		return nil
	}
	next := *s
	next.setDeployment(after)
	if after.active != from || after.healthy != from {
		return &violation{AbortEnds, fmt.Sprintf("it makes %s active and %s healthy, and the rollout began from %s", definitionNames[after.active], definitionNames[after.healthy], definitionNames[from])}
	}
	end, found := futures[from].of(m, &next, AbortEnds)
	if found == nil && end.active != from {
		found = &violation{AbortEnds, "it ends on " + definitionNames[end.active]}
	}
	return found
}
