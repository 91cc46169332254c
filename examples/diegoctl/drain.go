package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

func drainCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "drain CELL", Short: "Empty a cell: its instances run elsewhere before they stop here", RunE: p.asks(drain), ValidArgsFunction: cli.Completes(p.cellIDs(), nil),
		Example: "  diegoctl drain cell-2 --wait --for 15m",
	}, waitFlags)
}

// An evacuation is how far a cell is, for programs.
type evacuation struct {
	CellID string `json:"cell_id"`
	rep.EvacuationStatus
}

func drain(c *call, r *remote) error {
	p, err := c.findCell(r, c.arg(0))
	if err != nil {
		return err
	}
	client, err := r.cell(p)
	if err != nil {
		return err
	}
	if err := client.Evacuate(c.ctx); err != nil {
		return fmt.Errorf("cell %s at %s: %w", p.CellID, cmp.Or(p.Address, "an unknown address"), err)
	}
	if err := c.Say(done{Done: "draining", CellID: p.CellID}, "%s takes no more work and empties itself", p.CellID); err != nil {
		return err
	}
	if cells, err := r.bbs.Cells(c.ctx); err == nil && len(cells) == 1 && !c.Programs {
		fmt.Fprintln(c.Out, "there is no other cell: its instances stay until there is one, or until the evacuation times out")
	}
	if !c.on("wait") {
		return nil
	}
	last := rep.EvacuationStatus{Containers: -1}
	err = c.until(func() (bool, string, error) {
		status, err := client.Evacuation(c.ctx)
		if err != nil {
			// A cell that is done exits, and is present no more.
			if _, missing := c.findCell(r, p.CellID); holds[*missingError](missing) {
				return true, "", nil
			}
			return false, err.Error(), nil
		}
		if status.Containers != last.Containers || !slices.Equal(status.Waiting, last.Waiting) {
			last = status
			if c.Programs {
				err = c.Emit(evacuation{p.CellID, status})
			} else {
				_, err = fmt.Fprintf(c.Out, "%s on %s, instances on it: %s\n%s", show.Count(status.Containers, "container"), p.CellID, c.instancesOn(r, p.CellID), waiting(status))
			}
		}
		left := show.Count(status.Containers, "container") + " left"
		if len(status.Waiting) > 0 {
			left += "; " + status.Waiting[0]
		}
		return status.Done, left, err
	})
	if err != nil {
		return err
	}
	return c.Say(done{Done: "drained", CellID: p.CellID}, "%s is empty", p.CellID)
}

// waiting says why some of the containers stay.
func waiting(s rep.EvacuationStatus) string {
	var b strings.Builder
	for _, why := range s.Waiting[:min(show.Some, len(s.Waiting))] {
		fmt.Fprintf(&b, "  %s\n", why)
	}
	if n := len(s.Waiting) - show.Some; n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	return b.String()
}

// instancesOn names some of the instances on a cell.
func (c *call) instancesOn(r *remote, cellID string) string {
	var names []string
	for a, err := range r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{CellIDs: []string{cellID}}) {
		if err != nil {
			return err.Error()
		}
		names = append(names, fmt.Sprintf("%s/%d", a.ProcessGUID, a.Index))
	}
	return show.Names(names)
}
