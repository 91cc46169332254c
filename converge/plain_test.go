package converge_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
)

// plainPlan is a second, slower implementation of PlanLRPs that holds
// everything in maps and goes through the duties one by one, as the
// specification lists them, with the policies of docs/deployments.md. It is the
// oracle of the streaming one.
func plainPlan(w *world) []string {
	guids := map[string]bool{}
	for guid := range w.deployments {
		guids[guid] = true
	}
	for key := range w.slots {
		guids[key.guid] = true
	}
	out := []string{}
	for _, guid := range slices.Sorted(maps.Keys(guids)) {
		d := w.deployments[guid]
		indices, inUse := map[int]bool{}, []string{}
		for key := range w.slots {
			if key.guid == guid {
				indices[key.index] = true
			}
		}
		if d != nil {
			for i := range d.Instances {
				indices[i] = true
			}
		}
		roll := newPlainRoll(w, d)
		for _, index := range slices.Sorted(maps.Keys(indices)) {
			s := w.slots[slotKey{guid, index}]
			for _, a := range plainSlot(w, d, s, index, roll) {
				out = append(out, fmt.Sprintf("%s/%d %s", guid, index, a))
			}
			for _, r := range s.Records {
				if !slices.Contains(inUse, r.DefinitionID) {
					inUse = append(inUse, r.DefinitionID)
				}
			}
		}
		switch {
		case d == nil || len(d.Definitions) < 2:
		case roll.complete():
			out = append(out, fmt.Sprintf("%s keep %v: %s", guid, inUse, converge.RolloutOver))
		default:
			for id := range d.Definitions {
				if !roll.keeps(id) && !slices.Contains(inUse, id) {
					out = append(out, fmt.Sprintf("%s keep %v: %s", guid, inUse, converge.DefinitionUnused))
					break
				}
			}
		}
	}
	return out
}

func plainSlot(w *world, d *lrp.Deployment, s lrp.Slot, index int, roll *plainRoll) (out []string) {
	say := func(c lrp.Command, why converge.Reason) {
		out = append(out, fmt.Sprintf("%s%+v: %s", c.Name(), c, why))
	}
	gone := func(cell string) bool { return len(w.cells) > 0 && !slices.Contains(w.cells, cell) }
	with := func(p lrp.Presence) (found []lrp.ActualLRP) {
		for _, r := range s.Records {
			if r.Presence == p {
				found = append(found, r)
			}
		}
		return found
	}
	ordinary, suspects, evacuating := with(lrp.Ordinary), with(lrp.Suspect), with(lrp.Evacuating)

	var cellsGone []string
	over := false
	for _, r := range evacuating {
		if gone(r.CellID) {
			cellsGone = append(cellsGone, r.CellID)
		}
		over = over || gone(r.CellID) || r.ExpiresAt.Compare(w.now) <= 0
	}
	if over {
		say(lrp.Prune{MissingCells: cellsGone}, converge.EvacuationOver)
	}

	desired := d != nil && index < d.Instances
	fresh := slices.ContainsFunc(w.domains, func(x lrp.Domain) bool { return x.Name == "apps" && x.Fresh(w.now) })
	if !desired && fresh && len(ordinary)+len(suspects) > 0 {
		cellsGone = nil
		for _, r := range s.Records {
			if r.Presence != lrp.Evacuating && r.CellID != "" && gone(r.CellID) {
				cellsGone = append(cellsGone, r.CellID)
			}
		}
		say(lrp.StopExtra{MissingCells: cellsGone}, converge.InstanceExtra)
		return out
	}

	var left []lrp.ActualLRP // suspects that nothing replaces
	for _, suspect := range suspects {
		if !slices.ContainsFunc(ordinary, func(r lrp.ActualLRP) bool { return !gone(r.CellID) && roll.replaces(r, suspect) }) {
			left = append(left, suspect)
		}
	}
	for _, r := range ordinary {
		if r.CellID != "" && gone(r.CellID) {
			say(lrp.MarkSuspect{CellID: r.CellID}, converge.CellMissing)
		}
	}
	if len(left) < len(suspects) {
		say(lrp.RemoveSuspect{}, converge.SuspectReplaced)
	}
	for _, r := range left {
		if !gone(r.CellID) {
			say(lrp.Recover{CellID: r.CellID}, converge.CellReturned)
		}
	}
	var stops []string
	for _, r := range ordinary {
		if !r.Stopping.IsZero() && !gone(r.CellID) && w.now.Sub(r.Stopping) >= 30*time.Second {
			stops = []string{fmt.Sprintf("%s%+v: %s", lrp.StopAgain{}.Name(), lrp.StopAgain{}, converge.StopOverdue)}
		}
	}
	if !desired {
		return append(out, stops...)
	}
	if len(ordinary) == 0 {
		say(lrp.CreateMissing{}, converge.InstanceMissing)
		return out
	}
	for _, r := range ordinary {
		waited := w.now.Sub(r.Since)
		if wait, most := plainBackoff(d, r.CrashCount); r.State == lrp.Crashed && r.CrashCount <= most && waited >= wait {
			say(lrp.Restart{DefinitionID: r.DefinitionID}, converge.RestartDue)
		}
		if r.State == lrp.Unclaimed && waited >= 30*time.Second {
			out = append(out, fmt.Sprintf("start %s: %s", r.DefinitionID, converge.StartOverdue))
		}
	}
	if steps := roll.visit(ordinary, index); len(steps) > 0 {
		return append(out, steps...)
	}
	return append(out, stops...)
}

// plainBackoff is how long an instance that has crashed waits, and most after how many
// crashes it starts no more.
func plainBackoff(d *lrp.Deployment, count int) (wait time.Duration, most int) {
	wait, longest, most := 30*time.Second, 16*time.Minute, 200
	if own := d.Restart; own != nil {
		if own.MinBackoff > 0 {
			wait = own.MinBackoff
		}
		if own.MaxBackoff > 0 {
			longest = own.MaxBackoff
		}
		if own.MaxRestarts > 0 {
			most = own.MaxRestarts
		}
	}
	for ; count > 3; count-- {
		wait *= 2
		wait = min(wait, max(longest, wait/2))
	}
	return wait, most
}

// A plainRoll is a rollout during one look at the slots of its process. d may be nil.
type plainRoll struct {
	w              *world
	d              *lrp.Deployment
	policy         lrp.RolloutPolicy
	budget, trial  bool
	inFlight, done int
}

func newPlainRoll(w *world, d *lrp.Deployment) *plainRoll {
	p := &plainRoll{w: w, d: d}
	if d == nil {
		return p
	}
	if d.Rollout != nil {
		p.policy = *d.Rollout
	}
	p.budget = d.Disruption != nil && *d.Disruption != lrp.Disruption{}
	p.trial = d.RolloutState.From != "" && p.policy.Canary > 0 && !d.RolloutState.Confirmed
	return p
}

func (p *plainRoll) paused() bool { return p.d.RolloutState.Paused != lrp.NotPaused }

func (p *plainRoll) held(index int) bool { return p.paused() || p.trial && index >= p.policy.Canary }

// proved reports whether r, of the active definition, has nothing to prove.
func (p *plainRoll) proved(r lrp.ActualLRP) bool {
	switch {
	case r.State != lrp.Running || !r.Stopping.IsZero():
		return false
	case p.policy.MinHealthy > 0 && p.w.now.Sub(r.RunningSince) < p.policy.MinHealthy:
		return false
	}
	return r.Routable || p.policy.MinHealthy == 0 && !p.budget
}

// replaces reports whether r ends a suspect.
func (p *plainRoll) replaces(r, suspect lrp.ActualLRP) bool {
	if r.State != lrp.Running || !r.Stopping.IsZero() {
		return false
	}
	return p.d == nil || r.DefinitionID == suspect.DefinitionID || r.DefinitionID != p.d.ActiveDefinitionID || !p.held(r.Index) && p.proved(r)
}

// late reports whether the rollout has waited for r for as long as it may.
func (p *plainRoll) late(r lrp.ActualLRP) bool {
	from := time.Unix(0, r.ModificationTag.Epoch)
	if resumed := p.d.RolloutState.ResumedAt; resumed.After(from) {
		from = resumed
	}
	wait := p.policy.Deadline
	if wait == 0 {
		wait = 10*time.Minute + p.policy.MinHealthy
	}
	return p.w.now.Sub(from) >= wait
}

// failed reports whether r shows that the active definition has failed.
func (p *plainRoll) failed(r lrp.ActualLRP) bool {
	s := p.d.RolloutState
	if s.From == "" || p.paused() || p.policy.OnFailure == lrp.KeepTrying || p.d.HealthyDefinitionID == p.d.ActiveDefinitionID || p.proved(r) {
		return false
	}
	return r.State == lrp.Crashed && r.Since.After(s.ResumedAt) || !s.Proved && p.late(r)
}

// complete reports whether the rollout has ended at all indices.
func (p *plainRoll) complete() bool {
	return p.d.RolloutState.From != "" && p.done == p.d.Instances && !p.paused() && !p.trial
}

// keeps reports whether a definition stays though no record names it.
func (p *plainRoll) keeps(id string) bool {
	from := id == p.d.RolloutState.From && (p.policy != lrp.RolloutPolicy{} || p.paused())
	return id == p.d.ActiveDefinitionID || id == p.d.HealthyDefinitionID || from
}

// visit is what the rollout plans for an index that has these ORDINARY records.
func (p *plainRoll) visit(ordinary []lrp.ActualLRP, index int) []string {
	say := func(what string) []string { return []string{fmt.Sprintf("%s: %s", what, converge.RolloutStep)} }
	step := say(fmt.Sprintf("AdvanceRollout{DefinitionID:%s}", p.d.ActiveDefinitionID))
	var active *lrp.ActualLRP
	var others, unborn, waiting, serving int
	for i, r := range ordinary {
		if r.DefinitionID == p.d.ActiveDefinitionID {
			active = &ordinary[i]
			continue
		}
		others++
		if r.State != lrp.Running && r.DefinitionID != p.d.HealthyDefinitionID {
			unborn++
		}
		if r.State != lrp.Running {
			waiting++
		} else if r.Stopping.IsZero() {
			serving++
		}
	}
	var overtaken []string
	if serving > 0 && waiting > 0 {
		overtaken = say("StopOvertaken{}")
	}
	proved := active != nil && p.proved(*active)
	noted := p.d.HealthyDefinitionID == p.d.ActiveDefinitionID
	if p.trial {
		noted = p.d.RolloutState.Proved
	}
	switch {
	case proved && others == 0 && (noted || p.held(index)):
		p.done++
		return nil
	case p.paused():
		return overtaken
	case active != nil && p.failed(*active):
		p.inFlight++
		return say("FailRollout{}")
	case p.held(index):
		return overtaken
	case proved:
		return step
	case active == nil && others == 0:
		return nil
	case active != nil && (p.d.HealthyDefinitionID == p.d.ActiveDefinitionID || p.d.RolloutState.Proved) && p.late(*active):
		return overtaken // given up for now
	case p.inFlight >= max(1, p.policy.MaxInFlight):
		return overtaken
	}
	p.inFlight++
	if active == nil || unborn > 0 && serving == 0 {
		return step
	}
	return overtaken
}
