package modelcheck

import (
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// A move is something that happens in a state.
type move struct {
	what        string // for a story; it may hold one verb for the call or number
	call        call
	number      uint8
	disturbance Disturbance // 0 if the move is free
	// voluntary is true if the control plane or a cell has decided about the move,
	// so that it must respect the budget.
	voluntary bool
	// wish is true if it changes what is desired.
	wish bool
}

// moves yields everything that may happen in a state, with the state after it.
// A move that changes nothing may be among them. disturbed says whether the
// history may have one more disturbance.
func (m *model) moves(s *state, disturbed bool, yield func(move, *state)) {
	due := false
	dutiful := func(v move, next *state) {
		due = due || v.disturbance == 0 && *next != *s
		yield(v, next)
	}
	m.place(s, dutiful)
	m.settle(s, disturbed, dutiful)
	m.converge(s, disturbed, dutiful)
	m.deliver(s, yield)
	for i := range s.boxes {
		m.contain(s, i, disturbed, yield)
	}
	m.time(s, due, disturbed, yield)
	m.wishes(s, disturbed, yield)
	m.powers(s, disturbed, yield)
}

// time passes freely while nobody has anything to do but containers, late calls
// and cells that are away. Otherwise somebody is slow.
func (m *model) time(s *state, due, disturbed bool, yield func(move, *state)) {
	next := *s
	next.pass()
	switch {
	case !due:
		yield(move{what: "a tick passes"}, &next)
	case m.may(Slow, disturbed):
		yield(move{what: "a tick passes before what is due", disturbance: Slow}, &next)
	}
}

func (m *model) may(d Disturbance, disturbed bool) bool { return disturbed && !m.off[d] }

// deliver carries out late calls.
func (m *model) deliver(s *state, yield func(move, *state)) {
	for i := range s.mail {
		if s.mail[i].kind == noCall {
			continue
		}
		next := *s
		next.mail[i] = call{}
		m.do(&next, s.mail[i])
		yield(move{what: "late: %s", call: s.mail[i], voluntary: true}, &next)
	}
}

// post makes a call late.
func (m *model) post(s *state, c call, yield func(move, *state)) {
	for i := range s.mail {
		if s.mail[i] == c {
			return
		}
		if s.mail[i].kind == noCall {
			next := *s
			next.mail[i] = c
			yield(move{what: "this call will come late: %s", call: c, disturbance: Late}, &next)
			return
		}
	}
}

// place places what the auctioneer was asked to start.
func (m *model) place(s *state, yield func(move, *state)) {
	for i := range s.requested {
		for definition := uint8(1); definition <= maxDefinitions; definition++ {
			if s.requested[i]>>definition&1 == 0 {
				continue
			}
			next := *s
			next.requested[i] &^= 1 << definition
			if !s.deployment.has(definition) {
				yield(move{what: "nobody knows any more what to start: %s", call: call{index: uint8(i), definition: definition}}, &next)
				continue
			}
			free, placed := s.unused(), false
			for c := range s.cells {
				if free == 0 || !m.takes(s, c) {
					continue
				}
				placed = true
				on := next
				on.boxes[free-1] = box{phase: reserved, index: uint8(i), definition: definition, cell: uint8(c)}
				yield(move{what: "the auctioneer places %s", call: call{index: uint8(i), definition: definition, holder: free, cell: uint8(c)}}, &on)
			}
			if !placed {
				c := call{kind: fail, index: uint8(i), definition: definition}
				m.do(&next, c)
				yield(move{what: "no cell has room: %s", call: c, voluntary: true}, &next)
			}
		}
	}
}

// takes reports whether the auctioneer may place a container on the cell: it has
// room, and the other one has not more of it.
func (m *model) takes(s *state, c int) bool {
	room := m.room(s, c)
	return room > 0 && room >= m.room(s, 1-c)
}

// room is how many containers a cell still takes.
func (m *model) room(s *state, c int) int {
	if s.cells[c] != (cell{}) {
		return 0
	}
	room := m.world.Room
	for i := range s.boxes {
		if s.boxes[i].phase != noBox && int(s.boxes[i].cell) == c {
			room--
		}
	}
	return room
}

// unused is an instance that nothing names, or 0.
func (s *state) unused() uint8 {
	var used [maxBoxes + 1]bool
	for i := range s.boxes {
		used[i+1] = s.boxes[i].phase != noBox
	}
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			used[s.slots[i].records[j].holder] = true
		}
	}
	for _, c := range s.mail {
		if c.kind != planned {
			used[c.holder] = true
		}
	}
	for i := uint8(1); i <= maxBoxes; i++ {
		if !used[i] {
			return i
		}
	}
	return 0
}

// contain is what a container does by itself.
func (m *model) contain(s *state, i int, disturbed bool, yield func(move, *state)) {
	b := s.boxes[i]
	about := call{index: b.index, definition: b.definition, holder: uint8(i + 1), cell: b.cell}
	to := func(what string, change func(*box), d Disturbance) {
		next := *s
		change(&next.boxes[i])
		yield(move{what: what, call: about, disturbance: d}, &next)
	}
	if b.stopping {
		to("the cell is told to stop %s, which ends", func(b *box) { *b = b.ended(shutdown) }, 0)
		if m.may(LostStop, disturbed) {
			to("the order to stop %s is lost", func(b *box) { b.stopping = false }, LostStop)
		}
	}
	switch b.phase {
	case noBox, crashed, shutdown:
		return
	case starting:
		if m.world.readiness() {
			to("%s runs, and is not ready yet", func(b *box) { b.phase = running }, 0)
		} else {
			to("%s runs", func(b *box) { b.phase, b.ready = running, true }, 0)
		}
	case running:
		if !b.ready {
			to("%s becomes ready", func(b *box) { b.ready = true }, 0)
		} else if m.world.readiness() && m.may(Unready, disturbed) {
			to("%s becomes unready", func(b *box) { b.ready = false }, Unready)
		}
	}
	if b.phase != reserved {
		if m.world.Broken && b.definition > 1 {
			to("%s crashes", func(b *box) { *b = b.ended(crashed) }, 0)
		} else if m.may(Crash, disturbed) {
			to("%s crashes", func(b *box) { *b = b.ended(crashed) }, Crash)
		}
	}
	if m.may(Vanish, disturbed) {
		to("%s vanishes", func(b *box) { *b = box{} }, Vanish)
	}
}

func (b box) ended(how phase) box {
	b.phase, b.ready, b.stopping = how, false, false
	return b
}

// settle is what a cell does about one container, or one record without a
// container, by the tables of package rep.
func (m *model) settle(s *state, disturbed bool, yield func(move, *state)) {
	for i := range s.boxes {
		if b := &s.boxes[i]; b.phase != noBox {
			m.settleOne(s, uint8(i+1), b.index, b.definition, b.cell, disturbed, yield)
		}
	}
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			r := &s.slots[i].records[j]
			if r.holder != 0 && s.boxes[r.holder-1].phase == noBox && s.cells[r.cell].life != off {
				m.settleOne(s, r.holder, uint8(i), r.definition, r.cell, disturbed, yield)
			}
		}
	}
}

var callKinds = map[rep.Step]callKind{
	rep.ClaimLRP: claim, rep.StartLRP: start, rep.CrashLRP: crash, rep.RemoveLRP: remove, rep.RemoveEvacuatingLRP: removeEvacuating,
	rep.EvacuateClaimedLRP: evacuateClaimed, rep.EvacuateRunningLRP: evacuateRunning,
	rep.EvacuateStoppedLRP: evacuateStopped, rep.EvacuateCrashedLRP: evacuateCrashed,
}

var situations = [...]rep.ContainerSituation{
	noBox: rep.NoContainer, reserved: rep.ContainerReserved, starting: rep.ContainerStarting,
	running: rep.ContainerRunning, crashed: rep.ContainerCrashed, shutdown: rep.ContainerShutdown,
}

func (m *model) settleOne(s *state, holder, index, definition, c uint8, disturbed bool, yield func(move, *state)) {
	k := situation{s.slots[index], s.boxes[holder-1].phase, s.cells[c].life, s.boxes[holder-1].ready, holder, definition, c}
	steps, known := m.rows[k]
	if !known {
		steps = m.row(s, holder, index, definition, c)
		remember(m.rows, k, steps)
	}
	next := *s
	b := &next.boxes[holder-1]
	ends := s.cells[c].life == finishing && b.phase != noBox // nobody waits for it any more
	if len(steps) == 0 && !ends {
		return
	}
	var first call
	for n, step := range steps {
		kind, calls := callKinds[step]
		if !calls {
			switch step {
			case rep.RunContainer:
				b.phase = starting
				if !s.deployment.has(definition) {
					m.do(&next, call{kind: remove, index: index, definition: definition, holder: holder, cell: c})
					*b = box{}
				}
			default:
				*b = box{}
			}
			continue
		}
		asked := call{kind: kind, index: index, definition: definition, holder: holder, cell: c}
		switch kind {
		case start, evacuateRunning:
			asked.flag = !b.ready
		case remove, removeEvacuating:
			asked.flag = s.cells[c].life == finishing
		}
		if n == 0 {
			first = asked
		}
		o := m.do(&next, asked)
		if o.refused && step.DeleteWhenRefused() {
			*b = box{}
		}
		if o.refused || o.keep {
			break
		}
	}
	if ends {
		*b = box{}
	}
	about := call{index: index, definition: definition, holder: holder, cell: c}
	about.kind = first.kind
	yield(move{what: "the cell settles %s", call: about, voluntary: s.cells[c].life != finishing}, &next)
	if first.kind != noCall && m.may(Late, disturbed) {
		m.post(s, first, yield)
	}
}

// A situation is what a cell looks at.
type situation struct {
	slot                     slot
	phase                    phase
	life                     life
	ready                    bool
	holder, definition, cell uint8
}

// row is what the tables have for a container, or for a record without one.
func (m *model) row(s *state, holder, index, definition, c uint8) []rep.Step {
	phase, life := s.boxes[holder-1].phase, s.cells[c].life
	if life == finishing {
		phase = noBox
	}
	about := rep.SituateLRP(s.slots[index].real(int(index), s.deployment), instanceKey(holder, c), definitionNames[definition])
	switch container := situations[phase]; {
	case life != on:
		return rep.DecideEvacuation(container, about).Steps
	case phase == running && about == rep.LRPRunningAlpha && s.slots[index].has(func(r *record) bool {
		return r.holder == holder && r.presence == lrp.Ordinary && r.routable != s.boxes[holder-1].ready
	}):
		return rep.LRPOutdated().Steps
	default:
		return rep.DecideLRP(container, about).Steps
	}
}

const tidiesUp = "convergence drops what is not needed any more, and ends the rollout if it is complete"

// converge is one step of convergence: it carries out one of the calls that it
// plans in this state. A call that is lost is one that it does not carry out.
func (m *model) converge(s *state, disturbed bool, yield func(move, *state)) {
	p := m.look(s)
	for _, c := range p.calls {
		next := *s
		m.do(&next, c)
		yield(move{what: "convergence: %s", call: c, voluntary: true}, &next)
		if m.may(Late, disturbed) {
			m.post(s, c, yield)
		}
	}
	for i, starts := range p.starts {
		if starts&^s.requested[i] != 0 {
			next := *s
			next.requested[i] |= starts
			yield(move{what: "convergence requests starts again at %s", call: call{index: uint8(i)}}, &next)
		}
	}
	if p.tidies {
		next := *s
		next.setDeployment(p.tidied)
		yield(move{what: tidiesUp}, &next)
	}
}

// wishes are the consumer's.
func (m *model) wishes(s *state, disturbed bool, yield func(move, *state)) {
	wants := func(what string, kind Disturbance, number uint8) {
		if !m.may(kind, disturbed) {
			return
		}
		next := *s
		next.setDeployment(m.change(wish{s.deployment, kind, number}))
		if next.deployment == s.deployment {
			return
		}
		if kind == Activation || kind == Resume {
			next.forgive()
		}
		yield(move{what: what, number: number, disturbance: kind, wish: true}, &next)
	}
	for n := uint8(1); n <= uint8(m.world.Definitions); n++ {
		if !s.deployment.has(n) {
			wants("the consumer updates to v%d", Update, n)
			break
		}
	}
	for n := uint8(1); n <= maxDefinitions; n++ {
		if s.deployment.has(n) && n != s.deployment.active {
			wants("the consumer activates v%d", Activation, n)
		}
	}
	wants("the consumer pauses the rollout", Pause, 0)
	wants("the consumer resumes the rollout", Resume, 0)
	wants("the consumer confirms the canary", Confirm, 0)
	wants("the consumer aborts the rollout", Abort, 0)
	for _, n := range [...]uint8{s.deployment.instances - 1, s.deployment.instances + 1} {
		if n >= 1 && int(n) <= m.world.Indices {
			wants("the consumer scales to %d", Scale, n)
		}
	}
}

// forgive makes no crash count that was before now, if the deployment remembers
// that.
func (s *state) forgive() {
	if s.deployment.resumed == 0 {
		return
	}
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			s.slots[i].records[j].counts = false
		}
	}
}

// powers are the ways of a cell to come and go.
func (m *model) powers(s *state, disturbed bool, yield func(move, *state)) {
	for i := range s.cells {
		to := func(what string, c cell, d Disturbance, empties bool) {
			if d != 0 && !m.may(d, disturbed) {
				return
			}
			next := *s
			next.cells[i] = c
			if empties {
				for j := range next.boxes {
					if next.boxes[j].phase != noBox && int(next.boxes[j].cell) == i {
						next.boxes[j] = box{}
					}
				}
			}
			yield(move{what: what, number: uint8(i), disturbance: d}, &next)
		}
		c := s.cells[i]
		if c.absent && c.life != off {
			to("cell %s is seen again", cell{life: c.life}, 0, false)
		} else if !c.absent {
			to("cell %s is not seen any more", cell{c.life, true}, Silence, false)
		}
		switch c.life {
		case on:
			to("cell %s is to evacuate", cell{draining, c.absent}, Drain, false)
		case draining:
			if s.emptyCell(i) {
				to("cell %s is empty and gives back what is recorded", cell{finishing, c.absent}, 0, false)
			} else {
				to("cell %s has no more time to evacuate", cell{finishing, c.absent}, DrainLimit, false)
			}
		case finishing:
			if s.emptyCell(i) && !s.recorded(i) {
				to("cell %s leaves", cell{off, true}, 0, false)
			}
		case off:
			to("cell %s is switched on", cell{}, 0, false)
		}
		if c.life != off {
			to("cell %s loses power", cell{off, true}, PowerCut, true)
		}
	}
}

// emptyCell reports whether a cell has no container.
func (s *state) emptyCell(c int) bool {
	for i := range s.boxes {
		if s.boxes[i].phase != noBox && int(s.boxes[i].cell) == c {
			return false
		}
	}
	return true
}

// recorded reports whether a record names a cell.
func (s *state) recorded(c int) bool {
	for i := range s.slots {
		if s.slots[i].has(func(r *record) bool { return r.holder != 0 && int(r.cell) == c }) {
			return true
		}
	}
	return false
}
