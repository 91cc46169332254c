package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// This file finds what a name on a command line means: a container and its cell.

// A source is a container whose output is read.
type source struct {
	cellID, container string
	// index is an instance's, -1 for a task.
	index int
	// name stands before each line where there are several.
	name string
	// next is the number of the byte at which reading goes on.
	next int64
}

// named is the container of GUID/INDEX, of a task, or of the only instance.
func (c *call) named(r *remote, name string) (source, error) {
	if guid, number, both := strings.Cut(name, "/"); both {
		if want := cli.Number.Check(number); want != "" {
			return source{}, cli.Wrong("the index of %s is %q; want %s", guid, number, want)
		}
		index, _ := strconv.Atoi(number)
		s, why, err := c.instanceSource(r, guid, index)
		if err == nil && s.container == "" {
			err = &missingError{why}
		}
		return s, err
	}
	list, err := c.sources(r, name)
	switch {
	case err != nil:
		return source{}, err
	case len(list) > 1:
		return source{}, cli.Wrong("%s has %d instances on cells; name one, such as %s", name, len(list), list[0].name)
	}
	return list[0], nil
}

// container finds the container that an argument names, and its cell.
func (c *call) container(r *remote, name string) (string, rep.Sessions, error) {
	s, err := c.named(r, name)
	if err != nil {
		return "", nil, err
	}
	p, err := c.findCell(r, s.cellID)
	if err != nil {
		return "", nil, err
	}
	cell, err := r.cell(p)
	if err != nil {
		return "", nil, err
	}
	sessions, can := cell.(rep.Sessions)
	if !can {
		return "", nil, &executor.SessionError{GUID: s.container, Why: fmt.Sprintf("cell %s does not support it", s.cellID)}
	}
	return s.container, sessions, nil
}

// sources are the containers of a process's instances, or of the task of that
// guid.
func (c *call) sources(r *remote, guid string) (list []source, err error) {
	records, err := collect(r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
	if err != nil {
		return nil, err
	}
	for i := range records {
		if a := &records[i]; a.CellID != "" {
			list = append(list, source{cellID: a.CellID, container: a.InstanceGUID, index: a.Index, name: fmt.Sprintf("%s/%d", guid, a.Index)})
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	if len(records) > 0 {
		return nil, &missingError{fmt.Sprintf("no instance of %s is on a cell; %s", guid, stateText(&records[0]))}
	}
	if _, err := r.bbs.Deployment(c.ctx, guid); err == nil {
		return nil, &missingError{fmt.Sprintf("%s has no instance", guid)}
	}
	t, err := r.bbs.Task(c.ctx, guid)
	if errors.Is(err, storage.ErrNotFound) {
		if t, err = c.formerTask(r, guid, err); err == nil {
			return []source{{cellID: t.CellID, container: t.InstanceGUID, index: -1, name: guid}}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if t.CellID == "" {
		return nil, &missingError{fmt.Sprintf("task %s is %s and on no cell", guid, t.State)}
	}
	return []source{{cellID: t.CellID, container: t.InstanceGUID, index: -1, name: guid}}, nil
}

// formerTask finds in the events the last task of that guid that was on a cell. If
// there is none, it fails with the error missing.
func (c *call) formerTask(r *remote, guid string, missing error) (last *task.Task, err error) {
	log, err := r.bbs.Log(c.ctx)
	if err != nil || log.Newest < log.Oldest {
		return nil, errors.Join(missing, err)
	}
	list, err := r.bbs.Subscribe(c.ctx, bbs.FromStart, storage.EventFilter{}) // all, to see the end
	if err != nil {
		return nil, err
	}
	for e, err := range list {
		var corrupt *storage.CorruptError
		switch {
		case errors.As(err, &corrupt):
			e.Sequence = corrupt.Key.Sequence
		case err != nil:
			return nil, err
		case e.Task != nil && e.Task.Before != nil && e.Task.Before.GUID == guid && e.Task.Before.CellID != "":
			last = e.Task.Before
		}
		if e.Sequence >= log.Newest {
			break
		}
	}
	if last == nil {
		return nil, missing
	}
	return last, nil
}

// instanceSource is the container at an index, or why there is none.
func (c *call) instanceSource(r *remote, guid string, index int) (s source, why string, err error) {
	slot, err := r.bbs.Slot(c.ctx, guid, index)
	if err != nil {
		return s, "", err
	}
	a, ok := lrp.Resolve(slot)
	if !ok {
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil {
			return s, "", err
		}
		if index >= d.Instances {
			return s, "", noInstance(d, index)
		}
		return s, fmt.Sprintf("nothing is at %s/%d yet", guid, index), nil
	}
	if a.CellID == "" {
		return s, stateText(&a), nil
	}
	return source{cellID: a.CellID, container: a.InstanceGUID, index: index, name: fmt.Sprintf("%s/%d", guid, index)}, "", nil
}

func stateText(a *lrp.ActualLRP) string {
	text := fmt.Sprintf("%s/%d is %s", a.ProcessGUID, a.Index, a.State)
	if why := troubleOf(a); why != "" {
		text += ": " + why
	}
	return text
}

// troubleOf is what an operator should know about an instance: why it is on no
// cell, or why it crashed last.
func troubleOf(a *lrp.ActualLRP) string {
	switch {
	case !a.PlacementError.IsZero():
		return a.PlacementError.String()
	case a.State == lrp.Crashed:
		return a.CrashReason
	case a.State != lrp.Running && a.CrashReason != "":
		return "crashed: " + a.CrashReason
	}
	return ""
}

// noInstance says that a process is not desired to have an index.
func noInstance(d *lrp.Deployment, index int) error {
	switch d.Instances {
	case 0:
		return &missingError{fmt.Sprintf("%s has no instance %d: none is desired", d.ProcessGUID, index)}
	case 1:
		return &missingError{fmt.Sprintf("%s has no instance %d, only 0", d.ProcessGUID, index)}
	}
	return &missingError{fmt.Sprintf("%s has no instance %d, it has %d: 0 to %d", d.ProcessGUID, index, d.Instances, d.Instances-1)}
}

// findCell finds the presence of a cell. The error names the cells that there are.
func (c *call) findCell(r *remote, id string) (bbs.CellPresence, error) {
	list, err := r.bbs.Cells(c.ctx)
	if err != nil {
		return bbs.CellPresence{}, err
	}
	ids := make([]string, len(list))
	for i, p := range list {
		if p.CellID == id {
			return p, nil
		}
		ids[i] = p.CellID
	}
	text := fmt.Sprintf("no cell %s is present", id)
	if len(ids) > 0 {
		text += "; there is " + strings.Join(ids, ", ")
	}
	return bbs.CellPresence{}, &missingError{text}
}

// place takes INSTANCE:PATH apart. It is false for a path of this machine.
func place(text string) (instance, file string, there bool) {
	instance, file, there = strings.Cut(text, ":/")
	if !there || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		return "", text, false
	}
	return instance, "/" + file, true
}

// A cellError is a call of a cell that has failed, not one of the BBS.
type cellError struct {
	cellID string
	err    error
}

func (e *cellError) Error() string { return fmt.Sprintf("cell %s: %v", e.cellID, e.err) }
func (e *cellError) Unwrap() error { return e.err }

// A missingError says that something is not there although no server has said
// so.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
