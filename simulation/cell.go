package simulation

import (
	"context"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/rep"
)

// CellOptions are what one run of a cell is made with.
type CellOptions struct {
	// Presence is what the simulation announces, before each Step in which the cell
	// reaches the store.
	Presence bbs.CellPresence
	// BBS takes the cell's reports. Its calls get lost, and fail while nobody leads.
	BBS rep.BBS
	// Announcer is for a rep.Rep, which announces itself. Other cells need not use
	// it. After its Leave, this run of the cell is absent until it calls Tick.
	Announcer rep.Announcer
	// Now is the cell's clock, which moves by 3 s from one step to the next. It may
	// be set, and is then up to 20 s from the store's.
	Now func() time.Time
	// NewGUID makes the guid of a container. No run of any cell gets one again.
	NewGUID func() string
}

// A Cell is one run of a cell, from its start until it is switched off. It begins
// without containers.
//
// It does everything in the caller's goroutine, in its own methods. A call of the
// BBS may lead to a call of another method of the Cell before it returns, so the
// Cell must not hold a lock while it calls the BBS. If it is an
// [auction.InventoryClient], the control plane asks for its inventory too; if it is
// a [Poller], the simulation calls Poll.
//
// A *memcell.Cell is one.
type Cell interface {
	auction.CellClient
	// Evacuate begins to empty the cell (000 §Evacuation). Once it has no containers
	// it is switched off.
	Evacuate(ctx context.Context) error
	// Containers are those on the cell, even if it has not reported them. The
	// checkers believe this list. GUID, State and the tags of package executor that
	// say what a container is for must be right; see rep.NewReservation.
	Containers(ctx context.Context) ([]executor.Container, error)
	// Step does everything that is due.
	Step(ctx context.Context)
	// End makes the work of a container end by itself, with this result, as a crash
	// does. It reports whether there is such a container that runs. The cell finds
	// out in its next Step. Work ends only by End, or because the cell is told to
	// stop it.
	End(instanceGUID string, r executor.RunResult) bool
	// Begun returns how often the work of a container has begun, even if the
	// container is gone.
	Begun(instanceGUID string) int
}

// A Poller is a Cell that can compare everything that it has with the records. The
// simulation calls Poll in about every fifth step, in the goroutine of Step. A cell
// that compares by itself in Step, as a rep.Rep does every 30 s, need not be one.
type Poller interface {
	Poll(ctx context.Context)
}
