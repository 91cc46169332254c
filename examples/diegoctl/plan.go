package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
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
		if doc.Task != nil {
			items = append(items, c.itemOf(doc.Task))
			continue
		}
		if c.given("instances") {
			doc.Process.Instances = c.number("instances")
		}
		d, err := newDeployment(*doc.Process)
		if err != nil {
			return err
		}
		instances, err := c.itemsOf(d, 0, d.Instances)
		if err != nil {
			return err
		}
		items = append(items, instances...)
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

// newDeployment is what a spec makes that asks for a process. The definition of
// an LRP has the process guid as its id, like one that is made as such.
func newDeployment(want lrp.DeploymentDefinition) (*lrp.Deployment, error) {
	want.DefinitionID = cmp.Or(want.DefinitionID, want.ProcessGUID)
	change, err := lrp.Create(want, time.Time{})
	return change.After, err
}

func (c *call) itemOf(t *task.Desire) auction.Item {
	return auction.NewTask(&task.Task{GUID: t.GUID, Domain: t.Domain, Definition: t.Definition}, c.now())
}

// itemsOf are the instances of the active definition from one index to before
// another.
func (c *call) itemsOf(d *lrp.Deployment, from, to int) ([]auction.Item, error) {
	var items []auction.Item
	for i := from; i < to; i++ {
		item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: d.ProcessGUID, DefinitionID: d.ActiveDefinitionID, Index: i, Domain: d.Domain}, c.now())
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
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
		v.Notes = append(v.Notes, fmt.Sprintf("%d of %d would run, on %s; memory and disk are how full the cell would be.", len(list)-nowhere, len(list), count(len(onCell), "cell")))
	}
	if others > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%s that waits already was planned with it.", count(others, "piece")+" of work"))
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
