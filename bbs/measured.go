package bbs

import (
	"context"
	"errors"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A measuredStore counts commits, how long they take, and what operators count
// of their events.
type measuredStore struct {
	storage.Passthrough
	metrics auction.Metrics
}

// Commit implements [storage.Store].
func (s measuredStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	began := time.Now()
	cursor, err := s.Store.Commit(ctx, b)
	s.metrics.Observe("commit_seconds", time.Since(began).Seconds())
	switch {
	case errors.Is(err, storage.ErrConflict):
		s.metrics.Count("commit_conflicts_total", 1)
	case err == nil:
		for i := range b.Events {
			if name := counterOf(&b.Events[i]); name != "" {
				s.metrics.Count(name, 1)
			}
		}
	}
	return cursor, err
}

// counterOf is the counter that an event increments, or "".
func counterOf(e *storage.Event) string {
	t := e.Task
	switch {
	case e.LRP != nil && e.LRP.Kind == lrp.InstanceCrashed:
		return "lrp_crashes_total"
	case t == nil || t.After == nil || t.Before != nil && t.Before.State == t.After.State:
		return ""
	case t.After.State == task.Running:
		return "tasks_started_total"
	case t.After.State == task.Completed && t.After.Failed:
		return "tasks_failed_total"
	case t.After.State == task.Completed:
		return "tasks_succeeded_total"
	}
	return ""
}
