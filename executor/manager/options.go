package manager

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"runtime"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/transfer"
	"github.com/diegosdk/diego/internal/reach"
)

// The defaults of Options.
const (
	DefaultContainers        = 250
	DefaultMaxPIDs           = 1024
	DefaultGrace             = 10 * time.Second
	DefaultUnhealthyInterval = 500 * time.Millisecond
	DefaultHealthyInterval   = 30 * time.Second
	DefaultReapInterval      = time.Minute
	DefaultDeleteWorkers     = 32
	DefaultProcessWorkers    = 64
	DefaultDownloads         = transfer.DefaultDownloads
	DefaultUploads           = 5
	DefaultEndedLogs         = 200
	DefaultEndedLogBytes     = 64 << 10
	DefaultVolumeTimeout     = 30 * time.Second
	DefaultVolumeInterval    = 10 * time.Second
	DefaultSessions          = 32
	DefaultSessionsEach      = 4
	DefaultSessionIdle       = time.Hour
)

// MaxResultBytes is the longest file that [Manager.ReadFile] returns.
const MaxResultBytes = 50 << 10

// exitTimeout is how long a process may take to be gone after KILL before the
// container goes on without it.
const exitTimeout = time.Second

// Options configure a Manager. They are a plain value. Only Backend is
// required.
type Options struct {
	Backend executor.ContainerBackend
	// Dir holds logs, the download cache, temporary files, and what containers have
	// mounted of volumes. It belongs to the Manager, which empties it. Without it,
	// output is discarded, and every download and upload fails.
	Dir string
	// Capacity is what the cell has for containers. A zero field takes what the
	// backend knows of its host. If the backend does not know it either,
	// Containers are DefaultContainers, PIDs are not counted, and a lack of the
	// others is an error.
	Capacity Capacity
	// DefaultMaxPIDs is the limit for containers that set none; 0 means
	// DefaultMaxPIDs.
	DefaultMaxPIDs int64
	// Grace is the time between TERM and KILL for containers that set none; 0
	// means DefaultGrace.
	Grace time.Duration
	// UnhealthyInterval is the time between two probes until a container is
	// healthy or ready, and HealthyInterval afterwards (002 §Monitoring
	// Health). 0 means DefaultUnhealthyInterval and DefaultHealthyInterval.
	// A pause of 10 s and more ends at a whole second, up to a second early.
	UnhealthyInterval, HealthyInterval time.Duration
	// ReservationExpiry is how long a reservation waits for its work; 0 means
	// executor.DefaultReservationExpiry.
	ReservationExpiry time.Duration
	// ReapInterval is the time between two comparisons with what the backend
	// lists; 0 means DefaultReapInterval.
	ReapInterval time.Duration
	// UsageInterval is the time between two measurements of a container; see
	// Manager.Measurements. 0 means none. A container that is slow to measure,
	// because it has many files and no disk limit, is measured less often.
	UsageInterval time.Duration
	// CreateWorkers and DeleteWorkers bound how many containers are made and
	// removed at once. ProcessWorkers bounds how many processes are started,
	// how many signals are sent, and how many probes run at once. Downloads and
	// Uploads bound transfers, including those of cached dependencies. 0 means
	// the default of that name, and for CreateWorkers two for each processor, but
	// from 8 to 32: containers that are made at the same time hold each other up.
	CreateWorkers, DeleteWorkers, ProcessWorkers, Downloads, Uploads int
	// Sessions bounds the calls of Exec, CopyIn and CopyOut at a time, and
	// SessionsEach those in one container; 0 means DefaultSessions and
	// DefaultSessionsEach. Negative Sessions refuse all of them. A quarter of
	// Sessions, rounded up, bounds those of one caller; see Manager.Enter.
	Sessions, SessionsEach int
	// SessionIdle is how long such a call may last while nothing is sent in either
	// direction; 0 means DefaultSessionIdle.
	SessionIdle time.Duration
	// LogSegmentBytes and LogSegments bound each of the three logs of a
	// container; 0 means 5 MiB and 2.
	LogSegmentBytes int64
	LogSegments     int
	// EndedLogs is the number of deleted containers whose last output is kept,
	// and EndedLogBytes how much of each of their three logs; 0 means 200 and
	// 64 KiB, and a negative number of containers none.
	EndedLogs     int
	EndedLogBytes int64
	// LogSink receives every line of the containers' logs, in order for each stream,
	// even if a full disk does not take the line; nil discards them. The container's
	// output waits for LogSink, so it must return at once. It is called from many
	// goroutines. Without Dir there are no logs, so it receives nothing. See package
	// rep/logforward.
	LogSink func(LogLine)
	// CacheBytes is the size of the download cache, not counting what is in
	// use. It also bounds what containers without a DiskMB may have in use. 0
	// means 10 GB.
	CacheBytes int64
	// MaxDownloadBytes is the size of the largest archive, and MaxContentBytes
	// the most that an archive may unpack to or an upload may hold; 0 means 4
	// GiB and 8 GiB.
	MaxDownloadBytes, MaxContentBytes int64
	// MaxContentEntries is how many files, directories and links an archive may
	// have; 0 means 500,000.
	MaxContentEntries int
	// TransferAllow and TransferDeny are networks that transfers may and may
	// not reach. An address in an allowed network may be reached. Of the rest,
	// transfers reach neither denied networks nor the host's loopback,
	// link-local and unspecified addresses, its containers, metadata services
	// and multicast.
	// The address that is dialled counts, after redirects too. Transfers use no
	// proxies.
	TransferAllow, TransferDeny []netip.Prefix
	// TransferTLS returns the configuration of a transfer's connection to a host,
	// which is a name or an address, for example with a client certificate; nil
	// means the default, for one host or for all. It is called for each new
	// connection, from many goroutines, and what it returns is cloned.
	TransferTLS func(host string) *tls.Config
	// HTTPClient makes transfers in place of the default client, which waits a
	// minute for an answer to begin. TransferAllow, TransferDeny and
	// TransferTLS do not apply to it.
	HTTPClient *http.Client
	// Volumes are the volume drivers by name. Without Dir, nobody unmounts what
	// a daemon that was killed had mounted.
	Volumes map[string]VolumeDriver
	// VolumeTimeout bounds each call of a volume driver; 0 means
	// DefaultVolumeTimeout. VolumeInterval is the time between two probes of a
	// driver that is a VolumeProber; 0 means DefaultVolumeInterval.
	VolumeTimeout, VolumeInterval time.Duration
	// TrustedCertificates is a directory of the host. It is mounted read-only
	// where a container wants its trusted certificates. Without it such a
	// container gets none.
	TrustedCertificates string
	// Identity signs a certificate for each container, which finds it and its key
	// in the directory CredentialsDir and by the variables CF_INSTANCE_CERT and
	// CF_INSTANCE_KEY. It takes Dir. Without it, work with certificate_properties
	// is refused, unless the backend has executor.FeatureIdentity.
	Identity *identity.Authority
	// Observer receives what operators count; nil discards it.
	Observer Observer
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Delay returns how much virtual time a job takes when Tick carries it out;
	// nil means none. It is for simulations; Run does not call it.
	Delay func(Job) time.Duration
	// Logger receives failures of the host that no answer reports; nil discards
	// them.
	Logger *slog.Logger
}

// An Observer receives what operators count. Its methods are called at the same
// time by several goroutines, and must return at once.
type Observer interface {
	// Created says how long a container took to be made, without its volumes and
	// without what was fetched for it before, or why that failed. A fetch that fails
	// is reported too, with the time that it took.
	Created(took time.Duration, err error)
	// CheckFailed says that a check has had a consequence. A check that fails
	// while a container starts has none.
	CheckFailed(CheckConsequence)
}

// A CheckConsequence is what a failed check leads to.
type CheckConsequence string

const (
	// BecameUnhealthy: a check of health has ended a container that was healthy.
	BecameUnhealthy CheckConsequence = "unhealthy"
	// NeverHealthy: a container has ended because it was not healthy in time.
	NeverHealthy CheckConsequence = "never_healthy"
	// NotReady: a check of readiness has taken a container's traffic away.
	NotReady CheckConsequence = "not_ready"
)

type noObserver struct{}

func (noObserver) Created(time.Duration, error) {}
func (noObserver) CheckFailed(CheckConsequence) {}

func orDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// validate checks the options and fills in the defaults.
func (o *Options) validate(host executor.Host) error {
	orDefault(&o.Capacity.Containers, host.Containers)
	orDefault(&o.Capacity.Containers, DefaultContainers)
	orDefault(&o.Capacity.MemoryMB, host.MemoryMB)
	orDefault(&o.Capacity.DiskMB, host.DiskMB)
	orDefault(&o.Capacity.PIDs, host.PIDs)
	if o.Capacity.MemoryMB <= 0 {
		return fmt.Errorf("manager: Options.Capacity.MemoryMB is not set and the %s backend does not know it", host.Backend)
	}
	if o.Capacity.DiskMB <= 0 {
		return fmt.Errorf("manager: Options.Capacity.DiskMB is not set and the %s backend does not know it", host.Backend)
	}
	var v executor.Validator
	if o.Capacity.Extra.Validate(&v, "Options.Capacity.Extra"); v.Err() != nil {
		return fmt.Errorf("manager: %w", v.Err())
	}
	if o.Identity != nil && o.Dir == "" {
		return errors.New("manager: Options.Identity writes files: set Options.Dir")
	}
	orDefault(&o.DefaultMaxPIDs, DefaultMaxPIDs)
	orDefault(&o.Grace, DefaultGrace)
	orDefault(&o.UnhealthyInterval, DefaultUnhealthyInterval)
	orDefault(&o.HealthyInterval, DefaultHealthyInterval)
	orDefault(&o.ReservationExpiry, executor.DefaultReservationExpiry)
	orDefault(&o.ReapInterval, DefaultReapInterval)
	orDefault(&o.CreateWorkers, min(max(2*runtime.GOMAXPROCS(0), 8), 32))
	orDefault(&o.DeleteWorkers, DefaultDeleteWorkers)
	orDefault(&o.ProcessWorkers, DefaultProcessWorkers)
	orDefault(&o.Downloads, DefaultDownloads)
	orDefault(&o.Uploads, DefaultUploads)
	orDefault(&o.VolumeTimeout, DefaultVolumeTimeout)
	orDefault(&o.VolumeInterval, DefaultVolumeInterval)
	orDefault(&o.EndedLogs, DefaultEndedLogs)
	orDefault(&o.Sessions, DefaultSessions)
	orDefault(&o.SessionsEach, DefaultSessionsEach)
	orDefault(&o.SessionIdle, DefaultSessionIdle)
	orDefault(&o.EndedLogBytes, DefaultEndedLogBytes)
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"EndedLogBytes", o.EndedLogBytes},
		{"Capacity.Containers", o.Capacity.Containers}, {"Capacity.PIDs", o.Capacity.PIDs + 1}, {"DefaultMaxPIDs", o.DefaultMaxPIDs},
		{"Grace", int64(o.Grace)}, {"UnhealthyInterval", int64(o.UnhealthyInterval)}, {"HealthyInterval", int64(o.HealthyInterval)},
		{"ReservationExpiry", int64(o.ReservationExpiry)}, {"ReapInterval", int64(o.ReapInterval)}, {"UsageInterval", int64(o.UsageInterval) + 1},
		{"CreateWorkers", int64(o.CreateWorkers)}, {"DeleteWorkers", int64(o.DeleteWorkers)}, {"ProcessWorkers", int64(o.ProcessWorkers)},
		{"Downloads", int64(o.Downloads)}, {"Uploads", int64(o.Uploads)}, {"SessionsEach", int64(o.SessionsEach)}, {"SessionIdle", int64(o.SessionIdle)},
		{"VolumeTimeout", int64(o.VolumeTimeout)}, {"VolumeInterval", int64(o.VolumeInterval)},
	} {
		if n.value < 1 {
			return fmt.Errorf("manager: Options.%s is negative", n.name)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Now = executor.UTC(o.Now)
	o.Observer = cmp.Or[Observer](o.Observer, noObserver{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return nil
}

func (o *Options) fetcher() (*transfer.Fetcher, error) {
	if o.Dir == "" {
		return nil, nil
	}
	client := o.HTTPClient
	if client == nil {
		client = reach.Policy{Allow: o.TransferAllow, Deny: o.TransferDeny}.Client(transfer.DefaultResponseTimeout)
		if o.TransferTLS != nil {
			transport := client.Transport.(*http.Transport)
			transport.DialTLSContext = dialTLS(transport, o.TransferTLS)
		}
	}
	return transfer.New(transfer.Options{
		Dir: filepath.Join(o.Dir, "cache"), Client: client, CacheBytes: o.CacheBytes,
		MaxBytes: o.MaxDownloadBytes, Downloads: o.Downloads, Content: archive.Limits{MaxContentBytes: o.MaxContentBytes, MaxContentEntries: o.MaxContentEntries},
	})
}
