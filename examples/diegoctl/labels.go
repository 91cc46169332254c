package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// selectorFlags are those of commands that list what has labels, which of says.
func (p *process) selectorFlags(of string) []cli.Flag {
	return []cli.Flag{{
		Name: "selector", Short: "l", Kind: &cli.Kind{Name: "LABELS", Check: wrongSelector, Values: p.labels()},
		Help: "only " + of + " with these labels: team=blog, team!=blog, team (has the label) or !team; with commas between them, all must hold",
	}}
}

// wrongSelector is what a text should be that is not a selector, or empty.
func wrongSelector(text string) string {
	_, err := executor.ParseSelector(text)
	var invalid *executor.ValidationError
	if errors.As(err, &invalid) {
		return invalid.Fields[0].Limit
	}
	return ""
}

func (c *call) selector() executor.Selector {
	s, _ := executor.ParseSelector(c.text("selector")) // the flag has checked it
	return s
}

// labels completes with the labels that there are.
func (p *process) labels() cli.Values {
	return p.among(func(c *call, r *remote) (list []string) {
		for i, err := range r.bbs.SchedulingInfos(c.ctx, storage.DeploymentFilter{}) {
			if err != nil {
				break
			}
			list = append(list, labelTexts(i.Labels)...)
		}
		slices.Sort(list)
		return slices.Compact(list)
	})
}

// labelTexts are labels such as team=blog, in order.
func labelTexts(labels map[string]string) (list []string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return list
}

func labelText(labels map[string]string) string { return strings.Join(labelTexts(labels), ", ") }

// withLabels is labels with changes: KEY=VALUE sets a label, and KEY- removes
// one.
func withLabels(labels map[string]string, changes []string) (map[string]string, error) {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, change := range changes {
		key, value, sets := strings.Cut(change, "=")
		if sets {
			labels[key] = value
			continue
		}
		key, removes := strings.CutSuffix(change, "-")
		if !removes {
			return nil, cli.Wrong("--label is %q; want KEY=VALUE, or KEY- to remove the label", change)
		}
		delete(labels, key)
	}
	return labels, nil
}
