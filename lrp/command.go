package lrp

import "time"

// A Command is one request to change a slot: a cell's, the auctioneer's, the
// consumer's or convergence's. The types in this file are all there are; they
// are passed by value, and goroutines may share them.
//
// Messages get lost and come twice. A command that is given again at once
// changes no record, either because there is nothing left to do or because it
// is refused, with two exceptions: Retire asks for a new start each time, and
// a second EvacuateRunning may end an evacuation that the first one began. The
// effects of StopExtra, StopOvertaken, AdvanceRollout, Retire and a repeated
// Start may come again: a lost stop is repeated in this way.
type Command interface {
	// Name is the command's name in events and errors, such as "Claim".
	Name() string
	isCommand()
}

// Commands of a cell. Instance is the caller's own instance, the α of the
// tables; DefinitionID may be empty, and then the record is found by the
// instance or is the active definition's.
type (
	// Claim says that the cell has a reservation and will start the instance
	// (UNCLAIMED → CLAIMED, or RUNNING → CLAIMED by its own holder).
	Claim struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
	}
	// Start says that the instance is running. Other commands say what the
	// cell will do; this one states a fact, so it also takes over an index
	// that is UNCLAIMED, CRASHED, CLAIMED by another cell or empty. It is
	// refused where another instance runs, unless this one is of the active
	// definition and so takes that one's place in a rollout.
	Start struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Domain       string      `json:"domain,omitempty"` // used when the index is empty
		Instance     InstanceKey `json:"instance"`
		NetInfo      NetInfo     `json:"net_info"`
		Unready      bool        `json:"unready,omitempty"` // healthy, but not ready for traffic
		Zone         string      `json:"zone,omitempty"`
	}
	// Crash says that the instance ended unexpectedly (000 §Crashes): its
	// record goes back to UNCLAIMED at once or to CRASHED, as RestartPolicy
	// says, and is removed where nothing is desired any more or where another
	// definition's instance runs, unless it is of the active one. A SUSPECT or
	// EVACUATING record of the instance is removed without counting a crash,
	// as a replacement is there already.
	Crash struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Domain       string      `json:"domain,omitempty"` // used when the index is empty
		Instance     InstanceKey `json:"instance"`
		Reason       string      `json:"reason,omitempty"` // at most 1024 bytes are kept
	}
	// Remove says that the instance is gone, as it was told to stop or was
	// never there. A still desired index is UNCLAIMED again at once, with the
	// crash count that it had, unless another definition's instance runs there
	// and this one was not of the active one.
	Remove struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
	}
	// EvacuateClaimed says that an evacuating cell gives up an instance that
	// it had not started yet, or a reservation that it had not claimed for. The
	// start is requested again.
	EvacuateClaimed struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
	}
	// EvacuateRunning asks what becomes of a running instance on an
	// evacuating cell (000 §Harmonizing During Evacuation). The answer is
	// Decision.KeepContainer.
	EvacuateRunning struct {
		DefinitionID string      `json:"definition_id,omitempty"`
		Instance     InstanceKey `json:"instance"`
		NetInfo      NetInfo     `json:"net_info"`
		Unready      bool        `json:"unready,omitempty"`
		Zone         string      `json:"zone,omitempty"`
		// RunningInstances is the number of indices of the process that have a
		// RUNNING ordinary record. Only the Recreate strategy looks at it.
		RunningInstances int `json:"running_instances,omitempty"`
		// TTL is how long the cell may still take to evacuate, and so how long
		// the EVACUATING record lives; Policy.EvacuationTimeout bounds it. 0
		// means as long as that.
		TTL time.Duration `json:"ttl_nanoseconds,omitempty"`
	}
	// EvacuateStopped says that an instance on an evacuating cell has ended
	// as it was told to.
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
	}
)

// Fail is the auctioneer's: the UNCLAIMED record could not be placed.
type Fail struct {
	DefinitionID string         `json:"definition_id,omitempty"`
	Error        PlacementError `json:"placement_error"`
}

// Retire is the consumer's: stop what runs at this index. The desired state
// stays, so the index starts again (002 §Killing ActualLRPs). Without a
// DefinitionID the active definition's record is meant.
type Retire struct {
	DefinitionID string `json:"definition_id,omitempty"`
	// MissingCell is a cell known to be gone: its records are removed, as
	// nobody is there to stop them.
	MissingCell string `json:"missing_cell,omitempty"`
}

// Commands of convergence. Each names the record it was planned for; when the
// slot has moved on, the command does nothing.
type (
	// CreateMissing makes the UNCLAIMED record of a desired index where none
	// is, and asks for its start.
	CreateMissing struct{}
	// StopExtra stops or removes everything at an index that is not desired.
	// Records on MissingCells are removed, as nobody is there to stop them.
	StopExtra struct{ MissingCells []string }
	// Restart puts a CRASHED record whose wait is over back to UNCLAIMED.
	Restart struct{ DefinitionID string }
	// MarkSuspect says that the cell of a CLAIMED or RUNNING record is
	// missing: the record becomes SUSPECT and a replacement is requested.
	MarkSuspect struct{ CellID string }
	// Recover says that the cell of a SUSPECT record is not missing any more:
	// it is back, or its loss is doubted now. The record is ORDINARY again,
	// unless its replacement is RUNNING.
	Recover struct{ CellID string }
	// RemoveSuspect removes a SUSPECT record whose replacement is RUNNING.
	RemoveSuspect struct{}
	// Prune removes EVACUATING records whose cell is missing or whose time
	// has passed.
	Prune struct{ MissingCells []string }
	// StopOvertaken stops or removes instances that do not run yet and need
	// not any more: they are of a definition that a newer rollout has
	// overtaken, and an older instance still runs at the index.
	StopOvertaken struct{}
	// AdvanceRollout takes this index one step towards the active definition.
	AdvanceRollout struct{}
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
