package storage

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A Batch is what one Commit writes. Its order matters only for Events. It has
// at most one write for each record. The zero Batch changes nothing.
//
// From Commit on, everything that the pointers in a Batch lead to belongs to
// the Store: nobody may change it.
type Batch struct {
	// ActualLRPs are writes and checks. A check is a write whose Before and After
	// have the same tag: it changes nothing, and only requires that the record is
	// unchanged when the batch commits.
	ActualLRPs  []lrp.Write
	Deployments []DeploymentWrite
	Tasks       []task.Write
	Domains     []DomainWrite
	// Quarantine moves records that cannot be decoded out of the way.
	Quarantine []Quarantine
	// Events are appended to the log. A Store makes no events of its own.
	Events []Event

	// Fence, unless it is zero, makes the Commit fail with a *FencedError if its
	// epoch is no longer good at the moment of the commit.
	Fence Fence
	// RequestID, unless it is empty, is remembered with the commit for at least an
	// hour. Meanwhile another batch with the same id fails with a *DuplicateError.
	// A batch that fails leaves no trace of its id.
	RequestID string
	// Origin is the Origin of the [Recollection] on which the batch was decided,
	// if any. The Commit then fails with a *ConflictError if the slot or the
	// deployment has changed, or if the Store cannot be sure.
	Origin any
}

// A DeploymentWrite changes one deployment: Before is nil for a creation and
// After is nil for a deletion. The Store must hold exactly Before's tag
// (nothing, for a creation), or the write conflicts.
//
// A write whose Before and After have the same tag changes nothing. It only
// requires that the deployment is unchanged when the batch commits. In such a
// check, and in a deletion, Before may be [Bare].
//
// Definitions are immutable: the Store adds those that only After has, drops
// those that only Before has, and leaves the others as they are.
type DeploymentWrite struct {
	Before *lrp.Deployment
	After  *lrp.Deployment
}

// IsCheck reports whether w only checks that nothing has changed.
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

// A DomainWrite makes a domain fresh, from the commit on for TTL by the Store's
// clock, or for ever if TTL is 0. It replaces the domain's record.
type DomainWrite struct {
	Name string
	TTL  time.Duration
}

// A Quarantine removes a record that cannot be decoded from the lists and frees
// its key. The Store keeps the record aside for an operator. The write
// conflicts if the record is gone or can be decoded.
type Quarantine struct {
	Key RecordKey `json:"key"`
	// Reason is the reason why the record cannot be decoded.
	Reason string `json:"reason"`
}

// AddLRP adds the writes of a decision about this slot and this deployment,
// which is nil if there was none. The decision considers all records of its
// slot, so it is committed only if all of them are unchanged. Whether a record is
// to be there follows from the deployment, so if the decision creates or removes
// one, the deployment must be unchanged too. Without an Origin, a record or a
// deployment that was added since goes unnoticed; cells and convergence repair
// the result. Several decisions about one process may follow one another, each
// made on the deployment that the one before left.
func (b *Batch) AddLRP(s lrp.Slot, d *lrp.Deployment, decision lrp.Decision) {
	b.ActualLRPs = append(b.ActualLRPs, decision.Writes...)
	for i := range s.Records {
		if r := &s.Records[i]; len(decision.Writes) > 0 && !writes(decision, r) {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: r, After: r})
		}
	}
	after := decision.Deployment
	for i := range decision.Writes {
		if w := &decision.Writes[i]; (w.Before == nil || w.After == nil) && after == nil {
			after = d
		}
	}
	if after != nil {
		b.addDeployment(DeploymentWrite{Before: d, After: after})
	}
	b.addLRPEvents(decision.Events)
}

// addChecks adds a check for each record of the slot.
func (b *Batch) addChecks(s lrp.Slot) {
	for i := range s.Records {
		r := &s.Records[i]
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: r, After: r})
	}
}

// writes reports whether the decision writes the record.
func writes(decision lrp.Decision, r *lrp.ActualLRP) bool {
	return slices.ContainsFunc(decision.Writes, func(w lrp.Write) bool {
		return w.Before != nil && lrp.CompareRecords(w.Before, r) == 0
	})
}

// IsCheck reports whether w only checks that nothing has changed.
func IsCheck(w *lrp.Write) bool {
	return w.Before != nil && w.After != nil && w.Before.ModificationTag == w.After.ModificationTag
}

// addDeployment adds w. If the batch already writes the deployment and w
// continues from that version, the two become one write.
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

// AddChange adds the writes of a consumer's change to a deployment.
func (b *Batch) AddChange(c lrp.Change) {
	if !c.IsZero() {
		b.addDeployment(DeploymentWrite{Before: c.Before, After: c.After})
	}
	b.addLRPEvents(c.Events)
}

// AddTask adds the writes of a decision about a task.
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

// AddQuarantine moves the record of err away, and adds an event that says so.
func (b *Batch) AddQuarantine(err *CorruptError) {
	q := Quarantine{Key: err.Key, Reason: err.Err.Error()}
	b.Quarantine = append(b.Quarantine, q)
	b.Events = append(b.Events, Event{Quarantine: &q})
}

// IsEmpty reports whether a Commit of b would write nothing.
func (b *Batch) IsEmpty() bool {
	return len(b.ActualLRPs)+len(b.Deployments)+len(b.Tasks)+len(b.Domains)+len(b.Quarantine)+len(b.Events) == 0
}
