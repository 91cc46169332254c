package rep

import (
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
	"github.com/diegosdk/diego/lrp"
)

// A ContainerSituation describes the container that a cell has for an LRP.
type ContainerSituation uint8

const (
	// NoContainer means that there is neither a container nor a reservation.
	NoContainer ContainerSituation = iota
	ContainerReserved
	// ContainerStarting is INITIALIZING or CREATED.
	ContainerStarting
	ContainerRunning
	// ContainerCrashed is COMPLETED though nobody asked for it.
	ContainerCrashed
	// ContainerShutdown is COMPLETED because it was told to stop, or because its
	// reservation expired.
	ContainerShutdown
)

// ContainerSituations is the number of situations of an LRP's container.
const ContainerSituations = 6

var containerNames = enum.Names[ContainerSituation]{
	NoContainer:       "no container",
	ContainerReserved: "RESERVED",
	ContainerStarting: "INITIALIZING/CREATED",
	ContainerRunning:  "RUNNING",
	ContainerCrashed:  "COMPLETED (crashed)",
	ContainerShutdown: "COMPLETED (shutdown)",
}

func (c ContainerSituation) String() string { return containerNames.Of(c) }

// SituateContainer finds the situation of an LRP's container; without a
// container it is NoContainer. A reservation that expired is not a crash, because
// nothing ran. A value that is not a state is an error.
func SituateContainer(s executor.State, r executor.RunResult) (ContainerSituation, error) {
	switch s {
	case executor.Reserved:
		return ContainerReserved, nil
	case executor.Initializing, executor.Created:
		return ContainerStarting, nil
	case executor.Running:
		return ContainerRunning, nil
	case executor.Completed:
		if r.Stopped || r.Expired {
			return ContainerShutdown, nil
		}
		return ContainerCrashed, nil
	}
	return 0, unknownState(s)
}

// unknownState wraps [executor.ErrInvalid].
func unknownState(s executor.State) error {
	var v executor.Validator
	v.Check(false, "state", uint8(s), "a container state")
	return v.Err()
}

// An LRPSituation describes what the BBS has recorded at a container's index,
// as seen from that container's instance.
type LRPSituation uint8

const (
	// LRPNone means that no record says anything about this instance.
	LRPNone LRPSituation = iota
	LRPUnclaimed
	LRPClaimedAlpha
	LRPClaimedOmega
	LRPRunningAlpha
	LRPRunningOmega
	LRPCrashed
	// LRPSuspectAlpha is our own SUSPECT record, CLAIMED or RUNNING: the BBS
	// believes that this cell is missing.
	LRPSuspectAlpha
	// LRPEvacuatingAlpha is our own EVACUATING record.
	LRPEvacuatingAlpha
)

// LRPSituations is the number of situations of an LRP's record.
const LRPSituations = 9

var lrpNames = enum.Names[LRPSituation]{
	LRPNone:            "none",
	LRPUnclaimed:       "UNCLAIMED",
	LRPClaimedAlpha:    "CLAIMED α",
	LRPClaimedOmega:    "CLAIMED ω",
	LRPRunningAlpha:    "RUNNING α",
	LRPRunningOmega:    "RUNNING ω",
	LRPCrashed:         "CRASHED",
	LRPSuspectAlpha:    "suspect α",
	LRPEvacuatingAlpha: "evacuating α",
}

func (l LRPSituation) String() string { return lrpNames.Of(l) }

// SituateLRP finds what the records at an index mean to the instance me of the
// definition definitionID. me is never the zero key.
//
// The record that says most about me counts: my ORDINARY, SUSPECT or EVACUATING
// record, in that order; else the definition's ORDINARY record. An instance of
// another definition counts only when it is RUNNING, because only then has it
// taken this one's place.
func SituateLRP(s lrp.Slot, me lrp.InstanceKey, definitionID string) LRPSituation {
	var ordinary, suspect, evacuating, same, other *lrp.ActualLRP
	for i := range s.Records {
		r := &s.Records[i]
		mine := r.InstanceKey == me
		switch {
		case mine && r.Presence == lrp.Suspect:
			suspect = r
		case mine && r.Presence == lrp.Evacuating:
			evacuating = r
		case r.Presence != lrp.Ordinary:
		case mine:
			ordinary = r
		case r.DefinitionID == definitionID:
			same = r
		case r.State == lrp.Running:
			other = r
		}
	}
	switch {
	case ordinary != nil && ordinary.State == lrp.Running:
		return LRPRunningAlpha
	case ordinary != nil:
		return LRPClaimedAlpha
	case suspect != nil:
		return LRPSuspectAlpha
	case evacuating != nil:
		return LRPEvacuatingAlpha
	case same != nil && same.State == lrp.Unclaimed:
		return LRPUnclaimed
	case same != nil && same.State == lrp.Claimed:
		return LRPClaimedOmega
	case same != nil && same.State == lrp.Running:
		return LRPRunningOmega
	case same != nil:
		return LRPCrashed
	case other != nil:
		return LRPRunningOmega
	}
	return LRPNone
}
