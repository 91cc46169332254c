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
// specification lists them. It is the oracle of the streaming one.
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
		rolling := false
		for _, index := range slices.Sorted(maps.Keys(indices)) {
			s := w.slots[slotKey{guid, index}]
			for _, a := range plainSlot(w, d, s, index, &rolling) {
				out = append(out, fmt.Sprintf("%s/%d %s", guid, index, a))
			}
			for _, r := range s.Records {
				if !slices.Contains(inUse, r.DefinitionID) {
					inUse = append(inUse, r.DefinitionID)
				}
			}
		}
		if d != nil {
			for id := range d.Definitions {
				if id != d.ActiveDefinitionID && id != d.HealthyDefinitionID && !slices.Contains(inUse, id) {
					out = append(out, fmt.Sprintf("%s keep %v: %s", guid, inUse, converge.DefinitionUnused))
					break
				}
			}
		}
	}
	return out
}

func plainSlot(w *world, d *lrp.Deployment, s lrp.Slot, index int, rolling *bool) (out []string) {
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

	healthy := false
	for _, r := range ordinary {
		if r.CellID != "" && gone(r.CellID) {
			say(lrp.MarkSuspect{CellID: r.CellID}, converge.CellMissing)
		} else if r.State == lrp.Running {
			healthy = true
		}
	}
	if healthy && len(suspects) > 0 {
		say(lrp.RemoveSuspect{}, converge.SuspectReplaced)
	} else {
		for _, r := range suspects {
			if !gone(r.CellID) {
				say(lrp.Recover{CellID: r.CellID}, converge.CellReturned)
			}
		}
	}
	if !desired {
		return out
	}
	if len(ordinary) == 0 {
		say(lrp.CreateMissing{}, converge.InstanceMissing)
		return out
	}
	for _, r := range ordinary {
		waited := w.now.Sub(r.Since)
		if r.State == lrp.Crashed && r.CrashCount <= 200 && waited >= plainBackoff(r.CrashCount) {
			say(lrp.Restart{DefinitionID: r.DefinitionID}, converge.RestartDue)
		}
		if r.State == lrp.Unclaimed && waited >= 30*time.Second {
			out = append(out, fmt.Sprintf("start %s: %s", r.DefinitionID, converge.StartOverdue))
		}
	}
	return append(out, plainRollout(w, d, ordinary, rolling)...)
}

func plainBackoff(count int) time.Duration {
	return map[int]time.Duration{0: 30 * time.Second, 1: 30 * time.Second, 2: 30 * time.Second, 3: 30 * time.Second,
		4: time.Minute, 5: 2 * time.Minute, 6: 4 * time.Minute, 7: 8 * time.Minute}[min(count, 8)] +
		map[bool]time.Duration{true: 16 * time.Minute}[count >= 8]
}

func plainRollout(w *world, d *lrp.Deployment, ordinary []lrp.ActualLRP, rolling *bool) []string {
	step := []string{fmt.Sprintf("AdvanceRollout{DefinitionID:%s}: %s", d.ActiveDefinitionID, converge.RolloutStep)}
	var active *lrp.ActualLRP
	var others, unborn, waiting, serving int
	for i, r := range ordinary {
		if r.DefinitionID == d.ActiveDefinitionID {
			active = &ordinary[i]
			continue
		}
		others++
		if r.State != lrp.Running && r.DefinitionID != d.HealthyDefinitionID {
			unborn++
		}
		if r.State == lrp.Running {
			serving++
		} else {
			waiting++
		}
	}
	var overtaken []string
	if serving > 0 && waiting > 0 {
		overtaken = []string{fmt.Sprintf("StopOvertaken{}: %s", converge.RolloutStep)}
	}
	if active != nil && active.State == lrp.Running {
		if others > 0 || d.HealthyDefinitionID != d.ActiveDefinitionID {
			return step
		}
		return nil
	}
	if active != nil && d.HealthyDefinitionID == d.ActiveDefinitionID &&
		w.now.Sub(time.Unix(0, active.ModificationTag.Epoch)) >= 10*time.Minute {
		return overtaken // given up for now
	}
	if *rolling {
		return overtaken
	}
	*rolling = true
	if active == nil || unborn > 0 && serving == 0 {
		return step
	}
	return overtaken
}
