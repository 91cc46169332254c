package celltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// errLost is the error of a call whose request or answer did not arrive.
var errLost = errors.New("no answer came")

// A loss is what happens to a message on its way.
type loss uint8

const (
	arrives loss = iota
	requestLost
	answerLost // the call was carried out
)

func (l loss) String() string { return [...]string{"arrives", "request is lost", "answer is lost"}[l] }

// A call is one report of the cell.
type call struct {
	step rep.Step
	// of is "web/0" or a task's guid.
	of       string
	instance string
	// accepted says that the BBS carried it out, even if the answer was lost.
	accepted bool
	err      error
}

func (c call) String() string {
	return fmt.Sprintf("%v of %s by %s: accepted %v, answer %v", c.step, c.of, c.instance, c.accepted, c.err)
}

// A recorder is the BBS of one case. It has the rules of every BBS, remembers what
// the cell reported, and loses what the case wants lost.
type recorder struct {
	*bbs.BBS

	mu   sync.Mutex
	said []call
	// down loses every request, reads included.
	down bool
	// lose has what happens to the next call of a step.
	lose map[rep.Step]loss
	// before, if set, runs before the BBS decides on a call.
	before func(call)
}

func (r *recorder) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// calls are those of a step that keep accepts.
func (r *recorder) calls(step rep.Step, keep func(call) bool) (list []call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.said {
		if c.step == step && keep(c) {
			list = append(list, c)
		}
	}
	return list
}

func (r *recorder) account() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	b.WriteString("the cell has reported:")
	for _, c := range r.said {
		fmt.Fprintf(&b, "\n  %v", c)
	}
	return b.String()
}

// unreachable is an error while nothing gets through.
func (r *recorder) unreachable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return errLost
	}
	return nil
}

func record[T any](r *recorder, step rep.Step, of, instance string, decide func() (T, error)) (answer T, err error) {
	c := call{step: step, of: of, instance: instance}
	r.mu.Lock()
	before, fate := r.before, r.lose[step]
	delete(r.lose, step)
	if r.down {
		fate = requestLost
	}
	r.mu.Unlock()
	if before != nil {
		before(c)
	}
	if fate != requestLost {
		answer, c.err = decide()
		c.accepted = c.err == nil
	}
	if fate != arrives {
		var none T
		answer, c.err = none, errLost
	}
	r.set(func() { r.said = append(r.said, c) })
	return answer, c.err
}

func slotName(processGUID string, index int) string { return fmt.Sprintf("%s/%d", processGUID, index) }

// tell is record for a call without an answer.
func (r *recorder) tell(step rep.Step, of, instance string, decide func() error) error {
	_, err := record(r, step, of, instance, func() (struct{}, error) { return struct{}{}, decide() })
	return err
}

func (r *recorder) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	if err := r.unreachable(); err != nil {
		return func(yield func(lrp.ActualLRP, error) bool) { yield(lrp.ActualLRP{}, err) }
	}
	return r.BBS.ActualLRPs(ctx, f)
}

func (r *recorder) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	if err := r.unreachable(); err != nil {
		return lrp.Slot{}, err
	}
	return r.BBS.Slot(ctx, processGUID, index)
}

func (r *recorder) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	if err := r.unreachable(); err != nil {
		return func(yield func(*lrp.Deployment, error) bool) { yield(nil, err) }
	}
	return r.BBS.Deployments(ctx, f)
}

func (r *recorder) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	if err := r.unreachable(); err != nil {
		return func(yield func(*task.Task, error) bool) { yield(nil, err) }
	}
	return r.BBS.Tasks(ctx, f)
}

func (r *recorder) Task(ctx context.Context, guid string) (*task.Task, error) {
	if err := r.unreachable(); err != nil {
		return nil, err
	}
	return r.BBS.Task(ctx, guid)
}

func (r *recorder) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	return r.tell(rep.ClaimLRP, slotName(guid, index), c.Instance.InstanceGUID, func() error { return r.BBS.ClaimLRP(ctx, guid, index, c) })
}

func (r *recorder) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	return r.tell(rep.StartLRP, slotName(guid, index), c.Instance.InstanceGUID, func() error { return r.BBS.StartLRP(ctx, guid, index, c) })
}

func (r *recorder) CrashLRP(ctx context.Context, guid string, index int, c lrp.Crash) error {
	return r.tell(rep.CrashLRP, slotName(guid, index), c.Instance.InstanceGUID, func() error { return r.BBS.CrashLRP(ctx, guid, index, c) })
}

func (r *recorder) RemoveLRP(ctx context.Context, guid string, index int, c lrp.Remove) error {
	return r.tell(rep.RemoveLRP, slotName(guid, index), c.Instance.InstanceGUID, func() error { return r.BBS.RemoveLRP(ctx, guid, index, c) })
}

func (r *recorder) EvacuateClaimedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateClaimed) (bool, error) {
	return record(r, rep.EvacuateClaimedLRP, slotName(guid, index), c.Instance.InstanceGUID, func() (bool, error) { return r.BBS.EvacuateClaimedLRP(ctx, guid, index, c) })
}

func (r *recorder) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	return record(r, rep.EvacuateRunningLRP, slotName(guid, index), c.Instance.InstanceGUID, func() (bool, error) { return r.BBS.EvacuateRunningLRP(ctx, guid, index, c) })
}

func (r *recorder) EvacuateStoppedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateStopped) (bool, error) {
	return record(r, rep.EvacuateStoppedLRP, slotName(guid, index), c.Instance.InstanceGUID, func() (bool, error) { return r.BBS.EvacuateStoppedLRP(ctx, guid, index, c) })
}

func (r *recorder) EvacuateCrashedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateCrashed) (bool, error) {
	return record(r, rep.EvacuateCrashedLRP, slotName(guid, index), c.Instance.InstanceGUID, func() (bool, error) { return r.BBS.EvacuateCrashedLRP(ctx, guid, index, c) })
}

func (r *recorder) RemoveEvacuatingLRP(ctx context.Context, guid string, index int, c lrp.RemoveEvacuating) error {
	return r.tell(rep.RemoveEvacuatingLRP, slotName(guid, index), c.Instance.InstanceGUID, func() error { return r.BBS.RemoveEvacuatingLRP(ctx, guid, index, c) })
}

func (r *recorder) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	return record(r, rep.StartTask, guid, c.InstanceGUID, func() (bool, error) { return r.BBS.StartTask(ctx, guid, c) })
}

func (r *recorder) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	return r.tell(rep.CompleteTask, guid, c.InstanceGUID, func() error { return r.BBS.CompleteTask(ctx, guid, c) })
}

func (r *recorder) RejectStartedTask(ctx context.Context, guid string, c task.Reject) error {
	return r.tell(rep.RejectTask, guid, c.InstanceGUID, func() error { return r.BBS.RejectStartedTask(ctx, guid, c) })
}
