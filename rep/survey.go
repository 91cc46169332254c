package rep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A survey is what a Sync has found before it settles anything.
type survey struct {
	containers map[string]bool
	// records are those that name this cell, by instance, and tasks the
	// RUNNING ones, without their definitions. instances has the guids of both in their order.
	records   map[string][]lrp.ActualLRP
	tasks     map[string]*task.Task
	instances []subject
	// allRecords and allTasks are false if a list was not read to its end, so a
	// record may exist although the list does not have it.
	allRecords, allTasks bool
}

// survey lists containers and records and queues what needs to be settled. It
// returns how much that is. It drops each pair for which the tables have nothing
// to do, so a cell where all is well costs little.
func (r *Rep) survey(ctx context.Context) (found int, err error) {
	began := r.o.Now()
	r.mu.Lock()
	r.nextSync = began.Add(r.syncInterval())
	answers := r.answers()
	r.mu.Unlock()

	containers := r.o.Executor.List()
	s, err := r.read(ctx)
	s.containers = make(map[string]bool, len(containers))
	states := map[executor.State]int{}
	for _, c := range containers {
		s.containers[c.GUID] = true
		subject, ours := subjectOf(c)
		if !ours {
			continue
		}
		states[c.State]++
		if r.unsettled(s, subject, c) {
			r.queue.add(subject)
			found++
		}
	}
	if answers { // otherwise another run of the cell may have the containers
		var gone []subject
		for _, subject := range s.instances {
			if !s.containers[subject.guid] {
				gone = append(gone, subject)
			}
		}
		if err == nil {
			r.mu.Lock()
			r.past.found(gone)
			r.mu.Unlock()
		}
		for _, subject := range gone {
			r.queue.add(subject)
		}
		found += len(gone)
	}
	r.keepEvacuating(s)
	r.forget()
	r.tell(states)
	r.o.Metrics.Observe("rep_survey_seconds", r.o.Now().Sub(began).Seconds())
	return found, err
}

// read fetches what is recorded about this cell. One list may fail and the
// other be of use.
func (r *Rep) read(ctx context.Context) (*survey, error) {
	s := &survey{records: map[string][]lrp.ActualLRP{}, tasks: map[string]*task.Task{}}
	cell := []string{r.o.CellID}
	call, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	var lrpErr, taskErr error
	for record, err := range r.o.BBS.ActualLRPs(call, storage.ActualLRPFilter{CellIDs: cell}) {
		if err != nil {
			lrpErr = errors.Join(lrpErr, err)
			continue
		}
		guid := record.InstanceGUID
		if len(s.records[guid]) == 0 {
			s.instances = append(s.instances, subject{guid: guid, key: record.Key, domain: record.Domain})
		}
		s.records[guid] = append(s.records[guid], record)
	}
	call, cancel = context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	for t, err := range r.o.BBS.Tasks(call, storage.TaskFilter{CellIDs: cell, States: []task.State{task.Running}, Bare: true}) {
		if err != nil {
			taskErr = errors.Join(taskErr, err)
			continue
		}
		s.instances = append(s.instances, subject{guid: t.InstanceGUID, task: t.GUID, attempt: t.Attempt(), domain: t.Domain})
		s.tasks[t.InstanceGUID] = t
	}
	s.allRecords, s.allTasks = lrpErr == nil, taskErr == nil
	if lrpErr != nil {
		lrpErr = fmt.Errorf("listing the ActualLRPs of cell %q: %w", r.o.CellID, lrpErr)
	}
	if taskErr != nil {
		taskErr = fmt.Errorf("listing the tasks of cell %q: %w", r.o.CellID, taskErr)
	}
	return s, errors.Join(lrpErr, taskErr)
}

// unsettled reports whether a container needs a closer look, going by the
// lists.
func (r *Rep) unsettled(s *survey, me subject, c executor.Container) bool {
	r.mu.Lock()
	n, finishing := r.notes[c.GUID], r.drain.finishing
	evacuating := r.drain.begun()
	r.mu.Unlock()
	if n.deleting {
		return false
	}
	if finishing {
		return true
	}
	if me.isTask() {
		t := s.tasks[c.GUID]
		if t == nil && !s.allTasks {
			return false
		}
		d, err := r.taskRow(t, me, &c, n)
		return err == nil && len(d.row.Steps) > 0
	}
	records := s.records[c.GUID]
	if len(records) == 0 && !s.allRecords {
		return false
	}
	row, err := r.lrpRow(lrp.Slot{ProcessGUID: me.key.ProcessGUID, Index: me.key.Index, Records: records}, me, &c, n, evacuating)
	return err == nil && len(row.row.Steps) > 0
}

// syncInterval is the time to the next Sync. It is called with the lock.
func (r *Rep) syncInterval() time.Duration {
	switch {
	case r.drain.finishing:
		return finishInterval
	case r.drain.begun():
		return r.o.EvacuationInterval
	}
	return r.o.SyncInterval
}

// forget drops the notes on containers that are gone.
func (r *Rep) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for guid := range r.notes { // each by itself
		if _, there := r.o.Executor.Get(guid); !there {
			delete(r.notes, guid)
		}
	}
}
