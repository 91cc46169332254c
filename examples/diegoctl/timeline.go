package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/storage"
)

func timelineCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "timeline GUID INDEX", Short: "Show all that happened to an instance, and why", RunE: p.asks(timeline), ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		Example: "  diegoctl timeline web 0\n  diegoctl timeline web/0",
	}, watchFlags)
}

func timeline(c *call, r *remote) error {
	guid, index := c.arg(0), c.argNumber(1)
	list, err := r.bbs.Timeline(c.ctx, guid, index)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(e bbs.TimelineEntry) bool {
		return e.Session != nil || (&storage.Event{LRP: &e.Event}).Subject().Index == index
	}) {
		// Nothing happened to what nobody ever wanted.
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil && len(list) > 0 {
			err = &missingError{fmt.Sprintf("nothing is known of an instance %d of %s, which is deleted", index, guid)}
		}
		if err != nil {
			return err
		}
		if index >= d.Instances {
			return noInstance(d, index)
		}
	}
	v := &show.View{Heading: []string{"TIME", "AGO", "EVENT", "WHAT HAPPENED"}, Empty: "nothing is known of it: the log of events does not go so far back"}
	for i := range list {
		e := &list[i]
		if i > 0 && e.Text == list[i-1].Text && e.At.Equal(list[i-1].At) && !c.Programs {
			continue // two events of one commit, that say the same to people
		}
		v.Add(e, show.Faint.Of(show.Clock(e.At)), show.Text(show.Age(c.now(), e.At)), show.Faint.Of(strconv.FormatInt(int64(e.Sequence), 10)),
			styleOf(&storage.Event{LRP: &e.Event}).Of(e.Text))
	}
	return c.Show(v)
}
