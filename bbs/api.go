package bbs

import (
	"context"
	"iter"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An API has the calls of a [BBS], in this process or, through a
// httpapi.RemoteBBS, over HTTP. BBS documents them. Its methods may be called
// at the same time.
type API interface {
	// The desired state.
	Desire(ctx context.Context, l lrp.DesiredLRP) error
	CreateDeployment(ctx context.Context, c lrp.DeploymentDefinition) error
	UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error
	UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (string, error)
	ActivateDefinition(ctx context.Context, processGUID, definitionID string) error
	RollBack(ctx context.Context, processGUID string, revision int) error
	RestartDeployment(ctx context.Context, processGUID string) error
	Revisions(ctx context.Context, processGUID string) ([]lrp.Revision, error)
	DeleteDeployment(ctx context.Context, processGUID string) error
	PauseRollout(ctx context.Context, processGUID string) error
	ResumeRollout(ctx context.Context, processGUID string) error
	ConfirmRollout(ctx context.Context, processGUID string) error
	AbortRollout(ctx context.Context, processGUID string) error
	ContinueRollout(ctx context.Context, processGUID string) error
	RolloutStatus(ctx context.Context, processGUID string) (lrp.RolloutStatus, error)
	Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error)
	DesiredLRPs(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.DesiredLRP, error]
	DesiredLRP(ctx context.Context, processGUID string) (lrp.DesiredLRP, error)
	RoutingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.RoutingInfo, error]
	SchedulingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.SchedulingInfo, error]

	// The actual state.
	ResolvedLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error]
	ActualLRPGroups(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.Group, error]
	ActualLRPGroup(ctx context.Context, processGUID string, index int) (lrp.Group, error)
	Retire(ctx context.Context, processGUID string, index int, definitionID string) error
	RestartPolicy(ctx context.Context) (lrp.RestartPolicy, error)

	UpsertDomain(ctx context.Context, name string, ttl time.Duration) error
	Domains(ctx context.Context) ([]DomainStatus, error)
	Cells(ctx context.Context) ([]CellPresence, error)

	// Tasks.
	DesireTask(ctx context.Context, c task.Desire) error
	CancelTask(ctx context.Context, guid string) error
	ResolveTask(ctx context.Context, guid string) error
	DeleteTask(ctx context.Context, guid string) error
	ResolveAndDeleteTask(ctx context.Context, guid string) error
	FailTask(ctx context.Context, guid, reason string) error

	// The history.
	Log(ctx context.Context) (storage.Extent, error)
	Subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter) (iter.Seq2[storage.Event, error], error)
	Timeline(ctx context.Context, processGUID string, index int) ([]TimelineEntry, error)

	// Presence of cells.
	Announce(ctx context.Context, p CellPresence, owner string, ttl time.Duration) error
	Leave(ctx context.Context, cellID, owner string) error
	// ReportSessions says who has worked in a cell's containers.
	ReportSessions(ctx context.Context, cellID string, list []storage.SessionEvent) error
	// Calls of cells, which others read too: single records, and the lists of
	// deployments, ActualLRPs and tasks.
	rep.BBS

	// Calls of the auctioneer.
	auction.Reporter
}

// ConvergenceAPI has the calls of convergence: of a diego.ControlPlane, or of
// another process through an httpapi.RemoteBBS. Its methods may be called
// concurrently.
type ConvergenceAPI interface {
	// Converge begins a pass at once. The error is a *[NotLeaderError] on a
	// process that does not lead.
	Converge(ctx context.Context) error
}

var _ API = (*BBS)(nil)
