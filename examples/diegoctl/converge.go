package main

import "github.com/spf13/cobra"

func convergeCommand(p *process) *cobra.Command {
	return &cobra.Command{Use: "converge", Short: "Begin a pass of convergence at once", RunE: p.asks(convergeNow)}
}

func convergeNow(c *call, r *remote) error {
	if err := r.convergence.Converge(c.ctx); err != nil {
		return err
	}
	return c.Say(done{Done: "converging"}, "a pass of convergence begins")
}
