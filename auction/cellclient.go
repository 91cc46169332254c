package auction

import (
	"context"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A CellClient calls one cell, in the same process or over a network. Its
// methods may be called concurrently, and must return soon after their context
// ends.
type CellClient interface {
	// State returns what the cell has and how much room is left.
	State(ctx context.Context) (CellState, error)
	// Perform hands work to the cell. The cell reserves room for what it takes,
	// and carries on by itself. Perform returns what the cell refuses: that is not
	// reserved and never will be. After an error it is unknown what the cell has
	// taken.
	Perform(ctx context.Context, w Work) ([]Rejection, error)
	// StopLRP asks the cell to stop an instance, with its grace period. The cell
	// reports to the BBS when that is done. If the cell does not have the
	// instance, that is not an error: the cell itself finds the record that is
	// left, or the control plane does by the cell's Inventory (see
	// InventoryClient).
	StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error
	// CancelTask asks the cell to delete the container of a task. If the cell does
	// not have the container, that is not an error.
	CancelTask(ctx context.Context, taskGUID, instanceGUID string) error
}

// An InventoryClient is a [CellClient] of a cell that can list its containers.
// The control plane compares them with the records of the cell and gives up
// records without a container, which repairs the loss of a cell's report.
// Without an inventory, such a record stays while the cell is present.
// Inventory may be called concurrently with the methods of CellClient.
type InventoryClient interface {
	// Inventory returns the containers of some moment after the call began. A cell
	// that may not know all of them yet, because an earlier run of it may have
	// left some, returns an error.
	Inventory(ctx context.Context) (Inventory, error)
}

// An Inventory lists what a cell has.
type Inventory struct {
	// CellID is the id of the cell that answers: another cell may answer at an old
	// address.
	CellID string `json:"cell_id"`
	// Containers are the instance guids of all containers of LRPs and tasks, in
	// order and in any state: from the reservation on, until the end was reported
	// to the BBS and the container is deleted.
	Containers []string `json:"containers"`
}

// Work is the part of a batch for one cell.
type Work struct {
	// CellID is the cell that the work is for. A cell with another id refuses all
	// of it.
	CellID string `json:"cell_id"`
	// Items are in the order of work.
	Items []Item `json:"items"`
	// Reasons says for each of the items why it goes to this cell, for people. It
	// is empty if the cell does not take reasons.
	Reasons []string `json:"reasons,omitempty"`
}

// Reason is why the item with the given number goes to this cell, or "".
func (w Work) Reason(item int) string {
	if item < len(w.Reasons) {
		return w.Reasons[item]
	}
	return ""
}

// A Rejection says that a cell refuses an item.
type Rejection struct {
	Key Key `json:"key"`
	// Reason is for people, for example "evacuating".
	Reason string `json:"reason"`
}

// A Directory lists the present cells. Several goroutines may call Cells at the
// same time.
type Directory interface {
	// Cells returns the present cells, ordered by id. An error means that they are
	// not known.
	Cells(ctx context.Context) ([]Cell, error)
}

// A Cell is a present cell and its client.
type Cell struct {
	ID     string
	Client CellClient
}

// A Reporter records every failed attempt to place work, once for each. If it
// returns a *lrp.TransitionError or *task.TransitionError, the work is no
// longer wanted; after any other error the work is still tried again. Several
// goroutines may call its methods at the same time.
type Reporter interface {
	// FailActualLRP records why an instance was not placed.
	FailActualLRP(ctx context.Context, key lrp.Key, why lrp.PlacementError) error
	// RejectTask counts the attempt. It returns the next one, and false if
	// there is none because the retries are used up.
	RejectTask(ctx context.Context, guid string, attempt task.Attempt, reason string) (next task.Attempt, again bool, err error)
}
