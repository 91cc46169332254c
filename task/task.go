package task

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A ModificationTag orders the versions of one record. LRPs have the same.
type ModificationTag = executor.ModificationTag

// A MetricTag labels the metrics of a task.
type MetricTag = executor.MetricTag

// MaxResultBytes is the longest result that a task may have: 50 KiB.
const MaxResultBytes = 50 * 1024

// A Definition says how a task is scheduled, what runs, and where its
// completion callback goes. It never changes.
type Definition struct {
	executor.Resources
	executor.RunInfo
	// PlacementTags choose the cells, as they do for LRPs. A new task has at most 100,
	// and none twice.
	PlacementTags []string `json:"placement_tags,omitempty"`
	// ResultFile is the path of a file in the container whose content becomes
	// the task's Result if it succeeds; empty means that there is no result.
	ResultFile string `json:"result_file,omitempty"`
	// CompletionCallbackURL is where a [CallbackResponse] is sent when the
	// task has completed; empty means that the consumer polls.
	CompletionCallbackURL string `json:"completion_callback_url,omitempty"`
	// Annotation is free text of at most 10 KiB.
	Annotation string `json:"annotation,omitempty"`
	// Labels are keys and values by which consumers choose tasks: at most 32, each
	// key and each value with at most 128 letters, digits and - _ . / : @, a letter
	// or digit at both ends. Values may be empty.
	Labels map[string]string `json:"labels,omitempty"`
	// MetricTags label the output of the task; see rep.LogLabels and docs/logs.md.
	MetricTags map[string]MetricTag `json:"metric_tags,omitempty"`
	// ImageUsername and ImagePassword are set together or not at all. They are
	// for cells of other modules that log in to a registry; the cells of this one
	// refuse work that has them. See executor.Demands.
	ImageUsername string `json:"image_username,omitempty"`
	ImagePassword string `json:"image_password,omitempty"`
}

// A Task is the record of one task. A record is a value: its holder may keep
// it, and nobody may change what it points to. In JSON the definition's members
// are beside the task's own.
type Task struct {
	GUID   string `json:"task_guid"`
	Domain string `json:"domain"`
	Definition
	State State `json:"state"`
	// CellID and InstanceGUID name the container: the α of the specification's
	// tables. Both are set while RUNNING, stay when the task completes, and are
	// empty if no cell has the task.
	CellID       string `json:"cell_id,omitempty"`
	InstanceGUID string `json:"instance_guid,omitempty"`
	// Failed says how a COMPLETED or RESOLVING task ended. If true,
	// FailureReason says why; if not, Result may hold the result file.
	Failed bool `json:"failed,omitempty"`
	// FailureReason is at most 1024 bytes.
	FailureReason string `json:"failure_reason,omitempty"`
	// Result is at most [MaxResultBytes].
	Result string `json:"result,omitempty"`
	// RejectionCount is how often the task was rejected; RejectionReason (at most
	// 1024 bytes) is the reason of the last time.
	RejectionCount  int       `json:"rejection_count,omitempty"`
	RejectionReason string    `json:"rejection_reason,omitempty"`
	CreatedAt       time.Time `json:"-"` // see MarshalJSON
	// UpdatedAt is when the record last changed.
	UpdatedAt time.Time `json:"-"`
	// FirstCompletedAt is when the task first became COMPLETED; zero before.
	FirstCompletedAt time.Time       `json:"-"`
	ModificationTag  ModificationTag `json:"modification_tag"`
}

// An Attempt names one try to run a task. It goes with the work to the cell and
// comes back in the commands of the cell and the auctioneer. So a reservation
// for an earlier try, or for an earlier task of the same guid, cannot be
// mistaken for this one.
//
// In a command, the zero Attempt means "the current one, whichever that is".
// Only callers that do not know the attempt use it: it cannot tell a task from
// another that has taken its guid.
type Attempt struct {
	// Epoch is the record's epoch; another task of the same guid has another.
	Epoch int64 `json:"epoch,string"`
	// Rejections is how often the task was rejected before.
	Rejections int `json:"rejections"`
}

// Attempt is the current try to run t.
func (t *Task) Attempt() Attempt {
	return Attempt{Epoch: t.ModificationTag.Epoch, Rejections: t.RejectionCount}
}
