package rep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// State implements [auction.CellClient].
func (r *Rep) State(context.Context) (auction.CellState, error) {
	r.mu.Lock()
	evacuating, cordoned, unhealthy, settling := r.drain.begun(), r.cordoned, r.test.unhealthy, !r.past.reported
	r.mu.Unlock()
	s := auction.CellState{
		ID: r.o.CellID, Zone: r.o.Zone, Index: r.o.Index,
		RootFSProviders: r.o.RootFSProviders, VolumeDrivers: r.o.VolumeDrivers,
		PlacementTags: r.o.PlacementTags, OptionalPlacementTags: r.o.OptionalPlacementTags,
		RefusedFields: r.o.RefusedFields,
		Total:         r.o.Executor.Total(), Remaining: r.o.Executor.Remaining(),
		Evacuating: evacuating, Cordoned: cordoned, Unhealthy: unhealthy, Settling: settling,
		TakesReasons: true,
	}
	if l, lists := r.o.Executor.(VolumeLister); lists {
		s.VolumeDrivers = l.VolumeDrivers()
	}
	for _, h := range r.holdings() {
		if h.isTask() {
			s.Tasks = append(s.Tasks, h.task)
		} else {
			s.LRPs = append(s.LRPs, h.key)
		}
		if h.state < executor.Running {
			s.StartingContainers++
		}
	}
	return s, nil
}

// Inventory implements [auction.InventoryClient]. An error says why this run of
// the cell is not the present one.
func (r *Rep) Inventory(context.Context) (auction.Inventory, error) {
	if err := r.Absent(); err != nil {
		return auction.Inventory{}, err
	}
	i := auction.Inventory{CellID: r.o.CellID, Containers: []string{}}
	for _, c := range r.o.Executor.List() {
		if s, ours := subjectOf(c); ours {
			i.Containers = append(i.Containers, s.guid)
		}
	}
	slices.Sort(i.Containers)
	return i, nil
}

// A holding is work that is on the cell and not over.
type holding struct {
	subject
	state executor.State
}

// holdings are in the order of their guids.
func (r *Rep) holdings() []holding {
	containers := r.o.Executor.List()
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []holding
	for _, c := range containers {
		n := r.notes[c.GUID]
		if s, ours := subjectOf(c); ours && c.State != executor.Completed && !n.deleting && !n.stop {
			list = append(list, holding{s, c.State})
		}
	}
	return list
}

// Perform implements [auction.CellClient]. It returns as soon as it has made
// reservations; claiming and running follow by themselves. Work that the cell
// already has is not taken twice: its container is looked at again. The cell
// refuses everything while it evacuates or is cordoned or unhealthy, before it has reported
// what an earlier run has left, and if the work is for another cell id.
func (r *Rep) Perform(_ context.Context, w auction.Work) ([]auction.Rejection, error) {
	var rejections []auction.Rejection
	reject := func(item *auction.Item, reason string) {
		rejections = append(rejections, auction.Rejection{Key: item.Key, Reason: reason})
	}
	held := r.holdings()
	byGUID := map[string]*auction.Item{}
	var reservations []executor.Reservation
	var added []subject
next:
	for i := range w.Items {
		item := &w.Items[i]
		var v executor.Validator
		item.Validate(&v)
		switch err := v.Err(); {
		case w.CellID != r.o.CellID:
			reject(item, fmt.Sprintf("this is cell %q, and the work is for cell %q", r.o.CellID, w.CellID))
			continue
		case err != nil:
			reject(item, err.Error())
			continue
		}
		for _, h := range held {
			if h.wants(item) {
				r.queue.add(h.subject)
				continue next
			}
		}
		reservation := NewReservation(r.o.NewGUID(), item)
		if reason := w.Reason(i); reason != "" {
			reservation.Tags[executor.TagReason] = executor.CutReason(reason)
		}
		s, _ := subjectOf(executor.Container{GUID: reservation.GUID, Tags: reservation.Tags})
		held = append(held, holding{subject: s}) // the batch may name it twice
		added = append(added, s)
		reservations = append(reservations, reservation)
		byGUID[s.guid] = item
	}
	for _, refusal := range r.reserve(reservations) {
		reject(byGUID[refusal.GUID], refusal.Err.Error())
		delete(byGUID, refusal.GUID)
	}
	for _, s := range added {
		if byGUID[s.guid] != nil {
			r.queue.add(s)
		}
	}
	r.o.Metrics.Count("rep_work_taken_total", int64(len(byGUID)))
	r.o.Metrics.Count("rep_work_refused_total", int64(len(rejections)))
	return rejections, nil
}

// What refuses all work.
var (
	errEvacuating = errors.New(string(auction.Evacuating))
	errCordoned   = errors.New(string(auction.Cordoned))
	errUnhealthy  = errors.New(string(auction.Unhealthy))
	errSettling   = errors.New(string(auction.Settling))
)

// reserve makes reservations unless the cell takes no work. It keeps the lock
// meanwhile, so that an evacuation that begins sees every reservation.
func (r *Rep) reserve(list []executor.Reservation) []executor.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch {
	case r.drain.begun():
		err = errEvacuating
	case r.cordoned:
		err = errCordoned
	case r.test.unhealthy:
		err = errUnhealthy
	case !r.past.reported:
		err = errSettling
	default:
		return r.o.Executor.Reserve(list...)
	}
	var refusals []executor.Refusal
	for i := range list {
		refusals = append(refusals, executor.Refusal{GUID: list[i].GUID, Err: err})
	}
	return refusals
}

// StopLRP implements [auction.CellClient]. It returns before the instance has
// stopped. A reservation is given up. An instance that another one has replaced
// is stopped StopPause after its route was withdrawn.
func (r *Rep) StopLRP(_ context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	c, there := r.o.Executor.Get(instance.InstanceGUID)
	s, ours := subjectOf(c)
	if !there || !ours || s.isTask() || instance.CellID != r.o.CellID || s.key.ProcessGUID != key.ProcessGUID || s.key.Index != key.Index {
		return nil
	}
	// A reservation that is being claimed may become a container at any moment,
	// which is then stopped by the second that looks.
	r.setNote(s.guid, func(n *note) { n.stop = true })
	if c.State == executor.Running {
		r.queue.add(s) // its record says when to stop it
		return nil
	}
	if err := r.o.Executor.Stop(s.guid); err != nil && !errors.Is(err, executor.ErrTransition) {
		return nil // it is gone
	}
	r.queue.add(s)
	return nil
}

// CancelTask implements [auction.CellClient]. The BBS has already decided on
// the task's end, so the Rep deletes the container without asking it.
func (r *Rep) CancelTask(_ context.Context, taskGUID, instanceGUID string) error {
	c, there := r.o.Executor.Get(instanceGUID)
	if s, ours := subjectOf(c); there && ours && s.task == taskGUID {
		r.delete(s.guid)
	}
	return nil
}

// LogLabels returns what LabelsOf returns, with the metric tags of the moment if
// the BBS answers: they may change while the container runs.
func (r *Rep) LogLabels(ctx context.Context, containerGUID, logGUID, metricsGUID string, tags map[string]string) LogLabels {
	s, ours := subjectOf(executor.Container{GUID: containerGUID, Tags: tags})
	switch {
	case !ours:
	case s.isTask():
		if t, err := r.taskRecord(ctx, s.task); err == nil && t != nil {
			return s.labels(logGUID, metricsGUID, tags, t.MetricTags)
		}
	default:
		d, err := r.deployment(ctx, storage.DeploymentFilter{ProcessGUIDs: []string{s.key.ProcessGUID}, WithoutDefinitions: true})
		if err == nil && d != nil {
			return s.labels(logGUID, metricsGUID, tags, d.MetricTags)
		}
	}
	return LabelsOf(containerGUID, logGUID, metricsGUID, tags)
}
