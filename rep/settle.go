package rep

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An operation settles one subject, by what was just read.
type operation struct {
	*Rep
	subject
	// container is nil if there is none, or none that counts.
	container *executor.Container
	// index is what was read of an instance's index.
	index lrp.Slot
	// task is the record as it was read, for its definition.
	task *task.Task
	// failure is the reason for FailTask.
	failure string
	// overdue says that the cell ends what is left, because its time to evacuate
	// has passed.
	overdue bool
}

// A decision is a row and how it was found.
type decision struct {
	row               Row
	container, record fmt.Stringer
}

// settle reads container and record of a subject, decides and carries out the
// row. An error means that something is left to do.
func (r *Rep) settle(ctx context.Context, s subject) error {
	r.mu.Lock()
	finishing, evacuating, answers := r.drain.finishing, r.drain.begun(), r.answers()
	overdue := r.drain.overdue(r.o.EvacuationTimeout)
	r.mu.Unlock()
	op := operation{Rep: r, subject: s, failure: task.ReasonContainerMissing, overdue: overdue}
	var err error
	if s.isTask() {
		op.task, err = r.taskRecord(ctx, s.task)
	} else {
		op.index, err = r.slot(ctx, s.key)
	}
	if err != nil {
		return err
	}

	c, there := r.o.Executor.Get(s.guid)
	n := r.noteOf(s.guid)
	switch {
	case there && n.deleting && c.State != executor.Completed:
		return nil // it is being deleted; there is nothing to report
	case !there && !answers:
		return nil // another run of the cell may have it
	case there && !n.deleting && (!finishing || s.isTask() && c.State == executor.Completed):
		op.container = &c
	}
	if finishing {
		op.failure = task.ReasonEvacuationTimedOut
	}

	var d decision
	if s.isTask() {
		d, err = r.taskRow(op.task, s, op.container, n)
	} else {
		d, err = r.lrpRow(op.index, s, op.container, n, evacuating)
	}
	if err != nil {
		return err
	}
	if !n.until.IsZero() && !op.farewell().Replaced {
		r.setNote(s.guid, func(n *note) { n.until = time.Time{} }) // its replacement has gone again
	}
	r.tellDecision(s, d)
	if err := op.carryOut(ctx, d.row); err != nil {
		return err
	}
	if evacuating && there && !s.isTask() {
		waits := op.waitsFor()
		r.setNote(s.guid, func(n *note) { n.waits = waits })
	}
	if finishing && there && !r.noteOf(s.guid).deleting {
		r.delete(s.guid) // nobody waits for it any more
	}
	return nil
}

func (r *Rep) slot(ctx context.Context, key lrp.Key) (lrp.Slot, error) {
	call, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	return r.o.BBS.Slot(call, key.ProcessGUID, key.Index)
}

// deployment reads the one process that f names; nil if there is none.
func (r *Rep) deployment(ctx context.Context, f storage.DeploymentFilter) (found *lrp.Deployment, err error) {
	call, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	for d, err := range r.o.BBS.Deployments(call, f) { // to the end, so that its connection can be used again
		if err != nil {
			return nil, err
		}
		found = d
	}
	if found == nil {
		err = call.Err()
	}
	return found, err
}

// taskRecord is nil if there is none.
func (r *Rep) taskRecord(ctx context.Context, guid string) (*task.Task, error) {
	call, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	t, err := r.o.BBS.Task(call, guid)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return t, err
}

// lrpRow decides about an instance and its container, nil for none.
func (r *Rep) lrpRow(slot lrp.Slot, s subject, c *executor.Container, n note, evacuating bool) (decision, error) {
	container, err := NoContainer, error(nil)
	switch {
	case c == nil:
	case n.stop && c.State == executor.Reserved:
		container = ContainerShutdown
	default:
		container, err = SituateContainer(c.State, c.RunResult)
	}
	record := SituateLRP(slot, r.me(s), s.key.DefinitionID)
	d := decision{container: container, record: record}
	switch {
	case err != nil:
		return decision{}, err
	case n.stop && container == ContainerRunning && (!evacuating || record == LRPRunningAlpha):
		d.row = DecideStop(r.farewell(slot, r.me(s), *c, n))
	case evacuating:
		d.row = DecideEvacuation(container, record)
	case container == ContainerRunning && record == LRPRunningAlpha && r.outdated(slot.Records, r.me(s), *c):
		d.row = LRPOutdated()
	default:
		d.row = DecideLRP(container, record)
	}
	return d, nil
}

// taskRow decides about a task and its container, nil for none.
func (r *Rep) taskRow(t *task.Task, s subject, c *executor.Container, n note) (decision, error) {
	container, err := TaskContainerNone, error(nil)
	if c != nil {
		container, err = SituateTaskContainer(c.State, c.RunResult)
	}
	record := SituateTask(t, r.o.CellID, s.guid)
	d := decision{DecideTask(container, record), container, record}
	if n.asked && container == TaskContainerReserved && record == TaskRunningAlpha {
		d.row = TaskStartedUnheard()
	}
	return d, err
}

func (r *Rep) me(s subject) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: s.guid, CellID: r.o.CellID}
}

// carryOut takes the steps of a row in order. It stops at the first that fails,
// or after which the others are not to be taken.
func (op *operation) carryOut(ctx context.Context, row Row) error {
	for _, step := range row.Steps {
		step = op.instead(step)
		goOn, err := op.take(ctx, step)
		if isRefusal(err) {
			op.tellStep(step, "refused")
			op.o.Logger.Info("the BBS refused what the cell reported", "subject", op.subject.String(), "step", step.String(), "err", err)
			if step.DeleteWhenRefused() {
				_, err = op.take(ctx, op.instead(DeleteContainer))
				return err
			}
			return nil
		}
		if err != nil {
			op.tellStep(step, "failed")
			return fmt.Errorf("%v: %w", step, err)
		}
		op.tellStep(step, "done")
		if !goOn {
			return nil
		}
	}
	return nil
}

// isRefusal reports whether the rules of the BBS have refused a call.
func isRefusal(err error) bool {
	var l *lrp.TransitionError
	var t *task.TransitionError
	return errors.As(err, &l) || errors.As(err, &t)
}

// take takes one step, and says whether to go on with the next.
func (op *operation) take(ctx context.Context, step Step) (goOn bool, err error) {
	switch step {
	case RunContainer:
		return op.run(ctx)
	case DeleteContainer, DeleteContainerUnlessKept:
		op.delete(op.guid)
		return true, nil
	case StopContainer:
		_ = op.o.Executor.Stop(op.guid) // what cannot be stopped has ended, and is looked at anew
		return true, nil
	case AwaitRouters:
		op.awaitRouters(op.subject)
		return true, nil
	}
	call, cancel := context.WithTimeout(ctx, op.o.CallTimeout)
	defer cancel()
	if op.isTask() {
		return op.callTask(call, step)
	}
	return op.callLRP(call, step)
}

func (op *operation) callLRP(ctx context.Context, step Step) (goOn bool, err error) {
	b, guid, index, id, me, domain := op.o.BBS, op.key.ProcessGUID, op.key.Index, op.key.DefinitionID, op.me(op.subject), op.key.Domain
	var c executor.Container
	if op.container != nil {
		c = *op.container
	}
	switch step {
	case ClaimLRP:
		err = b.ClaimLRP(ctx, guid, index, lrp.Claim{DefinitionID: id, Instance: me, Reason: c.Tags[executor.TagReason]})
	case StartLRP:
		err = b.StartLRP(ctx, guid, index, lrp.Start{
			DefinitionID: id, Domain: domain, Instance: me, NetInfo: netInfo(c, op.o.PreferredAddress), Unready: !c.Routable, Zone: op.o.Zone})
	case WithdrawLRP:
		err = b.StartLRP(ctx, guid, index, lrp.Start{
			DefinitionID: id, Domain: domain, Instance: me, NetInfo: netInfo(c, op.o.PreferredAddress), Unready: true, Zone: op.o.Zone})
	case CrashLRP:
		err = b.CrashLRP(ctx, guid, index, lrp.Crash{DefinitionID: id, Domain: domain, Instance: me, Reason: crashReason(c.RunResult)})
	case RemoveLRP:
		err = b.RemoveLRP(ctx, guid, index, lrp.Remove{DefinitionID: id, Instance: me, Overdue: op.overdue})
	case RemoveEvacuatingLRP:
		err = b.RemoveEvacuatingLRP(ctx, guid, index, lrp.RemoveEvacuating{DefinitionID: id, Instance: me, Overdue: op.overdue})
	case EvacuateClaimedLRP:
		_, err = b.EvacuateClaimedLRP(ctx, guid, index, lrp.EvacuateClaimed{DefinitionID: id, Instance: me})
	case EvacuateStoppedLRP:
		_, err = b.EvacuateStoppedLRP(ctx, guid, index, lrp.EvacuateStopped{DefinitionID: id, Instance: me})
	case EvacuateCrashedLRP:
		_, err = b.EvacuateCrashedLRP(ctx, guid, index, lrp.EvacuateCrashed{DefinitionID: id, Instance: me, Reason: crashReason(c.RunResult)})
	case EvacuateRunningLRP:
		var keep bool
		keep, err = b.EvacuateRunningLRP(ctx, guid, index, lrp.EvacuateRunning{
			DefinitionID: id, Instance: me, NetInfo: netInfo(c, op.o.PreferredAddress), Unready: !c.Routable, Zone: op.o.Zone, TTL: op.evacuationLeft()})
		if keep && SituateLRP(op.index, me, id) != LRPEvacuatingAlpha {
			op.syncWithin(op.o.RetryInterval) // to see how long the record lives that this has made
		}
		if err == nil && !keep && !op.farewell().Replaced {
			op.index, err = op.slot(ctx, op.key) // its replacement may be newer than what was read
		}
		return !keep, err
	}
	return true, err
}

func (op *operation) callTask(ctx context.Context, step Step) (goOn bool, err error) {
	b, me := op.o.BBS, op.me(op.subject)
	switch step {
	case StartTask:
		op.setNote(op.guid, func(n *note) { n.asked = true })
		// The answer may be that the task was started before, by a call whose
		// answer got lost. RunContainer works once, so it may follow.
		_, err = b.StartTask(ctx, op.subject.task, task.Start{CellID: me.CellID, InstanceGUID: op.guid, Attempt: op.attempt})
	case CompleteTask:
		c := completion(op.subject, me.CellID, op.container.RunResult)
		if err := op.result(ctx, &c); err != nil {
			return false, err
		}
		err = b.CompleteTask(ctx, op.subject.task, c)
	case FailTask:
		c := completion(op.subject, me.CellID, executor.Failed(op.failure))
		err = b.CompleteTask(ctx, op.subject.task, c)
	case RejectTask:
		err = b.RejectStartedTask(ctx, op.subject.task, task.Reject{
			CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: op.attempt, Reason: op.container.RunResult.FailureReason})
	}
	return true, err
}

// result adds the content of the task's result file. One that cannot be read
// fails the task, because nobody can read it later.
func (op *operation) result(ctx context.Context, c *task.Complete) error {
	path := op.container.Tags[executor.TagResultFile]
	if c.Failed || path == "" {
		return nil
	}
	content, err := op.o.Executor.ReadFile(ctx, op.guid, path)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("reading the result: %w", err)
	case err == nil && len(content) > task.MaxResultBytes:
		err = fmt.Errorf("it has %d bytes and may have %d", len(content), task.MaxResultBytes)
	case err == nil && !utf8.Valid(content):
		err = errors.New("it is not text in UTF-8")
	}
	if err != nil {
		c.Failed, c.FailureReason = true, executor.CutReason(fmt.Sprintf("failed to fetch the result: %v", err))
		return nil
	}
	c.Result = string(content)
	return nil
}

// run gives the reserved container its work. What cannot run here is given
// back.
func (op *operation) run(ctx context.Context) (goOn bool, err error) {
	if op.noteOf(op.guid).stop {
		op.queue.add(op.subject) // it was told to stop since it was looked at
		return false, nil
	}
	w, err := op.work(ctx)
	if err != nil {
		return false, err
	}
	if w != nil {
		op.leaveFiles(w)
		err = op.o.Executor.Initialize(op.guid, *w)
	} else {
		err = errors.New("its definition is gone")
	}
	if errors.Is(err, executor.ErrTransition) {
		op.queue.add(op.subject) // no reservation any more: it is looked at anew
		return false, nil
	}
	if err == nil {
		if op.noteOf(op.guid).stop {
			_ = op.o.Executor.Stop(op.guid) // StopLRP came too early to do so
		}
		return true, nil
	}
	op.o.Logger.Warn("a container could not be run", "subject", op.subject.String(), "err", err)
	op.failure = executor.CutReason(fmt.Sprintf("failed to run the container: %v", err))
	row := LRPRunFailed()
	if op.isTask() {
		row = TaskRunFailed()
	}
	return false, op.carryOut(ctx, row)
}

// work is what the container is to do, or nil if no record says so any more. It
// reads no other definition of a process, because a deployment may have tens of MiB
// of them and each of its containers is started by itself.
func (op *operation) work(ctx context.Context) (*executor.Work, error) {
	if op.isTask() {
		w := executor.Work{RunInfo: op.task.RunInfo, ImageUsername: op.task.ImageUsername, ImagePassword: op.task.ImagePassword, Tags: map[string]string{}}
		if op.task.ResultFile != "" {
			w.Tags[executor.TagResultFile] = op.task.ResultFile
		}
		setMetricTags(w.Tags, op.task.MetricTags)
		return &w, nil
	}
	d, err := op.deployment(ctx, storage.DeploymentFilter{ProcessGUIDs: []string{op.key.ProcessGUID}, DefinitionIDs: []string{op.key.DefinitionID}})
	if err != nil || d == nil {
		return nil, err
	}
	definition, ok := d.Definitions[op.key.DefinitionID]
	if !ok {
		return nil, nil
	}
	w := executor.Work{RunInfo: definition.RunInfo, ImageUsername: d.ImageUsername, ImagePassword: d.ImagePassword, Tags: map[string]string{}}
	setMetricTags(w.Tags, d.MetricTags)
	return &w, nil
}

// mostFiles is how many bytes of files a container may have that are held while it waits to
// be made.
const mostFiles = 64 << 10

// leaveFiles takes large files out of the work, to be read again when the container is made.
// They may have a MiB in each of hundreds of containers.
func (op *operation) leaveFiles(w *executor.Work) {
	size := 0
	for _, f := range w.VolumeMountedFiles {
		size += len(f.Path) + len(f.Content)
	}
	if size <= mostFiles {
		return
	}
	w.VolumeMountedFiles = nil
	r, s := op.Rep, op.subject
	w.Files = func(ctx context.Context) ([]executor.File, error) {
		for {
			again := operation{Rep: r, subject: s}
			w, err := again.workAnew(ctx)
			switch {
			case err == nil && w == nil:
				return nil, errors.New("its definition is gone")
			case err == nil:
				return w.VolumeMountedFiles, nil
			}
			r.o.Logger.Warn("the files of a container could not be read; they are read again", "subject", s.String(), "err", err)
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(r.o.RetryInterval):
			}
		}
	}
}

// workAnew is work, for an operation that has read nothing yet.
func (op *operation) workAnew(ctx context.Context) (w *executor.Work, err error) {
	if op.isTask() {
		if op.task, err = op.taskRecord(ctx, op.subject.task); err != nil || op.task == nil {
			return nil, err
		}
	}
	return op.work(ctx)
}

// instead is the step to take in place of one that deletes the container of an
// instance to which routers may still send requests.
func (op *operation) instead(step Step) Step {
	if (step == DeleteContainer || step == DeleteContainerUnlessKept) && op.farewell().lingers() {
		return AwaitRouters
	}
	return step
}

// farewell is how the end of the operation's instance stands.
func (op *operation) farewell() Farewell {
	if op.container == nil || op.isTask() {
		return Farewell{}
	}
	return op.Rep.farewell(op.index, op.me(op.subject), *op.container, op.noteOf(op.guid))
}

// delete has a container removed. By then the BBS has accepted its end.
func (r *Rep) delete(guid string) {
	if _, there := r.o.Executor.Get(guid); there {
		r.setNote(guid, func(n *note) { n.deleting = true })
		r.o.Executor.Delete(guid)
	}
}

func (r *Rep) noteOf(guid string) note {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notes[guid]
}

func (r *Rep) setNote(guid string, change func(*note)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.notes[guid]
	change(&n)
	if n == (note{}) {
		delete(r.notes, guid)
		return
	}
	r.notes[guid] = n
}

// tellDecision counts a decision, and warns of one that should never be needed.
func (r *Rep) tellDecision(s subject, d decision) {
	if d.row.Odds != lrp.Inconceivable {
		return
	}
	r.o.Metrics.Count("rep_inconceivable_total", 1)
	r.o.Logger.Warn("a container and its record are in a state that should never be", "subject", s.String(),
		"container", d.container.String(), "record", d.record.String(), "action", d.row.Action(), "reason", d.row.Reason)
}

func (r *Rep) tellStep(step Step, outcome string) {
	r.o.Metrics.Count("rep_steps_total", 1, auction.Label{Name: "step", Value: step.String()}, auction.Label{Name: "outcome", Value: outcome})
}

// tell reports what a survey has found as metrics.
func (r *Rep) tell(states map[executor.State]int) {
	for s := executor.Reserved; s <= executor.Completed; s++ {
		r.o.Metrics.Gauge("rep_containers", float64(states[s]), auction.Label{Name: "state", Value: s.String()})
	}
	if w, knows := r.o.Executor.(UnmountWaiter); knows {
		r.o.Metrics.Gauge("rep_volumes_waiting", float64(w.WaitingUnmounts()))
	}
	total, remaining := r.o.Executor.Total(), r.o.Executor.Remaining()
	type gauge struct {
		of               string
		total, remaining int64
	}
	gauges := []gauge{
		{"memory_mb", total.MemoryMB, remaining.MemoryMB}, {"disk_mb", total.DiskMB, remaining.DiskMB},
		{"containers", total.Containers, remaining.Containers}, {"pids", total.PIDs, remaining.PIDs},
	}
	for _, name := range total.Extra.Names() {
		gauges = append(gauges, gauge{name, total.Extra[name], remaining.Extra[name]})
	}
	for _, g := range gauges {
		of := auction.Label{Name: "of", Value: g.of}
		r.o.Metrics.Gauge("rep_capacity", float64(g.total), of)
		r.o.Metrics.Gauge("rep_capacity_remaining", float64(g.remaining), of)
	}
}
