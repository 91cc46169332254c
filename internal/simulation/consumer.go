package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An op is one thing that a consumer wants, under a request id of its own. Its
// call may be repeated, and any of its calls and answers may get lost.
type op struct {
	id, kind string
	guid     string // of the process or the task
	index    int
	// instances and definition are what the process is to have after it.
	instances  int
	definition string
	// restart and rollout are the policies that it is to have, or nil, and beyond
	// says that the control planes do not allow them.
	restart    *lrp.RestartPolicy
	rollout    *lrp.RolloutPolicy
	disruption *lrp.Disruption
	beyond     bool
	// idle says that there was nothing to do at one of its calls.
	idle    bool
	call    func(context.Context, *bbs.BBS) error
	commits int
}

// The kinds of ops.
const (
	opCreate   = "create"
	opScale    = "scale"
	opPolicy   = "set policies"
	opDeploy   = "deploy"
	opDelete   = "delete"
	opRetire   = "retire"
	opPause    = "pause"
	opResume   = "resume"
	opConfirm  = "confirm"
	opAbort    = "abort"
	opActivate = "activate"
	opTask     = "desire task"
	opCancel   = "cancel task"
	opFinish   = "delete task"
	opFail     = "fail task"
	opHandle   = "resolve task"
)

// steering are the kinds of ops about a rollout.
var steering = []string{opPause, opResume, opConfirm, opAbort, opActivate}

// Consume draws something that a consumer does, and how often it asks for it.
func (w *World) Consume(ctx context.Context) {
	o := w.op(ctx)
	if o == nil {
		return
	}
	w.ledger.ops[o.id] = o
	if w.random.IntN(4) == 0 {
		w.freshen(ctx)
	}
	for range 1 + w.random.IntN(3) {
		_ = w.net.carry(call{o.id, "the leader", o.kind, o.guid, o.index}, nil, func() error { return w.ask(ctx, o) })
	}
}

// freshen makes the domain of all processes fresh for a minute.
func (w *World) freshen(ctx context.Context) {
	for _, p := range w.Planes {
		_ = p.BBS.UpsertDomain(ctx, "apps", time.Minute)
	}
}

// op draws one; nil if there is nothing to do it to.
func (w *World) op(ctx context.Context) *op {
	w.names++
	o := &op{
		id: fmt.Sprintf("consumer-%d", w.names), guid: fmt.Sprintf("process-%d", w.random.IntN(4)),
		instances: w.random.IntN(6), definition: fmt.Sprintf("d%d", w.names),
	}
	first := 0
	if w.errands {
		first = 7
	}
	draws := 12
	if w.handles {
		draws = 20
	}
	if w.rolls {
		if draws = 7; w.random.IntN(2) == 0 {
			w.steer(o)
			return o
		}
	}
	switch first + w.random.IntN(draws-first) {
	case 0, 1:
		o.kind = opCreate
		o.restart, o.beyond = w.restartPolicy()
		o.rollout, o.disruption = w.rolloutPolicy(), w.disruption()
		created := lrp.DeploymentDefinition{
			ProcessGUID: o.guid, Domain: "apps", UpdateStrategy: lrp.UpdateStrategy(w.random.IntN(2)),
			Settings: lrp.Settings{Instances: o.instances, Policies: lrp.Policies{Restart: o.restart, Rollout: o.rollout, Disruption: o.disruption}}, DefinitionID: o.definition, Definition: w.definition(w.names),
		}
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.CreateDeployment(ctx, created) }
	case 2, 3:
		if o.kind = opScale; w.random.IntN(4) == 0 {
			o.kind = opPolicy
			o.restart, o.beyond = w.restartPolicy()
			o.rollout, o.disruption = w.rolloutPolicy(), w.disruption()
			o.call = func(ctx context.Context, b *bbs.BBS) error {
				return b.UpdateDeployment(ctx, o.guid, lrp.Update{Restart: orZero(o.restart), Rollout: orZero(o.rollout), Disruption: orZero(o.disruption)})
			}
			break
		}
		o.call = func(ctx context.Context, b *bbs.BBS) error {
			return b.UpdateDeployment(ctx, o.guid, lrp.Update{Instances: &o.instances})
		}
	case 4:
		o.kind = opDeploy
		next := w.definition(w.names)
		o.rollout = w.rolloutPolicy()
		o.call = func(ctx context.Context, b *bbs.BBS) error {
			return b.UpdateDeployment(ctx, o.guid, lrp.Update{DefinitionID: &o.definition, Definition: &next, Rollout: orZero(o.rollout)})
		}
	case 5:
		o.kind = opDelete
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.DeleteDeployment(ctx, o.guid) }
	case 6:
		o.kind, o.index = opRetire, w.random.IntN(5)
		o.call = func(ctx context.Context, b *bbs.BBS) error {
			w.ledger.slot(o.guid, o.index).retired = w.Clock.Now()
			return b.Retire(ctx, o.guid, o.index, "")
		}
	case 7, 8:
		desired := w.task()
		if w.random.IntN(2) == 0 {
			desired.Definition.CompletionCallbackURL = "http://consumer.example/"
		}
		o.kind, o.guid = opTask, desired.GUID
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.DesireTask(ctx, desired) }
	case 9:
		t := w.anyTask(ctx, task.Pending, task.Running)
		if t == nil {
			return nil
		}
		o.kind, o.guid = opCancel, t.GUID
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.CancelTask(ctx, o.guid) }
	case 10:
		t := w.anyTask(ctx, task.Completed, task.Resolving)
		if t == nil {
			return nil
		}
		o.kind, o.guid = opFinish, t.GUID
		o.call = func(ctx context.Context, b *bbs.BBS) error {
			if t.State == task.Resolving {
				return b.DeleteTask(ctx, o.guid)
			}
			return b.ResolveAndDeleteTask(ctx, o.guid)
		}
	case 12, 13, 14, 15:
		t := w.anyTask(ctx, task.Completed)
		if t == nil {
			return nil
		}
		o.kind, o.guid = opHandle, t.GUID
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.ResolveTask(ctx, o.guid) }
	default: // it does not know how the task stands, or that there is none
		o.kind, o.guid = opCancel, fmt.Sprintf("task-%d", w.names-w.random.IntN(15))
		switch w.random.IntN(6) {
		case 0:
			o.call = func(ctx context.Context, b *bbs.BBS) error { return b.CancelTask(ctx, o.guid) }
		case 1:
			o.kind = opFail
			o.call = func(ctx context.Context, b *bbs.BBS) error { return b.FailTask(ctx, o.guid, "it was told to") }
		case 2:
			o.kind = opFinish
			o.call = func(ctx context.Context, b *bbs.BBS) error { return b.DeleteTask(ctx, o.guid) }
		case 3:
			desired := w.task()
			desired.GUID, o.kind = o.guid, opTask
			o.call = func(ctx context.Context, b *bbs.BBS) error { return b.DesireTask(ctx, desired) }
		default: // and perhaps never deletes it
			o.kind = opHandle
			o.call = func(ctx context.Context, b *bbs.BBS) error { return b.ResolveTask(ctx, o.guid) }
		}
	}
	return o
}

// steer draws what a consumer does about a rollout.
func (w *World) steer(o *op) {
	switch w.random.IntN(8) {
	case 0, 1:
		o.about(opPause)
	case 2:
		o.about(opResume)
	case 3, 4:
		o.about(opConfirm)
	case 5:
		o.about(opAbort)
	default:
		o.kind = opActivate
		if d := w.ledger.deployments[o.guid]; d != nil {
			ids := d.DefinitionIDs()
			o.definition = ids[w.random.IntN(len(ids))]
		}
		o.call = func(ctx context.Context, b *bbs.BBS) error { return b.ActivateDefinition(ctx, o.guid, o.definition) }
	}
}

// about makes o one of the calls about the rollout of a process.
func (o *op) about(kind string) {
	o.kind = kind
	o.call = func(ctx context.Context, b *bbs.BBS) error {
		return map[string]func(context.Context, string) error{
			opPause: b.PauseRollout, opResume: b.ResumeRollout, opConfirm: b.ConfirmRollout, opAbort: b.AbortRollout,
		}[kind](ctx, o.guid)
	}
}

// decide makes consumers decide about every rollout that waits for it.
func (w *World) decide(ctx context.Context) {
	for _, guid := range slices.Sorted(maps.Keys(w.ledger.deployments)) {
		d := w.ledger.deployments[guid]
		if !w.rolls || !held(d, math.MaxInt) {
			continue
		}
		w.names++
		o := &op{id: fmt.Sprintf("consumer-%d", w.names), guid: guid}
		switch {
		case w.random.IntN(4) == 0:
			o.about(opAbort)
		case d.RolloutState.Paused != lrp.NotPaused:
			o.about(opResume)
		default:
			o.about(opConfirm)
		}
		w.ledger.ops[o.id] = o
		_ = w.ask(ctx, o)
	}
}

// finish deletes a task that is being told.
func (w *World) finish(ctx context.Context, guid string) {
	w.names++
	o := &op{id: fmt.Sprintf("consumer-%d", w.names), kind: opFinish, guid: guid}
	o.call = func(ctx context.Context, b *bbs.BBS) error { return b.DeleteTask(ctx, guid) }
	w.ledger.ops[o.id] = o
	_ = w.ask(ctx, o)
}

// anyTask is one in one of these states, or nil.
func (w *World) anyTask(ctx context.Context, states ...task.State) *task.Task {
	for t, err := range w.Store.Tasks(ctx, storage.TaskFilter{States: states}) {
		if err == nil {
			return t
		}
	}
	return nil
}

// ask makes the call at one plane after another, from any on, until one leads,
// and judges the answer.
func (w *World) ask(ctx context.Context, o *op) (err error) {
	ctx = bbs.WithRequestID(ctx, o.id)
	first := w.random.IntN(len(w.Planes))
	for i := range w.Planes {
		had, stood := w.ledger.has(o), stateOf(w.ledger.tasks[o.guid])
		o.idle = o.idle || w.ledger.idle(o)
		err = o.call(ctx, w.Planes[(first+i)%len(w.Planes)].BBS)
		if errors.Is(err, bbs.ErrNotLeader) {
			continue
		}
		w.tells("%s wants: %s %s/%d, %d instances, %s: %s", o.id, o.kind, o.guid, o.index, o.instances, o.definition, brief(err))
		w.object(w.ledger.answered(o, had, stood, err))
		w.refuses(err)
		break
	}
	return err
}

// has reports whether what the op is about is there.
func (l *ledger) has(o *op) bool {
	switch o.kind {
	case opTask, opCancel, opFinish, opFail, opHandle:
		return l.tasks[o.guid] != nil
	case opRetire:
		return slices.ContainsFunc(l.slot(o.guid, o.index).records, func(r lrp.ActualLRP) bool { return r.Presence == lrp.Ordinary })
	}
	if slices.Contains(steering, o.kind) {
		return steers(l.deployments[o.guid], o)
	}
	return l.deployments[o.guid] != nil
}

// takesTask are the states of a task in which a consumer may do this to it (000 §Task
// Lifecycle).
var takesTask = map[string][]task.State{
	opTask: {task.Absent}, opCancel: {task.Pending, task.Running}, opFail: {task.Pending, task.Running}, opHandle: {task.Completed},
}

// answered judges the answer to an op. had says whether what it is about was there
// before the call, and stood how its task stood then.
func (l *ledger) answered(o *op, had bool, stood task.State, err error) error {
	if l.closed {
		return nil
	}
	object := func(format string, args ...any) error {
		return checkConsumer.violated("%s: %s %s: %s", o.id, o.kind, o.guid, fmt.Sprintf(format, args...))
	}
	if err == nil {
		if o.commits == 0 && !o.idle && !l.idle(o) {
			return object("it was acknowledged and not carried out")
		}
		return nil
	}
	var lrpRefused *lrp.TransitionError
	var taskRefused *task.TransitionError
	var invalid *executor.ValidationError
	exists, missing := errors.Is(err, storage.ErrExists), errors.Is(err, storage.ErrNotFound)
	refused := exists || missing || errors.As(err, &invalid) || errors.Is(err, lrp.ErrRefused) || errors.As(err, &lrpRefused) || errors.As(err, &taskRefused)
	has := l.has(o)
	switch {
	case !refused:
		return nil // nobody knows
	case o.commits > 0:
		return object("it was carried out, and is refused when it is repeated: %v", err)
	case invalid != nil && !o.beyond:
		return object("it is valid, and it is refused: %v", err)
	case exists && !had && !has:
		return object("there is none, and it is refused: %v", err)
	case (missing || errors.Is(err, lrp.ErrRefused)) && had && has:
		return object("it is there, and it is refused: %v", err)
	case lrpRefused != nil && o.kind == opRetire && had && has:
		return object("there is an instance, and it is refused: %v", err)
	case taskRefused != nil && stood == stateOf(l.tasks[o.guid]) && slices.Contains(takesTask[o.kind], stood):
		return object("the task is %s, and it is refused: %v", stood, err)
	}
	return nil
}

// operation judges what a commit does to what is desired.
func (l *ledger) operation(b *storage.Batch) error {
	o := l.ops[operationOf(b.RequestID)]
	if o == nil {
		return l.undesired(b)
	}
	if o.commits++; o.commits > 1 {
		return checkConsumer.violated("%s: %s %s is carried out again", o.id, o.kind, o.guid)
	}
	object := func() error {
		return checkConsumer.violated("%s: %s %s is carried out as something else: %+v", o.id, o.kind, o.guid, *b)
	}
	switch o.kind {
	case opTask, opCancel, opFail:
		if len(b.Tasks) != 1 || b.Tasks[0].After == nil || b.Tasks[0].After.GUID != o.guid || o.kind != opTask && !b.Tasks[0].After.Failed {
			return object()
		}
		return nil
	case opHandle:
		if len(b.Tasks) != 1 || b.Tasks[0].After == nil || b.Tasks[0].After.GUID != o.guid || b.Tasks[0].After.State != task.Resolving {
			return object()
		}
		return nil
	case opFinish:
		if len(b.Tasks) != 1 || b.Tasks[0].After != nil || b.Tasks[0].Before.GUID != o.guid {
			return object()
		}
		return nil
	case opRetire:
		return nil
	}
	if len(b.Deployments) != 1 {
		return object()
	}
	before, after := b.Deployments[0].Before, b.Deployments[0].After
	if o.beyond {
		return checkConsumer.violated("%s: %s %s is carried out, and the control planes do not allow these restarts: %+v", o.id, o.kind, o.guid, o.restart)
	}
	if (after == nil) != (o.kind == opDelete) || (before == nil) != (o.kind == opCreate) {
		return object()
	}
	if after == nil {
		return nil
	}
	want := *after
	if before != nil {
		want = steered(*before, o)
	}
	if o.kind == opCreate || o.kind == opScale {
		want.Instances = o.instances
	}
	if o.kind == opCreate {
		want.ActiveDefinitionID = o.definition
	}
	if o.kind == opCreate || o.kind == opPolicy {
		want.Restart, want.Disruption = o.restart, o.disruption
	}
	if o.kind == opCreate || o.kind == opPolicy || o.kind == opDeploy {
		want.Rollout = o.rollout
	}
	if after.ProcessGUID != o.guid || !sameWishes(after, &want) || !sameRollout(after, &want) {
		return object()
	}
	return nil
}

// sameWishes reports whether two versions of a deployment desire the same.
func sameWishes(a, b *lrp.Deployment) bool {
	return a.Instances == b.Instances && a.ActiveDefinitionID == b.ActiveDefinitionID && samePolicy(a.Restart, b.Restart) && samePolicy(a.Rollout, b.Rollout) && samePolicy(a.Disruption, b.Disruption)
}

// undesired makes sure that a commit that no consumer has asked for changes
// nothing that is desired.
func (l *ledger) undesired(b *storage.Batch) error {
	for i := range b.Deployments {
		w := &b.Deployments[i]
		if w.IsCheck() || b.RequestID == "" && w.Before == nil && l.world.employing {
			continue
		}
		if w.Before == nil || w.After == nil || w.After.ActiveDefinitionID == w.Before.ActiveDefinitionID && !sameWishes(w.Before, w.After) {
			return checkConsumer.violated("nobody has asked for this: %+v", *w)
		}
		if err := l.byItself(w.Before, w.After); err != nil {
			return err
		}
	}
	return nil
}
