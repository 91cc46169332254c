package modelcheck

import (
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// The limits of a world. A state that needs more is an error of the model, and
// the search says so.
const (
	maxIndices     = 3
	maxDefinitions = 3
	maxRecords     = 8 // at one index
	maxBoxes       = 9
	maxMail        = 3
	numCells       = 2
)

// A state is all of a world that decides about what may happen next. States are
// values and can be compared. Definitions are numbered from 1, and so are
// instances: an instance is a container, or the one that a record or a late call
// names. 0 stands for none.
type state struct {
	deployment deployment
	slots      [maxIndices]slot
	// requested has a bit for each definition whose start at the index is on its
	// way to the auctioneer.
	requested [maxIndices]uint8
	boxes     [maxBoxes]box // by instance
	cells     [numCells]cell
	mail      [maxMail]call // late calls, those that are there first
	// passed has a bit for each index that the rollout has passed.
	passed uint8
}

type deployment struct {
	instances   uint8
	definitions uint8 // a bit for each
	active      uint8
	healthy     uint8
	from        uint8
	paused      lrp.PausedBy
	resumed     uint8 // how many ticks ago, and 1; 0 if never
	proved      bool
	confirmed   bool
	failed      bool
}

type slot struct {
	n       uint8
	records [maxRecords]record
}

// A record is an ActualLRP. Its times are ticks, up to the longest that any rule
// asks for; those that no rule asks for are 0.
type record struct {
	definition uint8
	presence   lrp.Presence
	state      lrp.State
	holder     uint8
	cell       uint8
	crashes    uint8
	waited     uint8 // UNCLAIMED, CRASHED or to stop for 1 tick or more
	ran        uint8 // RUNNING for 1 tick or more
	age        uint8 // since it was made
	left       uint8 // of an EVACUATING record
	routable   bool
	unplaced   bool // has a placement error
	counts     bool // CRASHED after the rollout was resumed
	stopping   bool // was told to stop, waited says for how long
}

// A box is the container of an instance.
type box struct {
	phase      phase
	index      uint8
	definition uint8
	cell       uint8
	ready      bool
	stopping   bool // an order to stop it is on its way
}

type phase uint8

const (
	noBox phase = iota
	reserved
	starting
	running
	crashed
	shutdown
)

type cell struct {
	life   life
	absent bool // the control plane does not see it
}

type life uint8

const (
	on life = iota
	draining
	finishing // its time to evacuate has passed, or it is empty
	off
)

// Times of the model. A tick is longer than everything that takes no time.
const (
	tick          = time.Minute
	deadlineTicks = 2
	evacuateTicks = 2
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	processGUID = "web"
	domain      = "apps"
)

var (
	definitionNames = [maxDefinitions + 1]string{"", "v1", "v2", "v3"}
	cellNames       = [numCells]string{"A", "B"}
	instanceNames   = [maxBoxes + 1]string{"", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9"}
)

func numberOf(names []string, name string) uint8 {
	for i, n := range names {
		if n == name {
			return uint8(i)
		}
	}
	panic("modelcheck: no name of the model: " + name)
}

func instanceKey(holder, cell uint8) lrp.InstanceKey {
	if holder == 0 {
		return lrp.InstanceKey{}
	}
	return lrp.InstanceKey{InstanceGUID: instanceNames[holder], CellID: cellNames[cell]}
}

// runnable is the smallest valid definition.
var runnable = lrp.Definition{RunInfo: executor.RunInfo{
	RootFS: "preloaded:linux",
	Action: executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "nobody"}},
}}

// real is the deployment of a world that d stands for.
func (d deployment) real(w *World) *lrp.Deployment {
	out := &lrp.Deployment{
		ProcessGUID: processGUID, Domain: domain, UpdateStrategy: w.Strategy,
		Settings:           lrp.Settings{Instances: int(d.instances), Policies: w.Policies},
		Definitions:        map[string]lrp.Definition{},
		ActiveDefinitionID: definitionNames[d.active], HealthyDefinitionID: definitionNames[d.healthy],
		RolloutState: lrp.RolloutState{
			From: definitionNames[d.from], Paused: d.paused, ResumedAt: d.resumedAt(), Proved: d.proved, Confirmed: d.confirmed,
		},
		ModificationTag: lrp.ModificationTag{Epoch: 1, Index: 1},
	}
	if d.failed {
		out.RolloutState.Failure = &lrp.RolloutFailure{Kind: lrp.RolloutAborted}
	}
	for i := uint8(1); i <= maxDefinitions; i++ {
		if d.has(i) {
			out.Definitions[definitionNames[i]] = runnable
		}
	}
	return out
}

func (d deployment) has(definition uint8) bool { return d.definitions&(1<<definition) != 0 }

func (d deployment) desires(index int) bool { return index < int(d.instances) }

// resumedAt is between two moments that records know.
func (d deployment) resumedAt() time.Time {
	if d.resumed == 0 {
		return time.Time{}
	}
	return noon.Add(-time.Duration(d.resumed-1)*tick - 500)
}

func modelDeployment(d *lrp.Deployment) deployment {
	s := d.RolloutState
	out := deployment{
		instances: uint8(d.Instances), active: numberOf(definitionNames[:], d.ActiveDefinitionID),
		healthy: numberOf(definitionNames[:], d.HealthyDefinitionID), from: numberOf(definitionNames[:], s.From),
		paused: s.Paused, proved: s.Proved, confirmed: s.Confirmed, failed: s.Failure != nil,
	}
	if !s.ResumedAt.IsZero() {
		out.resumed = 1 + ticksSince(s.ResumedAt, deadlineTicks)
	}
	for id := range d.Definitions {
		out.definitions |= 1 << numberOf(definitionNames[:], id)
	}
	return out
}

// ticksSince is how many ticks ago t was, at most limit.
func ticksSince(t time.Time, limit uint8) uint8 {
	return uint8(min(max(0, noon.Sub(t)/tick), time.Duration(limit)))
}

// real is the slot at an index that s stands for. d says when its rollout was
// resumed.
func (s *slot) real(index int, d deployment) lrp.Slot {
	out := lrp.Slot{ProcessGUID: processGUID, Index: index, Records: make([]lrp.ActualLRP, 0, maxRecords)}
	for i := range s.records[:s.n] {
		out.Records = append(out.Records, s.records[i].real(index, i, d))
	}
	return out
}

func (r *record) real(index, i int, d deployment) lrp.ActualLRP {
	ago := func(ticks uint8, offset time.Duration) time.Time {
		return noon.Add(-time.Duration(ticks)*tick - offset)
	}
	out := lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: processGUID, DefinitionID: definitionNames[r.definition], Index: index, Domain: domain},
		InstanceKey: instanceKey(r.holder, r.cell),
		State:       r.state, Presence: r.presence, CrashCount: int(r.crashes), Since: ago(r.waited, 100),
		Routable:        r.routable,
		ModificationTag: lrp.ModificationTag{Epoch: ago(r.age, time.Duration(i+1)).UnixNano()},
	}
	if resumed := d.resumedAt(); r.state == lrp.Crashed && !r.counts && out.Since.After(resumed) {
		out.Since = resumed.Add(-100)
	}
	if r.state == lrp.Running {
		out.RunningSince = ago(r.ran, 0)
		out.NetInfo = lrp.NetInfo{Address: "10.0.0.1"}
	}
	if r.presence == lrp.Evacuating {
		out.ExpiresAt = ago(0, -time.Duration(r.left)*tick)
	}
	if r.stopping {
		out.Stopping = out.Since
	}
	if r.unplaced {
		out.PlacementError = lrp.PlacementError{Reason: lrp.InsufficientResources}
	}
	return out
}

// modelRecord is the record of the model for r, of a process whose rollout was
// resumed at a time.
func (m *model) modelRecord(r *lrp.ActualLRP, resumed time.Time) record {
	out := record{
		definition: numberOf(definitionNames[:], r.DefinitionID), presence: r.Presence, state: r.State,
		age: ticksSince(r.ModificationTag.Created(), deadlineTicks), routable: r.Routable, unplaced: !r.PlacementError.IsZero(),
	}
	if m.world.countsCrashes() {
		out.crashes = uint8(min(r.CrashCount, 1))
	}
	if !r.InstanceKey.IsZero() {
		out.holder, out.cell = numberOf(instanceNames[:], r.InstanceGUID), numberOf(cellNames[:], r.CellID)
	}
	switch r.State {
	case lrp.Unclaimed:
		out.waited = ticksSince(r.Since, 1)
	case lrp.Crashed:
		out.waited, out.counts = ticksSince(r.Since, 1), r.Since.After(resumed)
	case lrp.Running:
		out.ran = ticksSince(r.RunningSince, 1)
		if !m.world.ages() {
			out.ran = 1
		}
	}
	if !r.Stopping.IsZero() {
		out.stopping, out.waited = true, ticksSince(r.Stopping, 1)
	}
	if r.Presence == lrp.Evacuating {
		out.left = uint8(min(max(0, (r.ExpiresAt.Sub(noon)+tick-1)/tick), evacuateTicks))
	}
	return out
}

// pass lets a tick pass.
func (s *state) pass() {
	older := func(v *uint8, limit uint8) { *v = min(*v+1, limit) }
	if s.deployment.resumed > 0 {
		older(&s.deployment.resumed, 1+deadlineTicks)
	}
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			r := &s.slots[i].records[j]
			older(&r.age, deadlineTicks)
			if r.stopping || r.state == lrp.Unclaimed || r.state == lrp.Crashed {
				older(&r.waited, 1)
			}
			if r.state == lrp.Running {
				older(&r.ran, 1)
			}
			if r.left > 0 {
				r.left--
			}
		}
	}
}

// setDeployment makes d the deployment. Crashes count from when its rollout was
// resumed.
func (s *state) setDeployment(d deployment) {
	if d.resumed != s.deployment.resumed {
		for i := range s.slots {
			for j := range s.slots[i].records[:s.slots[i].n] {
				if r := &s.slots[i].records[j]; r.state == lrp.Crashed {
					r.counts = d.resumed == 0
				}
			}
		}
	}
	s.deployment = d
}
