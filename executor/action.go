package executor

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// Limits of an Action.
const (
	// MaxActionDepth is how deep actions may nest: a Run alone has depth 1, a
	// Run in a Timeout depth 2.
	MaxActionDepth = 32
	// MaxActionNodes is the most actions that one tree may have in all.
	MaxActionNodes = 1000
)

// DefaultNofile is the number of open files of a process that asks for none.
const DefaultNofile = 1024

// An Action is one node of the recipe that a container carries out: exactly
// one of its fields is set. Its JSON form is an object with that one member,
// such as {"run":{"path":"/bin/app","user":"vcap"}}. Its decoder refuses
// unknown kinds and more than one kind with a [ValidationError], and accepts an
// action with no kind and fields out of their limits, which [Action.Validate]
// refuses.
//
// An Action is a value that others may share: nobody changes what it points
// to.
type Action struct {
	Run          *RunAction          `json:"run,omitempty"`
	Download     *DownloadAction     `json:"download,omitempty"`
	Upload       *UploadAction       `json:"upload,omitempty"`
	Timeout      *TimeoutAction      `json:"timeout,omitempty"`
	Try          *TryAction          `json:"try,omitempty"`
	EmitProgress *EmitProgressAction `json:"emit_progress,omitempty"`
	Parallel     *ParallelAction     `json:"parallel,omitempty"`
	Serial       *SerialAction       `json:"serial,omitempty"`
	Codependent  *CodependentAction  `json:"codependent,omitempty"`
}

// RunAction runs a process in the container. It fails when the process cannot
// be started or exits with another status than 0.
type RunAction struct {
	// Path is looked up in PATH if it has no slash.
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	// Dir is the working directory; empty means the user's home or "/".
	Dir string `json:"dir,omitempty"`
	// Env is added to the container's.
	Env []EnvVar `json:"env,omitempty"`
	// User is a user of the container, such as "vcap".
	User           string         `json:"user"`
	ResourceLimits ResourceLimits `json:"resource_limits,omitzero"`
	// LogSource names the process in the logs; see Action.LogSource.
	LogSource         string `json:"log_source,omitempty"`
	SuppressLogOutput bool   `json:"suppress_log_output,omitempty"`
}

// ResourceLimits are limits of one process; nil means the executor's default.
type ResourceLimits struct {
	// Nofile is the number of open files; nil means DefaultNofile.
	Nofile *uint64 `json:"nofile,omitempty"`
	// Nproc is the number of processes of the user; nil means no limit.
	Nproc *uint64 `json:"nproc,omitempty"`
}

// DownloadAction fetches an archive from the URL From and extracts it into the
// directory To of the container, as files of User.
type DownloadAction struct {
	// Artifact names what is fetched in the logs.
	Artifact  string   `json:"artifact,omitempty"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	CacheKey  string   `json:"cache_key,omitempty"`
	User      string   `json:"user"`
	LogSource string   `json:"log_source,omitempty"`
	Checksum  Checksum `json:"checksum,omitzero"`
}

// UploadAction archives From, a path in the container, with the rights of User,
// and sends the archive to the URL To.
type UploadAction struct {
	Artifact  string `json:"artifact,omitempty"`
	From      string `json:"from"`
	To        string `json:"to"`
	User      string `json:"user"`
	LogSource string `json:"log_source,omitempty"`
}

// TimeoutAction fails when Action has not ended after TimeoutMs milliseconds.
type TimeoutAction struct {
	Action Action `json:"action"`
	// TimeoutMs is from 1 to MaxMilliseconds.
	TimeoutMs int64  `json:"timeout_ms"`
	LogSource string `json:"log_source,omitempty"`
}

// Timeout is TimeoutMs as a duration.
func (a TimeoutAction) Timeout() time.Duration { return milliseconds(a.TimeoutMs) }

// TryAction carries out Action and succeeds even if it fails.
type TryAction struct {
	Action    Action `json:"action"`
	LogSource string `json:"log_source,omitempty"`
}

// EmitProgressAction writes a message to the log before Action, and one after
// it that depends on its outcome.
type EmitProgressAction struct {
	Action               Action `json:"action"`
	StartMessage         string `json:"start_message,omitempty"`
	SuccessMessage       string `json:"success_message,omitempty"`
	FailureMessagePrefix string `json:"failure_message_prefix,omitempty"`
	LogSource            string `json:"log_source,omitempty"`
}

// ParallelAction carries out all Actions at once and waits for all of them; it
// fails with every failure joined, and a failure cancels nothing.
type ParallelAction struct {
	// Actions are one or more.
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}

// SerialAction carries out Actions in order and stops at the first failure.
type SerialAction struct {
	// Actions are one or more.
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}

// CodependentAction carries out all Actions at once; when one ends, however it
// ends, the others are cancelled and the whole has failed.
type CodependentAction struct {
	// Actions are one or more.
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}

// A Kind is the kind of an Action, as it is named in JSON.
type Kind string

// The kinds of actions.
const (
	KindRun          Kind = "run"
	KindDownload     Kind = "download"
	KindUpload       Kind = "upload"
	KindTimeout      Kind = "timeout"
	KindTry          Kind = "try"
	KindEmitProgress Kind = "emit_progress"
	KindParallel     Kind = "parallel"
	KindSerial       Kind = "serial"
	KindCodependent  Kind = "codependent"
)

const oneKind = "exactly one of run, download, upload, timeout, try, emit_progress, parallel, serial and codependent"

// Kind is the kind of a, or empty if not exactly one field is set.
func (a Action) Kind() Kind {
	nodes := a.nodes()
	if len(nodes) != 1 {
		return ""
	}
	return nodes[0].kind
}

// LogSource returns the log_source of a, which is also that of the actions within
// it that name none. It is empty if a names none, or has not exactly one kind.
func (a Action) LogSource() string {
	nodes := a.nodes()
	if len(nodes) != 1 {
		return ""
	}
	return nodes[0].source
}

// All yields a and every action below it, each before those that it contains.
// It ends early at an action deeper than MaxActionDepth, which no valid tree
// has.
func (a Action) All() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		a.walk(new(Validator), 1, func(_ *Validator, depth int, a Action) bool {
			return depth <= MaxActionDepth && yield(a)
		})
	}
}

// Validate checks the tree: every action has exactly one kind and keeps the
// limits of that kind, and the tree keeps MaxActionDepth and MaxActionNodes.
func (a Action) Validate(v *Validator) {
	count := 0
	a.walk(v, 1, func(v *Validator, depth int, a Action) bool {
		if depth > MaxActionDepth {
			v.Check(false, "", depth, fmt.Sprintf("actions nested at most %d deep", MaxActionDepth))
			return false
		}
		if count++; count > MaxActionNodes {
			v.Check(false, "", count, fmt.Sprintf("at most %d actions in one tree", MaxActionNodes))
			return false
		}
		nodes := a.nodes()
		if len(nodes) != 1 {
			kinds := make([]Kind, len(nodes))
			for i, n := range nodes {
				kinds[i] = n.kind
			}
			v.Check(false, "", kinds, oneKind)
		}
		for _, n := range nodes {
			n.validate(v.In(string(n.kind)))
		}
		return true
	})
}

// A node is one field of an Action that is set.
type node struct {
	kind     Kind
	source   string
	validate func(*Validator) // of the node's own fields
	wrapped  *Action          // of an action that wraps one
	list     []Action         // of an action that holds several
}

// nodes are the fields of a that are set, in order; one, if a is valid.
func (a Action) nodes() []node {
	var nodes []node
	if n := a.Run; n != nil {
		nodes = append(nodes, node{KindRun, n.LogSource, n.Validate, nil, nil})
	}
	if n := a.Download; n != nil {
		nodes = append(nodes, node{KindDownload, n.LogSource, n.Validate, nil, nil})
	}
	if n := a.Upload; n != nil {
		nodes = append(nodes, node{KindUpload, n.LogSource, n.Validate, nil, nil})
	}
	if n := a.Timeout; n != nil {
		nodes = append(nodes, node{KindTimeout, n.LogSource, n.Validate, &n.Action, nil})
	}
	if n := a.Try; n != nil {
		nodes = append(nodes, node{KindTry, n.LogSource, n.Validate, &n.Action, nil})
	}
	if n := a.EmitProgress; n != nil {
		nodes = append(nodes, node{KindEmitProgress, n.LogSource, n.Validate, &n.Action, nil})
	}
	if n := a.Parallel; n != nil {
		nodes = append(nodes, node{KindParallel, n.LogSource, n.Validate, nil, n.Actions})
	}
	if n := a.Serial; n != nil {
		nodes = append(nodes, node{KindSerial, n.LogSource, n.Validate, nil, n.Actions})
	}
	if n := a.Codependent; n != nil {
		nodes = append(nodes, node{KindCodependent, n.LogSource, n.Validate, nil, n.Actions})
	}
	return nodes
}

// walk visits a and what is below it, each before what it contains, until
// visit returns false. It reports whether it came to the end.
func (a Action) walk(v *Validator, depth int, visit func(*Validator, int, Action) bool) bool {
	if !visit(v, depth, a) {
		return false
	}
	for _, n := range a.nodes() {
		below := v.In(string(n.kind))
		if n.wrapped != nil && !n.wrapped.walk(below.In("action"), depth+1, visit) {
			return false
		}
		for i, inner := range n.list {
			if !inner.walk(below.At("actions", i), depth+1, visit) {
				return false
			}
		}
	}
	return true
}

// Validate checks the process: a path, arguments, a user, an environment.
func (a RunAction) Validate(v *Validator) {
	v.required("path", a.Path)
	v.Check(!strings.Contains(a.Path, "\x00"), "path", a.Path, "without NUL")
	if v.listLength("args", len(a.Args)) {
		for i, arg := range a.Args {
			v.Check(!strings.Contains(arg, "\x00"), fmt.Sprintf("args[%d]", i), arg, "without NUL")
		}
	}
	validateEnv(v, "env", a.Env)
	v.required("user", a.User)
}

// Validate checks the transfer: a source, a target, a user, a checksum.
func (a DownloadAction) Validate(v *Validator) {
	v.required("from", a.From)
	v.required("to", a.To)
	v.required("user", a.User)
	a.Checksum.Validate(v.In("checksum"))
}

// Validate checks the transfer: a source, a target, a user.
func (a UploadAction) Validate(v *Validator) {
	v.required("from", a.From)
	v.required("to", a.To)
	v.required("user", a.User)
}

// Validate checks the timeout, not the action that it wraps:
// [Action.Validate] checks a whole tree.
func (a TimeoutAction) Validate(v *Validator) { v.milliseconds("timeout_ms", a.TimeoutMs, 1) }

// Validate has nothing to check: [Action.Validate] checks the wrapped action.
func (a TryAction) Validate(*Validator) {}

// Validate has nothing to check: [Action.Validate] checks the wrapped action.
func (a EmitProgressAction) Validate(*Validator) {}

// Validate checks that there are actions; [Action.Validate] checks them.
func (a ParallelAction) Validate(v *Validator) { v.atLeastOne("actions", len(a.Actions)) }

// Validate checks that there are actions; [Action.Validate] checks them.
func (a SerialAction) Validate(v *Validator) { v.atLeastOne("actions", len(a.Actions)) }

// Validate checks that there are actions; [Action.Validate] checks them.
func (a CodependentAction) Validate(v *Validator) { v.atLeastOne("actions", len(a.Actions)) }
