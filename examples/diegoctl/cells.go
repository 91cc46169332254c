package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// This file holds the commands about cells.

// A cellDoc is a cell for programs: its presence, and what it says of itself
// unless it does not answer.
type cellDoc struct {
	bbs.CellPresence
	State *auction.CellState `json:"state,omitempty"`
	Error string             `json:"error,omitempty"`

	forbidden bool
}

// cellPatience is how long a list waits for a cell to tell its state.
const cellPatience = 2 * time.Second

func cells(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	list, err := r.bbs.Cells(c.ctx)
	if err != nil {
		return err
	}
	docs := make([]cellDoc, len(list))
	var asking sync.WaitGroup
	limit := make(chan struct{}, 32)
	for i, p := range list {
		docs[i].CellPresence = p
		asking.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			state, err := stateOf(c.ctx, r, p)
			if err != nil {
				docs[i].Error, docs[i].forbidden = err.Error(), errors.Is(err, httpapi.ErrForbidden)
				return
			}
			docs[i].State = &state
		})
	}
	asking.Wait()
	v := &view{
		heading: []string{"CELL", "ZONE", "STATE", "MEMORY FREE", "DISK FREE", "CONTAINERS", "INSTANCES", "TASKS", "ADDRESS", "OFFERS"},
		empty:   allAbsent,
	}
	forbidden := false
	for i := range docs {
		d := &docs[i]
		state, memory, disk, containers, lrps, tasks := cell{"ready", green}, "-", "-", "-", "-", "-"
		switch s := d.State; {
		case d.forbidden:
			state, forbidden = cell{"forbidden", yellow}, true
		case s == nil:
			state = cell{"no answer", red}
		default:
			switch {
			case s.Evacuating:
				state = cell{"evacuating", yellow}
			case s.Unhealthy:
				state = cell{"unhealthy", red}
			case s.Settling:
				state = cell{"settling", yellow}
			}
			memory = share(s.Remaining.MemoryMB, s.Total.MemoryMB)
			disk = share(s.Remaining.DiskMB, s.Total.DiskMB)
			containers = fmt.Sprintf("%d/%d", s.Total.Containers-s.Remaining.Containers, s.Total.Containers)
			lrps, tasks = fmt.Sprint(len(s.LRPs)), fmt.Sprint(len(s.Tasks))
		}
		v.add(d, text(d.CellID), text(orDash(d.Zone)), state, text(memory), text(disk), text(containers), text(lrps), text(tasks),
			text(orDash(d.Address)), text(offers(&d.CellPresence)))
	}
	if forbidden {
		v.notes = append(v.notes, "the certificate does not permit to ask cells for their state: that takes an operator's (-cert and -key, DIEGO_CERT and DIEGO_KEY)")
	}
	return c.show(v)
}

func stateOf(ctx context.Context, r *remote, p bbs.CellPresence) (auction.CellState, error) {
	ctx, cancel := context.WithTimeout(ctx, cellPatience)
	defer cancel()
	client, err := r.cell(p)
	if err != nil {
		return auction.CellState{}, err
	}
	return client.State(ctx)
}

// share is how much is left of how much, in mebibytes.
func share(left, total int64) string {
	if total%1024 == 0 && left%1024 == 0 {
		return fmt.Sprintf("%d/%d GiB", left/1024, total/1024)
	}
	return fmt.Sprintf("%d/%d MiB", left, total)
}

func offers(p *bbs.CellPresence) string {
	parts := append([]string{}, p.RootFSProviders...)
	for _, d := range p.VolumeDrivers {
		parts = append(parts, "volumes by "+d)
	}
	if len(p.PlacementTags) > 0 {
		parts = append(parts, "only with tags "+strings.Join(p.PlacementTags, "+"))
	}
	if len(p.OptionalPlacementTags) > 0 {
		parts = append(parts, "tags "+strings.Join(p.OptionalPlacementTags, ", "))
	}
	return strings.Join(parts, ", ")
}

// findCell is the presence of a cell.
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

// An evacuation is how far a cell is, for programs.
type evacuation struct {
	CellID string `json:"cell_id"`
	rep.EvacuationStatus
}

func drain(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	p, err := c.findCell(r, c.arg(0))
	if err != nil {
		return err
	}
	client, err := r.cell(p)
	if err != nil {
		return err
	}
	if err := client.Evacuate(c.ctx); err != nil {
		return fmt.Errorf("cell %s at %s: %w", p.CellID, cmp.Or(p.Address, "an unknown address"), err)
	}
	if err := c.say(done{Done: "draining", CellID: p.CellID}, "%s takes no more work and empties itself", p.CellID); err != nil {
		return err
	}
	if cells, err := r.bbs.Cells(c.ctx); err == nil && len(cells) == 1 && !c.forPrograms() {
		fmt.Fprintln(c.out, "there is no other cell: its instances stay until there is one, or until the evacuation times out")
	}
	if !c.on("wait") {
		return nil
	}
	last := rep.EvacuationStatus{Containers: -1}
	err = c.until(func() (bool, string, error) {
		status, err := client.Evacuation(c.ctx)
		if err != nil {
			// A cell that is done exits, and is present no more.
			if _, missing := c.findCell(r, p.CellID); holds[*missingError](missing) {
				return true, "", nil
			}
			return false, err.Error(), nil
		}
		if status.Containers != last.Containers || !slices.Equal(status.Waiting, last.Waiting) {
			last = status
			if c.forPrograms() {
				err = c.emit(evacuation{p.CellID, status})
			} else {
				_, err = fmt.Fprintf(c.out, "%s on %s, instances on it: %s\n%s", count(status.Containers, "container"), p.CellID, c.instancesOn(r, p.CellID), waiting(status))
			}
		}
		left := count(status.Containers, "container") + " left"
		if len(status.Waiting) > 0 {
			left += "; " + status.Waiting[0]
		}
		return status.Done, left, err
	})
	if err != nil {
		return err
	}
	return c.say(done{Done: "drained", CellID: p.CellID}, "%s is empty", p.CellID)
}

// waiting says why some of the containers stay.
func waiting(s rep.EvacuationStatus) string {
	const some = 5
	var b strings.Builder
	for _, why := range s.Waiting[:min(some, len(s.Waiting))] {
		fmt.Fprintf(&b, "  %s\n", why)
	}
	if n := len(s.Waiting) - some; n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	return b.String()
}

// instancesOn names some of the instances on a cell.
func (c *call) instancesOn(r *remote, cellID string) string {
	const some = 5
	var names []string
	n := 0
	for a, err := range r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{CellIDs: []string{cellID}}) {
		if err != nil {
			return err.Error()
		}
		if n++; n <= some {
			names = append(names, fmt.Sprintf("%s/%d", a.ProcessGUID, a.Index))
		}
	}
	if n > some {
		names = append(names, fmt.Sprintf("%d more", n-some))
	}
	if n == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func convergeNow(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.convergence.Converge(c.ctx); err != nil {
		return err
	}
	return c.say(done{Done: "converging"}, "a pass of convergence begins")
}
