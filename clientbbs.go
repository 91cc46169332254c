package diego

import (
	"context"
	"iter"
	"time"

	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A BBSClient asks a [BBS] over HTTP. It has all methods of BBS, and they do and
// mean the same; what errors.Is and errors.As find in their errors is the same
// too. Besides those there are [ErrNoAnswer], [ErrUnreachable], [ErrGarbled],
// *[ForbiddenError], *[TooLargeError], *[TooManyError] and *[RemoteError].
//
// Of several processes it asks the one that leads. Calls that may be repeated
// are, where they got no answer; those that must not be carried out twice have
// a request id, which is [WithRequestID]'s or one of the client's own, and keep
// it.
type BBSClient struct{ client *wire.Client }

// NewBBSClient fails with an *executor.ValidationError. It connects to nothing
// yet.
func NewBBSClient(o ClientOptions) (*BBSClient, error) {
	client, err := newClient(o, bbsService)
	if err != nil {
		return nil, err
	}
	return &BBSClient{client}, nil
}

// Desire is [BBS.Desire].
func (c *BBSClient) Desire(ctx context.Context, l lrp.DesiredLRP) error {
	_, err := callDesire.Do(ctx, c.client, l)
	return err
}

// CreateDeployment is [BBS.CreateDeployment].
func (c *BBSClient) CreateDeployment(ctx context.Context, d lrp.DeploymentDefinition) error {
	_, err := callCreateDeployment.Do(ctx, c.client, d)
	return err
}

// UpdateDeployment is [BBS.UpdateDeployment].
func (c *BBSClient) UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error {
	_, err := callUpdateDeployment.Do(ctx, c.client, updateArgs{processGUID, u})
	return err
}

// UpdateDesiredLRP is [BBS.UpdateDesiredLRP].
func (c *BBSClient) UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (string, error) {
	a, err := callUpdateDesiredLRP.Do(ctx, c.client, updateDesiredArgs{l, definitionID})
	return a.DefinitionID, err
}

// ActivateDefinition is [BBS.ActivateDefinition].
func (c *BBSClient) ActivateDefinition(ctx context.Context, processGUID, definitionID string) error {
	_, err := callActivateDefinition.Do(ctx, c.client, definitionArgs{processGUID, definitionID})
	return err
}

// DeleteDeployment is [BBS.DeleteDeployment].
func (c *BBSClient) DeleteDeployment(ctx context.Context, processGUID string) error {
	_, err := callDeleteDeployment.Do(ctx, c.client, processArgs{processGUID})
	return err
}

// ContinueRollout is [BBS.ContinueRollout].
func (c *BBSClient) ContinueRollout(ctx context.Context, processGUID string) error {
	_, err := callContinueRollout.Do(ctx, c.client, processArgs{processGUID})
	return err
}

// RolloutStatus is [BBS.RolloutStatus].
func (c *BBSClient) RolloutStatus(ctx context.Context, processGUID string) (lrp.RolloutStatus, error) {
	return callRolloutStatus.Do(ctx, c.client, processArgs{processGUID})
}

// Deployments is [BBS.Deployments].
func (c *BBSClient) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return callDeployments.All(ctx, c.client, f)
}

// Deployment is [BBS.Deployment].
func (c *BBSClient) Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error) {
	return callDeployment.Do(ctx, c.client, processArgs{processGUID})
}

// DesiredLRPs is [BBS.DesiredLRPs].
func (c *BBSClient) DesiredLRPs(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.DesiredLRP, error] {
	return callDesiredLRPs.All(ctx, c.client, f)
}

// DesiredLRP is [BBS.DesiredLRP].
func (c *BBSClient) DesiredLRP(ctx context.Context, processGUID string) (lrp.DesiredLRP, error) {
	return callDesiredLRP.Do(ctx, c.client, processArgs{processGUID})
}

// ActualLRPs is [BBS.ActualLRPs].
func (c *BBSClient) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return callActualLRPs.All(ctx, c.client, f)
}

// ResolvedLRPs is [BBS.ResolvedLRPs].
func (c *BBSClient) ResolvedLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return callResolvedLRPs.All(ctx, c.client, f)
}

// ActualLRPGroups is [BBS.ActualLRPGroups].
func (c *BBSClient) ActualLRPGroups(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.Group, error] {
	return callActualLRPGroups.All(ctx, c.client, f)
}

// ActualLRPGroup is [BBS.ActualLRPGroup].
func (c *BBSClient) ActualLRPGroup(ctx context.Context, processGUID string, index int) (lrp.Group, error) {
	return callActualLRPGroup.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Slot is [BBS.Slot].
func (c *BBSClient) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	return callSlot.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Retire is [BBS.Retire].
func (c *BBSClient) Retire(ctx context.Context, processGUID string, index int, definitionID string) error {
	_, err := callRetire.Do(ctx, c.client, retireArgs{processGUID, index, definitionID})
	return err
}

// UpsertDomain is [BBS.UpsertDomain].
func (c *BBSClient) UpsertDomain(ctx context.Context, name string, ttl time.Duration) error {
	_, err := callUpsertDomain.Do(ctx, c.client, domainArgs{name, ttl})
	return err
}

// RestartPolicy is [BBS.RestartPolicy].
func (c *BBSClient) RestartPolicy(ctx context.Context) (lrp.RestartPolicy, error) {
	return callRestartPolicy.Do(ctx, c.client, wire.None{})
}

// Domains is [BBS.Domains].
func (c *BBSClient) Domains(ctx context.Context) ([]DomainStatus, error) {
	return callDomains.Do(ctx, c.client, wire.None{})
}

// Cells is [BBS.Cells].
func (c *BBSClient) Cells(ctx context.Context) ([]CellPresence, error) {
	return callCells.Do(ctx, c.client, wire.None{})
}

// DesireTask is [BBS.DesireTask].
func (c *BBSClient) DesireTask(ctx context.Context, d task.Desire) error {
	_, err := callDesireTask.Do(ctx, c.client, d)
	return err
}

// Tasks is [BBS.Tasks].
func (c *BBSClient) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return callTasks.All(ctx, c.client, f)
}

// Task is [BBS.Task].
func (c *BBSClient) Task(ctx context.Context, guid string) (*task.Task, error) {
	return callTask.Do(ctx, c.client, taskArgs{guid})
}

// CancelTask is [BBS.CancelTask].
func (c *BBSClient) CancelTask(ctx context.Context, guid string) error {
	_, err := callCancelTask.Do(ctx, c.client, taskArgs{guid})
	return err
}

// ResolveTask is [BBS.ResolveTask].
func (c *BBSClient) ResolveTask(ctx context.Context, guid string) error {
	_, err := callResolveTask.Do(ctx, c.client, taskArgs{guid})
	return err
}

// DeleteTask is [BBS.DeleteTask].
func (c *BBSClient) DeleteTask(ctx context.Context, guid string) error {
	_, err := callDeleteTask.Do(ctx, c.client, taskArgs{guid})
	return err
}

// ResolveAndDeleteTask is [BBS.ResolveAndDeleteTask].
func (c *BBSClient) ResolveAndDeleteTask(ctx context.Context, guid string) error {
	_, err := callResolveAndDeleteTask.Do(ctx, c.client, taskArgs{guid})
	return err
}

// FailTask is [BBS.FailTask].
func (c *BBSClient) FailTask(ctx context.Context, guid, reason string) error {
	_, err := callFailTask.Do(ctx, c.client, taskCommandArgs[task.Fail]{guid, task.Fail{Reason: reason}})
	return err
}

// Log is [BBS.Log].
func (c *BBSClient) Log(ctx context.Context) (storage.Extent, error) {
	return callLog.Do(ctx, c.client, wire.None{})
}

// Subscribe is [BBS.Subscribe]. When the connection is cut, or the process that
// it leads to ends or has lost its store, the list goes on after the last event that came, with
// whichever process answers: nothing is missed and nothing comes twice. It ends
// if nobody answers for ClientOptions.Patience.
func (c *BBSClient) Subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter) (iter.Seq2[storage.Event, error], error) {
	after, err := position(ctx, after, f, c.Log)
	if err != nil {
		return nil, err
	}
	return callSubscribe.Follow(ctx, c.client, subscribeArgs{after, f}, func(in subscribeArgs, seen int64) subscribeArgs {
		in.After = storage.Cursor(seen)
		return in
	}), nil
}

// Timeline is [BBS.Timeline].
func (c *BBSClient) Timeline(ctx context.Context, processGUID string, index int) ([]TimelineEntry, error) {
	return callTimeline.Do(ctx, c.client, indexArgs{processGUID, index})
}

// Announce is [BBS.Announce].
func (c *BBSClient) Announce(ctx context.Context, p CellPresence, owner string, ttl time.Duration) error {
	_, err := callAnnounce.Do(ctx, c.client, announceArgs{p, owner, ttl})
	return err
}

// Leave is [BBS.Leave].
func (c *BBSClient) Leave(ctx context.Context, cellID, owner string) error {
	_, err := callLeave.Do(ctx, c.client, leaveArgs{cellID, owner})
	return err
}

// ClaimLRP is [BBS.ClaimLRP].
func (c *BBSClient) ClaimLRP(ctx context.Context, processGUID string, index int, command lrp.Claim) error {
	_, err := callClaimLRP.Do(ctx, c.client, commandArgs[lrp.Claim]{processGUID, index, command})
	return err
}

// StartLRP is [BBS.StartLRP].
func (c *BBSClient) StartLRP(ctx context.Context, processGUID string, index int, command lrp.Start) error {
	_, err := callStartLRP.Do(ctx, c.client, commandArgs[lrp.Start]{processGUID, index, command})
	return err
}

// CrashLRP is [BBS.CrashLRP].
func (c *BBSClient) CrashLRP(ctx context.Context, processGUID string, index int, command lrp.Crash) error {
	_, err := callCrashLRP.Do(ctx, c.client, commandArgs[lrp.Crash]{processGUID, index, command})
	return err
}

// RemoveLRP is [BBS.RemoveLRP].
func (c *BBSClient) RemoveLRP(ctx context.Context, processGUID string, index int, command lrp.Remove) error {
	_, err := callRemoveLRP.Do(ctx, c.client, commandArgs[lrp.Remove]{processGUID, index, command})
	return err
}

// EvacuateClaimedLRP is [BBS.EvacuateClaimedLRP].
func (c *BBSClient) EvacuateClaimedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateClaimed) (keep bool, err error) {
	a, err := callEvacuateClaimedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateClaimed]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateRunningLRP is [BBS.EvacuateRunningLRP].
func (c *BBSClient) EvacuateRunningLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateRunning) (keep bool, err error) {
	a, err := callEvacuateRunningLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateRunning]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateStoppedLRP is [BBS.EvacuateStoppedLRP].
func (c *BBSClient) EvacuateStoppedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateStopped) (keep bool, err error) {
	a, err := callEvacuateStoppedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateStopped]{processGUID, index, command})
	return a.KeepContainer, err
}

// EvacuateCrashedLRP is [BBS.EvacuateCrashedLRP].
func (c *BBSClient) EvacuateCrashedLRP(ctx context.Context, processGUID string, index int, command lrp.EvacuateCrashed) (keep bool, err error) {
	a, err := callEvacuateCrashedLRP.Do(ctx, c.client, commandArgs[lrp.EvacuateCrashed]{processGUID, index, command})
	return a.KeepContainer, err
}

// RemoveEvacuatingLRP is [BBS.RemoveEvacuatingLRP].
func (c *BBSClient) RemoveEvacuatingLRP(ctx context.Context, processGUID string, index int, command lrp.RemoveEvacuating) error {
	_, err := callRemoveEvacuatingLRP.Do(ctx, c.client, commandArgs[lrp.RemoveEvacuating]{processGUID, index, command})
	return err
}

// StartTask is [BBS.StartTask].
func (c *BBSClient) StartTask(ctx context.Context, guid string, command task.Start) (shouldRun bool, err error) {
	a, err := callStartTask.Do(ctx, c.client, taskCommandArgs[task.Start]{guid, command})
	return a.ShouldRun, err
}

// CompleteTask is [BBS.CompleteTask].
func (c *BBSClient) CompleteTask(ctx context.Context, guid string, command task.Complete) error {
	_, err := callCompleteTask.Do(ctx, c.client, taskCommandArgs[task.Complete]{guid, command})
	return err
}

// RejectStartedTask is [BBS.RejectStartedTask].
func (c *BBSClient) RejectStartedTask(ctx context.Context, guid string, command task.Reject) error {
	_, err := callRejectStartedTask.Do(ctx, c.client, taskCommandArgs[task.Reject]{guid, command})
	return err
}

// FailActualLRP is [BBS.FailActualLRP].
func (c *BBSClient) FailActualLRP(ctx context.Context, key lrp.Key, why lrp.PlacementError) error {
	_, err := callFailActualLRP.Do(ctx, c.client, failArgs{key, why})
	return err
}

// RejectTask is [BBS.RejectTask].
func (c *BBSClient) RejectTask(ctx context.Context, guid string, attempt task.Attempt, reason string) (next task.Attempt, again bool, err error) {
	a, err := callRejectTask.Do(ctx, c.client, rejectArgs{guid, attempt, reason})
	return a.Next, a.Again, err
}

// Converge is [ControlPlane.Converge].
func (c *BBSClient) Converge(ctx context.Context) error {
	_, err := callConverge.Do(ctx, c.client, wire.None{})
	return err
}
