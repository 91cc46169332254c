package memcell

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// A Fleet is a number of cells that a test drives together.
type Fleet []*Cell

// NewFleet makes n cells named cell-1, cell-2 and so on, in three zones, each with
// 64 GiB of memory and the root file system preloaded:linux. They need a BBS to
// report to: see ReportTo.
func NewFleet(n int, clock *Clock) Fleet {
	var f Fleet
	for i := range n {
		f = append(f, &Cell{
			Presence: bbs.CellPresence{
				CellID: fmt.Sprintf("cell-%d", i+1), Zone: fmt.Sprintf("z%d", i%3+1), Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1),
				Capacity:        auction.Capacity{MemoryMB: 64 << 10, DiskMB: 1 << 20, Containers: 1000},
				RootFSProviders: []string{"preloaded:linux"},
			},
			Now: clock.Now,
		})
	}
	return f
}

// ReportTo sets the BBS of all cells.
func (f Fleet) ReportTo(bbs rep.BBS) {
	for _, c := range f {
		c.BBS = bbs
	}
}

// Dial finds the cell that a presence names; it is for Options.Dial of a control
// plane.
func (f Fleet) Dial(p bbs.CellPresence) (auction.CellClient, error) {
	for _, c := range f {
		if c.Presence.CellID == p.CellID {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no cell %q", p.CellID)
}

// Announce makes all cells present for the default time, or renews that.
func (f Fleet) Announce(ctx context.Context, store storage.Leaser) error {
	for _, c := range f {
		if err := c.Announce(ctx, store); err != nil {
			return err
		}
	}
	return nil
}

// Announce makes the cell present for the default time, or renews that.
func (c *Cell) Announce(ctx context.Context, store storage.Leaser) error {
	a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: store, Presence: c.Presence, Owner: c.Presence.CellID})
	if err != nil {
		return err
	}
	return a.Tick(ctx)
}

// Step makes one Step of every cell, in order.
func (f Fleet) Step(ctx context.Context) {
	for _, c := range f {
		c.Step(ctx)
	}
}

// Poll makes one Poll of every cell, in order.
func (f Fleet) Poll(ctx context.Context) {
	for _, c := range f {
		c.Poll(ctx)
	}
}
