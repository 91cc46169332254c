package bbs

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// The calls of a cell about its instances. A refusal is a *lrp.TransitionError;
// rep's tables say what a cell does about it.

// ClaimLRP says that the cell will start the instance. A cell that gets
// lrp.ErrCannotBeClaimed deletes its reservation.
func (b *BBS) ClaimLRP(ctx context.Context, processGUID string, index int, c lrp.Claim) error {
	_, err := b.stepSlot(ctx, "ClaimLRP", processGUID, index, c)
	return err
}

// StartLRP says that the instance runs. A cell that gets lrp.ErrCannotBeStarted
// stops and deletes the container, and then calls RemoveLRP for every record
// that names this instance, because a rollout may have left one.
func (b *BBS) StartLRP(ctx context.Context, processGUID string, index int, c lrp.Start) error {
	_, err := b.stepSlot(ctx, "StartLRP", processGUID, index, c)
	return err
}

// CrashLRP says that the instance ended unexpectedly. It may be repeated: an
// instance crashes once, so the instance serves as the request id.
func (b *BBS) CrashLRP(ctx context.Context, processGUID string, index int, c lrp.Crash) error {
	_, err := b.crash(ctx, "CrashLRP", processGUID, index, c, c.Instance)
	return err
}

// crash applies a command that reports an instance's crash, unless the crash is
// known already. A late Start may have made the record the instance's again.
func (b *BBS) crash(ctx context.Context, method, processGUID string, index int, c lrp.Command, i lrp.InstanceKey) (lrp.Decision, error) {
	// With its id in the request id, another cell cannot claim the crash by using
	// the same guid.
	ctx = WithRequestID(ctx, fmt.Sprintf("%q %s", i.CellID, i.InstanceGUID))
	return b.decideSlot(ctx, method, processGUID, index, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, c, b.o.Now(), b.o.LRPs)
	})
}

// RemoveLRP says that the instance is gone.
func (b *BBS) RemoveLRP(ctx context.Context, processGUID string, index int, c lrp.Remove) error {
	_, err := b.stepSlot(ctx, "RemoveLRP", processGUID, index, c)
	return err
}

// EvacuateClaimedLRP gives up an instance that has not been started yet. Like
// the other evacuations, it answers whether to keep the container.
func (b *BBS) EvacuateClaimedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateClaimed) (keep bool, err error) {
	d, err := b.stepSlot(ctx, "EvacuateClaimedLRP", processGUID, index, c)
	return d.KeepContainer, err
}

// EvacuateStoppedLRP says that an instance on an evacuating cell has ended
// after it was told to stop.
func (b *BBS) EvacuateStoppedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateStopped) (keep bool, err error) {
	d, err := b.stepSlot(ctx, "EvacuateStoppedLRP", processGUID, index, c)
	return d.KeepContainer, err
}

// EvacuateCrashedLRP says that an instance on an evacuating cell crashed. Like
// CrashLRP it may be repeated.
func (b *BBS) EvacuateCrashedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateCrashed) (keep bool, err error) {
	d, err := b.crash(ctx, "EvacuateCrashedLRP", processGUID, index, c, c.Instance)
	return d.KeepContainer, err
}

// EvacuateRunningLRP asks what to do about a running instance on an evacuating
// cell. The BBS counts c.RunningInstances itself. The call may be repeated:
// every answer is decided again.
func (b *BBS) EvacuateRunningLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateRunning) (keep bool, err error) {
	const method = "EvacuateRunningLRP"
	if err := checkIndex(index); err != nil {
		return false, b.answer(method, err)
	}
	d, committed, err := storage.ApplySlot(ctx, b.o.Store, processGUID, index, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		if d != nil && d.UpdateStrategy == lrp.Recreate {
			var err error
			if c.RunningInstances, err = b.available(ctx, d, c.Instance); err != nil {
				return lrp.Decision{}, err
			}
		}
		return lrp.Step(s, d, c, b.o.Now(), b.o.LRPs)
	})
	if _, err := b.outcome(ctx, method, committed, err); err != nil {
		return false, b.answer(method, err)
	}
	b.carry(d.Effects, nil)
	return d.KeepContainer, nil
}

// available counts the desired indices of d whose instance is available. The one
// of own is, whether or not it is ready.
func (b *BBS) available(ctx context.Context, d *lrp.Deployment, own lrp.InstanceKey) (n int, err error) {
	last := -1
	for r, err := range b.o.Store.ActualLRPs(ctx, storage.ActualLRPFilter{
		ProcessGUIDs: []string{d.ProcessGUID}, States: []lrp.State{lrp.Running}, Presences: []lrp.Presence{lrp.Ordinary},
	}) {
		if err != nil {
			return 0, err
		}
		if r.Index != last && d.Desires(r.Index) && (r.InstanceKey == own || d.Available(&r)) {
			n, last = n+1, r.Index
		}
	}
	return n, nil
}

// RemoveEvacuatingLRP removes the instance's EVACUATING record.
func (b *BBS) RemoveEvacuatingLRP(ctx context.Context, processGUID string, index int, c lrp.RemoveEvacuating) error {
	_, err := b.stepSlot(ctx, "RemoveEvacuatingLRP", processGUID, index, c)
	return err
}

// RestartPolicy is the policy by which crashed instances start again; its zero
// values mean the defaults. [lrp.RestartPolicy.Next] says when.
func (b *BBS) RestartPolicy(context.Context) (lrp.RestartPolicy, error) {
	return b.o.LRPs.Restart, nil
}

// FailActualLRP implements auction.Reporter: it records why an instance was not
// placed.
func (b *BBS) FailActualLRP(ctx context.Context, key lrp.Key, why lrp.PlacementError) error {
	_, err := b.stepSlot(ctx, "FailActualLRP", key.ProcessGUID, key.Index, lrp.Fail{DefinitionID: key.DefinitionID, Error: why})
	return err
}
