package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/intent"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
)

func planCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "plan --file FILE", Short: "Say where work would go, and if nowhere, why", RunE: p.runs(plan),
		Long: `Say where work would go, and if nowhere, why. Nothing is desired and nothing is
sent to a cell. It exits with 1 if anything goes nowhere.`,
		Example: "  diegoctl plan -f web.json\n  diegoctl plan -f web.json --instances 100",
	}, fileFlags("LRPs, deployments and tasks"), []cli.Flag{
		{Name: "instances", Kind: cli.Number, Help: "so many instances of each process, instead of the file's number"},
	})
}

// plan says where the work of a spec file would go if it were asked for now.
func plan(c *call) error {
	docs, err := c.documents([]string{c.text("file")})
	if err != nil {
		return err
	}
	var items []auction.Item
	for _, doc := range docs {
		var i intent.Intent
		if doc.Task != nil {
			i, err = intent.Task(doc.Task, nil, "")
		} else {
			if c.given("instances") {
				doc.Process.Instances = c.number("instances")
			}
			i, err = intent.Process(doc.Process, nil)
		}
		if err != nil {
			return err
		}
		more, err := i.Items(c.now())
		if err != nil {
			return err
		}
		items = append(items, more...)
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	return c.showPlan(r, items)
}

// showPlan says where work would go. It fails if anything goes nowhere.
func (c *call) showPlan(r *remote, items []auction.Item) error {
	result, err := r.auctioneer.Plan(c.ctx, items...)
	if err != nil {
		return err
	}
	v, nowhere := planView(items, &result)
	if err := c.Show(v); err != nil {
		return err
	}
	if nowhere > 0 {
		return &failedError{}
	}
	return nil
}

// A planned item is where one piece of work would go, for programs.
type planned struct {
	Key auction.Key `json:"key"`
	// Placement or Refusal is set.
	Placement *auction.Placement `json:"placement,omitempty"`
	Refusal   *auction.Refusal   `json:"refusal,omitempty"`
	Why       string             `json:"why"`
}

// planView shows the part of a result that is about our items, in their order. The
// auctioneer plans them together with the work that waits already.
func planView(items []auction.Item, result *auction.Result) (v *show.View, nowhere int) {
	rank := make(map[auction.Key]int, len(items))
	for i := range items {
		rank[items[i].Key] = i
	}
	var list []planned
	others := 0
	for i := range result.Placements {
		p := &result.Placements[i]
		if _, ours := rank[p.Item.Key]; ours {
			list = append(list, planned{Key: p.Item.Key, Placement: p, Why: p.Why()})
		} else {
			others++
		}
	}
	for i := range result.Refusals {
		f := &result.Refusals[i]
		if _, ours := rank[f.Item.Key]; ours {
			list = append(list, planned{Key: f.Item.Key, Refusal: f, Why: refusalText(f)})
			nowhere++
		} else {
			others++
		}
	}
	slices.SortFunc(list, func(a, b planned) int { return cmp.Compare(rank[a.Key], rank[b.Key]) })
	v = &show.View{Heading: []string{"WORK", "CELL", "MEMORY", "DISK", "WHY"}, Empty: "it asks for no instance"}
	onCell := map[string]int{}
	for _, p := range list {
		what := p.Key.GUID
		if p.Key.Kind == auction.LRP {
			what += "/" + strconv.Itoa(p.Key.Index)
		} else {
			what = "task " + what
		}
		if p.Refusal != nil {
			v.Add(p, show.Text(what), show.Red.Of("nowhere"), show.Text("-"), show.Text("-"), show.Red.Of(p.Why))
			continue
		}
		onCell[p.Placement.CellID]++
		score := p.Placement.Score
		v.Add(p, show.Text(what), show.Green.Of(p.Placement.CellID), show.Text(percent(score.Memory)), show.Text(percent(score.Disk)), show.Text(p.Why))
	}
	if len(list) > 1 || nowhere > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d of %d would run, on %s; memory and disk are how full the cell would be.", len(list)-nowhere, len(list), show.Count(len(onCell), "cell")))
	}
	if others > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%s that waits already was planned with it.", show.Count(others, "piece")+" of work"))
	}
	for _, bad := range result.InvalidCells {
		v.Notes = append(v.Notes, fmt.Sprintf("Cell %s got nothing, as what it says of itself is wrong: %v.", bad.CellID, bad.Err))
	}
	return v, nowhere
}

func refusalText(f *auction.Refusal) string {
	if f.Invalid != nil {
		return f.Invalid.Error()
	}
	return f.Error.String()
}

func percent(share float64) string {
	if share == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}
