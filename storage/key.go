package storage

import (
	"fmt"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A RecordKind says which kind of record a [RecordKey] names.
type RecordKind uint8

// The kinds of records.
const (
	DeploymentRecord RecordKind = iota + 1
	ActualLRPRecord
	TaskRecord
	// EventRecord appears only in errors: an event that cannot be decoded leaves
	// the log in time.
	EventRecord
)

// A RecordKey names one record of a Store.
type RecordKey struct {
	Kind RecordKind `json:"kind"`
	// GUID is a process guid, or a task's guid.
	GUID string `json:"guid,omitempty"`
	// Index, DefinitionID and Presence are set for an ActualLRP. The presence of a
	// record that cannot be decoded may be unknown to lrp.
	Index        int    `json:"index,omitempty"`
	DefinitionID string `json:"definition_id,omitempty"`
	Presence     uint8  `json:"presence,omitempty"`
	// Sequence is set for an event.
	Sequence Cursor `json:"sequence,omitempty"`
}

// DeploymentKey names the deployment of a process.
func DeploymentKey(processGUID string) RecordKey {
	return RecordKey{Kind: DeploymentRecord, GUID: processGUID}
}

// ActualLRPKey names r.
func ActualLRPKey(r *lrp.ActualLRP) RecordKey {
	return RecordKey{
		Kind: ActualLRPRecord, GUID: r.ProcessGUID, Index: r.Index,
		DefinitionID: r.DefinitionID, Presence: uint8(r.Presence),
	}
}

// TaskKey names a task.
func TaskKey(guid string) RecordKey { return RecordKey{Kind: TaskRecord, GUID: guid} }

// EventKey names an event.
func EventKey(sequence Cursor) RecordKey { return RecordKey{Kind: EventRecord, Sequence: sequence} }

// String describes the record for people: for example `task "t1"`.
func (k RecordKey) String() string {
	switch k.Kind {
	case DeploymentRecord:
		return fmt.Sprintf("deployment %q", k.GUID)
	case ActualLRPRecord:
		return fmt.Sprintf("actual LRP %s/%d definition %q %v", k.GUID, k.Index, k.DefinitionID, lrp.Presence(k.Presence))
	case TaskRecord:
		return fmt.Sprintf("task %q", k.GUID)
	case EventRecord:
		return fmt.Sprintf("event %d", k.Sequence)
	}
	return fmt.Sprintf("record of unknown kind %d", k.Kind)
}

// LRPWriteKey names the record that w writes.
func LRPWriteKey(w *lrp.Write) RecordKey {
	if w.Before != nil {
		return ActualLRPKey(w.Before)
	}
	return ActualLRPKey(w.After)
}

// TaskWriteKey names the task that w writes.
func TaskWriteKey(w *task.Write) RecordKey {
	if w.Before != nil {
		return TaskKey(w.Before.GUID)
	}
	return TaskKey(w.After.GUID)
}
