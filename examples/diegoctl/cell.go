package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/rep"
)

func cellsCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "cells", Short: "List the cells that are present, and what they have room for", RunE: p.asks(cells),
	}, watchFlags)
}

func cellCommands(p *process) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "cell", Short: "One cell, or this host as one"}, append(cordonCommands(p),
		cli.With(&cobra.Command{
			Use: "doctor", Short: "Say what this host can do for a cell, and what would help", RunE: p.runs(cellDoctor),
			Long: `Say what this host can do for a cell, and what would help. It asks no server. As
root it makes a container, starts something in it and deletes it; like a cell,
it loads kernel modules for that and turns IPv4 forwarding on. It exits with 1
if this host cannot run real containers.`,
			Example: "  diegoctl cell doctor --dir /var/lib/diego\n  diegoctl cell doctor -o json",
		}, []cli.Flag{{Name: "dir", Kind: cli.Directory,
			Help: "where the cell is to keep its containers, because the file system matters (without it: that of temporary files)"}}),
	)...)
}

// A cellDoc is a cell for programs: its presence, and what it says of itself
// unless it does not answer.
type cellDoc struct {
	bbs.CellPresence
	State *auction.CellState `json:"state,omitempty"`
	Error string             `json:"error,omitempty"`

	forbidden bool
}

func cells(c *call, r *remote) error {
	list, err := r.bbs.Cells(c.ctx)
	if err != nil {
		return err
	}
	docs := make([]cellDoc, len(list))
	states := askCells(c.ctx, r, list, func(ctx context.Context, cell rep.API) (auction.CellState, error) { return cell.State(ctx) })
	for i, p := range list {
		docs[i].CellPresence = p
		if err := states[i].err; err != nil {
			docs[i].Error, docs[i].forbidden = err.Error(), errors.Is(err, httpapi.ErrForbidden)
			continue
		}
		docs[i].State = &states[i].value
	}
	v := &show.View{
		Heading: []string{"CELL", "ZONE", "STATE", "MEMORY FREE", "DISK FREE", "CONTAINERS", "INSTANCES", "TASKS", "ADDRESS", "OFFERS"},
		Empty:   allAbsent,
	}
	forbidden := false
	for i := range docs {
		d := &docs[i]
		state, memory, disk, containers, lrps, tasks := show.Green.Of("ready"), "-", "-", "-", "-", "-"
		switch s := d.State; {
		case d.forbidden:
			state, forbidden = show.Yellow.Of("forbidden"), true
		case s == nil:
			state = show.Red.Of("no answer")
		default:
			switch {
			case s.Evacuating:
				state = show.Yellow.Of("evacuating")
			case s.Cordoned:
				state = show.Yellow.Of("cordoned")
			case s.Unhealthy:
				state = show.Red.Of("unhealthy")
			case s.Settling:
				state = show.Yellow.Of("settling")
			}
			memory = share(s.Remaining.MemoryMB, s.Total.MemoryMB)
			disk = share(s.Remaining.DiskMB, s.Total.DiskMB)
			containers = fmt.Sprintf("%d/%d", s.Total.Containers-s.Remaining.Containers, s.Total.Containers)
			lrps, tasks = fmt.Sprint(len(s.LRPs)), fmt.Sprint(len(s.Tasks))
		}
		v.Add(d, show.Text(d.CellID), show.Text(show.OrDash(d.Zone)), state, show.Text(memory), show.Text(disk), show.Text(containers), show.Text(lrps), show.Text(tasks),
			show.Text(show.OrDash(d.Address)), show.Text(offers(&d.CellPresence)))
	}
	if forbidden {
		v.Notes = append(v.Notes, "the certificate does not permit to ask cells for their state: that takes an operator's (--cert and --key, DIEGO_CERT and DIEGO_KEY)")
	}
	return c.Show(v)
}

// share is how much is left of how much, in mebibytes.
func share(left, total int64) string {
	if total%1024 == 0 && left%1024 == 0 {
		return fmt.Sprintf("%d/%d GiB", left/1024, total/1024)
	}
	return fmt.Sprintf("%d/%d MiB", left, total)
}

func offers(p *bbs.CellPresence) string {
	parts := append([]string{}, p.RootFSProviders...)
	for _, d := range p.VolumeDrivers {
		parts = append(parts, "volumes by "+d)
	}
	if extra := p.Capacity.Extra.String(); extra != "" {
		parts = append(parts, extra)
	}
	if len(p.PlacementTags) > 0 {
		parts = append(parts, "only with tags "+strings.Join(p.PlacementTags, "+"))
	}
	if len(p.OptionalPlacementTags) > 0 {
		parts = append(parts, "tags "+strings.Join(p.OptionalPlacementTags, ", "))
	}
	return strings.Join(parts, ", ")
}

// cellDoctor is the only command about the host that it runs on.
func cellDoctor(c *call) error {
	e := c.examine(c.ctx, cmp.Or(c.text("dir"), os.TempDir()))
	v := &show.View{Heading: []string{"WHAT", "STATE", "FOUND"}, Doc: e, Notes: []string{e.Verdict}}
	styles := map[daemon.FindingState]show.Style{daemon.FindingOK: show.Green, daemon.FindingLacking: show.Yellow, daemon.FindingFatal: show.Red}
	for _, f := range e.Findings {
		v.Add(f, show.Text(f.Name), styles[f.State].Of(string(f.State)), show.Text(f.Text()))
	}
	if err := c.Show(v); err != nil {
		return err
	}
	if !e.RealContainers {
		return &failedError{}
	}
	return nil
}
