package converge

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// LRPs is the snapshot that [PlanLRPs] reads. Both sequences come from the same
// moment. PlanLRPs uses a yielded value only until it asks for the next one.
// One call of PlanLRPs reads it, in its own goroutine.
//
// An error in a sequence stands for one value that could not be read. The plan
// passes the error on and does nothing about the records that the value may
// have concerned.
//
// A storage.Reader provides both sequences.
type LRPs struct {
	// Deployments are in ascending order of process guid. This sequence and the
	// next may be nil, which means empty.
	Deployments iter.Seq2[*lrp.Deployment, error]
	// ActualLRPs are in ascending order of process guid and index; within one
	// index they are in the order of a lrp.Slot.
	ActualLRPs iter.Seq2[lrp.ActualLRP, error]
	// Domains are all domains, fresh or not.
	Domains []lrp.Domain
	// Cells is what is known about the cells.
	Cells Cells
	// Again, unless it is nil, is called for each process that needs another look,
	// after its plan is complete. at is when to look: now if there was something
	// to do or an instance waits for its domain to be fresh. Before that time, or
	// at all if Again is not called for it, a process needs no look unless one of
	// its records changes or one of its cells comes or goes. After an error, treat
	// the process as not yet visited.
	Again func(processGUID string, at time.Time)
	// Ahead is called right after Again has named a process for now, with the earliest
	// later time at which that process needs a look, if there is one and neither
	// function is nil. What is due at one index must not hide what is due at another
	// soon.
	Ahead func(at time.Time)
	// Visited, unless it is nil, is called for each process after its plan is
	// complete, with what its records say. A process of which a record could not
	// be read is left out.
	Visited func(processGUID string, c ProcessCount)
}

// A ProcessCount counts the instances of a process by their index.
type ProcessCount struct {
	// Desired is how many there should be, and Running at how many of these
	// indices something runs that was not told to stop.
	Desired, Running int
	// Crashed is at how many desired indices a record is CRASHED.
	Crashed int
}

// An LRPAction is one thing to do. It has exactly one of these forms:
//
//   - a Command for lrp.Step on the slot ProcessGUID, Index;
//   - a Start to request: it goes into the pass's one batch, together with the
//     starts that the commands' decisions request;
//   - neither: prune the definitions of ProcessGUID other than InUse with
//     lrp.Deployment.PruneDefinitions or, if the Reason is RolloutOver, with
//     lrp.Deployment.EndRollout.
type LRPAction struct {
	ProcessGUID string
	Index       int
	Command     lrp.Command
	Start       *lrp.Key
	InUse       []string
	Reason      Reason
}

// ErrOrder is the error of a plan if a sequence is not in order.
var ErrOrder = errors.New("sequence is not in order")

// PlanLRPs compares what is desired with what runs (000 §Convergence) and
// yields the actions in ascending order of process guid and index. It holds one
// slot in memory at a time.
//
// For each value that could not be read it yields an error, with a zero action,
// and goes on. An ErrOrder ends it.
func PlanLRPs(in LRPs, now time.Time, p lrp.Policy) iter.Seq2[LRPAction, error] {
	return func(yield func(LRPAction, error) bool) {
		next, stop := iter.Pull2(orEmpty(in.Deployments))
		defer stop()
		x := lrpPlan{
			rules:  slotRules{cells: in.Cells, alarm: executor.Alarm{Now: now}, fresh: map[string]bool{}},
			policy: p, yield: yield, again: in.Again, ahead: in.Ahead, visited: in.Visited, nextDeployment: next,
		}
		for _, d := range in.Domains {
			x.rules.fresh[d.Name] = d.Fresh(now)
		}
		x.pull()
		for r, err := range orEmpty(in.ActualLRPs) {
			if x.stopped {
				return
			}
			x.read(&r, err)
		}
		x.endSlot()
		x.endProcess(x.recordLost)
		x.pass("", x.recordLost)
	}
}

// orEmpty returns the sequence, or an empty one for nil.
func orEmpty[T any](s iter.Seq2[T, error]) iter.Seq2[T, error] {
	if s == nil {
		return func(func(T, error) bool) {}
	}
	return s
}

// An lrpPlan is one run of PlanLRPs: a merge join of deployments and slots.
type lrpPlan struct {
	rules   slotRules
	policy  lrp.Policy // of the control plane; rules has that of the process
	yield   func(LRPAction, error) bool
	stopped bool // the consumer has stopped, or the order is broken
	again   func(string, time.Time)
	ahead   func(time.Time)
	visited func(string, ProcessCount)

	nextDeployment func() (*lrp.Deployment, error, bool)
	deployment     *lrp.Deployment // the next one that has not begun, or nil
	// lastDeployment is the guid of the deployment before the next one.
	lastDeployment string
	// deploymentLost is true if a deployment between lastDeployment and the next
	// one may have been unreadable.
	deploymentLost bool

	process process
	slot    lrp.Slot // the slot being read; its records are reused
	actions []LRPAction
	// recordLost is true if a record after the last one could not be read.
	// lostBefore is its value when the slot began.
	recordLost, lostBefore bool
}

// A process is a deployment, or none, and the position up to which its slots
// have been read.
type process struct {
	guid       string
	deployment *lrp.Deployment // nil if nothing is desired
	// unsure is true if deployment is nil only because it may have been
	// unreadable.
	unsure  bool
	next    int // the first index that has not been looked at
	rollout lrp.Rollout
	inUse   []string // ids of all definitions that have a record
	// recordLost is true if one of its records could not be read.
	recordLost bool
	// busy is true if there is something to do.
	busy  bool
	count ProcessCount
}

// read takes the next record.
func (x *lrpPlan) read(r *lrp.ActualLRP, err error) {
	if err != nil {
		x.fail(err)
		x.recordLost = true
		return
	}
	if len(x.slot.Records) > 0 {
		last := &x.slot.Records[len(x.slot.Records)-1]
		if lrp.CompareRecords(last, r) >= 0 {
			x.breakOff("actual LRP", fmt.Sprintf("%s/%d", r.ProcessGUID, r.Index), fmt.Sprintf("%s/%d", last.ProcessGUID, last.Index))
			return
		}
		if last.ProcessGUID == r.ProcessGUID && last.Index == r.Index {
			x.slot.Records = append(x.slot.Records, *r)
			return
		}
		x.endSlot()
	}
	x.slot.ProcessGUID, x.slot.Index = r.ProcessGUID, r.Index
	x.slot.Records = append(x.slot.Records[:0], *r)
	x.lostBefore, x.recordLost = x.recordLost, false
}

// endSlot plans for the slot that has been read, unless an unreadable record
// may belong to it.
func (x *lrpPlan) endSlot() {
	if x.stopped || len(x.slot.Records) == 0 {
		return
	}
	if x.process.guid != x.slot.ProcessGUID {
		x.endProcess(x.lostBefore)
		x.pass(x.slot.ProcessGUID, x.lostBefore)
		x.begin(x.slot.ProcessGUID)
	}
	p := &x.process
	x.fill(x.slot.Index, x.lostBefore)
	p.next = x.slot.Index + 1
	p.use(x.slot)
	if x.visited != nil {
		p.tally(x.slot)
	}
	if x.lostBefore || x.recordLost {
		p.recordLost = true
		return
	}
	x.actions = x.rules.plan(x.actions[:0], x.slot, p)
	for _, a := range x.actions {
		x.emit(a)
	}
}

// begin makes the process of guid the current one.
func (x *lrpPlan) begin(guid string) {
	p := &x.process // which endProcess has emptied
	p.guid = guid
	x.rules.policy = x.policy
	if x.deployment != nil && x.deployment.ProcessGUID == guid {
		p.deployment = x.deployment
		x.rules.policy = x.policy.For(p.deployment)
		p.rollout = *lrp.NewRollout(p.deployment, x.rules.alarm.Now, x.rules.policy)
	} else {
		p.unsure = x.deploymentLost
	}
	x.rules.alarm.Next, x.rules.waits = time.Time{}, false
}

// endProcess plans for the remaining indices of the current process. lost says
// that a record after its last one could not be read.
func (x *lrpPlan) endProcess(lost bool) {
	p := &x.process
	if x.stopped || p.guid == "" {
		return
	}
	if p.deployment != nil {
		x.fill(p.deployment.Instances, lost)
		change, why := Tidy(p.deployment, &p.rollout, func(id string) bool { return slices.Contains(p.inUse, id) })
		if !p.recordLost && !change.IsZero() {
			x.emit(LRPAction{ProcessGUID: p.guid, InUse: append([]string(nil), p.inUse...), Reason: why})
		}
		x.pull()
	}
	x.askAgain()
	if x.visited != nil && !x.stopped && !p.recordLost && !p.unsure {
		if p.deployment != nil {
			p.count.Desired = p.deployment.Instances
		}
		x.visited(p.guid, p.count)
	}
	*p = process{inUse: p.inUse[:0]}
}

// askAgain says when the current process needs another look. Its plan depends
// on its records, its cells, the freshness of domains and the times that it
// asked about.
func (x *lrpPlan) askAgain() {
	p, alarm := &x.process, &x.rules.alarm
	if x.again == nil || x.stopped {
		return
	}
	if next := p.rollout.Next(); !next.IsZero() {
		alarm.Reached(next)
	}
	if p.busy || x.rules.waits {
		x.again(p.guid, alarm.Now)
		if x.ahead != nil && !alarm.Next.IsZero() {
			x.ahead(alarm.Next)
		}
		return
	}
	if !alarm.Next.IsZero() {
		x.again(p.guid, alarm.Next)
	}
}

// pass plans for the deployments before guid, or for all that are left if guid
// is empty. They have no record, unless lost says that some could not be read.
func (x *lrpPlan) pass(guid string, lost bool) {
	for !x.stopped && x.deployment != nil && (guid == "" || x.deployment.ProcessGUID < guid) {
		x.begin(x.deployment.ProcessGUID)
		x.endProcess(lost)
	}
}

// fill plans for the indices before index that have no record. If lost, it
// leaves them alone.
func (x *lrpPlan) fill(index int, lost bool) {
	p := &x.process
	if lost {
		p.next = max(p.next, index)
		p.recordLost = true
	}
	for ; p.next < index && p.deployment.Desires(p.next) && !x.stopped; p.next++ {
		x.emit(LRPAction{ProcessGUID: p.guid, Index: p.next, Command: lrp.CreateMissing{}, Reason: InstanceMissing})
	}
}

// pull reads the next deployment.
func (x *lrpPlan) pull() {
	if x.deployment != nil {
		x.lastDeployment = x.deployment.ProcessGUID
		x.deploymentLost = false
	}
	x.deployment = nil
	for !x.stopped {
		d, err, ok := x.nextDeployment()
		switch {
		case !ok:
			return
		case err != nil:
			x.fail(err)
			x.deploymentLost = true
		case d.ProcessGUID <= x.lastDeployment:
			x.breakOff("deployment", d.ProcessGUID, x.lastDeployment)
			return
		default:
			x.deployment = d
			return
		}
	}
}

func (x *lrpPlan) emit(a LRPAction) {
	x.process.busy = true
	if !x.stopped && !x.yield(a, nil) {
		x.stopped = true
	}
}

func (x *lrpPlan) fail(err error) {
	if !x.stopped && !x.yield(LRPAction{}, err) {
		x.stopped = true
	}
}

func (x *lrpPlan) breakOff(what, key, after string) {
	x.fail(fmt.Errorf("%s %s comes after %s: %w", what, key, after, ErrOrder))
	x.stopped = true
}

// use notes the definitions of the slot's records.
func (p *process) use(s lrp.Slot) {
	for i := range s.Records {
		if id := s.Records[i].DefinitionID; !slices.Contains(p.inUse, id) {
			p.inUse = append(p.inUse, id)
		}
	}
}

// tally counts a slot.
func (p *process) tally(s lrp.Slot) {
	if p.deployment == nil || !p.deployment.Desires(s.Index) {
		return
	}
	running, crashed := 0, 0
	for i := range s.Records {
		switch r := &s.Records[i]; {
		case r.State == lrp.Running && r.Stopping.IsZero():
			running = 1
		case r.State == lrp.Crashed:
			crashed = 1
		}
	}
	p.count.Running += running
	p.count.Crashed += crashed
}

// Tidy returns the change that ends a rollout if it is complete and drops the
// definitions that nothing uses, and the reason for it. r must have visited all
// slots of d. inUse reports whether a record names the definition. The change
// is zero if there is nothing to do, as for any deployment with one definition.
func Tidy(d *lrp.Deployment, r *lrp.Rollout, inUse func(definitionID string) bool) (lrp.Change, Reason) {
	switch {
	case len(d.Definitions) < 2:
		return lrp.Change{}, DefinitionUnused
	case d.RolloutState.From != "" && r.Status().Complete():
		return d.EndRollout(inUse), RolloutOver
	}
	return d.PruneDefinitions(inUse), DefinitionUnused
}
