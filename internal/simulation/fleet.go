package simulation

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
)

// A Fleet is a number of cells.
type Fleet []*Cell

// NewFleet makes n large cells, cell-1 and so on, in three zones.
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

// ReportTo says whom the cells report to.
func (f Fleet) ReportTo(bbs BBS) {
	for _, c := range f {
		c.BBS = bbs
	}
}

// Dial is a bbs.Dial for these cells.
func (f Fleet) Dial(p bbs.CellPresence) (auction.CellClient, error) {
	for _, c := range f {
		if c.Presence.CellID == p.CellID {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no cell %q", p.CellID)
}

// Announce makes all cells present, or renews that.
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

// Step lets every cell do what is due.
func (f Fleet) Step(ctx context.Context) {
	for _, c := range f {
		c.Step(ctx)
	}
}

// Poll lets every cell look at all it has.
func (f Fleet) Poll(ctx context.Context) {
	for _, c := range f {
		c.Poll(ctx)
	}
}
