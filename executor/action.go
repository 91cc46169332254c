package executor

// An Action is one node of the recipe that a container carries out: exactly
// one of its fields is set. Its JSON form is an object with that one member,
// such as {"run":{"path":"/bin/app","user":"vcap"}}.
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
	Path              string         `json:"path"`
	Args              []string       `json:"args,omitempty"`
	Dir               string         `json:"dir,omitempty"`
	Env               []EnvVar       `json:"env,omitempty"`
	User              string         `json:"user"`
	ResourceLimits    ResourceLimits `json:"resource_limits,omitzero"`
	LogSource         string         `json:"log_source,omitempty"`
	SuppressLogOutput bool           `json:"suppress_log_output,omitempty"`
}

// ResourceLimits are limits of one process; nil means the executor's default.
type ResourceLimits struct {
	// Nofile is the number of open files (default 1024).
	Nofile *uint64 `json:"nofile,omitempty"`
	// Nproc is the number of processes of the user.
	Nproc *uint64 `json:"nproc,omitempty"`
}

// EnvVar is one environment variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DownloadAction fetches an archive and extracts it into the directory To.
type DownloadAction struct {
	Artifact  string   `json:"artifact,omitempty"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	CacheKey  string   `json:"cache_key,omitempty"`
	User      string   `json:"user"`
	LogSource string   `json:"log_source,omitempty"`
	Checksum  Checksum `json:"checksum,omitzero"`
}

// Checksum is the expected digest of a download, in lower-case hexadecimal.
// The zero value means that nothing is checked.
type Checksum struct {
	// Algorithm is md5, sha1 or sha256.
	Algorithm string `json:"algorithm,omitempty"`
	Value     string `json:"value,omitempty"`
}

// UploadAction archives From and sends it to the URL To.
type UploadAction struct {
	Artifact  string `json:"artifact,omitempty"`
	From      string `json:"from"`
	To        string `json:"to"`
	User      string `json:"user"`
	LogSource string `json:"log_source,omitempty"`
}

// TimeoutAction fails when Action has not ended after TimeoutMs milliseconds.
type TimeoutAction struct {
	Action    Action `json:"action"`
	TimeoutMs int64  `json:"timeout_ms"`
	LogSource string `json:"log_source,omitempty"`
}

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
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}

// SerialAction carries out Actions in order and stops at the first failure.
type SerialAction struct {
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}

// CodependentAction carries out all Actions at once; when one ends, however it
// ends, the others are cancelled and the whole has failed.
type CodependentAction struct {
	Actions   []Action `json:"actions"`
	LogSource string   `json:"log_source,omitempty"`
}
