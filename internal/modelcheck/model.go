package modelcheck

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// Rules are the functions that are checked. A test hands in variants that are
// wrong.
type Rules struct {
	Step  func(lrp.Slot, *lrp.Deployment, lrp.Command, time.Time, lrp.Policy) (lrp.Decision, error)
	Plan  func(converge.LRPs, time.Time, lrp.Policy) iter.Seq2[converge.LRPAction, error]
	Abort func(*lrp.Deployment) (lrp.Change, error)
	// Status is what a rollout says of itself.
	Status func(*lrp.Rollout) lrp.RolloutStatus
}

// RealRules are those of the packages lrp and converge.
func RealRules() Rules {
	return Rules{
		Step: lrp.Step, Plan: converge.PlanLRPs,
		Abort: (*lrp.Deployment).AbortRollout, Status: (*lrp.Rollout).Status,
	}
}

// A model is a world with its rules. It remembers what the rules have said, since
// the same question comes back in many states. It belongs to one goroutine.
type model struct {
	world  *World
	rules  Rules
	policy lrp.Policy
	off    [DrainLimit + 1]bool // disturbances that do not happen

	deployments map[deployment]*lrp.Deployment
	steps       map[question]outcome
	changes     map[wish]deployment
	plans       map[scene]*plan
	rows        map[situation][]rep.Step
	// commands are those of convergence that name neither an instance nor a cell.
	commands []lrp.Command
	// fault is the last invariant that a command has broken, or "", and limit why
	// the model cannot go on.
	fault, limit string
}

func newModel(w *World, r Rules) *model {
	m := &model{
		world: w, rules: r, policy: w.policy(), deployments: map[deployment]*lrp.Deployment{},
		steps: map[question]outcome{}, changes: map[wish]deployment{}, plans: map[scene]*plan{}, rows: map[situation][]rep.Step{},
	}
	for _, d := range w.Without {
		m.off[d] = true
	}
	return m
}

// maxRemembered is how many answers of one kind the model remembers.
const maxRemembered = 1 << 18

func remember[K comparable, V any](answers map[K]V, k K, v V) {
	if len(answers) >= maxRemembered {
		clear(answers)
	}
	answers[k] = v
}

func (m *model) deployment(d deployment) *lrp.Deployment {
	out, known := m.deployments[d]
	if !known {
		out = d.real(m.world)
		m.deployments[d] = out
	}
	return out
}

// A call is a command for a slot in few bytes.
type call struct {
	kind       callKind
	index      uint8
	definition uint8
	holder     uint8 // of a planned one the number of the command
	cell       uint8 // for some a bit for each
	flag       bool  // unready, or overdue
}

type callKind uint8

const (
	noCall callKind = iota
	claim
	start
	crash
	remove
	evacuateClaimed
	evacuateRunning
	evacuateStopped
	evacuateCrashed
	removeEvacuating
	fail
	planned
	markSuspect
	recoverSuspect
	stopExtra
	prune
)

// ofCells reports whether the call is about cells and no instance.
func (k callKind) ofCells() bool { return k >= markSuspect }

func cellsOf(mask uint8) (ids []string) {
	for i, name := range cellNames {
		if mask>>i&1 == 1 {
			ids = append(ids, name)
		}
	}
	return ids
}

func maskOf(ids []string) (mask uint8) {
	for _, id := range ids {
		mask |= 1 << numberOf(cellNames[:], id)
	}
	return mask
}

// command is what the call asks for.
func (m *model) command(c call) lrp.Command {
	definition, me := definitionNames[c.definition], instanceKey(0, 0)
	if !c.kind.ofCells() && c.kind != planned {
		me = instanceKey(c.holder, c.cell)
	}
	net := lrp.NetInfo{Address: "10.0.0.1"}
	switch c.kind {
	case claim:
		return lrp.Claim{DefinitionID: definition, Instance: me}
	case start:
		return lrp.Start{DefinitionID: definition, Domain: domain, Instance: me, NetInfo: net, Unready: c.flag}
	case crash:
		return lrp.Crash{DefinitionID: definition, Domain: domain, Instance: me, Reason: "exit status 1"}
	case remove:
		return lrp.Remove{DefinitionID: definition, Instance: me, Overdue: c.flag}
	case evacuateClaimed:
		return lrp.EvacuateClaimed{DefinitionID: definition, Instance: me}
	case evacuateRunning:
		return lrp.EvacuateRunning{DefinitionID: definition, Instance: me, NetInfo: net, Unready: c.flag, TTL: evacuateTicks * tick}
	case evacuateStopped:
		return lrp.EvacuateStopped{DefinitionID: definition, Instance: me}
	case evacuateCrashed:
		return lrp.EvacuateCrashed{DefinitionID: definition, Instance: me, Reason: "exit status 1"}
	case removeEvacuating:
		return lrp.RemoveEvacuating{DefinitionID: definition, Instance: me, Overdue: c.flag}
	case fail:
		return lrp.Fail{DefinitionID: definition, Error: lrp.PlacementError{Reason: lrp.InsufficientResources}}
	case markSuspect:
		return lrp.MarkSuspect{CellID: cellsOf(c.cell)[0]}
	case recoverSuspect:
		return lrp.Recover{CellID: cellsOf(c.cell)[0]}
	case stopExtra:
		return lrp.StopExtra{MissingCells: cellsOf(c.cell)}
	case prune:
		return lrp.Prune{MissingCells: cellsOf(c.cell)}
	}
	return m.commands[c.holder]
}

// plannedCall is the call for a command of convergence.
func (m *model) plannedCall(index int, c lrp.Command) call {
	out := call{index: uint8(index)}
	switch c := c.(type) {
	case lrp.MarkSuspect:
		out.kind, out.cell = markSuspect, maskOf([]string{c.CellID})
	case lrp.Recover:
		out.kind, out.cell = recoverSuspect, maskOf([]string{c.CellID})
	case lrp.StopExtra:
		out.kind, out.cell = stopExtra, maskOf(c.MissingCells)
	case lrp.Prune:
		out.kind, out.cell = prune, maskOf(c.MissingCells)
	default:
		out.kind = planned
		for i, known := range m.commands {
			if known == c {
				out.holder = uint8(i)
				return out
			}
		}
		m.commands = append(m.commands, c)
		out.holder = uint8(len(m.commands) - 1)
	}
	return out
}

// A question is a call in a slot.
type question struct {
	deployment deployment
	slot       slot
	call       call
	available  uint8
}

// An outcome is what a call has changed.
type outcome struct {
	deployment deployment
	slot       slot
	starts     uint8  // a bit for each definition
	stops      uint16 // a bit for each instance
	keep       bool
	refused    bool
	broken     string // the invariant that it has broken, or ""
}

// do carries out a call.
func (m *model) do(s *state, c call) outcome {
	q := question{deployment: s.deployment, slot: s.slots[c.index], call: c}
	if c.kind == evacuateRunning && m.world.Strategy == lrp.Recreate {
		q.available = m.available(s, c)
	}
	o, known := m.steps[q]
	if !known {
		o = m.decide(q)
		remember(m.steps, q, o)
	}
	if o.broken != "" {
		m.fault = o.broken
	}
	if o.refused {
		return o
	}
	s.setDeployment(o.deployment)
	s.slots[c.index] = o.slot
	s.requested[c.index] |= o.starts
	for i := range s.boxes {
		if o.stops>>(i+1)&1 == 1 {
			s.stop(i)
			if s.slots[c.index].has(func(r *record) bool { return int(r.holder) == i+1 && !r.stopping }) {
				m.fault = instanceNames[i+1] + " is told to stop, and its record does not say so"
			}
		}
	}
	return o
}

// stop sends an order to stop the container of an instance.
func (s *state) stop(i int) {
	if b := &s.boxes[i]; b.phase == reserved || b.phase == starting || b.phase == running {
		b.stopping = true
	}
}

func (m *model) decide(q question) outcome {
	command := m.command(q.call)
	if c, ok := command.(lrp.EvacuateRunning); ok {
		c.RunningInstances = int(q.available)
		command = c
	}
	slot, d := q.slot.real(int(q.call.index), q.deployment), m.deployment(q.deployment)
	decision, err := m.rules.Step(slot, d, command, noon, m.policy)
	if err != nil {
		o := outcome{refused: true}
		var refusal *lrp.TransitionError
		if !errors.As(err, &refusal) {
			o.broken = fmt.Sprintf("%s: %v", command.Name(), err)
		}
		return o
	}
	o := outcome{deployment: q.deployment, keep: decision.KeepContainer}
	if decision.Deployment != nil {
		o.deployment = modelDeployment(decision.Deployment)
		d = decision.Deployment
	}
	after := slot.Apply(decision)
	if err := after.Validate(); err != nil {
		o.broken = fmt.Sprintf("after %s: %v", command.Name(), err)
	}
	if len(after.Records) > maxRecords {
		m.limit = "a slot has too many records"
		return o
	}
	for i := range after.Records {
		o.slot.records[i] = m.modelRecord(&after.Records[i], d.RolloutState.ResumedAt)
	}
	o.slot.n = uint8(len(after.Records))
	for _, e := range decision.Effects {
		switch e.Kind {
		case lrp.RequestStart:
			o.starts |= 1 << numberOf(definitionNames[:], e.Key.DefinitionID)
		case lrp.StopInstance:
			o.stops |= 1 << numberOf(instanceNames[:], e.Instance.InstanceGUID)
		}
	}
	return o
}

// available counts the desired indices whose instance is available, as a BBS
// does for a cell that evacuates one of them.
func (m *model) available(s *state, c call) (n uint8) {
	for i := range s.slots {
		if s.deployment.desires(i) && s.slots[i].has(func(r *record) bool {
			return r.presence == lrp.Ordinary && r.stays() && (r.holder == c.holder || r.routable || !m.world.budgeted())
		}) {
			n++
		}
	}
	return n
}

func (s *slot) has(ok func(*record) bool) bool {
	for i := range s.records[:s.n] {
		if ok(&s.records[i]) {
			return true
		}
	}
	return false
}

// A scene is what convergence reads.
type scene struct {
	deployment deployment
	slots      [maxIndices]slot
	absent     uint8
}

// A plan is what convergence makes of a scene.
type plan struct {
	calls  []call
	starts [maxIndices]uint8 // a bit for each definition
	tidied deployment        // what is left if there is something to tidy up
	tidies bool
	status lrp.RolloutStatus
}

// look is a look of convergence.
func (m *model) look(s *state) *plan {
	k := scene{deployment: s.deployment, slots: s.slots}
	for i, c := range s.cells {
		if c.absent {
			k.absent |= 1 << i
		}
	}
	p, known := m.plans[k]
	if !known {
		p = m.plan(&k)
		remember(m.plans, k, p)
	}
	return p
}

func (m *model) plan(k *scene) *plan {
	d := m.deployment(k.deployment)
	in := converge.LRPs{
		Domains: []lrp.Domain{{Name: domain}}, Cells: converge.NewCells(cellsOf(^k.absent)),
		Deployments: func(yield func(*lrp.Deployment, error) bool) { yield(d, nil) },
		ActualLRPs: func(yield func(lrp.ActualLRP, error) bool) {
			for i := range k.slots {
				for _, r := range k.slots[i].real(i, k.deployment).Records {
					if !yield(r, nil) {
						return
					}
				}
			}
		},
	}
	p, rollout := &plan{}, lrp.NewRollout(d, noon, m.policy.For(d))
	used := map[string]bool{}
	for i := range k.slots {
		if k.slots[i].n == 0 {
			continue
		}
		s := k.slots[i].real(i, k.deployment)
		rollout.Visit(s)
		for _, r := range s.Records {
			used[r.DefinitionID] = true
		}
	}
	p.status = m.rules.Status(rollout)
	for a, err := range m.rules.Plan(in, noon, m.policy) {
		switch {
		case err != nil:
			m.limit = err.Error()
		case a.Command != nil:
			p.calls = append(p.calls, m.plannedCall(a.Index, a.Command))
		case a.Start != nil:
			p.starts[a.Index] |= 1 << numberOf(definitionNames[:], a.Start.DefinitionID)
		default:
			if change, _ := converge.Tidy(d, rollout, func(id string) bool { return used[id] }); !change.IsZero() {
				p.tidied, p.tidies = modelDeployment(change.After), true
			}
		}
	}
	return p
}

// A wish is a change of the deployment that its consumer asks for.
type wish struct {
	deployment deployment
	kind       Disturbance
	number     uint8 // a definition or how many instances
}

// change is the deployment after a wish; the same one if it is refused.
func (m *model) change(w wish) deployment {
	after, known := m.changes[w]
	if known {
		return after
	}
	d := m.deployment(w.deployment)
	var c lrp.Change
	var err error
	switch id, n := definitionNames[:], int(w.number); w.kind {
	case Update:
		definition := runnable
		c, err = d.Update(lrp.Update{DefinitionID: &id[n], Definition: &definition})
	case Activation:
		c, err = d.Activate(id[n], noon)
	case Pause:
		c, err = d.PauseRollout()
	case Resume:
		c, err = d.ResumeRollout(noon)
	case Confirm:
		c, err = d.ConfirmRollout()
	case Abort:
		c, err = m.rules.Abort(d)
	case Scale:
		c, err = d.Update(lrp.Update{Instances: &n})
	}
	after = w.deployment
	if err == nil && !c.IsZero() {
		after = modelDeployment(c.After)
	}
	remember(m.changes, w, after)
	return after
}
