package storagetest

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A fold rebuilds the records from the log of events. As records and events
// are committed together, in one order, the two never differ.
type fold struct {
	at          storage.Cursor
	lrps        map[lrpID]*lrp.ActualLRP
	deployments map[string]*lrp.Deployment
	tasks       map[string]*task.Task
}

// An lrpID is what events about one record have in common.
type lrpID struct {
	guid  string
	index int
	epoch int64
}

func newFold() *fold {
	return &fold{lrps: map[lrpID]*lrp.ActualLRP{}, deployments: map[string]*lrp.Deployment{}, tasks: map[string]*task.Task{}}
}

// catchUp folds what the reader has beyond the fold's position.
func (f *fold) catchUp(ctx context.Context, r storage.Reader) error {
	for e, err := range r.Events(ctx, f.at, storage.EventFilter{}) {
		if err != nil {
			return err
		}
		if g := e.Gap; e.Sequence != f.at+1 && (g == nil || g.After != f.at || g.First != e.Sequence) {
			return fmt.Errorf("event %d comes after event %d", e.Sequence, f.at)
		}
		f.at = e.Sequence
		if err := f.add(&e); err != nil {
			return fmt.Errorf("event %d, %s: %w", e.Sequence, e.Subject().Kind, err)
		}
	}
	return nil
}

// add applies an event, and fails unless it begins where the one before it left
// the record.
func (f *fold) add(e *storage.Event) error {
	switch {
	case e.LRP != nil && e.LRP.Kind <= lrp.InstanceRemoved:
		id := func(r *lrp.ActualLRP) lrpID { return lrpID{r.ProcessGUID, r.Index, r.ModificationTag.Epoch} }
		if b := e.LRP.Before; b != nil {
			if have := f.lrps[id(b)]; have == nil || have.ModificationTag != b.ModificationTag {
				return fmt.Errorf("it begins with %s, which was %s", show(b), show(have))
			}
			delete(f.lrps, id(b))
		}
		if a := e.LRP.After; a != nil {
			if have := f.lrps[id(a)]; have != nil {
				return fmt.Errorf("it leaves %s beside %s", show(a), show(have))
			}
			f.lrps[id(a)] = a
		}
	case e.LRP != nil && e.LRP.Kind >= lrp.DeploymentCreated && e.LRP.Kind <= lrp.DeploymentRemoved:
		b, a := e.LRP.DeploymentBefore, e.LRP.DeploymentAfter
		if b != nil {
			if have := f.deployments[b.ProcessGUID]; have == nil || have.ModificationTag != b.ModificationTag {
				return fmt.Errorf("it begins with %s, which was %s", show(b), show(have))
			}
			delete(f.deployments, b.ProcessGUID)
		}
		if a != nil {
			f.deployments[a.ProcessGUID] = a
		}
	case e.Task != nil:
		b, a := e.Task.Before, e.Task.After
		if b != nil {
			if have := f.tasks[b.GUID]; have == nil || have.ModificationTag != b.ModificationTag {
				return fmt.Errorf("it begins with %s, which was %s", show(b), show(have))
			}
			delete(f.tasks, b.GUID)
		}
		if a != nil {
			f.tasks[a.GUID] = a
		}
	}
	return nil
}

// compare catches up, and fails unless the reader's records are those of the fold.
// The reader sees one moment.
func (f *fold) compare(ctx context.Context, r storage.Reader) error {
	if err := f.catchUp(ctx, r); err != nil {
		return err
	}
	extent, err := r.Log(ctx)
	if err != nil {
		return err
	}
	if extent.Newest != f.at {
		return fmt.Errorf("the log ends at %d, its list at %d", extent.Newest, f.at)
	}
	n := 0
	for got, err := range r.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return err
		}
		want := f.lrps[lrpID{got.ProcessGUID, got.Index, got.ModificationTag.Epoch}]
		if want == nil || !Equal(got, *want) {
			return fmt.Errorf("at event %d the record is %s, by the events %s", f.at, show(got), show(want))
		}
		n++
	}
	if n != len(f.lrps) {
		return fmt.Errorf("at event %d there are %d actual LRPs, by the events %d", f.at, n, len(f.lrps))
	}
	n = 0
	for got, err := range r.Deployments(ctx, storage.DeploymentFilter{}) {
		if err != nil {
			return err
		}
		if want := f.deployments[got.ProcessGUID]; !Equal(got, want) {
			return fmt.Errorf("at event %d the deployment is %s, by the events %s", f.at, show(got), show(want))
		}
		n++
	}
	if n != len(f.deployments) {
		return fmt.Errorf("at event %d there are %d deployments, by the events %d", f.at, n, len(f.deployments))
	}
	n = 0
	for got, err := range r.Tasks(ctx, storage.TaskFilter{}) {
		if err != nil {
			return err
		}
		if want := f.tasks[got.GUID]; !Equal(got, want) {
			return fmt.Errorf("at event %d the task is %s, by the events %s", f.at, show(got), show(want))
		}
		n++
	}
	if n != len(f.tasks) {
		return fmt.Errorf("at event %d there are %d tasks, by the events %d", f.at, n, len(f.tasks))
	}
	return nil
}
