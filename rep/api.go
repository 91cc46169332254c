package rep

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

// An API has the calls of a cell, for the control plane and for operators, in
// this process or over HTTP. Its methods may be called at the same time. A cell
// that is also an auction.InventoryClient lets the control plane find records
// whose containers are gone; a wrapper has to pass that on.
type API interface {
	auction.CellClient
	// Evacuate begins to empty the cell (000 §Evacuation). A cell that
	// evacuates already goes on.
	Evacuate(ctx context.Context) error
	// Evacuation returns the progress of the evacuation.
	Evacuation(ctx context.Context) (EvacuationStatus, error)
	// Containers are those on the cell, ordered by guid. They have no RunInfo: it is
	// large and has secrets, such as passwords in its environment. The definition in
	// the BBS has the same. A remote cell of release 0.1 sends the RunInfos.
	Containers(ctx context.Context) ([]executor.Container, error)
	// Logs returns the output of a container. Of a container that is gone, it
	// returns the last output, as long as the cell keeps that. The error wraps
	// storage.ErrNotFound if the cell has no output of the container.
	Logs(ctx context.Context, r LogRequest) iter.Seq2[LogChunk, error]
}

// A Cordoner is an optional interface of an API: operators keep work away from the
// cell with it, and give up an evacuation. Without it, both are refused. Its
// methods may be called concurrently, and repeated.
type Cordoner interface {
	// Cordon says whether the cell is cordoned from now on. A cordoned cell takes
	// no work and keeps what it has, which still runs, crashes and is updated. The
	// next run of the cell is cordoned too, as far as the cell keeps that; see
	// Options.KeepCordon.
	Cordon(ctx context.Context, cordoned bool) error
	// CancelEvacuation gives up an evacuation, if one is under way: what is still
	// on the cell stays, and the cell takes work again unless it is cordoned. The
	// error wraps ErrEvacuationEnds once the cell ends what is left.
	CancelEvacuation(ctx context.Context) error
}

// A Meter is an optional interface of an API: it says what containers use. Its
// method may be called concurrently.
type Meter interface {
	// Usages returns the latest measurement of each RUNNING container, ordered by
	// guid.
	Usages(ctx context.Context) ([]ContainerUsage, error)
}

// Sessions is an optional interface of an API: it runs programs in containers and
// copies files, with the rights of the container's user. Its methods may be called
// concurrently. They end soon after their context, and end what they have started.
// The error is an *executor.SessionError if nobody can work in the container now,
// and wraps storage.ErrNotFound if the cell does not have it.
type Sessions interface {
	// Exec runs a program in a container until it ends, and returns how.
	Exec(ctx context.Context, r ExecRequest, s executor.Streams) (executor.Exit, error)
	// CopyIn unpacks a tar stream with one file or directory in a container: into
	// the directory at the path or, if there is none, as the path.
	CopyIn(ctx context.Context, r CopyRequest, tar io.Reader) error
	// CopyOut writes the file or directory at a path as a tar stream.
	CopyOut(ctx context.Context, r CopyRequest, tar io.Writer) error
}

// An ExecRequest is a program to be run in a container. It is a plain value.
type ExecRequest struct {
	ContainerGUID string `json:"container_guid"`
	executor.Program
}

// A CopyRequest says what to copy into a container or out of it. It is a plain
// value.
type CopyRequest struct {
	ContainerGUID string `json:"container_guid"`
	// Path is absolute, in the container.
	Path string `json:"path"`
}

// A ContainerUsage says what a container uses, and how much it may use. An
// unknown figure is executor.Unknown (-1), and a limit of 0 means that there is
// none.
type ContainerUsage struct {
	ContainerGUID string `json:"container_guid"`
	// ProcessGUID and Index are those of an instance, TaskGUID that of a task.
	ProcessGUID string `json:"process_guid,omitempty"`
	Index       *int   `json:"index,omitempty"`
	TaskGUID    string `json:"task_guid,omitempty"`
	Domain      string `json:"domain,omitempty"`
	// Tags are the metric tags, with dynamic values filled in, and source_id: the
	// metrics_guid, or else the guid of the process or task.
	Tags map[string]string `json:"tags,omitempty"`
	// MeasuredAt is when the container was measured.
	MeasuredAt time.Time `json:"measured_at"`

	// Cores is the processor time per second since the last measurement: 1.5 is one
	// and a half processors. CPU is all processor time so far.
	Cores float64       `json:"cores"`
	CPU   time.Duration `json:"cpu_nanoseconds"`

	MemoryBytes      int64 `json:"memory_bytes"`
	MemoryLimitBytes int64 `json:"memory_limit_bytes"`
	DiskBytes        int64 `json:"disk_bytes"`
	DiskLimitBytes   int64 `json:"disk_limit_bytes"`
	// PIDs are processes and threads.
	PIDs    int64 `json:"pids"`
	MaxPIDs int64 `json:"max_pids"`

	// ReceivedBytes and SentBytes passed the container's own network so far; the
	// others are rates per second since the last measurement.
	ReceivedBytes     int64   `json:"received_bytes"`
	SentBytes         int64   `json:"sent_bytes"`
	ReceivedPerSecond float64 `json:"received_bytes_per_second"`
	SentPerSecond     float64 `json:"sent_bytes_per_second"`
}

// LogDomains is an optional interface of an API: it lets consumers read the logs of
// their own domains. Without it, only operators read the cell's logs, so a wrapper
// has to pass it on. Its method may be called concurrently.
type LogDomains interface {
	// LogDomain is the domain of the process or task that a container is or was
	// for; "" if the container has none or the cell does not know it. The error
	// wraps storage.ErrNotFound if the cell has no output of the container.
	LogDomain(ctx context.Context, containerGUID string) (string, error)
}

// An EvacuationStatus is the progress of an evacuation.
type EvacuationStatus struct {
	Evacuating bool `json:"evacuating"`
	// BeganAt is when the evacuation began, and Deadline when it ends at the latest.
	// Both are zero unless Evacuating.
	BeganAt  time.Time `json:"began_at,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Containers is how many are left.
	Containers int `json:"containers"`
	// Waiting says why containers stay, as far as that is known: "web/0: no cell
	// takes its replacement: …".
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

// LogLabels say whose output a piece of a log is, for programs that collect
// logs. docs/logs.md says where forwarded lines have them. The Source is not
// known for a container whose daemon was killed.
type LogLabels struct {
	// LogGUID is the definition's log_guid, or else the guid of the process or
	// task.
	LogGUID string `json:"log_guid,omitempty"`
	// Source is the log_source of the action that wrote it: its own, or else that
	// of the action around it, or else the definition's.
	Source string `json:"source,omitempty"`
	// Tags are the metric tags of the process or task when the reading began, with
	// dynamic values filled in, and a metrics_guid as source_id. They are left out
	// if the BBS did not answer.
	Tags         map[string]string `json:"tags,omitempty"`
	InstanceGUID string            `json:"instance_guid"`
	// Domain is the process's or task's.
	Domain string `json:"domain,omitempty"`
	// Index is the instance's; nil for a task.
	Index *int `json:"index,omitempty"`
	// Stream is "stdout", "stderr" or "health".
	Stream string `json:"stream"`
}

// A LogChunk is a piece of a container's output.
type LogChunk struct {
	// Labels say whose output Data is. They are set in the first chunk and
	// wherever they change; the chunks after it have the same.
	Labels *LogLabels `json:"labels,omitempty"`
	// Next is the number of the byte after Data: where to go on.
	Next int64  `json:"next"`
	Data []byte `json:"data"`
}
