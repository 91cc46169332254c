package storage

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A Batch is what one Commit writes. Its order matters only for Events. At
// most one write concerns any one record. The zero Batch changes nothing.
//
// Whatever the pointers in a Batch lead to belongs to the Store from Commit
// on: nobody changes it.
type Batch struct {
	// ActualLRPs are writes and checks. A check is a write whose Before and
	// After have the same tag: it changes nothing and only makes sure that at
	// the moment of the commit the record is still the one that was read.
	ActualLRPs  []lrp.Write
	Deployments []DeploymentWrite
	Tasks       []task.Write
	Domains     []DomainWrite
	// Quarantine moves records that cannot be decoded out of the way.
	Quarantine []Quarantine
	// Events are appended to the log. A Store makes no events of its own.
	Events []Event

	// Fence, unless it is zero, makes the Commit fail with a *FencedError when
	// the epoch is no longer good at the moment of the commit.
	Fence Fence
	// RequestID, unless it is empty, is remembered with the commit, for an
	// hour at least. Another batch with the same id fails with a
	// *DuplicateError. A batch that fails leaves no trace of its id.
	RequestID string
	// Origin is that of the [Recollection] that the batch was decided from, if
	// it was. The Commit then fails with a *ConflictError unless slot and
	// deployment are still what they were, or if the Store is not sure of it.
	Origin any
}

// A DeploymentWrite changes one deployment: Before is nil for a creation and
// After is nil for a deletion. The Store must hold exactly Before's tag
// (nothing, for a creation), or the write conflicts.
//
// A write whose Before and After have the same tag changes nothing. It only
// makes sure that at the moment of the commit the deployment is still the one
// that was read. In such a check, and in a deletion, Before may be [Bare].
//
// Definitions are immutable: the Store adds those that only After has, drops
// those that After has not, and leaves the others as they are.
type DeploymentWrite struct {
	Before *lrp.Deployment
	After  *lrp.Deployment
}

// IsCheck reports whether w only makes sure that nothing has changed.
func (w *DeploymentWrite) IsCheck() bool {
	return w.Before != nil && w.After != nil && w.Before.ModificationTag == w.After.ModificationTag
}

// Key names the deployment.
func (w *DeploymentWrite) Key() RecordKey {
	if w.Before != nil {
		return DeploymentKey(w.Before.ProcessGUID)
	}
	return DeploymentKey(w.After.ProcessGUID)
}

// A DomainWrite makes a domain fresh for TTL from the commit on by the Store's
// clock, or for ever if TTL is 0. It replaces what was known of the domain.
type DomainWrite struct {
	Name string
	TTL  time.Duration
}

// A Quarantine takes a record that cannot be decoded out of the lists and
// frees its key. The Store keeps the record aside for an operator. A write that
// finds the record gone, or decodable, conflicts.
type Quarantine struct {
	Key RecordKey `json:"key"`
	// Reason is what was wrong with the record.
	Reason string `json:"reason"`
}

// AddLRP adds what a decision writes that was made from this slot and from this
// deployment, which is nil if there was none. A decision is about all records
// of its slot, so it is committed only while all of them are what they were;
// and one that creates a record only while the deployment is. That no record
// was added since is seen only with an Origin: without one, cells and
// convergence put right what comes of it. Several decisions
// about one process may follow one another, each made from the deployment that
// the one before left.
func (b *Batch) AddLRP(s lrp.Slot, d *lrp.Deployment, decision lrp.Decision) {
	b.ActualLRPs = append(b.ActualLRPs, decision.Writes...)
	for i := range s.Records {
		if r := &s.Records[i]; len(decision.Writes) > 0 && !writes(decision, r) {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: r, After: r})
		}
	}
	after := decision.Deployment
	for i := range decision.Writes {
		if decision.Writes[i].Before == nil && after == nil {
			after = d
		}
	}
	if after != nil {
		b.addDeployment(DeploymentWrite{Before: d, After: after})
	}
	b.addLRPEvents(decision.Events)
}

// addChecks makes sure that the records of the slot are what they were.
func (b *Batch) addChecks(s lrp.Slot) {
	for i := range s.Records {
		r := &s.Records[i]
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: r, After: r})
	}
}

// writes reports whether the decision has a write of the record.
func writes(decision lrp.Decision, r *lrp.ActualLRP) bool {
	return slices.ContainsFunc(decision.Writes, func(w lrp.Write) bool {
		return w.Before != nil && lrp.CompareRecords(w.Before, r) == 0
	})
}

// IsCheck reports whether w only makes sure that nothing has changed.
func IsCheck(w *lrp.Write) bool {
	return w.Before != nil && w.After != nil && w.Before.ModificationTag == w.After.ModificationTag
}

// addDeployment adds w. If the batch writes the deployment already and w goes
// on from there, the two become one write.
func (b *Batch) addDeployment(w DeploymentWrite) {
	for i := range b.Deployments {
		earlier := &b.Deployments[i]
		if earlier.After != nil && w.Before != nil && earlier.After.ProcessGUID == w.Before.ProcessGUID &&
			earlier.After.ModificationTag == w.Before.ModificationTag {
			if !w.IsCheck() {
				earlier.After = w.After
			}
			return
		}
	}
	b.Deployments = append(b.Deployments, w)
}

func (b *Batch) addLRPEvents(events []lrp.Event) {
	for i := range events {
		b.Events = append(b.Events, Event{LRP: &events[i]})
	}
}

// AddChange adds what a consumer changes of a deployment.
func (b *Batch) AddChange(c lrp.Change) {
	if !c.IsZero() {
		b.addDeployment(DeploymentWrite{Before: c.Before, After: c.After})
	}
	b.addLRPEvents(c.Events)
}

// AddTask adds what a decision about a task writes.
func (b *Batch) AddTask(decision task.Decision) {
	if !decision.Write.IsZero() {
		b.Tasks = append(b.Tasks, decision.Write)
	}
	for i := range decision.Events {
		b.Events = append(b.Events, Event{Task: &decision.Events[i]})
	}
}

// AddDomain makes a domain fresh, and adds an event that says so.
func (b *Batch) AddDomain(name string, ttl time.Duration) {
	b.Domains = append(b.Domains, DomainWrite{Name: name, TTL: ttl})
	b.Events = append(b.Events, Event{Domain: &DomainEvent{Domain: name, TTLNanoseconds: ttl}})
}

// AddQuarantine moves the record away that err tells of, and adds an event
// that says so.
func (b *Batch) AddQuarantine(err *CorruptError) {
	q := Quarantine{Key: err.Key, Reason: err.Err.Error()}
	b.Quarantine = append(b.Quarantine, q)
	b.Events = append(b.Events, Event{Quarantine: &q})
}

// IsEmpty reports whether a Commit of b would write nothing.
func (b *Batch) IsEmpty() bool {
	return len(b.ActualLRPs)+len(b.Deployments)+len(b.Tasks)+len(b.Domains)+len(b.Quarantine)+len(b.Events) == 0
}
