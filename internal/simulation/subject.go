package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A Subject is what somebody brings into a world to have it judged. What is nil is
// the simulation's own; policies that are zero are the defaults.
type Subject struct {
	// Store opens a store on the world's clock. The caller closes it.
	Store func(now func() time.Time) (storage.Store, error)
	// Cell makes one run of a cell, and Cells are the presences of all cells.
	Cell  func(CellOptions) (Cell, error)
	Cells []bbs.CellPresence

	Placement auction.Policy
	LRPs      lrp.Policy
	Tasks     task.Policy

	// Look judges the world after each step, and once more when it has settled.
	Look func(ctx context.Context, w *World, settled bool) error

	// Steps is how long things go wrong in [Visit], and Faults the share of calls
	// that do; without faults only consumers act.
	Steps  int
	Faults float64
}

// CellOptions are what one run of a cell gets.
type CellOptions struct {
	Presence  bbs.CellPresence
	BBS       rep.BBS
	Announcer rep.Announcer
	Now       func() time.Time
	NewGUID   func() string
}

// A Cell is one run of a cell that somebody brings.
type Cell interface {
	auction.CellClient
	Evacuate(ctx context.Context) error
	Containers(ctx context.Context) ([]executor.Container, error)
	Step(ctx context.Context)
	End(instanceGUID string, r executor.RunResult) bool
	Begun(instanceGUID string) int
}

// A Poller is a Cell that can compare everything it has with the records.
type Poller interface{ Poll(ctx context.Context) }

// Visit is the scenario of a subject: things go wrong and consumers act for a
// number of steps; when all faults have ended, exactly what is desired runs.
var Visit = Scenario{"visit", "When all faults have ended, exactly what is desired runs.", visit}

func visit(ctx context.Context, w *World) error {
	if err := w.Employ(ctx, 2, 2); err != nil {
		return cmp.Or(w.broken, err)
	}
	w.Faults(w.subject.Faults)
	for range w.subject.Steps {
		if w.subject.Faults > 0 {
			w.Mischief(ctx)
		} else {
			w.act(func() { w.Consume(ctx) })
		}
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	w.Heal()
	if err := settle(ctx, w); err != nil {
		return err
	}
	return w.subject.Look(ctx, w, true)
}

// Object makes a violation of a checker that a subject brings.
func Object(checker string, err error) error { return &Violation{checker, err.Error()} }

// States are what the cells that are switched on would say of themselves, by the
// order of their ids.
func (w *World) States(ctx context.Context) (list []auction.CellState, err error) {
	for _, c := range w.cells {
		s, err := c.State(ctx)
		if errors.Is(err, errLost) {
			continue
		} else if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// policies makes the policies of a subject those of the world.
func (w *World) policies(s *Subject) {
	r := s.LRPs.Restart
	w.restarts = restarts{
		immediate: orDefault(r.ImmediateRestarts, 3, 0), most: orDefault(r.MaxRestarts, 200, math.MaxInt),
		shortest: cmp.Or(r.MinBackoff, 30*time.Second), longest: cmp.Or(r.MaxBackoff, 16*time.Minute), forgiven: cmp.Or(r.ResetAfter, 5*time.Minute),
	}
	w.retries = orDefault(s.Tasks.MaxRetries, 3, 0)
	w.evacuation = cmp.Or(s.LRPs.EvacuationTimeout, 10*time.Minute)
	w.lrps, w.tasks, w.placement = s.LRPs, s.Tasks, w.watched(s.Placement)
	w.waits = waits{
		staleUnclaimed: cmp.Or(s.LRPs.StaleUnclaimed, usualWaits.staleUnclaimed), rolloutGiveUp: cmp.Or(s.LRPs.RolloutGiveUp, usualWaits.rolloutGiveUp),
		staleResolving: cmp.Or(s.Tasks.StaleResolving, usualWaits.staleResolving), expireCompleted: cmp.Or(s.Tasks.ExpireCompleted, usualWaits.expireCompleted),
		expirePending: cmp.Or(s.Tasks.ExpirePending, usualWaits.expirePending),
	}
}

// orDefault is a number of a policy, in which 0 stands for a default and a
// negative number for none or for ever.
func orDefault(n, usual, negative int) int {
	switch {
	case n == 0:
		return usual
	case n < 0:
		return negative
	}
	return n
}

// watched is a policy whose filters and scorer are judged with each decision: the
// same question twice has the same answer, and stays as it was.
func (w *World) watched(p auction.Policy) auction.Policy {
	filters := slices.Clone(p.Filters)
	for i, f := range filters {
		filters[i] = func(item *auction.Item, cell *auction.CellState) auction.CellReason {
			return twice(w, "filter", item, cell, func(i *auction.Item, c *auction.CellState) auction.CellReason { return f(i, c) })
		}
	}
	p.Filters = filters
	if scorer := p.Scorer; scorer != nil {
		p.Scorer = func(item *auction.Item, cell *auction.CellState, score auction.Score) float64 {
			return math.Float64frombits(twice(w, "scorer", item, cell, func(i *auction.Item, c *auction.CellState) uint64 {
				rank := scorer(i, c, score)
				if math.IsNaN(rank) {
					rank = math.NaN() // the worst rank, with any bits
				}
				return math.Float64bits(rank)
			}))
		}
	}
	return p
}

func twice[T comparable](w *World, what string, item *auction.Item, cell *auction.CellState, rule func(*auction.Item, *auction.CellState) T) T {
	i, c := cloneItem(item), cloneState(cell)
	first := rule(i, c)
	if !reflect.DeepEqual(i, item) || !reflect.DeepEqual(c, cell) {
		w.object(checkPolicy.violated("the %s changes %v on cell %s: it makes them %+v and %+v", what, item.Key, cell.ID, *i, *c))
		i, c = cloneItem(item), cloneState(cell)
	}
	if second := rule(i, c); second != first {
		w.object(checkPolicy.violated("the %s is asked twice about %v on cell %s, and its answers differ", what, item.Key, cell.ID))
	}
	return first
}

func cloneItem(i *auction.Item) *auction.Item {
	clone := *i
	clone.Extra = maps.Clone(i.Extra)
	clone.VolumeDrivers, clone.PlacementTags, clone.Fields = slices.Clone(i.VolumeDrivers), slices.Clone(i.PlacementTags), slices.Clone(i.Fields)
	return &clone
}

func cloneState(c *auction.CellState) *auction.CellState {
	clone := *c
	clone.Total.Extra, clone.Remaining.Extra = maps.Clone(c.Total.Extra), maps.Clone(c.Remaining.Extra)
	clone.LRPs, clone.Tasks = slices.Clone(c.LRPs), slices.Clone(c.Tasks)
	for _, list := range []*[]string{&clone.RootFSProviders, &clone.VolumeDrivers, &clone.PlacementTags, &clone.OptionalPlacementTags, &clone.RefusedFields} {
		*list = slices.Clone(*list)
	}
	return &clone
}

// bringsStore reports whether the store is one that somebody has brought.
func (w *World) bringsStore() bool { return w.subject != nil && w.subject.Store != nil }

// kept makes sure that the store shows what it has just committed.
func (l *ledger) kept(ctx context.Context, b *storage.Batch, err error) error {
	if err != nil || l.closed {
		return nil
	}
	for i := range b.ActualLRPs {
		w := &b.ActualLRPs[i]
		r := w.After
		if r == nil {
			r = w.Before
		}
		shown, _, err := l.world.Store.Slot(ctx, r.ProcessGUID, r.Index)
		if have := l.slot(r.ProcessGUID, r.Index).records; err != nil || !slices.EqualFunc(have, shown.Records, func(a, b lrp.ActualLRP) bool { return a.Equal(&b) }) {
			return checkStore.violated("%s/%d: %+v was committed, and the store shows %+v, %v", r.ProcessGUID, r.Index, have, shown.Records, err)
		}
	}
	for i := range b.Tasks {
		t := b.Tasks[i].After
		if t == nil {
			t = b.Tasks[i].Before
		}
		shown, err := l.world.Store.Task(ctx, t.GUID)
		if have := l.tasks[t.GUID]; !same(have, shown, err, func() bool { return have.ModificationTag == shown.ModificationTag && have.State == shown.State }) {
			return checkStore.violated("task %s: %+v was committed, and the store shows %+v, %v", t.GUID, have, shown, err)
		}
	}
	for i := range b.Deployments {
		guid := b.Deployments[i].Key().GUID
		shown, err := l.world.Store.Deployment(ctx, guid)
		if have := l.deployments[guid]; !same(have, shown, err, func() bool {
			return have.ModificationTag == shown.ModificationTag && have.Instances == shown.Instances
		}) {
			return checkStore.violated("deployment %s: %+v was committed, and the store shows %+v, %v", guid, have, shown, err)
		}
	}
	return nil
}

// same reports whether a record is the one that was committed, or is missing as it
// should be.
func same[T any](committed, shown *T, err error, equal func() bool) bool {
	if committed == nil {
		return errors.Is(err, storage.ErrNotFound)
	}
	return err == nil && shown != nil && equal()
}

// shows makes sure that a store that somebody brings has what was committed, and
// nothing else. now are its records.
func (l *ledger) shows(ctx context.Context, now []lrp.ActualLRP) error {
	if l.closed {
		return nil
	}
	committed, tasks, deployments := 0, 0, 0
	for _, s := range l.slots {
		committed += len(s.records)
	}
	for i := range now {
		r := &now[i]
		have := l.slot(r.ProcessGUID, r.Index).records
		if !slices.ContainsFunc(have, func(h lrp.ActualLRP) bool { return h.Equal(r) }) {
			return checkStore.violated("%s/%d: %+v was committed, and the store shows %+v", r.ProcessGUID, r.Index, have, *r)
		}
	}
	for t, err := range l.world.Store.Tasks(ctx, storage.TaskFilter{}) {
		if err != nil {
			return checkStore.violated("tasks cannot be read: %v", err)
		}
		if have := l.tasks[t.GUID]; have == nil || have.ModificationTag != t.ModificationTag {
			return checkStore.violated("task %s: %+v was committed, and the store shows %+v", t.GUID, have, t)
		}
		tasks++
	}
	for d, err := range l.world.Store.Deployments(ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			return checkStore.violated("deployments cannot be read: %v", err)
		}
		if have := l.deployments[d.ProcessGUID]; have == nil || have.ModificationTag != d.ModificationTag {
			return checkStore.violated("deployment %s: %+v was committed, and the store shows %+v", d.ProcessGUID, have, d)
		}
		deployments++
	}
	if committed != len(now) || tasks != len(l.tasks) || deployments != len(l.deployments) {
		return checkStore.violated("%d instances, %d tasks and %d deployments were committed, and the store lists %d, %d and %d",
			committed, len(l.tasks), len(l.deployments), len(now), tasks, deployments)
	}
	return nil
}

// unexpected objects to an error of Commit that its contract does not have: nobody
// knows then what was committed.
func unexpected(err error) error {
	var invalid *executor.ValidationError
	if err == nil || errors.As(err, &invalid) || errors.Is(err, storage.ErrDuplicate) || errors.Is(err, storage.ErrFenced) || errors.Is(err, storage.ErrConflict) {
		return nil
	}
	return checkStore.violated("a commit failed: %v", err)
}

// A guest is a cell that somebody brings. It is made anew when it was switched off
// or emptied, and has no containers then.
type guest struct {
	world   *World
	p       bbs.CellPresence
	bbs     rep.BBS
	now     func() time.Time
	runs    []Cell // the last one works unless it is off
	guids   int
	off     bool
	drained bool // it was told to empty itself
	reached bool // the store, at this step
	left    bool // it has ended its presence
	lease   *bbs.Announcer
	tasks   map[string]time.Time // by guid: when one was first seen running
}

func newGuest(w *World, p bbs.CellPresence, b rep.BBS, now func() time.Time) (*guest, error) {
	g := &guest{world: w, p: p, bbs: b, now: now, tasks: map[string]time.Time{}}
	return g, g.boot()
}

func (g *guest) boot() (err error) {
	g.off, g.drained, g.left = false, false, false
	if g.lease, err = bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: g.world.Store, Presence: g.p, Owner: owner(g.p, len(g.runs))}); err != nil {
		return err
	}
	c, err := g.world.subject.Cell(CellOptions{
		Presence: g.p, BBS: g.bbs, Announcer: guestAnnouncer{g, len(g.runs)}, Now: g.now,
		NewGUID: func() string { g.guids++; return fmt.Sprintf("%s-%d", g.p.CellID, g.guids) },
	})
	if err != nil {
		return fmt.Errorf("cell %s cannot be made: %w", g.p.CellID, err)
	}
	g.runs = append(g.runs, c)
	return nil
}

// A guestAnnouncer announces one run of a guest when that reaches the store.
type guestAnnouncer struct {
	*guest
	run int
}

// Tick implements [rep.Announcer].
func (a guestAnnouncer) Tick(ctx context.Context) error {
	if !a.reached || a.run != len(a.runs)-1 {
		return errLost
	}
	a.left = false
	return a.lease.Tick(ctx)
}

// Leave implements [rep.Announcer].
func (a guestAnnouncer) Leave(ctx context.Context) error {
	if !a.reached || a.run != len(a.runs)-1 {
		return errLost
	}
	a.left = true
	return a.lease.Leave(ctx)
}

func (g *guest) cell() Cell                 { return g.runs[len(g.runs)-1] }
func (g *guest) presence() bbs.CellPresence { return g.p }
func (g *guest) evacuates() bool            { return g.drained }
func (g *guest) stay()                      {}
func (g *guest) cordon(bool) bool           { return false }
func (g *guest) hush()                      {}
func (g *guest) vanish(int)                 {}
func (g *guest) fret(int)                   {}
func (g *guest) lose()                      { g.off = true }
func (g *guest) move(address string)        { g.p.Address = address }

func (g *guest) mend() {
	if g.off {
		g.world.object(g.boot())
	}
}

func (g *guest) step(ctx context.Context, present bool) {
	if g.reached = present; g.off {
		return
	}
	if present && !g.left {
		_ = g.lease.Tick(ctx) // a new run waits for the lease of the last to end
	}
	for _, k := range g.holds() {
		if !isTask(&k) || k.State != executor.Running {
			continue
		}
		if g.tasks[k.GUID].IsZero() {
			g.tasks[k.GUID] = g.world.Clock.Now()
		} else if g.world.Clock.Now().Sub(g.tasks[k.GUID]) >= 4*pace {
			g.cell().End(k.GUID, executor.Succeeded())
		}
	}
	g.cell().Step(ctx)
	if g.drained && len(g.holds()) == 0 { // it comes back as new
		g.lose()
		g.mend()
	}
}

func (g *guest) poll(ctx context.Context) {
	if p, ok := g.cell().(Poller); ok && !g.off {
		p.Poll(ctx)
	}
}

func (g *guest) crash(pick int) {
	var guids []string
	for _, k := range g.holds() {
		if k.State == executor.Running && !isTask(&k) {
			guids = append(guids, k.GUID)
		}
	}
	if len(guids) > 0 {
		g.cell().End(guids[pick%len(guids)], executor.Failed("it was told to"))
	}
}

// drain leaves at least half of the cells to the work.
func (g *guest) drain() {
	if g.off || g.drained || 2*(g.world.away()+1) > len(g.world.cells) {
		return
	}
	g.drained = true
	if err := g.cell().Evacuate(context.Background()); err != nil {
		g.world.object(fmt.Errorf("cell %s cannot evacuate: %w", g.p.CellID, err))
	}
}

// heal ends an evacuation by starting the cell anew.
func (g *guest) heal() {
	if g.drained {
		g.lose()
		g.mend()
	}
}

func (g *guest) holds() []executor.Container {
	if g.off {
		return nil
	}
	list, err := g.cell().Containers(context.Background())
	if err != nil {
		g.world.object(fmt.Errorf("cell %s cannot list its containers: %w", g.p.CellID, err))
	}
	return list
}

func (g *guest) lists() []executor.Container { return nil }

func (g *guest) begun(guid string) (n int) {
	for _, c := range g.runs {
		n += c.Begun(guid)
	}
	return n
}

// State implements [auction.CellClient].
func (g *guest) State(ctx context.Context) (auction.CellState, error) {
	if g.off {
		return auction.CellState{}, errLost
	}
	return g.cell().State(ctx)
}

// Inventory implements [auction.InventoryClient].
func (g *guest) Inventory(ctx context.Context) (auction.Inventory, error) {
	c, tells := g.cell().(auction.InventoryClient)
	if g.off || !tells {
		return auction.Inventory{}, errLost
	}
	return c.Inventory(ctx)
}

// Perform implements [auction.CellClient].
func (g *guest) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	if g.off {
		return nil, errLost
	}
	return g.cell().Perform(ctx, w)
}

// StopLRP implements [auction.CellClient].
func (g *guest) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	if g.off {
		return errLost
	}
	return g.cell().StopLRP(ctx, key, instance)
}

// CancelTask implements [auction.CellClient].
func (g *guest) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	if g.off {
		return errLost
	}
	return g.cell().CancelTask(ctx, taskGUID, instanceGUID)
}
