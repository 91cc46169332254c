package executor

// A CheckDefinition says declaratively when a container is healthy (Checks)
// and when it is ready for traffic (ReadinessChecks).
type CheckDefinition struct {
	Checks          []Check `json:"checks,omitempty"`
	ReadinessChecks []Check `json:"readiness_checks,omitempty"`
	LogSource       string  `json:"log_source,omitempty"`
}

// A Check is exactly one of TCP and HTTP.
type Check struct {
	TCP  *TCPCheck  `json:"tcp,omitempty"`
	HTTP *HTTPCheck `json:"http,omitempty"`
}

// TCPCheck succeeds when the port accepts a connection.
type TCPCheck struct {
	Port uint16 `json:"port"`
	// ConnectTimeoutMs is in milliseconds; 0 means 1000.
	ConnectTimeoutMs int64 `json:"connect_timeout_ms,omitempty"`
	// IntervalMs is in milliseconds; 0 means the executor's.
	IntervalMs int64 `json:"interval_ms,omitempty"`
}

// HTTPCheck succeeds when GET Path answers with a status of 200.
type HTTPCheck struct {
	Port uint16 `json:"port"`
	// Path starts with a slash; empty means "/".
	Path string `json:"path,omitempty"`
	// RequestTimeoutMs is in milliseconds; 0 means 1000.
	RequestTimeoutMs int64 `json:"request_timeout_ms,omitempty"`
	// IntervalMs is in milliseconds; 0 means the executor's.
	IntervalMs int64 `json:"interval_ms,omitempty"`
}
