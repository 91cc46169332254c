package bbs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/deadline"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A rollCall is the part of convergence that looks at the cells themselves. It
// asks each cell which containers it has, and gives up the cell's records without
// a container. The cell should have reported the end of such a container; if the
// report is lost, nothing else repairs the record.
type rollCall struct {
	bbs       *BBS
	directory auction.Directory
	// interval is the time between two roll calls; negative means that there
	// are none.
	interval time.Duration
	// timeout is how long a cell may take to answer, and concurrency how many
	// are asked at a time.
	timeout     time.Duration
	concurrency int
	now         func() time.Time
	metrics     auction.Metrics
	logger      *slog.Logger

	// toDirectory and toCells carry the calls, like those of an outbox.
	toDirectory *deadline.Line
	toCells     *deadline.Lines

	next time.Time // when the next one is due, for callers of tick
}

// begin delays the first roll call, because cells are busy with a new leader.
func (r *rollCall) begin() { r.next = r.now().Add(r.interval) }

// tick makes a roll call if one is due.
func (r *rollCall) tick(ctx context.Context) error {
	if r.interval < 0 || r.now().Before(r.next) {
		return nil
	}
	r.begin()
	if r.toDirectory == nil {
		r.toDirectory, r.toCells = deadline.NewLine(lineLimit(r.concurrency)), deadline.NewLines(lineLimit(r.concurrency))
	}
	cells, err := deadline.Call(ctx, r.toDirectory, r.timeout, r.directory.Cells)
	if err != nil {
		return err
	}
	ids := make([]string, len(cells))
	for i, c := range cells {
		ids[i] = c.ID
	}
	r.toCells.Connect(slices.Values(ids))
	parallel.Each(len(cells), r.concurrency, func(i int) {
		if err := r.call(ctx, cells[i]); err != nil && ctx.Err() == nil {
			r.logger.Warn("a cell's records were not compared with its containers; the next roll call tries again", "cell", cells[i].ID, "err", err)
		}
	})
	return nil
}

// run makes roll calls until ctx ends.
func (r *rollCall) run(ctx context.Context) {
	r.begin()
	if r.interval < 0 {
		return
	}
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for ticks(ctx, ticker) {
		if err := r.tick(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("the present cells could not be listed for a roll call", "err", err)
		}
	}
}

// call compares the records of one cell with its containers. It reads the records
// first. What is recorded had a container by then, so a container that the cell
// does not list afterwards is gone.
func (r *rollCall) call(ctx context.Context, c auction.Cell) error {
	client, tells := c.Client.(auction.InventoryClient)
	if !tells {
		return nil
	}
	id := []string{c.ID}
	var lrps []lrp.ActualLRP
	for record, err := range r.bbs.ActualLRPs(ctx, storage.ActualLRPFilter{CellIDs: id}) {
		switch {
		case err == nil:
			lrps = append(lrps, record)
		case !errors.Is(err, storage.ErrCorrupt):
			return err
		}
	}
	var tasks []*task.Task
	for t, err := range r.bbs.Tasks(ctx, storage.TaskFilter{CellIDs: id, States: []task.State{task.Running}, Bare: true}) {
		switch {
		case err == nil:
			tasks = append(tasks, t)
		case !errors.Is(err, storage.ErrCorrupt):
			return err
		}
	}
	if len(lrps)+len(tasks) == 0 {
		return nil
	}
	inventory, err := deadline.Call(ctx, r.toCells.To(c.ID), r.timeout, client.Inventory)
	switch {
	case err != nil:
		return err
	case inventory.CellID != c.ID:
		return fmt.Errorf("cell %q answers at its address", inventory.CellID)
	}
	has := make(map[string]bool, len(inventory.Containers))
	for _, guid := range inventory.Containers {
		has[guid] = true
	}
	for i := range lrps {
		if !has[lrps[i].InstanceGUID] {
			err = errors.Join(err, r.giveUp(ctx, &lrps[i]))
		}
	}
	for _, t := range tasks {
		if !has[t.InstanceGUID] {
			err = errors.Join(err, r.failTask(ctx, t))
		}
	}
	return err
}

// giveUp reports, in place of the cell, that the container of an instance is gone.
func (r *rollCall) giveUp(ctx context.Context, a *lrp.ActualLRP) (err error) {
	slot := lrp.Slot{ProcessGUID: a.ProcessGUID, Index: a.Index, Records: []lrp.ActualLRP{*a}}
	for _, step := range rep.DecideLRP(rep.NoContainer, rep.SituateLRP(slot, a.InstanceKey, a.DefinitionID)).Steps {
		switch step {
		case rep.RemoveLRP:
			err = r.bbs.RemoveLRP(ctx, a.ProcessGUID, a.Index, lrp.Remove{DefinitionID: a.DefinitionID, Instance: a.InstanceKey})
		case rep.RemoveEvacuatingLRP:
			err = r.bbs.RemoveEvacuatingLRP(ctx, a.ProcessGUID, a.Index, lrp.RemoveEvacuating{DefinitionID: a.DefinitionID, Instance: a.InstanceKey})
		}
	}
	return r.gaveUp(err, "cell", a.CellID, "process", a.ProcessGUID, "index", a.Index, "instance", a.InstanceGUID)
}

// failTask reports the same for a task.
func (r *rollCall) failTask(ctx context.Context, t *task.Task) (err error) {
	for _, step := range rep.DecideTask(rep.TaskContainerNone, rep.SituateTask(t, t.CellID, t.InstanceGUID)).Steps {
		if step == rep.FailTask {
			err = r.bbs.CompleteTask(ctx, t.GUID, task.Complete{
				CellID: t.CellID, InstanceGUID: t.InstanceGUID, Attempt: t.Attempt(), Failed: true, FailureReason: task.ReasonContainerMissing,
			})
		}
	}
	return r.gaveUp(err, "cell", t.CellID, "task", t.GUID, "instance", t.InstanceGUID)
}

// gaveUp logs what was given up. A refusal says that the record has moved on
// meanwhile.
func (r *rollCall) gaveUp(err error, record ...any) error {
	var lrpRefused *lrp.TransitionError
	var taskRefused *task.TransitionError
	switch {
	case err == nil:
		r.metrics.Count("records_given_up_total", 1)
		r.logger.Warn("a cell has no container for a record and has not reported that; the record is given up", record...)
	case errors.As(err, &lrpRefused), errors.As(err, &taskRefused):
		return nil
	}
	return err
}
