package intent

import (
	"context"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// Items is the work that needs room at once: a task, all instances of a new
// process, those that an update adds, and of a rollout also the first ones, which
// begin beside the old.
func (i *Intent) Items(now time.Time) ([]auction.Item, error) {
	switch {
	case i.task != nil:
		t := i.task
		return []auction.Item{auction.NewTask(&task.Task{GUID: t.GUID, Domain: t.Domain, Definition: t.Definition}, now)}, nil
	case i.after == nil:
		return nil, nil
	}
	first, from := i.surge(), 0
	if i.before != nil {
		from = max(first, i.before.Instances)
	}
	d := i.after
	var items []auction.Item
	for index := range d.Instances {
		if index >= first && index < from {
			continue // it runs already
		}
		item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: d.ProcessGUID, DefinitionID: d.ActiveDefinitionID, Index: index, Domain: d.Domain}, now)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// surge is how many instances of the new definition begin beside the old ones.
func (i *Intent) surge() int {
	if i.Do != RollOut {
		return 0
	}
	inFlight := 1
	if p := i.after.Rollout; p != nil {
		inFlight = max(1, p.MaxInFlight)
	}
	return min(inFlight, i.after.Instances)
}

// CarryOut makes the calls, and returns what was done: "created", "updated" or
// "deleted". There is nothing to carry out if the intent is to keep.
func (i *Intent) CarryOut(ctx context.Context, api bbs.API) (done string, err error) {
	switch {
	case i.task != nil:
		return "created", api.DesireTask(ctx, *i.task)
	case i.create != nil:
		return "created", api.CreateDeployment(ctx, *i.create)
	case i.Do == Delete:
		return "deleted", api.DeleteDeployment(ctx, i.ProcessGUID)
	}
	if i.update != nil {
		err = api.UpdateDeployment(ctx, i.ProcessGUID, *i.update)
	}
	if err == nil && i.activate != "" {
		err = api.ActivateDefinition(ctx, i.ProcessGUID, i.activate)
	}
	return "updated", err
}
