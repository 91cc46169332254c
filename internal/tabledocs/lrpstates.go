package tabledocs

import (
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// lrpEdges tries every command in every slot that commands lead to, and
// collects what happens to the records. Two cells and one definition are
// enough for every change of state that there is.
func lrpEdges() []edge {
	d := &lrp.Deployment{
		ProcessGUID: "process", Domain: "domain",
		Settings:           lrp.Settings{Instances: 1},
		Definitions:        map[string]lrp.Definition{"definition": {}},
		ActiveDefinitionID: "definition",
	}
	gone := *d
	gone.Instances = 0
	// A crash can have two results.
	policies := []lrp.Policy{{}, {Restart: lrp.RestartPolicy{ImmediateRestarts: -1}}}
	epoch := time.Unix(0, 0).UTC()
	var edges []edge
	seen := map[string]bool{}
	queue := []lrp.Slot{{ProcessGUID: "process"}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, deployment := range []*lrp.Deployment{d, &gone} {
			for _, c := range lrpCommands() {
				for _, policy := range policies {
					decision, err := lrp.Step(s, deployment, c, epoch.Add(time.Hour), policy)
					if err != nil {
						continue
					}
					edges = append(edges, recordEdges(decision.Writes, c.Name())...)
					next := aged(s.Apply(decision), epoch)
					if k := shape(next); !seen[k] {
						seen[k] = true
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return edges
}

func lrpCommands() []lrp.Command {
	commands := []lrp.Command{
		lrp.CreateMissing{}, lrp.StopExtra{}, lrp.Restart{DefinitionID: "definition"},
		lrp.AdvanceRollout{}, lrp.StopOvertaken{}, lrp.RemoveSuspect{}, lrp.Prune{}, lrp.Retire{},
		lrp.Fail{Error: lrp.PlacementError{Reason: lrp.InsufficientResources}},
	}
	for _, name := range []string{"1", "2"} {
		cell := "cell-" + name
		me := lrp.InstanceKey{InstanceGUID: "instance-" + name, CellID: cell}
		commands = append(commands,
			lrp.Claim{Instance: me}, lrp.Start{Instance: me, Domain: "domain"},
			lrp.Crash{Instance: me, Domain: "domain"}, lrp.Remove{Instance: me},
			lrp.EvacuateClaimed{Instance: me}, lrp.EvacuateRunning{Instance: me},
			lrp.EvacuateStopped{Instance: me}, lrp.EvacuateCrashed{Instance: me},
			lrp.RemoveEvacuating{Instance: me}, lrp.MarkSuspect{CellID: cell}, lrp.Recover{CellID: cell},
		)
	}
	return commands
}

// recordEdges says what becomes of each record.
func recordEdges(writes []lrp.Write, by string) (edges []edge) {
	goesOn := map[*lrp.ActualLRP]bool{}
	for _, w := range writes {
		if w.After != nil {
			before := predecessor(writes, w)
			goesOn[before] = true
			edges = append(edges, edge{node(before), node(w.After), by})
		}
	}
	for _, w := range writes {
		if w.Before != nil && !goesOn[w.Before] {
			edges = append(edges, edge{node(w.Before), outside, by})
		}
	}
	return slices.DeleteFunc(edges, func(e edge) bool { return e.from == e.to })
}

// predecessor is the record that became w.After: the record of the same
// instance, under any presence, or else the one in whose place w.After is
// written, unless that one goes on under another presence.
func predecessor(writes []lrp.Write, w lrp.Write) *lrp.ActualLRP {
	moved := false
	for _, other := range writes {
		if sameInstance(other.Before, w.After) {
			return other.Before
		}
		moved = moved || sameInstance(w.Before, other.After)
	}
	if moved {
		return nil
	}
	return w.Before
}

func sameInstance(a, b *lrp.ActualLRP) bool {
	return a != nil && b != nil && !a.InstanceKey.IsZero() && a.InstanceKey == b.InstanceKey
}

func node(r *lrp.ActualLRP) string {
	switch {
	case r == nil:
		return outside
	case r.Presence != lrp.Ordinary:
		return r.Presence.String()
	}
	return r.State.String()
}

// aged gives the records of a slot the same age, so that the number of slots is
// finite.
func aged(s lrp.Slot, since time.Time) lrp.Slot {
	s.Records = slices.Clone(s.Records)
	for i := range s.Records {
		s.Records[i].Since = since
	}
	return s
}

// shape tells slots apart by what a diagram shows.
func shape(s lrp.Slot) string {
	text := ""
	for _, r := range s.Records {
		text += fmt.Sprintf("%v %v %v;", r.Presence, r.State, r.InstanceKey)
	}
	return text
}
