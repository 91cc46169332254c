package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/rep"
)

func cordonCommands(p *process) []*cobra.Command {
	onCell := func(use, short, long string, do func(c *call, cell rep.Cordoner) error, word, text string) *cobra.Command {
		return cli.With(&cobra.Command{
			Use: use + " CELL", Short: short, Long: long, ValidArgsFunction: cli.Completes(p.cellIDs(), nil),
			RunE: p.asks(func(c *call, r *remote) error {
				presence, err := c.findCell(r, c.arg(0))
				if err != nil {
					return err
				}
				client, err := r.cell(presence)
				if err != nil {
					return err
				}
				cordoner, can := client.(rep.Cordoner)
				if !can {
					return fmt.Errorf("cell %s cannot be cordoned, nor give up an evacuation", presence.CellID)
				}
				if err := do(c, cordoner); err != nil {
					return fmt.Errorf("cell %s at %s: %w", presence.CellID, cmp.Or(presence.Address, "an unknown address"), err)
				}
				return c.Say(done{Done: word, CellID: presence.CellID}, text, presence.CellID)
			}),
		}, nil)
	}
	return []*cobra.Command{
		onCell("cordon", "Keep work away from a cell", `Keep work away from a cell. What it has stays there and runs on. The cell is
cordoned until "cell uncordon", also after it was started again.`,
			func(c *call, cell rep.Cordoner) error { return cell.Cordon(c.ctx, true) },
			"cordoned", "%s takes no more work and keeps what it has"),
		onCell("uncordon", "Let work come to a cell again", `Let work come to a cordoned cell again.`,
			func(c *call, cell rep.Cordoner) error { return cell.Cordon(c.ctx, false) },
			"uncordoned", "%s takes work again"),
		onCell("undrain", "Give up the evacuation of a cell", `Give up the evacuation that "drain" began. What is still on the cell stays there.
A cell that is empty or whose time is over exits; start it again instead.`,
			func(c *call, cell rep.Cordoner) error { return cell.CancelEvacuation(c.ctx) },
			"undrained", "%s keeps what it still has"),
	}
}
