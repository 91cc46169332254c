package lrp

import (
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/enum"
)

// An OrdinarySituation describes the ORDINARY record at the index of a RUNNING
// container on an evacuating cell. α is that container's own instance, ω any
// other holder, ε a placement error.
type OrdinarySituation uint8

// The situations of the ORDINARY record.
const (
	OrdinaryNone OrdinarySituation = iota
	OrdinaryUnclaimed
	OrdinaryUnclaimedError
	OrdinaryClaimedAlpha
	OrdinaryClaimedOmega
	OrdinaryRunningAlpha
	OrdinaryRunningOmega
	OrdinaryCrashed
)

// OrdinarySituations is the number of values of OrdinarySituation.
const OrdinarySituations = 8

var ordinaryNames = enum.Names[OrdinarySituation]{
	OrdinaryNone:           "none",
	OrdinaryUnclaimed:      "UNCLAIMED",
	OrdinaryUnclaimedError: "UNCLAIMED+ε",
	OrdinaryClaimedAlpha:   "CLAIMED α",
	OrdinaryClaimedOmega:   "CLAIMED ω",
	OrdinaryRunningAlpha:   "RUNNING α",
	OrdinaryRunningOmega:   "RUNNING ω",
	OrdinaryCrashed:        "CRASHED",
}

// String is the situation as the tables write it, for example "CLAIMED ω".
func (o OrdinarySituation) String() string { return ordinaryNames.Of(o) }

// An EvacuatingSituation describes the EVACUATING record at the index of a
// RUNNING container on an evacuating cell. β is an instance that another cell
// evacuates.
type EvacuatingSituation uint8

// The situations of the EVACUATING record.
const (
	EvacuatingNone EvacuatingSituation = iota
	EvacuatingAlpha
	EvacuatingBeta
)

// EvacuatingSituations is the number of values of EvacuatingSituation.
const EvacuatingSituations = 3

var evacuatingNames = enum.Names[EvacuatingSituation]{
	EvacuatingNone:  "none",
	EvacuatingAlpha: "RUNNING α",
	EvacuatingBeta:  "RUNNING β",
}

// String is the situation as the tables write it, for example "RUNNING β".
func (e EvacuatingSituation) String() string { return evacuatingNames.Of(e) }

// An EvacuationRow says what happens to a RUNNING container on an evacuating
// cell and to the records at its index. If only KeepContainer is set, nothing
// changes and the container stays.
type EvacuationRow struct {
	// PutEvacuating makes the EVACUATING record RUNNING α: it is created, or taken
	// over from β, and its time to live starts again.
	PutEvacuating bool
	// UnclaimOrdinary puts the ORDINARY record back to UNCLAIMED and requests
	// its start.
	UnclaimOrdinary bool
	// RemoveEvacuating removes the EVACUATING record.
	RemoveEvacuating bool
	// KeepContainer answers the cell: false means that it deletes the container.
	KeepContainer bool
	Odds          Odds
	Reason        string
	// Added is true for a row that the specification leaves out.
	Added bool
}

// Action describes the row in words.
func (r EvacuationRow) Action() string {
	var parts []string
	if r.PutEvacuating {
		parts = append(parts, "evacuating := RUNNING α")
	}
	if r.UnclaimOrdinary {
		parts = append(parts, "ordinary := UNCLAIMED")
	}
	if r.RemoveEvacuating {
		parts = append(parts, "remove evacuating")
	}
	if !r.KeepContainer {
		parts = append(parts, "delete container")
	}
	if len(parts) == 0 {
		return "do nothing"
	}
	return strings.Join(parts, ", ")
}

// EvacuationRule returns the row of the table for RUNNING containers on an
// evacuating cell (000 §Harmonizing During Evacuation). It panics on values
// that are not situations.
func EvacuationRule(o OrdinarySituation, e EvacuatingSituation) EvacuationRow {
	return evacuationTable[o][e]
}

var evacuationTable = [OrdinarySituations][EvacuatingSituations]EvacuationRow{
	OrdinaryNone: {
		EvacuatingNone:  {Odds: Conceivable, Reason: "another instance took over and was scaled down, and our evacuating record got lost"},
		EvacuatingAlpha: {RemoveEvacuating: true, Odds: Expected, Reason: "the index was scaled down while we evacuated"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "β evacuated the instance and the index was scaled down before we looked"},
	},
	OrdinaryUnclaimed: {
		EvacuatingNone:  {PutEvacuating: true, KeepContainer: true, Odds: Inconceivable, Reason: "our instance runs and should stay routable until it is replaced"},
		EvacuatingAlpha: {KeepContainer: true, Odds: Expected, Reason: "the replacement waits for its auction"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "β ran the replacement and is now evacuating itself"},
	},
	OrdinaryUnclaimedError: {
		EvacuatingNone:  {KeepContainer: true, Odds: Inconceivable, Reason: "no cell took the replacement; the container stays while the auctioneer tries again"},
		EvacuatingAlpha: {KeepContainer: true, Odds: Conceivable, Reason: "no cell took the replacement; the container stays while the auctioneer tries again"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "as for UNCLAIMED: β serves the index until its own replacement is placed", Added: true},
	},
	OrdinaryClaimedAlpha: {
		EvacuatingNone:  {PutEvacuating: true, UnclaimOrdinary: true, KeepContainer: true, Odds: Conceivable, Reason: "our container runs, but the record did not get to say so before the evacuation"},
		EvacuatingAlpha: {UnclaimOrdinary: true, KeepContainer: true, Odds: Conceivable, Reason: "an earlier evacuation did not get to unclaim our record"},
		EvacuatingBeta:  {PutEvacuating: true, UnclaimOrdinary: true, KeepContainer: true, Odds: Conceivable, Reason: "we replaced β's instance and began to evacuate before the record said RUNNING"},
	},
	OrdinaryClaimedOmega: {
		EvacuatingNone:  {PutEvacuating: true, KeepContainer: true, Odds: Inconceivable, Reason: "our instance runs and should stay routable until ω's does"},
		EvacuatingAlpha: {KeepContainer: true, Odds: Expected, Reason: "ω is starting the replacement"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "β ran the replacement and is now evacuating itself"},
	},
	OrdinaryRunningAlpha: {
		EvacuatingNone:  {PutEvacuating: true, UnclaimOrdinary: true, KeepContainer: true, Odds: Expected, Reason: "the first step of an evacuation"},
		EvacuatingAlpha: {UnclaimOrdinary: true, KeepContainer: true, Odds: Conceivable, Reason: "an earlier evacuation did not get to unclaim our record"},
		EvacuatingBeta:  {PutEvacuating: true, UnclaimOrdinary: true, KeepContainer: true, Odds: Conceivable, Reason: "we replaced β's instance and now evacuate ourselves"},
	},
	OrdinaryRunningOmega: {
		EvacuatingNone:  {Odds: Conceivable, Reason: "the replacement runs, and its start already removed our evacuating record"},
		EvacuatingAlpha: {RemoveEvacuating: true, Odds: Expected, Reason: "the replacement runs: the evacuation of this instance is done"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "ω replaced β's instance, which had replaced ours"},
	},
	OrdinaryCrashed: {
		EvacuatingNone:  {Odds: Conceivable, Reason: "the replacement ran and crashed, and our evacuating record got lost"},
		EvacuatingAlpha: {RemoveEvacuating: true, Odds: Expected, Reason: "the replacement ran, which ends the evacuation, and crashed since"},
		EvacuatingBeta:  {Odds: Conceivable, Reason: "β evacuated the instance, and its replacement crashed before we looked"},
	},
}

// evacuationSituation returns the input of the evacuation table: the ORDINARY
// and the EVACUATING record that matter to the instance me (nil if there is
// none) and their situations.
//
// Our own record comes first. Otherwise the ordinary record that serves the
// index best counts, of any definition, because an instance of any definition
// replaces ours. Of two in the same state it is the one of definitionID, which
// may be empty. me is an instance, never the zero key.
//
// A RUNNING instance that is to stop because ours has started replaces nothing, and
// neither does one that has still to prove healthy, so they do not count.
func evacuationSituation(s Slot, d *Deployment, me InstanceKey, definitionID string, now time.Time) (o OrdinarySituation, e EvacuatingSituation, ordinary, evacuating *ActualLRP) {
	own := slices.IndexFunc(s.Records, func(r ActualLRP) bool { return r.InstanceKey == me })
	rank := func(r *ActualLRP) int {
		n := 2 * serving(r.State)
		if r.DefinitionID == definitionID {
			n++
		}
		if r.InstanceKey == me {
			n += 1 << 10
		}
		return n
	}
	for i := range s.Records {
		r := &s.Records[i]
		switch {
		case own >= 0 && d.yields(r, &s.Records[own], now):
		case r.Presence == Ordinary && (ordinary == nil || rank(r) > rank(ordinary)):
			ordinary = r
		case r.Presence == Evacuating && (evacuating == nil || rank(r) > rank(evacuating)):
			evacuating = r
		}
	}
	return ordinarySituation(ordinary, me), evacuatingSituation(evacuating, me), ordinary, evacuating
}

// serving ranks states by how close they are to serving an index.
func serving(s State) int {
	if s == Crashed {
		return 0
	}
	return int(s)
}

func ordinarySituation(r *ActualLRP, me InstanceKey) OrdinarySituation {
	if r == nil {
		return OrdinaryNone
	}
	mine := r.InstanceKey == me
	switch {
	case r.State == Unclaimed && r.PlacementError != PlacementError{}:
		return OrdinaryUnclaimedError
	case r.State == Unclaimed:
		return OrdinaryUnclaimed
	case r.State == Claimed && mine:
		return OrdinaryClaimedAlpha
	case r.State == Claimed:
		return OrdinaryClaimedOmega
	case r.State == Running && mine:
		return OrdinaryRunningAlpha
	case r.State == Running:
		return OrdinaryRunningOmega
	default:
		return OrdinaryCrashed
	}
}

func evacuatingSituation(r *ActualLRP, me InstanceKey) EvacuatingSituation {
	switch {
	case r == nil:
		return EvacuatingNone
	case r.InstanceKey == me:
		return EvacuatingAlpha
	default:
		return EvacuatingBeta
	}
}
