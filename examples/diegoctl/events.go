package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// This file tells what happened.

func events(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	f := storage.EventFilter{
		Kinds: c.list("kind"), ProcessGUIDs: c.list("process"), TaskGUIDs: c.list("task"), CellIDs: c.list("cell"), Domains: c.list("domain"),
	}
	follow := c.on("follow")
	after := bbs.FromStart
	switch text := c.flag("after"); {
	case text != "":
		after = storage.Cursor(c.number("after"))
	case follow:
		after = bbs.FromNow
	}
	last := storage.Cursor(-1)
	wanted := f
	if !follow {
		// The end of the log is only seen by who sees every event.
		log, err := r.bbs.Log(c.ctx)
		if err != nil {
			return err
		}
		if last = log.Newest; last < log.Oldest || after >= last {
			return nil
		}
		wanted = storage.EventFilter{}
	}
	list, err := r.bbs.Subscribe(c.ctx, after, wanted)
	if err != nil {
		return err
	}
	for e, err := range list {
		var corrupt *storage.CorruptError
		switch {
		case errors.As(err, &corrupt):
			fmt.Fprintf(c.stderr, "event %d cannot be decoded: %v\n", corrupt.Key.Sequence, corrupt.Err)
			e.Sequence = corrupt.Key.Sequence
		case err != nil:
			return err
		default:
			subject := e.Subject()
			if f.Match(&subject) && (c.on("groups") || len(f.Kinds) > 0 || c.forPrograms() || !repeats(&e)) {
				if err := c.event(&e, &subject); err != nil {
					return err
				}
			}
		}
		if !follow && e.Sequence >= last {
			return nil
		}
	}
	return nil
}

// repeats reports whether an event tells routers or old consumers what another
// event tells everybody.
func repeats(e *storage.Event) bool {
	if e.LRP == nil {
		return false
	}
	switch e.LRP.Kind {
	case lrp.GroupCreated, lrp.GroupChanged, lrp.GroupRemoved, lrp.DesiredCreated, lrp.DesiredChanged, lrp.DesiredRemoved:
		return true
	}
	return false
}

// An eventDoc is an event for programs: the event, and what it is about and
// means.
type eventDoc struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	*storage.Event
}

// event writes one line.
func (c *call) event(e *storage.Event, s *storage.Subject) error {
	what, why := subjectOf(s), explain(e)
	if c.forPrograms() {
		return c.emit(eventDoc{s.Kind, why, e})
	}
	// Lines come one at a time, so the columns have widths of their own.
	line := table{rows: [][]cell{{
		{clock(e.At), faint}, {fmt.Sprintf("%6d", e.Sequence), faint}, {fmt.Sprintf("%-20s", what), plain}, {why, styleOf(e)},
	}}}
	_, err := c.out.Write([]byte(line.draw(c.width, c.colour())))
	return err
}

// clock is a time of day, in UTC as all of Diego's times.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func subjectOf(s *storage.Subject) string {
	switch {
	case s.ProcessGUID != "" && s.Index >= 0:
		return s.ProcessGUID + "/" + strconv.Itoa(s.Index)
	case s.ProcessGUID != "":
		return s.ProcessGUID
	case s.TaskGUID != "":
		return "task " + s.TaskGUID
	case s.Domain != "":
		return "domain " + s.Domain
	}
	return "-"
}

func explain(e *storage.Event) string {
	switch {
	case e.LRP != nil:
		return e.LRP.Explain()
	case e.Task != nil:
		return e.Task.Explain()
	case e.Domain != nil && e.Domain.TTLNanoseconds == 0:
		return "fresh for ever"
	case e.Domain != nil:
		return "fresh for " + short(e.Domain.TTLNanoseconds)
	case e.Quarantine != nil:
		return fmt.Sprintf("%v cannot be decoded and was put aside: %s", e.Quarantine.Key, e.Quarantine.Reason)
	case e.Gap != nil:
		return fmt.Sprintf("the store may have gone back: what followed event %d may be lost", e.Gap.After)
	}
	return "-"
}

func styleOf(e *storage.Event) style {
	switch {
	case e.Quarantine != nil:
		return red
	case e.LRP != nil && e.LRP.Kind == lrp.InstanceCrashed, e.Task != nil && e.Task.After != nil && e.Task.After.Failed:
		return red
	case e.LRP != nil && e.LRP.After != nil && e.LRP.After.State == lrp.Running:
		return green
	case e.LRP != nil && e.LRP.After != nil && !e.LRP.After.PlacementError.IsZero():
		return yellow
	}
	return plain
}

func timeline(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	guid, index := c.arg(0), c.argNumber(1)
	list, err := r.bbs.Timeline(c.ctx, guid, index)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(e bbs.TimelineEntry) bool {
		return (&storage.Event{LRP: &e.Event}).Subject().Index == index
	}) {
		// Nothing happened to what nobody ever wanted.
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil && len(list) > 0 {
			err = &missingError{fmt.Sprintf("nothing is known of an instance %d of %s, which is deleted", index, guid)}
		}
		if err != nil {
			return err
		}
		if index >= d.Instances {
			return noInstance(d, index)
		}
	}
	v := &view{heading: []string{"TIME", "AGO", "EVENT", "WHAT HAPPENED"}, empty: "nothing is known of it: the log of events does not go so far back"}
	for i := range list {
		e := &list[i]
		if i > 0 && e.Text == list[i-1].Text && e.At.Equal(list[i-1].At) && !c.forPrograms() {
			continue // two events of one commit, that say the same to people
		}
		v.add(e, cell{clock(e.At), faint}, text(age(c.now(), e.At)), cell{strconv.FormatInt(int64(e.Sequence), 10), faint},
			cell{e.Text, styleOf(&storage.Event{LRP: &e.Event})})
	}
	return c.show(v)
}
