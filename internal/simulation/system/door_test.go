package system_test

import (
	"context"
	"errors"
	"iter"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var errShut = errors.New("no answer came")

// A door is a cell's way to the BBS.
type door struct {
	bbs rep.BBS
	// shut lets nothing through.
	shut bool
	// loses says of which calls the answer gets lost once.
	loses map[string]bool
}

var _ rep.BBS = (*door)(nil)

// pass makes a call, and may lose its answer.
func (d *door) pass(name string, f func() error) error {
	if d.shut {
		return errShut
	}
	err := f()
	if d.loses[name] {
		delete(d.loses, name)
		return errShut
	}
	return err
}

func ask[T any](d *door, name string, f func() (T, error)) (answer T, err error) {
	err = d.pass(name, func() (err error) { answer, err = f(); return err })
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

func list[T any](d *door, l iter.Seq2[T, error]) iter.Seq2[T, error] {
	if d.shut {
		return func(yield func(T, error) bool) {
			var none T
			yield(none, errShut)
		}
	}
	return l
}

func (d *door) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return list(d, d.bbs.ActualLRPs(ctx, f))
}

func (d *door) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return list(d, d.bbs.Tasks(ctx, f))
}

func (d *door) Slot(ctx context.Context, guid string, index int) (lrp.Slot, error) {
	return ask(d, "Slot", func() (lrp.Slot, error) { return d.bbs.Slot(ctx, guid, index) })
}

func (d *door) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	if err := d.pass("Deployments", func() error { return nil }); err != nil {
		return func(yield func(*lrp.Deployment, error) bool) { yield(nil, err) }
	}
	return d.bbs.Deployments(ctx, f)
}

func (d *door) Task(ctx context.Context, guid string) (*task.Task, error) {
	return ask(d, "Task", func() (*task.Task, error) { return d.bbs.Task(ctx, guid) })
}

func (d *door) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	return d.pass(c.Name(), func() error { return d.bbs.ClaimLRP(ctx, guid, index, c) })
}

func (d *door) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	return d.pass(c.Name(), func() error { return d.bbs.StartLRP(ctx, guid, index, c) })
}

func (d *door) CrashLRP(ctx context.Context, guid string, index int, c lrp.Crash) error {
	return d.pass(c.Name(), func() error { return d.bbs.CrashLRP(ctx, guid, index, c) })
}

func (d *door) RemoveLRP(ctx context.Context, guid string, index int, c lrp.Remove) error {
	return d.pass(c.Name(), func() error { return d.bbs.RemoveLRP(ctx, guid, index, c) })
}

func (d *door) EvacuateClaimedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateClaimed) (bool, error) {
	return ask(d, c.Name(), func() (bool, error) { return d.bbs.EvacuateClaimedLRP(ctx, guid, index, c) })
}

func (d *door) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	return ask(d, c.Name(), func() (bool, error) { return d.bbs.EvacuateRunningLRP(ctx, guid, index, c) })
}

func (d *door) EvacuateStoppedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateStopped) (bool, error) {
	return ask(d, c.Name(), func() (bool, error) { return d.bbs.EvacuateStoppedLRP(ctx, guid, index, c) })
}

func (d *door) EvacuateCrashedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateCrashed) (bool, error) {
	return ask(d, c.Name(), func() (bool, error) { return d.bbs.EvacuateCrashedLRP(ctx, guid, index, c) })
}

func (d *door) RemoveEvacuatingLRP(ctx context.Context, guid string, index int, c lrp.RemoveEvacuating) error {
	return d.pass(c.Name(), func() error { return d.bbs.RemoveEvacuatingLRP(ctx, guid, index, c) })
}

func (d *door) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	return ask(d, "StartTask", func() (bool, error) { return d.bbs.StartTask(ctx, guid, c) })
}

func (d *door) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	return d.pass(c.Name(), func() error { return d.bbs.CompleteTask(ctx, guid, c) })
}

func (d *door) RejectStartedTask(ctx context.Context, guid string, c task.Reject) error {
	return d.pass(c.Name(), func() error { return d.bbs.RejectStartedTask(ctx, guid, c) })
}
