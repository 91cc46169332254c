package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A ContainerBackend makes containers and runs processes in them. It knows
// nothing of recipes, states or health. The caller chooses the guids and passes
// each to Create at most once.
//
// All methods may be called concurrently. A call ends soon after its context
// does; Delete removes everything that it leaves behind. Delete may be called
// while other calls for the same container are in progress. Those calls then
// fail, and once Delete has begun the backend starts nothing more in the
// container.
//
// An idle container should cost neither a goroutine nor a thread. Every backend
// passes the suite of package backendtest. A failure that the caller can act on
// is a [BackendError]; any other error is a defect of the host.
type ContainerBackend interface {
	// Probe says what this host can do for the backend, and why it cannot do
	// the rest. It is cheap enough to be called every minute. An error means
	// that the host cannot run containers at all.
	Probe(ctx context.Context) (Host, error)

	// Create makes a container. No process of the caller runs in it yet, and it
	// lives until Delete whether or not something runs in it. A limit or right
	// that the host cannot enforce is ErrUnsupported, never ignored, unless
	// Probe lists the feature as missing in a backend without isolation. A
	// Create that fails removes what it has made.
	Create(ctx context.Context, c ContainerSpec) (Endpoint, error)

	// Start runs a process in the container. It returns once the process has
	// become the requested program: a signal then reaches that program, and "no
	// such command" is an error here. The context bounds only the start; the
	// process outlives it.
	Start(ctx context.Context, guid string, p ProcessSpec) (Process, error)

	// Signal sends a signal to every process in the container, including those
	// that Start did not start. When it returns nil after Kill, no process is
	// left. Without processes it does nothing.
	Signal(ctx context.Context, guid string, s Signal) error

	// Delete kills what runs in the container, including what an earlier daemon
	// started there, and removes everything that belongs to it: processes,
	// files, mounts, limits, addresses. When it returns nil, nothing is left,
	// and the backend no longer uses the writers of its processes. It touches
	// nothing else: a process that may belong to somebody else, because its
	// number may have been used again, is left alone. Deleting a container that
	// does not exist is not an error. After an error, Delete may be called again.
	Delete(ctx context.Context, guid string) error

	// List returns the guids of all containers on the host that belong to this
	// backend's owner, sorted. They include containers that were made only in
	// part and those of earlier daemons. Delete accepts each of them.
	List(ctx context.Context) ([]string, error)

	// Usage measures what the container uses now.
	Usage(ctx context.Context, guid string) (Usage, error)

	// StreamIn extracts an uncompressed tar stream into a directory of the
	// container, which is made if it is missing. The name of a directory entry
	// ends in "/". The files belong to user. Neither the stream nor the
	// container is trusted: an entry that would be written outside the
	// container, by its name or through a link, is ErrUnsafeArchive.
	StreamIn(ctx context.Context, guid, dir, user string, tar io.Reader) error

	// StreamOut returns a tar stream of a file or directory of the container.
	// Its entries are relative to the directory that holds path, so the first
	// entry is the last element of path. The name of a directory ends in "/". A
	// missing path is ErrNoFile. StreamOut never follows a link out of the
	// container, and reads nothing that neither user nor root in the container
	// may read. The caller closes the stream.
	StreamOut(ctx context.Context, guid, path, user string) (io.ReadCloser, error)

	// Dial connects to a TCP port of the container, as a process beside the one
	// that listens there would. The context bounds only the dialling.
	Dial(ctx context.Context, guid string, containerPort uint16) (io.ReadWriteCloser, error)
}

// A Sweeper is a [ContainerBackend] that sets aside the files that Delete
// cannot remove. A directory that an administrator has made immutable then
// blocks neither the guid nor the removal of everything else. Delete may also set
// aside the many files of a container of an earlier daemon, so that the cell need
// not wait for them. Its methods may be called concurrently.
type Sweeper interface {
	// Sweep tries again to remove what was set aside, by earlier daemons too,
	// and returns what is left, in a fixed order. It may take long. The manager
	// calls it after every ErrSetAside and at intervals, while other work goes on.
	Sweep(ctx context.Context) ([]Leftover, error)
}

// A Weigher is a [Sweeper] that knows beforehand what Sweep will look at. Without
// it, nothing accounts for those files until Sweep has returned. Aside may be called
// concurrently.
type Weigher interface {
	// Aside returns what is set aside, in a fixed order. Err of each is nil.
	Aside(ctx context.Context) ([]Leftover, error)
}

// A Layerer is a [ContainerBackend] that puts a layer on a preloaded root file
// system: see SplitRootFS. It gets the name of the preloaded one, and the layer
// unpacked. A backend without this ability gets RootFS as it was asked for.
// UnpackLayer may be called concurrently.
type Layerer interface {
	// UnpackLayer unpacks a layer for ContainerSpec.Layers, and returns how much
	// disk it takes. The archive is not trusted: nothing is written outside of the
	// layer, and what exceeds the limits is refused. If it fails, the caller
	// removes what it has left in Dir and beside it.
	UnpackLayer(ctx context.Context, l LayerSpec) (bytes int64, err error)
}

// A LayerSpec describes a layer to be unpacked.
type LayerSpec struct {
	// GUID is the first container that wants it.
	GUID string
	// RootFS is the preloaded root file system below the layer.
	RootFS string
	// Path is the directory of the root file system to which the archive belongs.
	Path string
	// Archive is a tar, gzipped or not, with owners. An entry whose name begins
	// with ".wh." removes what has the rest of the name.
	Archive io.Reader
	// Dir is an empty directory for the result. Paths that begin with that of Dir
	// are free for temporary files.
	Dir string
	// MaxBytes limits the content of all files, MaxEntries their number, and
	// MaxDisk what the layer takes on the disk; 0 means no limit of the caller's.
	MaxBytes, MaxDisk int64
	MaxEntries        int
}

// A Leftover is a file or directory of a deleted container that could not be
// removed.
type Leftover struct {
	// Path is where it lies on the host.
	Path string
	// Bytes is the disk that it takes.
	Bytes int64
	// Err is why it cannot be removed, or nil if it is being removed.
	Err error
}

// A Stepper is a [ContainerBackend] in virtual time: it does nothing between
// two calls of Step. Its owner calls Step from one goroutine at a time.
type Stepper interface {
	// Step carries out everything that is due at now, in order.
	Step(now time.Time)
	// Next returns when something will be due, or false if nothing will.
	Next() (time.Time, bool)
}

// A ContainerSpec describes a container to be made. The backend does not change
// what it points to.
type ContainerSpec struct {
	GUID string
	// RootFS is a URL; see RunInfo.RootFS. The backend defines the schemes.
	RootFS string
	// Resources are limits; 0 means no limit, and for MaxPIDs the backend's
	// default.
	Resources Resources
	// CPUWeight is from 1 to MaxCPUWeight.
	CPUWeight  uint32
	Privileged bool
	// Ports are the container ports to make reachable from outside the host.
	Ports       []uint16
	EgressRules []EgressRule
	// NetworkProperties are for the host's network plug-in. A backend that has
	// one lists FeatureNetworkProperties.
	NetworkProperties map[string]string
	// ImageUsername and ImagePassword are for the registry that holds RootFS. A
	// backend that uses them lists FeatureImageCredentials.
	ImageUsername, ImagePassword string
	// CertificateProperties are for a backend that issues certificates to its
	// containers itself and lists FeatureIdentity. A manager that has an authority
	// issues them and leaves this nil.
	CertificateProperties *CertificateConfig
	// Layers are directories that UnpackLayer has filled for RootFS, at most one.
	// The caller keeps them in place until the container is deleted.
	Layers []string
	// Mounts are made in this order.
	Mounts []Mount
	// Files are written before anything runs.
	Files []File
}

// A Mount makes a directory or file of the host appear in a container, which also
// sees what changes in a directory later.
type Mount struct {
	// Source is an absolute path of the host. The caller keeps it in place
	// until the container is deleted.
	Source string
	// Target is an absolute path in the container; it is made if missing.
	Target string
	// Writable lets the container change the source.
	Writable bool
}

// An Endpoint says how the processes of a container are reached.
type Endpoint struct {
	// Addresses hold a mapping for every port of the ContainerSpec.
	Addresses
	// SharesHostNetwork is true if the container has no ports of its own. To be
	// reached on a container port, a process listens on the host port that the
	// port is mapped to; its environment has to name that port.
	SharesHostNetwork bool
}

// A ProcessSpec describes a process to be started in a container.
type ProcessSpec struct {
	// Path is looked up in PATH of Env if it has no slash.
	Path string
	// Args follow the program's own name.
	Args []string
	// Dir is the working directory; empty means the user's home or "/".
	Dir string
	// Env is the whole environment. Of two variables with one name, the later
	// counts.
	Env    []EnvVar
	User   string
	Limits ResourceLimits
	// Stdout and Stderr receive the output; nil discards it. A process writes
	// to an *os.File directly, without a copy. The backend uses both until
	// Delete has returned, because children may write on after the process has
	// ended. It calls Write of each from one goroutine at a time and ignores
	// errors: the process can write on.
	Stdout, Stderr io.Writer
	// Exited is called exactly once if Start succeeds: when the process has
	// ended, possibly before Start returns. Everything that the process itself
	// wrote is in Stdout and Stderr by then. Children that hold its output open
	// do not delay the call. Exited must not block; it may call the backend.
	Exited func(Exit)
}

// A Process was started by Start. Its method may be called concurrently.
type Process interface {
	// Signal sends a signal to the process and to those of its children that
	// are still in its process group. Kill also ends everything else that
	// descends from it, in sessions of its own or orphaned, even after the
	// process itself has ended, if the host can tell which processes those are.
	// If it cannot, they end with the container at the latest. A process that
	// has ended is not an error.
	Signal(s Signal) error
}

// A Signal asks processes to end.
type Signal uint8

// The signals. There is no zero signal.
const (
	// Terminate asks processes to end: SIGTERM.
	Terminate Signal = iota + 1
	// Kill ends without asking: SIGKILL.
	Kill
)

func (s Signal) String() string {
	switch s {
	case Terminate:
		return "TERM"
	case Kill:
		return "KILL"
	}
	return fmt.Sprintf("Signal(%d)", uint8(s))
}

// Exit says how a process ended. The zero value is success.
type Exit struct {
	// Status is the exit status, and 0 if a signal ended the process.
	Status int
	// Signal is the number of the signal that ended the process, or 0.
	Signal int
	// OutOfMemory is true if the process failed and its container ran out of
	// memory meanwhile. If Signal is 9, the kernel killed the process itself
	// for that; otherwise it killed another one, such as a child.
	OutOfMemory bool
	// Cause is not empty if the backend ended the container's processes for another
	// reason than memory. It says what the container did, as in "kept the daemon from
	// its output".
	Cause string
}

// Success reports whether the process ended by itself with status 0.
func (e Exit) Success() bool { return e == Exit{} }

func (e Exit) String() string {
	text := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != 0 {
		text = fmt.Sprintf("killed by signal %d", e.Signal)
	}
	switch {
	case e.Cause != "":
		return "killed: the container " + e.Cause
	case e.OutOfMemory && e.Signal == signalKill:
		return "killed: the container ran out of memory"
	case e.OutOfMemory:
		return text + ", after another process was killed: the container ran out of memory"
	}
	return text
}

// signalKill is the number of SIGKILL on every system.
const signalKill = 9

// A Usage says what a container uses. A figure that the backend cannot measure
// is [Unknown].
type Usage struct {
	MemoryBytes int64
	DiskBytes   int64
	// PIDs counts processes and threads, or only processes, without those that
	// the backend itself keeps in the container.
	PIDs int64
	// CPU is processor time since the container was made.
	CPU time.Duration
	// ReceivedBytes and SentBytes passed the container's own network since it was
	// made, headers included. Without a network of its own they are Unknown.
	ReceivedBytes, SentBytes int64
}

// Unknown stands for a figure in Usage that is not known.
const Unknown = -1

// A Host says what a host can do for a backend.
type Host struct {
	// Backend is the backend's name, such as "process".
	Backend string
	// Isolated is true if containers cannot reach each other's files and
	// processes, nor the host's.
	Isolated bool
	// MemoryMB, DiskMB, Containers and PIDs say how much the host has for
	// containers; 0 means unknown.
	MemoryMB, DiskMB, Containers, PIDs int64
	// Features lists everything that the backend can offer on some host, in a
	// fixed order.
	Features []Feature
}

// Has reports whether a feature is available.
func (h Host) Has(name FeatureName) bool {
	for _, f := range h.Features {
		if f.Name == name {
			return f.Missing == ""
		}
	}
	return false
}

// A Feature is an ability that some hosts have and others lack.
type Feature struct {
	Name FeatureName
	// Missing says why the host lacks the feature and what would help; empty
	// means that the host has it.
	Missing string
}

// A FeatureName names a Feature.
type FeatureName string

// The features.
const (
	FeatureRootFS          FeatureName = "root file systems"
	FeatureUsers           FeatureName = "users"
	FeatureOwnIDs          FeatureName = "uids and gids of its own"
	FeatureMemoryLimit     FeatureName = "memory limit"
	FeatureDiskLimit       FeatureName = "disk limit"
	FeatureCPUWeight       FeatureName = "CPU weight"
	FeaturePIDLimit        FeatureName = "process limit"
	FeatureOwnNetwork      FeatureName = "own network"
	FeatureEgressRules     FeatureName = "egress rules"
	FeatureConnectionLimit FeatureName = "connection limit"
	FeatureOpenFiles       FeatureName = "open files bounded by memory"
	FeatureReadOnlyMounts  FeatureName = "read-only mounts"
	FeatureSeccomp         FeatureName = "system call filter"
	FeaturePrivileged      FeatureName = "privileged containers"
	// FeatureIdentity comes from a manager with an authority, and from backends of
	// other modules.
	FeatureIdentity FeatureName = "instance identity"
	// The features below are for backends of other modules; those of this module
	// do not have them.
	FeatureNetworkProperties FeatureName = "network properties"
	FeatureImageCredentials  FeatureName = "image credentials"
)

// Errors that a BackendError wraps.
var (
	// ErrNoContainer: no container has that guid, or has it any more.
	ErrNoContainer = errors.New("no such container")
	// ErrContainerExists: the guid is in use.
	ErrContainerExists = errors.New("container exists already")
	// ErrUnsupported: the host or the backend cannot do what was requested.
	ErrUnsupported = errors.New("not supported here")
	// ErrNoRootFS: the root file system is not there or cannot be read.
	ErrNoRootFS = errors.New("no such root file system")
	// ErrNoCommand: the program is not there or cannot be executed.
	ErrNoCommand = errors.New("cannot execute the command")
	// ErrNoUser: the container does not know the user.
	ErrNoUser = errors.New("no such user")
	// ErrNoFile: the path is not there.
	ErrNoFile = errors.New("no such file")
	// ErrFileRefused: the user may not read or write the file, something else is in its
	// place, somebody holds a lease on it, there is no room for it, it is larger than the
	// limit, or it turned out shorter than it says, as files of /sys do.
	ErrFileRefused = errors.New("the file cannot be copied")
	// ErrUnsafeArchive: an archive would write outside its target.
	ErrUnsafeArchive = errors.New("unsafe archive")
	// ErrProcesses: the container runs too many processes to start another one.
	ErrProcesses = errors.New("too many processes")
	// ErrSetAside: the container is gone except for files that cannot be
	// removed yet; see Sweeper.
	ErrSetAside = errors.New("some of its files cannot be removed yet and were set aside")
	// ErrNoPort: there is no port left, or the port is in use.
	ErrNoPort = errors.New("no port available")
	// ErrNoRoom: the disk on which the backend keeps its containers is full. Once
	// something is removed from it, another attempt may succeed. The container's own
	// disk is another one.
	ErrNoRoom = errors.New("the disk of the cell is full")
)

// A BackendError says what a backend could not do, to which container and why.
// It wraps Kind, and Cause if there is one.
type BackendError struct {
	// Kind is one of the errors above.
	Kind error
	// GUID is the container's.
	GUID string
	// Detail says what exactly was requested (the path, the user, the feature)
	// and what to do about it.
	Detail string
	// Cause is the host's own error, or nil.
	Cause error
}

func (e *BackendError) Error() string {
	text := fmt.Sprintf("container %q: %v", e.GUID, e.Kind)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap makes errors.Is true for Kind and for Cause.
func (e *BackendError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
