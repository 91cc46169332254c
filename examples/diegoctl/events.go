package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func eventsCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "events", Short: "Show what happened, or with --follow what happens", RunE: p.asks(events),
		Example: "  diegoctl events --follow\n  diegoctl events --process web --kind actual_lrp_crashed -o json",
	}, []cli.Flag{
		{Name: "follow", Kind: cli.Switch, Help: "go on until interrupted, beginning now"},
		{Name: "after", Kind: &cli.Kind{Name: "EVENT", Check: cli.Number.Check}, Help: "begin after the event of this number"},
		{Name: "kind", Kind: cli.OneOf("KIND", storage.EventKinds()...), Many: true, Help: "only events of this kind, such as actual_lrp_crashed; may be repeated"},
		{Name: "process", Kind: &cli.Kind{Name: "GUID", Values: p.processGUIDs()}, Many: true, Help: "only about this process; may be repeated"},
		{Name: "task", Kind: &cli.Kind{Name: "GUID", Values: p.taskGUIDs()}, Many: true, Help: "only about this task; may be repeated"},
		{Name: "labels", Kind: cli.Switch, Help: "with -o json, also the internal routes and metric tags of each instance, as they are now"},
		{Name: "groups", Kind: cli.Switch,
			Help: "also the events for routers and for consumers of desired LRPs, which repeat others; -o json always has them"},
	}, p.cellFlags(), p.domainFlags(), p.selectorFlags("about processes and tasks"))
}

func events(c *call, r *remote) error {
	f := storage.EventFilter{
		Kinds: c.list("kind"), ProcessGUIDs: c.list("process"), TaskGUIDs: c.list("task"), CellIDs: c.list("cell"), Domains: c.list("domain"),
		Selector: c.selector(), Labels: c.on("labels"),
	}
	follow := c.on("follow")
	after := bbs.FromStart
	switch text := c.text("after"); {
	case text != "":
		after = storage.Cursor(c.number("after"))
	case follow:
		after = bbs.FromNow
	}
	last := storage.Cursor(-1)
	wanted, wants := f, func(*storage.Event) bool { return true }
	if !follow {
		// The end of the log is only seen by who sees every event.
		log, err := r.bbs.Log(c.ctx)
		if err != nil {
			return err
		}
		if last = log.Newest; last < log.Oldest || after >= last {
			return nil
		}
		wanted = storage.EventFilter{Labels: f.Labels}
		var chosen []string
		if !f.Selector.IsZero() {
			for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{Selector: f.Selector, Bare: true}) {
				if err != nil {
					return err
				}
				chosen = append(chosen, d.ProcessGUID)
			}
		}
		wants = storage.NewSelection(f.Selector, chosen).Wants
	}
	list, err := r.bbs.Subscribe(c.ctx, after, wanted)
	if err != nil {
		return err
	}
	for e, err := range list {
		var corrupt *storage.CorruptError
		switch {
		case errors.As(err, &corrupt):
			c.note("event %d cannot be decoded: %v", corrupt.Key.Sequence, corrupt.Err)
			e.Sequence = corrupt.Key.Sequence
		case err != nil:
			return err
		default:
			subject := e.Subject()
			if wants(&e) && f.Match(&subject) && (c.on("groups") || len(f.Kinds) > 0 || c.Programs || !repeats(&e)) {
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
	if c.Programs {
		return c.Emit(eventDoc{s.Kind, why, e})
	}
	// Lines come one at a time, so the columns have widths of their own.
	return c.Line(show.Faint.Of(show.Clock(e.At)), show.Faint.Of(fmt.Sprintf("%6d", e.Sequence)), show.Text(fmt.Sprintf("%-20s", what)), styleOf(e).Of(why))
}

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
		return "fresh for " + show.Short(e.Domain.TTLNanoseconds)
	case e.Quarantine != nil:
		return fmt.Sprintf("%v cannot be decoded and was put aside: %s", e.Quarantine.Key, e.Quarantine.Reason)
	case e.Session != nil:
		return e.Session.Explain()
	case e.Gap != nil:
		return fmt.Sprintf("the store may have gone back: what followed event %d may be lost", e.Gap.After)
	}
	return "-"
}

func styleOf(e *storage.Event) show.Style {
	switch {
	case e.Quarantine != nil:
		return show.Red
	case e.LRP != nil && e.LRP.Kind == lrp.InstanceCrashed, e.Task != nil && e.Task.After != nil && e.Task.After.Failed:
		return show.Red
	case e.LRP != nil && e.LRP.After != nil && e.LRP.After.State == lrp.Running:
		return show.Green
	case e.LRP != nil && e.LRP.After != nil && !e.LRP.After.PlacementError.IsZero():
		return show.Yellow
	}
	return show.Plain
}
