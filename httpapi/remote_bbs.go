package httpapi

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A RemoteBBS calls a [bbs.BBS] over HTTP. It has all methods of BBS, and they
// do the same; errors.Is and errors.As find the same in their errors. There are
// some errors besides: [ErrNoAnswer], [ErrUnreachable], [ErrGarbled],
// *[ForbiddenError], *problem.TooLargeError, *problem.TooManyError and
// *problem.RemoteError.
//
// Of several processes it calls the one that leads. It repeats idempotent calls
// that got no answer. Calls that must not be carried out twice have a request
// id, from [bbs.WithRequestID] or the client's own, and keep it. All methods
// may be called at the same time.
type RemoteBBS struct{ client *wire.Client }

// NewRemoteBBS fails with an *executor.ValidationError. It does not connect
// yet.
func NewRemoteBBS(o ClientOptions) (*RemoteBBS, error) {
	client, err := newClient(o, bbsService)
	if err != nil {
		return nil, err
	}
	return &RemoteBBS{client}, nil
}

// Desire is [bbs.BBS.Desire].
func (c *RemoteBBS) Desire(ctx context.Context, l lrp.DesiredLRP) error {
	return say(ctx, c.client, callDesire, l)
}

// CreateDeployment is [bbs.BBS.CreateDeployment].
func (c *RemoteBBS) CreateDeployment(ctx context.Context, d lrp.DeploymentDefinition) error {
	return say(ctx, c.client, callCreateDeployment, d)
}

// UpdateDeployment is [bbs.BBS.UpdateDeployment].
func (c *RemoteBBS) UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error {
	return say(ctx, c.client, callUpdateDeployment, updateArgs{processGUID, u})
}

// UpdateDesiredLRP is [bbs.BBS.UpdateDesiredLRP].
func (c *RemoteBBS) UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (string, error) {
	a, err := callUpdateDesiredLRP.Do(ctx, c.client, updateDesiredArgs{l, definitionID})
	return a.DefinitionID, err
}

// ActivateDefinition is [bbs.BBS.ActivateDefinition].
func (c *RemoteBBS) ActivateDefinition(ctx context.Context, processGUID, definitionID string) error {
	return say(ctx, c.client, callActivateDefinition, definitionArgs{processGUID, definitionID})
}

// RollBack is [bbs.BBS.RollBack].
func (c *RemoteBBS) RollBack(ctx context.Context, processGUID string, revision int) error {
	return say(ctx, c.client, callRollBack, rollBackArgs{processGUID, revision})
}

// RestartDeployment is [bbs.BBS.RestartDeployment].
func (c *RemoteBBS) RestartDeployment(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callRestartDeployment, processArgs{processGUID})
}

// Revisions is [bbs.BBS.Revisions].
func (c *RemoteBBS) Revisions(ctx context.Context, processGUID string) ([]lrp.Revision, error) {
	return callRevisions.Do(ctx, c.client, processArgs{processGUID})
}

// DeleteDeployment is [bbs.BBS.DeleteDeployment].
func (c *RemoteBBS) DeleteDeployment(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callDeleteDeployment, processArgs{processGUID})
}

// PauseRollout is [bbs.BBS.PauseRollout].
func (c *RemoteBBS) PauseRollout(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callPauseRollout, processArgs{processGUID})
}

// ResumeRollout is [bbs.BBS.ResumeRollout].
func (c *RemoteBBS) ResumeRollout(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callResumeRollout, processArgs{processGUID})
}

// ConfirmRollout is [bbs.BBS.ConfirmRollout].
func (c *RemoteBBS) ConfirmRollout(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callConfirmRollout, processArgs{processGUID})
}

// AbortRollout is [bbs.BBS.AbortRollout].
func (c *RemoteBBS) AbortRollout(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callAbortRollout, processArgs{processGUID})
}

// ContinueRollout is [bbs.BBS.ContinueRollout].
func (c *RemoteBBS) ContinueRollout(ctx context.Context, processGUID string) error {
	return say(ctx, c.client, callContinueRollout, processArgs{processGUID})
}

// RolloutStatus is [bbs.BBS.RolloutStatus].
func (c *RemoteBBS) RolloutStatus(ctx context.Context, processGUID string) (lrp.RolloutStatus, error) {
	return callRolloutStatus.Do(ctx, c.client, processArgs{processGUID})
}

// Deployments is [bbs.BBS.Deployments]. A BBS of 0.1 refuses the WithoutDefinitions
// and DefinitionIDs of f. It is then asked once more without them, and sends all
// definitions.
func (c *RemoteBBS) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	asked := callDeployments.All(ctx, c.client, f)
	if !f.WithoutDefinitions && len(f.DefinitionIDs) == 0 {
		return asked
	}
	f.WithoutDefinitions, f.DefinitionIDs = false, nil
	return unlessInvalid(asked, callDeployments.All(ctx, c.client, f))
}

// unlessInvalid lists what first does. If first begins with an executor.ErrInvalid, it
// lists what second does instead.
func unlessInvalid[T any](first, second iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		begun, refused := false, false
		for item, err := range first {
			if refused = !begun && errors.Is(err, executor.ErrInvalid); refused {
				break
			}
			if begun = true; !yield(item, err) {
				return
			}
		}
		if refused {
			second(yield)
		}
	}
}

// Deployment is [bbs.BBS.Deployment].
func (c *RemoteBBS) Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error) {
	return callDeployment.Do(ctx, c.client, processArgs{processGUID})
}

// DesiredLRPs is [bbs.BBS.DesiredLRPs].
func (c *RemoteBBS) DesiredLRPs(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.DesiredLRP, error] {
	return callDesiredLRPs.All(ctx, c.client, f)
}

// DesiredLRP is [bbs.BBS.DesiredLRP].
func (c *RemoteBBS) DesiredLRP(ctx context.Context, processGUID string) (lrp.DesiredLRP, error) {
	return callDesiredLRP.Do(ctx, c.client, processArgs{processGUID})
}

// RoutingInfos is [bbs.BBS.RoutingInfos].
func (c *RemoteBBS) RoutingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.RoutingInfo, error] {
	return callRoutingInfos.All(ctx, c.client, f)
}

// SchedulingInfos is [bbs.BBS.SchedulingInfos].
func (c *RemoteBBS) SchedulingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.SchedulingInfo, error] {
	return callSchedulingInfos.All(ctx, c.client, f)
}

// ActualLRPs is [bbs.BBS.ActualLRPs].
func (c *RemoteBBS) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return callActualLRPs.All(ctx, c.client, f)
}

// ResolvedLRPs is [bbs.BBS.ResolvedLRPs].
func (c *RemoteBBS) ResolvedLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return callResolvedLRPs.All(ctx, c.client, f)
}

// ActualLRPGroups is [bbs.BBS.ActualLRPGroups].
func (c *RemoteBBS) ActualLRPGroups(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.Group, error] {
	return callActualLRPGroups.All(ctx, c.client, f)
}

// ActualLRPGroup is [bbs.BBS.ActualLRPGroup].
func (c *RemoteBBS) ActualLRPGroup(ctx context.Context, processGUID string, index int) (lrp.Group, error) {
	return callActualLRPGroup.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Slot is [bbs.BBS.Slot].
func (c *RemoteBBS) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	return callSlot.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Retire is [bbs.BBS.Retire].
func (c *RemoteBBS) Retire(ctx context.Context, processGUID string, index int, definitionID string) error {
	return say(ctx, c.client, callRetire, retireArgs{processGUID, index, definitionID})
}

// UpsertDomain is [bbs.BBS.UpsertDomain].
func (c *RemoteBBS) UpsertDomain(ctx context.Context, name string, ttl time.Duration) error {
	return say(ctx, c.client, callUpsertDomain, domainArgs{name, ttl})
}

// RestartPolicy is [bbs.BBS.RestartPolicy].
func (c *RemoteBBS) RestartPolicy(ctx context.Context) (lrp.RestartPolicy, error) {
	return callRestartPolicy.Do(ctx, c.client, wire.None{})
}

// Domains is [bbs.BBS.Domains].
func (c *RemoteBBS) Domains(ctx context.Context) ([]bbs.DomainStatus, error) {
	return callDomains.Do(ctx, c.client, wire.None{})
}

// Cells is [bbs.BBS.Cells].
func (c *RemoteBBS) Cells(ctx context.Context) ([]bbs.CellPresence, error) {
	return callCells.Do(ctx, c.client, wire.None{})
}

// DesireTask is [bbs.BBS.DesireTask].
func (c *RemoteBBS) DesireTask(ctx context.Context, d task.Desire) error {
	return say(ctx, c.client, callDesireTask, d)
}

// Tasks is [bbs.BBS.Tasks]. A BBS of 0.1 refuses the Bare of f. It is then asked once
// more without it, and sends whole tasks.
func (c *RemoteBBS) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	asked := callTasks.All(ctx, c.client, f)
	if !f.Bare {
		return asked
	}
	f.Bare = false
	return unlessInvalid(asked, callTasks.All(ctx, c.client, f))
}

// Task is [bbs.BBS.Task].
func (c *RemoteBBS) Task(ctx context.Context, guid string) (*task.Task, error) {
	return callTask.Do(ctx, c.client, taskArgs{guid})
}

// CancelTask is [bbs.BBS.CancelTask].
func (c *RemoteBBS) CancelTask(ctx context.Context, guid string) error {
	return say(ctx, c.client, callCancelTask, taskArgs{guid})
}

// ResolveTask is [bbs.BBS.ResolveTask].
func (c *RemoteBBS) ResolveTask(ctx context.Context, guid string) error {
	return say(ctx, c.client, callResolveTask, taskArgs{guid})
}

// DeleteTask is [bbs.BBS.DeleteTask].
func (c *RemoteBBS) DeleteTask(ctx context.Context, guid string) error {
	return say(ctx, c.client, callDeleteTask, taskArgs{guid})
}

// ResolveAndDeleteTask is [bbs.BBS.ResolveAndDeleteTask].
func (c *RemoteBBS) ResolveAndDeleteTask(ctx context.Context, guid string) error {
	return say(ctx, c.client, callResolveAndDeleteTask, taskArgs{guid})
}

// FailTask is [bbs.BBS.FailTask].
func (c *RemoteBBS) FailTask(ctx context.Context, guid, reason string) error {
	return say(ctx, c.client, callFailTask, taskCommandArgs[task.Fail]{guid, task.Fail{Reason: reason}})
}

// Log is [bbs.BBS.Log].
func (c *RemoteBBS) Log(ctx context.Context) (storage.Extent, error) {
	return callLog.Do(ctx, c.client, wire.None{})
}

// Subscribe is [bbs.BBS.Subscribe]. When the connection is cut, or its process
// ends or has lost its store, the list goes on after the last event that came,
// with any process that answers: nothing is missed and nothing comes twice. It
// ends if nobody answers for ClientOptions.Patience.
func (c *RemoteBBS) Subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter) (iter.Seq2[storage.Event, error], error) {
	after, err := bbs.PositionOf(ctx, after, f, c.Log)
	if err != nil {
		return nil, err
	}
	return callSubscribe.Follow(ctx, c.client, subscribeArgs{after, f}, func(in subscribeArgs, seen int64) subscribeArgs {
		in.After = storage.Cursor(seen)
		return in
	}), nil
}

// Timeline is [bbs.BBS.Timeline].
func (c *RemoteBBS) Timeline(ctx context.Context, processGUID string, index int) ([]bbs.TimelineEntry, error) {
	return callTimeline.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Announce is [bbs.BBS.Announce].
func (c *RemoteBBS) Announce(ctx context.Context, p bbs.CellPresence, owner string, ttl time.Duration) error {
	return say(ctx, c.client, callAnnounce, announceArgs{p, owner, ttl})
}

// Leave is [bbs.BBS.Leave].
func (c *RemoteBBS) Leave(ctx context.Context, cellID, owner string) error {
	return say(ctx, c.client, callLeave, leaveArgs{cellID, owner})
}

// ClaimLRP is [bbs.BBS.ClaimLRP]. A BBS of 0.1 refuses reasons, so it gets the
// claim once more without one.
func (c *RemoteBBS) ClaimLRP(ctx context.Context, processGUID string, index int, command lrp.Claim) error {
	err := say(ctx, c.client, callClaimLRP, commandArgs[lrp.Claim]{processGUID, index, command})
	if command.Reason != "" && errors.Is(err, executor.ErrInvalid) {
		command.Reason = ""
		return say(ctx, c.client, callClaimLRP, commandArgs[lrp.Claim]{processGUID, index, command})
	}
	return err
}

// StartLRP is [bbs.BBS.StartLRP].
func (c *RemoteBBS) StartLRP(ctx context.Context, processGUID string, index int, command lrp.Start) error {
	return say(ctx, c.client, callStartLRP, commandArgs[lrp.Start]{processGUID, index, command})
}

// CrashLRP is [bbs.BBS.CrashLRP].
func (c *RemoteBBS) CrashLRP(ctx context.Context, processGUID string, index int, command lrp.Crash) error {
	return say(ctx, c.client, callCrashLRP, commandArgs[lrp.Crash]{processGUID, index, command})
}

// RemoveLRP is [bbs.BBS.RemoveLRP].
func (c *RemoteBBS) RemoveLRP(ctx context.Context, processGUID string, index int, command lrp.Remove) error {
	return say(ctx, c.client, callRemoveLRP, commandArgs[lrp.Remove]{processGUID, index, command})
}

// EvacuateClaimedLRP is [bbs.BBS.EvacuateClaimedLRP].
func (c *RemoteBBS) EvacuateClaimedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateClaimed) (keep bool, err error) {
	a, err := callEvacuateClaimedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateClaimed]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateRunningLRP is [bbs.BBS.EvacuateRunningLRP].
func (c *RemoteBBS) EvacuateRunningLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateRunning) (keep bool, err error) {
	a, err := callEvacuateRunningLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateRunning]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateStoppedLRP is [bbs.BBS.EvacuateStoppedLRP].
func (c *RemoteBBS) EvacuateStoppedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateStopped) (keep bool, err error) {
	a, err := callEvacuateStoppedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateStopped]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateCrashedLRP is [bbs.BBS.EvacuateCrashedLRP].
func (c *RemoteBBS) EvacuateCrashedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateCrashed) (keep bool, err error) {
	a, err := callEvacuateCrashedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateCrashed]{processGUID, index, command})
	return a.KeepContainer, err
}

// RemoveEvacuatingLRP is [bbs.BBS.RemoveEvacuatingLRP].
func (c *RemoteBBS) RemoveEvacuatingLRP(ctx context.Context, processGUID string, index int, command lrp.RemoveEvacuating) error {
	return say(ctx, c.client, callRemoveEvacuatingLRP, commandArgs[lrp.RemoveEvacuating]{processGUID, index, command})
}

// StartTask is [bbs.BBS.StartTask].
func (c *RemoteBBS) StartTask(ctx context.Context, guid string, command task.Start) (shouldRun bool, err error) {
	a, err := callStartTask.Do(ctx, c.client, taskCommandArgs[task.Start]{guid, command})
	return a.ShouldRun, err
}

// CompleteTask is [bbs.BBS.CompleteTask].
func (c *RemoteBBS) CompleteTask(ctx context.Context, guid string, command task.Complete) error {
	return say(ctx, c.client, callCompleteTask, taskCommandArgs[task.Complete]{guid, command})
}

// RejectStartedTask is [bbs.BBS.RejectStartedTask].
func (c *RemoteBBS) RejectStartedTask(ctx context.Context, guid string, command task.Reject) error {
	return say(ctx, c.client, callRejectStartedTask, taskCommandArgs[task.Reject]{guid, command})
}

// ReportSessions is [bbs.BBS.ReportSessions].
func (c *RemoteBBS) ReportSessions(ctx context.Context, cellID string, list []storage.SessionEvent) error {
	return say(ctx, c.client, callReportSessions, sessionsArgs{cellID, list})
}

// FailActualLRP is [bbs.BBS.FailActualLRP].
func (c *RemoteBBS) FailActualLRP(ctx context.Context, key lrp.Key, why lrp.PlacementError) error {
	return say(ctx, c.client, callFailActualLRP, failArgs{key, why})
}

// RejectTask is [bbs.BBS.RejectTask].
func (c *RemoteBBS) RejectTask(ctx context.Context, guid string, attempt task.Attempt, reason string) (next task.Attempt, again bool, err error) {
	a, err := callRejectTask.Do(ctx, c.client, rejectArgs{guid, attempt, reason})
	return a.Next, a.Again, err
}

// Converge is diego.ControlPlane.Converge.
func (c *RemoteBBS) Converge(ctx context.Context) error {
	return say(ctx, c.client, callConverge, wire.None{})
}

// AcquireLock is [bbs.Locks.AcquireLock].
func (c *RemoteBBS) AcquireLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	return callAcquireLock.Do(ctx, c.client, holdArgs{l, ttl})
}

// RenewLock is [bbs.Locks.RenewLock].
func (c *RemoteBBS) RenewLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	return callRenewLock.Do(ctx, c.client, holdArgs{l, ttl})
}

// ReleaseLock is [bbs.Locks.ReleaseLock].
func (c *RemoteBBS) ReleaseLock(ctx context.Context, l bbs.Lock) error {
	return say(ctx, c.client, callReleaseLock, l)
}

// Locks is [bbs.Locks.Locks].
func (c *RemoteBBS) Locks(ctx context.Context, name string) ([]bbs.Lock, error) {
	return callLocks.Do(ctx, c.client, locksArgs{name})
}

var (
	_ bbs.API            = (*RemoteBBS)(nil)
	_ bbs.LocksAPI       = (*RemoteBBS)(nil)
	_ bbs.ConvergenceAPI = (*RemoteBBS)(nil)
)
