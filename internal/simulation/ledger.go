package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A ledger is what was committed, kept apart from the store, and what the
// checkers of commits remember. It judges each commit when it is made.
//
// Once the store has fallen back the ledger is closed: what was committed is no
// longer what there is.
type ledger struct {
	world  *World
	closed bool

	slots       map[slotKey]*slot
	deployments map[string]*lrp.Deployment
	tasks       map[string]*task.Task
	domains     map[string]time.Time // until when each is fresh
	ops         map[string]*op
	decided     time.Time
	recalled    bool // the store remembered the slot that was decided on
	commits     int
	// needless are instances that start and need not, and since when.
	needless map[lrp.InstanceKey]time.Time
}

type slotKey struct {
	guid  string
	index int
}

// A slot is an index, as it is and as it was.
type slot struct {
	records []lrp.ActualLRP
	// undesired, relaxed and retired are when the index was last not desired, when
	// its process last got another policy of rollouts, and when an instance was last
	// retired.
	undesired, relaxed, retired time.Time
	// restarts is when its process last got another policy of restarts.
	restarts time.Time
	// contested is when another instance last ran there that may replace this one.
	contested map[lrp.InstanceKey]time.Time
	// back is when its process was last created.
	back time.Time
	// ended is when a consumer last scaled the index away or deleted it.
	ended time.Time
	// routes are the instances that a router knows, and whether it knows them
	// as evacuating.
	routes map[route]bool
	// stopping are the instances that were told to stop since the active definition
	// last changed, and were not said to run since.
	stopping map[lrp.InstanceKey]bool
	// evacuated are the instances that were ever being evacuated.
	evacuated map[lrp.InstanceKey]bool
	// givenUp is when the records of instances were last given up, and returned when
	// such instances last had one again.
	givenUp, returned map[lrp.InstanceKey]time.Time
	// overdue counts the looks of a leader since an EVACUATING record expired.
	overdue int
	// down is since when no instance serves the index; zero if one does, or if none
	// ever did. taken says that the control plane took away the one that did.
	down  time.Time
	taken bool
	// grown is when a record was last added, or the deployment last changed. former
	// are the records before the last commit, which was at changed.
	grown, changed time.Time
	former         []lrp.ActualLRP
}

type route struct {
	lrp.InstanceKey
	evacuating bool
}

func newLedger(w *World) *ledger {
	return &ledger{
		world: w, slots: map[slotKey]*slot{}, deployments: map[string]*lrp.Deployment{}, tasks: map[string]*task.Task{},
		domains: map[string]time.Time{}, ops: map[string]*op{}, needless: map[lrp.InstanceKey]time.Time{},
	}
}

// An utterance is what a cell is saying to the control plane.
type utterance struct {
	call     call
	instance lrp.InstanceKey
	attempt  task.Attempt
	since    time.Time
}

func (l *ledger) now() time.Time { return l.world.Clock.Now() }

func (l *ledger) slot(guid string, index int) *slot {
	key := slotKey{guid, index}
	if l.slots[key] == nil {
		l.slots[key] = &slot{routes: map[route]bool{}, contested: map[lrp.InstanceKey]time.Time{}, stopping: map[lrp.InstanceKey]bool{}, evacuated: map[lrp.InstanceKey]bool{}, givenUp: map[lrp.InstanceKey]time.Time{}, returned: map[lrp.InstanceKey]time.Time{}}
	}
	return l.slots[key]
}

// desires reports whether an index is desired.
func (l *ledger) desires(key slotKey) bool {
	d := l.deployments[key.guid]
	return d != nil && key.index < d.Instances
}

// A slotChange is what a commit does to one slot.
type slotChange struct {
	key           slotKey
	before, after []lrp.ActualLRP
	command       string
	events        []*lrp.Event
}

// committed judges a commit that has succeeded, and takes it down. decided is the
// time that it was decided at, by the clock of its control plane.
func (l *ledger) committed(b *storage.Batch, decided time.Time) error {
	if l.closed {
		return nil
	}
	l.decided, l.recalled = decided, b.Origin != nil
	l.commits++
	for i := range b.Domains {
		d := &b.Domains[i]
		l.domains[d.Name] = l.now().Add(d.TTL)
		if d.TTL == 0 {
			l.domains[d.Name] = l.now().AddDate(100, 0, 0)
		}
	}
	for i := range b.Deployments {
		if err := l.deployment(&b.Deployments[i]); err != nil {
			return err
		}
	}
	changes, err := l.take(b)
	if err != nil {
		return err
	}
	for i := range b.Deployments {
		if err := l.heals(b.Deployments[i].Before, b.Deployments[i].After); err != nil {
			return err
		}
	}
	if err := l.operation(b); err != nil {
		return err
	}
	for _, c := range changes {
		l.world.changes(c)
		for _, check := range []func(*slotChange) error{l.reasons, l.replaced, l.recovered, l.crashed, l.evacuating, l.routed, l.waits, l.takes} {
			if err := check(c); err != nil {
				return err
			}
		}
	}
	for i := range b.Tasks {
		if err := l.task(&b.Tasks[i], commandOf(b.Events, b.Tasks[i].Before, b.Tasks[i].After), operationOf(b.RequestID) != ""); err != nil {
			return err
		}
	}
	return nil
}

// deployment takes a write down.
func (l *ledger) deployment(w *storage.DeploymentWrite) error {
	guid := w.Key().GUID
	have := l.deployments[guid]
	switch {
	case (have == nil) != (w.Before == nil), have != nil && have.ModificationTag != w.Before.ModificationTag:
		return checkUpdates.violated("deployment %s is written over: the writer had read %+v, and there is %+v", guid, w.Before, have)
	case w.IsCheck():
		return nil
	case w.After == nil:
		delete(l.deployments, guid)
	default:
		l.deployments[guid] = w.After
	}
	for key, s := range l.slots {
		if key.guid == guid && key.index >= min(instances(have), instances(w.After)) {
			s.undesired = l.now()
		}
		if key.guid == guid && key.index < instances(have) && key.index >= instances(w.After) {
			s.ended = l.now()
		}
		if key.guid == guid {
			s.grown = l.now()
		}
		if key.guid == guid && have == nil {
			s.back = l.now()
		}
		if key.guid == guid && activeOf(have) != activeOf(w.After) {
			clear(s.stopping)
		}
		if key.guid == guid && have != nil && w.After != nil && (!samePolicy(have.Rollout, w.After.Rollout) || !samePolicy(have.Disruption, w.After.Disruption)) {
			s.relaxed = l.now()
		}
		if key.guid == guid && have != nil && w.After != nil && !samePolicy(have.Restart, w.After.Restart) {
			s.restarts = l.now()
		}
		if key.guid == guid && have != nil && w.After != nil && (bounded(w.After) && !bounded(have) || mayBeDown(w.After) < mayBeDown(have)) {
			s.taken = false // it was allowed when it was done
		}
	}
	for index := range instances(w.After) {
		l.slot(guid, index) // a slot without a record is one too
	}
	return nil
}

func activeOf(d *lrp.Deployment) string {
	if d == nil {
		return ""
	}
	return d.ActiveDefinitionID
}

func instances(d *lrp.Deployment) int {
	if d == nil {
		return 0
	}
	return d.Instances
}

// take writes the records of a batch down, and returns what changes by slot.
func (l *ledger) take(b *storage.Batch) (changes []*slotChange, err error) {
	byKey := map[slotKey]*slotChange{}
	for i := range b.ActualLRPs {
		w := &b.ActualLRPs[i]
		r := w.After
		if r == nil {
			r = w.Before
		}
		key := slotKey{r.ProcessGUID, r.Index}
		s := l.slot(key.guid, key.index)
		at := slices.IndexFunc(s.records, func(have lrp.ActualLRP) bool { return lrp.CompareRecords(&have, r) == 0 })
		if (at < 0) != (w.Before == nil) || at >= 0 && !s.records[at].Equal(w.Before) {
			return nil, checkUpdates.violated("%s/%d is written over: the writer had read %+v, and there is %+v", key.guid, key.index, w.Before, s.records)
		}
		if storage.IsCheck(w) {
			continue
		}
		if byKey[key] == nil {
			byKey[key] = &slotChange{key: key, before: slices.Clone(s.records)}
			changes = append(changes, byKey[key])
		}
		switch {
		case w.After == nil:
			s.records = slices.Delete(s.records, at, at+1)
		case at < 0:
			s.records, s.grown = append(s.records, *w.After), l.now()
		default:
			s.records[at] = *w.After
		}
	}
	for _, c := range changes {
		s := l.slot(c.key.guid, c.key.index)
		lrp.SortRecords(s.records)
		c.after = slices.Clone(s.records)
		s.former, s.changed = c.before, l.now()
		for i := range b.Events {
			if e := b.Events[i].LRP; e != nil && (keyed(e.Before, c.key) || keyed(e.After, c.key)) {
				c.events, c.command = append(c.events, e), e.Cause.Command
			}
		}
		if c.command == "" {
			return nil, checkEvents.violated("%s/%d changes without an event, from %+v to %+v", c.key.guid, c.key.index, c.before, c.after)
		}
		for i := range c.before {
			if instance := c.before[i].InstanceKey; find(c.after, instance) == nil {
				s.givenUp[instance] = l.now()
			}
		}
		for i := range b.Events {
			if e := b.Events[i].LRP; e != nil && keyed(e.After, c.key) && runsOn(e) {
				delete(s.stopping, e.After.InstanceKey)
			}
		}
		for i := range c.after {
			r := &c.after[i]
			was := find(c.before, r.InstanceKey)
			if _, before := s.givenUp[r.InstanceKey]; was == nil && before {
				s.returned[r.InstanceKey] = l.now()
			}
			if !r.Stopping.IsZero() && was != nil && was.Stopping.IsZero() && l.unseen(c.key) {
				s.contested[r.InstanceKey] = l.now() // it was, by the deployment that was read
			}
		}
		for _, records := range [][]lrp.ActualLRP{c.before, c.after} {
			for _, r := range running(records) {
				if l.replacing(records, r) {
					s.contested[r.InstanceKey] = l.now()
				}
			}
		}
		if !l.desires(c.key) {
			s.undesired = l.now()
		}
	}
	return changes, nil
}

// unseen reports whether a slot may have got a record, or another deployment, between
// the read and the commit of a step. Where the store did not remember the slot, that
// goes unnoticed once in a while, and is repaired later (docs/storage.md).
func (l *ledger) unseen(key slotKey) bool {
	s, by := l.slot(key.guid, key.index), l.world.speaking
	return !l.recalled && (by == nil && l.justNow(s.grown) || by != nil && s.grown.After(by.since))
}

// runsOn reports whether a cell has said that an instance runs whose record does not
// say that it is to stop. An order to stop before that has come to nothing.
func runsOn(e *lrp.Event) bool {
	said := e.Cause.Command == lrp.Start{}.Name() || e.Cause.Command == lrp.EvacuateRunning{}.Name()
	return said && e.After.State == lrp.Running && e.After.Stopping.IsZero()
}

func keyed(r *lrp.ActualLRP, key slotKey) bool {
	return r != nil && r.ProcessGUID == key.guid && r.Index == key.index
}

// commandOf is the command that a task's write comes from.
func commandOf(events []storage.Event, before, after *task.Task) string {
	t := after
	if t == nil {
		t = before
	}
	for i := range events {
		if e := events[i].Task; e != nil && (e.After != nil && e.After.GUID == t.GUID || e.Before != nil && e.Before.GUID == t.GUID) {
			return e.Cause.Command
		}
	}
	return ""
}

// running are the records of instances that run, in any presence.
func running(records []lrp.ActualLRP) (list []*lrp.ActualLRP) {
	for i := range records {
		if records[i].State == lrp.Running {
			list = append(list, &records[i])
		}
	}
	return list
}

// another reports whether an instance other than this one runs.
func another(records []lrp.ActualLRP, than lrp.InstanceKey) bool {
	return slices.ContainsFunc(running(records), func(r *lrp.ActualLRP) bool { return r.InstanceKey != than })
}

// present reports whether a cell has a presence at this moment.
func (w *World) present(cellID string) bool {
	for lease, err := range w.Store.Leases(context.Background(), storage.CellLease) {
		if err == nil && lease.Name == cellID {
			return true
		}
	}
	return false
}

// lives reports whether an instance has a container that has not ended. One that an
// earlier daemon has left, and that the present one is to remove, does not count.
func (w *World) lives(i lrp.InstanceKey) bool {
	for _, c := range w.cells {
		if c.presence().CellID == i.CellID {
			return slices.ContainsFunc(c.holds(), func(k executor.Container) bool { return k.GUID == i.InstanceGUID && k.Tags != nil && alive(&k) })
		}
	}
	return false
}

// operationOf is the id of the consumer's operation that a commit is, or "".
func operationOf(requestID string) string {
	_, id, _ := strings.Cut(requestID, ":")
	if !strings.HasPrefix(id, "consumer-") {
		return ""
	}
	return id
}
