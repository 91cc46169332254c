package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A ContainerBackend makes containers and runs processes in them. It knows
// nothing of recipes, states or health: those are the caller's, who numbers
// containers by guid and gives every guid to at most one Create.
//
// All methods may be called at once from many goroutines. A call ends soon
// after its context does, and then leaves nothing behind that Delete does not
// remove. Delete may be called while other calls for the same container are in
// progress; they then fail, and once Delete has begun nothing is started in
// the container any more, and certainly not beside it.
//
// An idle container should cost neither a goroutine nor a thread. A backend
// passes the suite of package backendtest. Failures that a caller can act on
// are a [BackendError]; any other error is a defect of the host.
type ContainerBackend interface {
	// Probe says what this host can do for the backend, and why it cannot do
	// the rest. It is cheap enough to be asked every minute. An error means
	// that the host cannot run containers at all.
	Probe(ctx context.Context) (Host, error)

	// Create makes a container in which no process of the caller runs yet. It
	// lives until Delete, whether or not something runs in it. What the
	// container asks for and the host cannot enforce is ErrUnsupported, never
	// ignored, unless Probe lists the feature as missing in a backend without
	// isolation. A failed Create has removed what it made.
	Create(ctx context.Context, c ContainerSpec) (Endpoint, error)

	// Start runs a process in the container. It returns once the process has
	// become the program it was asked for, so that a signal reaches that
	// program and "no such command" is an error here. The context bounds only
	// the start: the process outlives it.
	Start(ctx context.Context, guid string, p ProcessSpec) (Process, error)

	// Signal sends a signal to every process in the container, also to those
	// that nobody started through Start. After Kill none is left when it
	// returns nil. Without processes it does nothing.
	Signal(ctx context.Context, guid string, s Signal) error

	// Delete kills what runs in the container, also what an earlier daemon has
	// started there, and removes everything that belongs to it: processes,
	// files, mounts, limits, addresses. When it returns nil nothing is left,
	// and the writers of its processes are no longer used. It touches nothing
	// else: what may be a stranger's, such as a process whose number may have
	// been used again, is left alone. A container that is not there is no
	// error. After an error it may be called again.
	Delete(ctx context.Context, guid string) error

	// List is the guids of all containers that exist on the host and belong to
	// this backend's owner, sorted: also half-made ones, and those that an
	// earlier daemon left behind. Each can be given to Delete.
	List(ctx context.Context) ([]string, error)

	// Usage measures what the container uses now.
	Usage(ctx context.Context, guid string) (Usage, error)

	// StreamIn extracts a tar stream, not compressed, into a directory of the
	// container, which is made if it is missing. The name of an entry that is a
	// directory ends in "/". What it writes belongs to user. Neither the stream
	// nor the container is trusted: an entry that would be written outside the
	// container, by its name or through a link, is ErrUnsafeArchive.
	StreamIn(ctx context.Context, guid, dir, user string, tar io.Reader) error

	// StreamOut is a tar stream of a file or directory of the container. Its
	// entries are relative to the directory that holds path: the first one is
	// the last element of path. The name of a directory ends in "/". A path that
	// is not there is ErrNoFile. Links
	// are never followed out of the container. The caller closes the stream.
	StreamOut(ctx context.Context, guid, path, user string) (io.ReadCloser, error)

	// Dial connects to a TCP port of the container, as a neighbour of the
	// process that listens there would. The context bounds only the dialling.
	Dial(ctx context.Context, guid string, containerPort uint16) (io.ReadWriteCloser, error)
}

// A Sweeper is a ContainerBackend whose Delete sets files aside that it cannot
// remove, so that a directory which an administrator has made immutable keeps
// neither the guid nor the rest of the container.
type Sweeper interface {
	// Sweep tries again to remove what has been set aside, by earlier daemons
	// too, and returns what is left, in a fixed order. It is asked after every
	// ErrSetAside and at intervals.
	Sweep(ctx context.Context) ([]Leftover, error)
}

// A Leftover is what could not be removed of a container that is gone.
type Leftover struct {
	// Path is where it lies on the host.
	Path string
	// Bytes is the disk that it takes.
	Bytes int64
	// Err is why it cannot be removed.
	Err error
}

// A Stepper is a ContainerBackend that lives in virtual time: nothing happens
// in it between two calls of Step. Whoever drives the caller steps it too.
type Stepper interface {
	// Step carries out everything that is due at now, in order.
	Step(now time.Time)
	// Next is when something will be due, or false if nothing will.
	Next() (time.Time, bool)
}

// A ContainerSpec is what a backend needs to make a container. The backend
// changes nothing that it points to.
type ContainerSpec struct {
	GUID string
	// RootFS is a URL; see RunInfo.RootFS. Which schemes there are is the
	// backend's to say.
	RootFS string
	// Resources are limits; 0 means none, and for MaxPIDs the backend's own.
	Resources Resources
	// CPUWeight is from 1 to MaxCPUWeight.
	CPUWeight  uint32
	Privileged bool
	// Ports are to be reachable from outside the host.
	Ports       []uint16
	EgressRules []EgressRule
	// NetworkProperties are for the host's network plug-in.
	NetworkProperties map[string]string
	// Mounts are in the order in which they are made.
	Mounts []Mount
	// Files are written before anything runs.
	Files []File
}

// A Mount makes a directory or file of the host appear in a container.
type Mount struct {
	// Source is an absolute path of the host, which the caller keeps in place
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
	// SharesHostNetwork is true if the container has no ports of its own. To
	// be reached on a container port, a process listens on the host port that
	// it is mapped to; its environment has to tell it.
	SharesHostNetwork bool
}

// A ProcessSpec is a process to be started in a container.
type ProcessSpec struct {
	// Path is looked up in PATH of Env if it has no slash.
	Path string
	// Args come after the program's own name.
	Args []string
	// Dir is the working directory; empty means the user's home or "/".
	Dir string
	// Env is the whole environment; of two variables with one name the later
	// one counts.
	Env    []EnvVar
	User   string
	Limits ResourceLimits
	// Stdout and Stderr receive the output; nil discards it. An *os.File is
	// handed to the process itself, so that nobody copies. They are used until
	// Delete has returned, since children may go on writing after the process
	// has ended, and one process never uses one of them twice at a time.
	// Their errors are ignored: the process can write on.
	Stdout, Stderr io.Writer
	// Exited is called exactly once if Start succeeds, when the process has
	// ended, possibly before Start returns. What the process itself had
	// written by then is in Stdout and Stderr. Children that hold its output
	// open do not delay it. It must not block; it may call back into the
	// backend.
	Exited func(Exit)
}

// A Process is one that Start has started.
type Process interface {
	// Signal sends a signal to the process and its children that are still in
	// its process group. Kill also ends whatever else descends from it, in
	// sessions of their own or orphaned, and also once the process itself has
	// ended, if the host can tell who that is; if not, these end with the
	// container at the latest. One that has ended is no error.
	Signal(s Signal) error
}

// A Signal asks processes to end.
type Signal uint8

// The signals. There is no zero signal.
const (
	// Terminate asks to end in order: SIGTERM.
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
	// OutOfMemory is true if the process failed and its container had used up
	// its memory while it ran: if Signal is 9 the process itself was killed for
	// that, and otherwise another one, such as its child.
	OutOfMemory bool
}

// Success reports whether the process ended by itself with status 0.
func (e Exit) Success() bool { return e == Exit{} }

func (e Exit) String() string {
	text := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != 0 {
		text = fmt.Sprintf("killed by signal %d", e.Signal)
	}
	switch {
	case e.OutOfMemory && e.Signal == signalKill:
		return "killed: the container ran out of memory"
	case e.OutOfMemory:
		return text + ", after another process was killed: the container ran out of memory"
	}
	return text
}

// signalKill is the number of SIGKILL on every system.
const signalKill = 9

// A Usage is what a container uses. A figure that the backend cannot measure
// is [Unknown].
type Usage struct {
	MemoryBytes int64
	DiskBytes   int64
	// PIDs are the processes and threads, or only the processes, without one
	// that the backend itself keeps in the container.
	PIDs int64
	// CPU is processor time since the container was made.
	CPU time.Duration
}

// Unknown is the value of a figure in Usage that is not known.
const Unknown = -1

// Host is what a host can do for a backend.
type Host struct {
	// Backend is the backend's name, such as "process".
	Backend string
	// Isolated is true if containers cannot reach each other's files and
	// processes, nor the host's.
	Isolated bool
	// MemoryMB, DiskMB, Containers and PIDs are how much of each the host has
	// for containers; 0 means that it is not known.
	MemoryMB, DiskMB, Containers, PIDs int64
	// Features are all that the backend can offer somewhere, in a fixed order.
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

// A Feature is something that some hosts can do and others cannot.
type Feature struct {
	Name FeatureName
	// Missing says why the host lacks it and what would help; empty means
	// that the host has it.
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
	FeatureReadOnlyMounts  FeatureName = "read-only mounts"
	FeatureSeccomp         FeatureName = "system call filter"
	FeaturePrivileged      FeatureName = "privileged containers"
)

// What a BackendError wraps.
var (
	// ErrNoContainer: there is no container with that guid, or no longer.
	ErrNoContainer = errors.New("no such container")
	// ErrContainerExists: the guid is in use.
	ErrContainerExists = errors.New("container exists already")
	// ErrUnsupported: the host or the backend cannot do what was asked.
	ErrUnsupported = errors.New("not supported here")
	// ErrNoRootFS: the root file system is not there or cannot be read.
	ErrNoRootFS = errors.New("no such root file system")
	// ErrNoCommand: the program is not there or cannot be executed.
	ErrNoCommand = errors.New("cannot execute the command")
	// ErrNoUser: the container does not know the user.
	ErrNoUser = errors.New("no such user")
	// ErrNoFile: the path is not there.
	ErrNoFile = errors.New("no such file")
	// ErrUnsafeArchive: an archive would write outside its target.
	ErrUnsafeArchive = errors.New("unsafe archive")
	// ErrProcesses: so many processes of the container run that there is room
	// for no other.
	ErrProcesses = errors.New("too many processes")
	// ErrSetAside: the container is gone, but for files that cannot be removed;
	// see Sweeper.
	ErrSetAside = errors.New("some of its files cannot be removed and were set aside")
	// ErrNoPort: there is no port left, or the port is in use.
	ErrNoPort = errors.New("no port available")
)

// A BackendError says what a backend could not do, to which container, and
// why. It wraps one of the errors above and the error beneath it, if any.
type BackendError struct {
	// Kind is one of the errors above.
	Kind error
	// GUID is the container's.
	GUID string
	// Detail is what exactly was asked for: the path, the user, the feature,
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
