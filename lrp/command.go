package lrp

import "time"

// A Command is one request to change a slot. It comes from a cell, the
// auctioneer, the consumer or convergence. Only the types of this package are
// commands. Pass them by value; goroutines may share them.
//
// In a cell's command, Instance is the cell's own instance, the α of the
// specification's tables. The command concerns the record of that instance. If
// the instance has none, it concerns the ORDINARY record of DefinitionID. If
// DefinitionID is empty, Step prefers a record in the state that the command
// expects, and then that of the active definition.
//
// A command of convergence does nothing if the slot has moved on since it was
// planned.
//
// Messages get lost or arrive twice. A command that is repeated at once changes
// no record: either nothing is left to do, or it is refused. There are two
// exceptions. Retire requests a new start each time, and a second
// EvacuateRunning may end an evacuation that the first one began. When they are
// repeated, StopExtra, StopOvertaken, StopAgain, AdvanceRollout, Retire and
// Start may have their effects again, so a lost order to stop is sent again.
type Command interface {
	// Name is the command's name in events and errors, for example "Claim".
	Name() string
	isCommand()
}

// Commands of a cell. Instance is the caller's own instance, the α of the
// tables. DefinitionID may be empty: then the record is found by the instance,
// or else is the active definition's.
type (
	// Claim says that the cell has a reservation and will start the instance
	// (UNCLAIMED → CLAIMED, or RUNNING → CLAIMED by its own holder).
	Claim struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		// Reason is why the instance was placed on this cell, for the timeline.
		// At most 1024 bytes are kept.
		Reason string `json:"reason,omitempty"`
	}
	// Start says that the instance is running. Other commands say what the cell
	// will do; this one states a fact. So it also takes over an index that is
	// UNCLAIMED, CRASHED, CLAIMED by another cell, or empty. It is refused if
	// another instance runs there, unless this instance is of the active
	// definition and takes the other's place in a rollout.
	Start struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Domain       string      `json:"domain,omitempty"` // used when the index is empty
		Instance     InstanceKey `json:"instance"`
		NetInfo      NetInfo     `json:"net_info"`
		Unready      bool        `json:"unready,omitempty"` // healthy, but not ready for traffic
		Zone         string      `json:"zone,omitempty"`
	}
	// Crash says that the instance ended unexpectedly (000 §Crashes).
	// RestartPolicy decides whether its record becomes UNCLAIMED at once, or
	// CRASHED. The record is removed if nothing is desired at the index any more.
	// It is also removed if an instance of another definition runs there and has
	// nothing to prove (see RolloutPolicy), unless this one is of the active
	// definition. A SUSPECT or EVACUATING record of the instance is removed
	// without counting a crash, because a replacement exists already.
	Crash struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Domain       string      `json:"domain,omitempty"` // used when the index is empty
		Instance     InstanceKey `json:"instance"`
		Reason       string      `json:"reason,omitempty"` // at most 1024 bytes are kept
	}
	// Remove says that the instance is gone, because it was told to stop or never
	// existed. An index that is still desired becomes UNCLAIMED at once and keeps
	// its crash count. The exception is an instance of a definition that is not
	// active, while an instance of another definition runs at the index.
	Remove struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		// Overdue says that the cell has ended the instance because its time to
		// evacuate has passed. Events say so.
		Overdue bool `json:"overdue,omitempty"`
	}
	// EvacuateClaimed says that an evacuating cell gives up an instance that it
	// has not started yet, or a reservation that it has not claimed yet. The start
	// is requested again.
	EvacuateClaimed struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
	}
	// EvacuateRunning asks what to do about a running instance on an evacuating
	// cell (000 §Harmonizing During Evacuation). The answer is
	// Decision.KeepContainer.
	EvacuateRunning struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		NetInfo      NetInfo     `json:"net_info"`
		Unready      bool        `json:"unready,omitempty"`
		Zone         string      `json:"zone,omitempty"`
		// RunningInstances is the number of desired indices whose instance is
		// [Deployment.Available], the caller's own included. Only the Recreate
		// strategy uses it.
		RunningInstances int `json:"running_instances,omitempty"`
		// TTL is how long the cell may still take to evacuate. The EVACUATING record
		// lives for this time, at most Policy.EvacuationTimeout. 0 means
		// Policy.EvacuationTimeout.
		TTL time.Duration `json:"ttl_nanoseconds,omitempty"`
	}
	// EvacuateStopped says that an instance on an evacuating cell has ended after
	// it was told to stop.
	EvacuateStopped struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
	}
	// EvacuateCrashed says that an instance on an evacuating cell crashed. At a
	// desired index without a record it does what Crash does.
	EvacuateCrashed struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		Reason       string      `json:"reason,omitempty"`
	}
	// RemoveEvacuating removes the instance's EVACUATING record.
	RemoveEvacuating struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		Overdue      bool        `json:"overdue,omitempty"` // as in Remove
	}
)

// Fail is the auctioneer's command: no cell was found for the UNCLAIMED record.
type Fail struct {
	DefinitionID string         `json:"definition_id,omitempty"`
	Error        PlacementError `json:"placement_error"`
}

// Retire is the consumer's command: stop the instance at this index. The
// desired state stays, so the index starts again (002 §Killing ActualLRPs).
// Without a DefinitionID it concerns the active definition's record.
type Retire struct {
	DefinitionID string `json:"definition_id,omitempty"`
	// MissingCell is a cell known to be gone: its records are removed, because
	// nobody is there to stop them.
	MissingCell string `json:"missing_cell,omitempty"`
}

// Commands of convergence. Each names the record that it was planned for; if
// the slot has moved on, the command does nothing.
type (
	// CreateMissing makes the UNCLAIMED record of a desired index that has none,
	// and requests its start.
	CreateMissing struct{}
	// StopExtra stops or removes everything at an index that is not desired.
	// Records on MissingCells are removed, because nobody is there to stop them.
	StopExtra struct{ MissingCells []string }
	// Restart puts a CRASHED record whose wait is over back to UNCLAIMED.
	Restart struct{ DefinitionID string }
	// MarkSuspect says that the cell of a CLAIMED or RUNNING record is
	// missing: the record becomes SUSPECT and a replacement is requested.
	MarkSuspect struct{ CellID string }
	// Recover says that the cell of a SUSPECT record is not missing any more: it
	// is back, or its loss is now doubted. The record becomes ORDINARY again,
	// unless its replacement is RUNNING.
	Recover struct{ CellID string }
	// RemoveSuspect removes a SUSPECT record whose replacement is RUNNING.
	RemoveSuspect struct{}
	// Prune removes EVACUATING records whose cell is missing or whose time
	// has passed.
	Prune struct{ MissingCells []string }
	// StopOvertaken stops or removes instances that do not run yet and are no
	// longer needed: a newer rollout has overtaken their definition, and an older
	// instance still runs at the index.
	StopOvertaken struct{}
	// AdvanceRollout takes the index one step towards the definition with this id,
	// or towards the active one if DefinitionID is empty. It does nothing if
	// another definition is active by now: a step planned for one definition does
	// not know how many indices are in flight for another.
	AdvanceRollout struct{ DefinitionID string }
	// FailRollout pauses or rolls back the rollout, as its policy says, if the
	// active definition has failed at this index: see RolloutPolicy.OnFailure.
	FailRollout struct{}
	// StopAgain repeats the order to stop each instance at the index that has been
	// Stopping for Policy.StaleUnclaimed: the order may be lost.
	StopAgain struct{}
)

// Name implements [Command].
func (Claim) Name() string            { return "Claim" }
func (Start) Name() string            { return "Start" }
func (Crash) Name() string            { return "Crash" }
func (Remove) Name() string           { return "Remove" }
func (EvacuateClaimed) Name() string  { return "EvacuateClaimed" }
func (EvacuateRunning) Name() string  { return "EvacuateRunning" }
func (EvacuateStopped) Name() string  { return "EvacuateStopped" }
func (EvacuateCrashed) Name() string  { return "EvacuateCrashed" }
func (RemoveEvacuating) Name() string { return "RemoveEvacuating" }
func (Fail) Name() string             { return "Fail" }
func (Retire) Name() string           { return "Retire" }
func (CreateMissing) Name() string    { return "CreateMissing" }
func (StopExtra) Name() string        { return "StopExtra" }
func (Restart) Name() string          { return "Restart" }
func (MarkSuspect) Name() string      { return "MarkSuspect" }
func (Recover) Name() string          { return "Recover" }
func (RemoveSuspect) Name() string    { return "RemoveSuspect" }
func (Prune) Name() string            { return "Prune" }
func (StopOvertaken) Name() string    { return "StopOvertaken" }
func (AdvanceRollout) Name() string   { return "AdvanceRollout" }
func (FailRollout) Name() string      { return "FailRollout" }
func (StopAgain) Name() string        { return "StopAgain" }

func (Claim) isCommand()            {}
func (Start) isCommand()            {}
func (Crash) isCommand()            {}
func (Remove) isCommand()           {}
func (EvacuateClaimed) isCommand()  {}
func (EvacuateRunning) isCommand()  {}
func (EvacuateStopped) isCommand()  {}
func (EvacuateCrashed) isCommand()  {}
func (RemoveEvacuating) isCommand() {}
func (Fail) isCommand()             {}
func (Retire) isCommand()           {}
func (CreateMissing) isCommand()    {}
func (StopExtra) isCommand()        {}
func (Restart) isCommand()          {}
func (MarkSuspect) isCommand()      {}
func (Recover) isCommand()          {}
func (RemoveSuspect) isCommand()    {}
func (Prune) isCommand()            {}
func (StopOvertaken) isCommand()    {}
func (AdvanceRollout) isCommand()   {}
func (FailRollout) isCommand()      {}
func (StopAgain) isCommand()        {}
