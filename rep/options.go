package rep

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An Executor has the containers of the cell; *manager.Manager is one. Its
// methods may be called concurrently, and none but ReadFile waits for anything.
type Executor interface {
	Reserve(list ...executor.Reservation) []executor.Refusal
	Initialize(guid string, w executor.Work) error
	Stop(guid string) error
	Delete(guid string)
	Get(guid string) (executor.Container, bool)
	List() []executor.Container
	Total() executor.Capacity
	Remaining() executor.Capacity
	ReadFile(ctx context.Context, guid, path string) ([]byte, error)
	Subscribe() executor.Subscription
}

// A Clearer is an [Executor] that removes from its host what an earlier run of
// the cell has left there. Until then the leftovers may still run, so the rep
// neither announces the cell nor reports that anything is gone. Cleared may be
// called concurrently.
type Clearer interface {
	// Cleared returns a channel that is closed once nothing is left.
	Cleared() <-chan struct{}
}

// A VolumeLister is an [Executor] whose volume drivers come and go. Its method
// may be called concurrently.
type VolumeLister interface {
	// VolumeDrivers returns those that can mount volumes now, sorted. It does not
	// wait.
	VolumeDrivers() []string
}

// An UnmountWaiter is an [Executor] that knows how many volumes of containers that
// are gone could not be unmounted yet. Its method may be called concurrently.
type UnmountWaiter interface {
	WaitingUnmounts() int
}

// A BBS is where the rep reports; the control plane's BBS is one. Its methods
// may be called concurrently. A refusal is an *lrp.TransitionError or a
// *task.TransitionError, and a missing record is a storage.ErrNotFound. After
// any other error it is unknown whether the call was carried out.
type BBS interface {
	ActualLRPs(context.Context, storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error]
	Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error)
	Deployments(context.Context, storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error]
	Tasks(context.Context, storage.TaskFilter) iter.Seq2[*task.Task, error]
	Task(ctx context.Context, guid string) (*task.Task, error)

	ClaimLRP(ctx context.Context, processGUID string, index int, c lrp.Claim) error
	StartLRP(ctx context.Context, processGUID string, index int, c lrp.Start) error
	CrashLRP(ctx context.Context, processGUID string, index int, c lrp.Crash) error
	RemoveLRP(ctx context.Context, processGUID string, index int, c lrp.Remove) error
	EvacuateClaimedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateClaimed) (keep bool, err error)
	EvacuateRunningLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateRunning) (keep bool, err error)
	EvacuateStoppedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateStopped) (keep bool, err error)
	EvacuateCrashedLRP(ctx context.Context, processGUID string, index int, c lrp.EvacuateCrashed) (keep bool, err error)
	RemoveEvacuatingLRP(ctx context.Context, processGUID string, index int, c lrp.RemoveEvacuating) error

	StartTask(ctx context.Context, guid string, c task.Start) (shouldRun bool, err error)
	CompleteTask(ctx context.Context, guid string, c task.Complete) error
	RejectStartedTask(ctx context.Context, guid string, c task.Reject) error
}

// An Announcer keeps the cell present. Its methods may be called concurrently.
// An error of Tick that wraps storage.ErrHeld says that another run of this
// cell is present.
type Announcer interface {
	// Tick announces the cell, or renews its presence.
	Tick(ctx context.Context) error
	// Leave ends the presence at once.
	Leave(ctx context.Context) error
}

// The defaults of Options.
const (
	DefaultConcurrency        = 16
	DefaultSyncInterval       = 30 * time.Second
	DefaultRetryInterval      = 5 * time.Second
	DefaultCallTimeout        = 10 * time.Second
	DefaultAnnounceInterval   = 5 * time.Second
	DefaultEvacuationInterval = 10 * time.Second
	DefaultEvacuationTimeout  = 10 * time.Minute
	DefaultFinishTimeout      = 30 * time.Second
	DefaultStopPause          = 5 * time.Second
)

// Options configure a [Rep]. They are a plain value. Zero values mean the
// defaults.
type Options struct {
	// CellID is unique in the fleet. It is required, as are BBS and Executor.
	CellID   string
	BBS      BBS
	Executor Executor
	// Announcer keeps the cell present while Run or Tick is called. Nil means
	// that somebody else does, and that this is the only run of the cell.
	Announcer Announcer

	// Zone is the availability zone.
	Zone string
	// PreferredAddress is what the cell reports of its instances. A container
	// without an address of its own prefers the host to itself.
	PreferredAddress lrp.PreferredAddress
	// RootFSProviders, VolumeDrivers and the tags tell the auctioneer what it
	// may place here; see auction.CellState. If the Executor is a VolumeLister,
	// it says which VolumeDrivers there are, and the option is not used.
	RootFSProviders, VolumeDrivers       []string
	PlacementTags, OptionalPlacementTags []string
	// RefusedFields are fields of definitions that the Executor refuses; those of
	// a manager.Manager come from its method of that name.
	RefusedFields []string
	// Index orders the cells of a zone for bin packing.
	Index int

	// Cordoned says that the cell begins cordoned; see [Cordoner].
	Cordoned bool
	// KeepCordon remembers for the next run of the cell whether it is cordoned. If
	// it fails, the cordon does not change. Calls never overlap. Nil means that a
	// cordon ends with this run.
	KeepCordon func(cordoned bool) error

	// SelfTest finds out whether the cell can still make containers. Nil means
	// no test.
	SelfTest *SelfTest

	// Concurrency is how many containers are settled at a time, each by one
	// operation (default DefaultConcurrency). Domains take turns, and one domain
	// has at most one less. With 1, everything that Sync and Tick do happens in the
	// caller's goroutine, in a fixed order.
	Concurrency int
	// SyncInterval is the time between two regular Syncs (default
	// DefaultSyncInterval). RetryInterval is the wait after a failure (default
	// DefaultRetryInterval).
	SyncInterval, RetryInterval time.Duration
	// CallTimeout bounds every call of the BBS (default DefaultCallTimeout).
	CallTimeout time.Duration
	// AnnounceInterval is the time between two calls of the Announcer (default
	// DefaultAnnounceInterval). It should be a third of the time for which a
	// cell is present.
	AnnounceInterval time.Duration
	// EvacuationInterval is the time between two Syncs of an evacuating cell
	// (default DefaultEvacuationInterval).
	EvacuationInterval time.Duration
	// EvacuationTimeout is how long the work may take to leave an evacuating
	// cell (default DefaultEvacuationTimeout). FinishTimeout is how long the
	// rep then tries to report what is left to a BBS that does not answer
	// (default DefaultFinishTimeout).
	EvacuationTimeout, FinishTimeout time.Duration

	// StopPause is the time between the moment at which an instance's route is
	// withdrawn, because another instance has replaced it, and the signal that
	// ends it (default DefaultStopPause; negative: none). Routers need that
	// time to learn of it.
	StopPause time.Duration

	// NewGUID makes the guids of instances; each must be unique in the fleet
	// (default random UUIDs).
	NewGUID func() string
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil. Every line of the log names the cell.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	var v executor.Validator
	v.Check(o.CellID != "", "cell_id", "", "not empty")
	v.Check(o.BBS != nil, "bbs", "", "not nil")
	v.Check(o.Executor != nil, "executor", "", "not nil")
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), DefaultConcurrency)
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"sync_interval", &o.SyncInterval, DefaultSyncInterval}, {"retry_interval", &o.RetryInterval, DefaultRetryInterval},
		{"call_timeout", &o.CallTimeout, DefaultCallTimeout}, {"announce_interval", &o.AnnounceInterval, DefaultAnnounceInterval},
		{"evacuation_interval", &o.EvacuationInterval, DefaultEvacuationInterval},
		{"evacuation_timeout", &o.EvacuationTimeout, DefaultEvacuationTimeout}, {"finish_timeout", &o.FinishTimeout, DefaultFinishTimeout},
	} {
		*d.value = cmp.Or(*d.value, d.fallback)
		v.Check(*d.value > 0, d.name, *d.value, "not negative")
	}
	o.StopPause = max(cmp.Or(o.StopPause, DefaultStopPause), 0)
	if o.SelfTest != nil {
		test := o.SelfTest.withDefaults(v.In("self_test"))
		o.SelfTest = &test
	}
	if o.NewGUID == nil {
		o.NewGUID = newGUID
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Now = executor.UTC(o.Now)
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Logger = o.Logger.With("cell", o.CellID)
	return o, v.Err()
}

// newGUID is a random UUID of version 4.
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
