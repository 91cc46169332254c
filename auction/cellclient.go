package auction

import (
	"context"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A CellClient is how the control plane speaks to one cell, in the same
// process or over a network. Its methods may be called at the same time, and
// return soon after their context ends.
type CellClient interface {
	// State is what the cell has and has room for.
	State(ctx context.Context) (CellState, error)
	// Perform hands work to the cell, which reserves room for what it takes
	// and carries on by itself. It returns what the cell refuses: that is not
	// reserved and never will be. After an error nobody knows what became of
	// any of it.
	Perform(ctx context.Context, w Work) ([]Rejection, error)
	// StopLRP asks the cell to stop an instance, with its grace period. The
	// cell reports to the BBS when that is done. An instance that the cell does
	// not have is no error: its records, if there are any, are found by the
	// cell itself or by way of its Inventory (see InventoryClient).
	StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error
	// CancelTask asks the cell to delete the container of a task. A container
	// that the cell does not have is no error.
	CancelTask(ctx context.Context, taskGUID, instanceGUID string) error
}

// An InventoryClient is a [CellClient] of a cell that can say which containers
// it has. Convergence compares them with what is recorded on the cell, and gives
// up records without a container: so the loss of a cell's report mends itself.
// Without it such a record stays for as long as the cell is present. Inventory may
// be called at the same time as the methods of CellClient.
type InventoryClient interface {
	// Inventory is what is on the cell at some moment after the call began. A
	// cell that may not know, because an earlier run of it may have containers,
	// returns an error.
	Inventory(ctx context.Context) (Inventory, error)
}

// An Inventory is what a cell has.
type Inventory struct {
	// CellID is the cell's. Another one may answer at an address that was this
	// one's.
	CellID string `json:"cell_id"`
	// Containers are the instance guids of all containers of LRPs and tasks, in
	// order and in any state: from the reservation on, until its end was
	// reported to the BBS and the container is deleted.
	Containers []string `json:"containers"`
}

// Work is what one cell gets of a batch.
type Work struct {
	// CellID is whom it is for. A cell of another id refuses all of it.
	CellID string `json:"cell_id"`
	// Items are in the order of work.
	Items []Item `json:"items"`
}

// A Rejection says that a cell does not take an item.
type Rejection struct {
	Key Key `json:"key"`
	// Reason is for people, such as "evacuating".
	Reason string `json:"reason"`
}

// A Directory knows the cells that are present. Cells may be called by several
// goroutines at the same time.
type Directory interface {
	// Cells are those present, ordered by id. An error means that it is not
	// known which are.
	Cells(ctx context.Context) ([]Cell, error)
}

// A Cell is a present cell and the way to it.
type Cell struct {
	ID     string
	Client CellClient
}

// A Reporter records every failed attempt to place work, once for each. A *lrp.TransitionError or *task.TransitionError says that the work is
// no longer wanted; after any other error it is tried again all the same. Its
// methods are called by several goroutines at the same time.
type Reporter interface {
	// FailActualLRP records why an instance is on no cell.
	FailActualLRP(ctx context.Context, key lrp.Key, why lrp.PlacementError) error
	// RejectTask counts the attempt. It returns the next one, and false if
	// there is none because the retries are used up.
	RejectTask(ctx context.Context, guid string, attempt task.Attempt, reason string) (next task.Attempt, again bool, err error)
}
