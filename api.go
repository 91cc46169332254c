package diego

import (
	"context"
	"iter"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// BBSAPI is what a [BBS] can be asked, in this process or, through a
// [BBSClient], over HTTP. Its methods are documented at BBS.
type BBSAPI interface {
	// What is desired.
	Desire(ctx context.Context, l lrp.DesiredLRP) error
	CreateDeployment(ctx context.Context, c lrp.DeploymentDefinition) error
	UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error
	UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (string, error)
	ActivateDefinition(ctx context.Context, processGUID, definitionID string) error
	DeleteDeployment(ctx context.Context, processGUID string) error
	ContinueRollout(ctx context.Context, processGUID string) error
	RolloutStatus(ctx context.Context, processGUID string) (lrp.RolloutStatus, error)
	Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error]
	DesiredLRPs(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.DesiredLRP, error]
	DesiredLRP(ctx context.Context, processGUID string) (lrp.DesiredLRP, error)

	// What is there.
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

	// What happened.
	Log(ctx context.Context) (storage.Extent, error)
	Subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter) (iter.Seq2[storage.Event, error], error)
	Timeline(ctx context.Context, processGUID string, index int) ([]TimelineEntry, error)

	// What cells say.
	Announce(ctx context.Context, p CellPresence, owner string, ttl time.Duration) error
	Leave(ctx context.Context, cellID, owner string) error
	// What cells read and report, and others read too: single records, and the
	// lists of ActualLRPs and tasks.
	rep.BBS

	// What the auctioneer says.
	auction.Reporter
}

// An AuctioneerAPI places work: a [ControlPlane], an [Auctioneer], or through an
// [AuctioneerClient] one of another process.
type AuctioneerAPI interface {
	// Request adds work to the next batch. The error is a *[NotLeaderError] on
	// a process that does not lead.
	Request(ctx context.Context, items ...auction.Item) error
	// Plan says where work would go if it were requested now, and asks the
	// cells to that end. Nothing is sent to them.
	Plan(ctx context.Context, items ...auction.Item) (auction.Result, error)
}

// ConvergenceAPI is what convergence can be asked: of a [ControlPlane], or of
// another process through a [BBSClient].
type ConvergenceAPI interface {
	// Converge begins a pass at once. The error is a *[NotLeaderError] on a
	// process that does not lead.
	Converge(ctx context.Context) error
}

// A Cell is what a cell can be asked by the control plane and by operators, in
// this process or through a [CellClient].
type Cell interface {
	auction.CellClient
	// Evacuate begins to empty the cell (000 §Evacuation). A cell that
	// evacuates already goes on.
	Evacuate(ctx context.Context) error
	// Evacuation says how far that is.
	Evacuation(ctx context.Context) (EvacuationStatus, error)
	// Containers are those on the cell, ordered by guid.
	Containers(ctx context.Context) ([]executor.Container, error)
	// Logs are what a container writes or, for one that is gone, the last of what
	// it wrote, as long as the cell keeps that. The error wraps
	// storage.ErrNotFound if there is nothing to read of such a container.
	Logs(ctx context.Context, r LogRequest) iter.Seq2[LogChunk, error]
}

// An EvacuationStatus says how far a cell is on its way to being empty.
type EvacuationStatus struct {
	Evacuating bool `json:"evacuating"`
	// BeganAt is when that began, Deadline when it ends at the latest; zero
	// unless Evacuating.
	BeganAt  time.Time `json:"began_at,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Containers is how many are left.
	Containers int `json:"containers"`
	// Waiting says why they stay, for as many as are known: "web/0: no cell takes
	// its replacement: …".
	Waiting []string `json:"waiting,omitempty"`
	// Done says that the evacuation is over, and the cell may be switched off.
	Done bool `json:"done"`
}

// A LogRequest says what to read of a container's output.
type LogRequest struct {
	ContainerGUID string `json:"container_guid"`
	// Stream is "stdout", "stderr" or "health" (default "stdout").
	Stream string `json:"stream,omitempty"`
	// From is the number of the first byte, counted from the container's first.
	// Bytes that are not kept any more are passed over.
	From int64 `json:"from,omitempty"`
	// Follow waits for more at the end, until the container is deleted.
	Follow bool `json:"follow,omitempty"`
}

// A LogChunk is a piece of a container's output.
type LogChunk struct {
	// Next is the number of the byte after Data: where to go on.
	Next int64  `json:"next"`
	Data []byte `json:"data"`
}

var (
	_ BBSAPI         = (*BBS)(nil)
	_ BBSAPI         = (*BBSClient)(nil)
	_ ConvergenceAPI = (*ControlPlane)(nil)
	_ ConvergenceAPI = (*BBSClient)(nil)
	_ AuctioneerAPI  = (*ControlPlane)(nil)
	_ AuctioneerAPI  = (*AuctioneerClient)(nil)
	_ Cell           = (*CellClient)(nil)

	_ auction.InventoryClient = (*CellClient)(nil)
	_ auction.InventoryClient = LocalCell{}
)
