package executor

import (
	"fmt"
	"strings"
	"time"
)

// DefaultCheckTimeout bounds one probe of a check that sets no time of its own.
const DefaultCheckTimeout = time.Second

// MaxCheckPathBytes is the longest path of an HTTP check.
const MaxCheckPathBytes = 2048

// A CheckDefinition says declaratively when a container is healthy (Checks:
// all must succeed) and when it is ready for traffic (ReadinessChecks).
type CheckDefinition struct {
	Checks          []Check `json:"checks,omitempty"`
	ReadinessChecks []Check `json:"readiness_checks,omitempty"`
	LogSource       string  `json:"log_source,omitempty"`
}

// Validate checks every check. There may be MaxChecks of each kind.
func (d CheckDefinition) Validate(v *Validator) {
	validateChecks(v, "checks", d.Checks)
	validateChecks(v, "readiness_checks", d.ReadinessChecks)
}

func validateChecks(v *Validator, field string, checks []Check) {
	if !v.lengthAtMost(field, len(checks), MaxChecks) {
		return
	}
	for i, c := range checks {
		c.Validate(v.At(field, i))
	}
}

// A Check is exactly one of TCP and HTTP.
type Check struct {
	TCP  *TCPCheck  `json:"tcp,omitempty"`
	HTTP *HTTPCheck `json:"http,omitempty"`
}

// Validate checks that there is exactly one kind, and its fields.
func (c Check) Validate(v *Validator) {
	if (c.TCP == nil) == (c.HTTP == nil) {
		v.Check(false, "", "", "exactly one of tcp and http")
	}
	if c.TCP != nil {
		c.TCP.Validate(v.In("tcp"))
	}
	if c.HTTP != nil {
		c.HTTP.Validate(v.In("http"))
	}
}

// TCPCheck succeeds when the port accepts a connection.
type TCPCheck struct {
	// Port is from 1.
	Port uint16 `json:"port"`
	// ConnectTimeoutMs is in milliseconds; 0 means DefaultCheckTimeout.
	ConnectTimeoutMs int64 `json:"connect_timeout_ms,omitempty"`
	// IntervalMs is in milliseconds; 0 means the executor's.
	IntervalMs int64 `json:"interval_ms,omitempty"`
}

// Validate checks the port and the times.
func (c TCPCheck) Validate(v *Validator) {
	v.port("port", c.Port)
	v.milliseconds("connect_timeout_ms", c.ConnectTimeoutMs, 0)
	v.milliseconds("interval_ms", c.IntervalMs, 0)
}

// ConnectTimeout is how long one probe may take.
func (c TCPCheck) ConnectTimeout() time.Duration { return checkTimeout(c.ConnectTimeoutMs) }

// Interval is the time between probes, or 0 for the executor's.
func (c TCPCheck) Interval() time.Duration { return milliseconds(c.IntervalMs) }

// HTTPCheck succeeds when GET Path answers with a status of 200.
type HTTPCheck struct {
	// Port is from 1.
	Port uint16 `json:"port"`
	// Path starts with a slash, and has at most MaxCheckPathBytes; empty means "/".
	Path string `json:"path,omitempty"`
	// RequestTimeoutMs is in milliseconds; 0 means DefaultCheckTimeout.
	RequestTimeoutMs int64 `json:"request_timeout_ms,omitempty"`
	// IntervalMs is in milliseconds; 0 means the executor's.
	IntervalMs int64 `json:"interval_ms,omitempty"`
}

// Validate checks the port, the path and the times.
func (c HTTPCheck) Validate(v *Validator) {
	v.port("port", c.Port)
	v.Check(c.Path == "" || strings.HasPrefix(c.Path, "/"), "path", c.Path, "a path that starts with /")
	v.Check(len(c.Path) <= MaxCheckPathBytes, "path", fmt.Sprintf("%d bytes", len(c.Path)), fmt.Sprintf("at most %d bytes", MaxCheckPathBytes))
	v.milliseconds("request_timeout_ms", c.RequestTimeoutMs, 0)
	v.milliseconds("interval_ms", c.IntervalMs, 0)
}

// RequestTimeout is how long one probe may take.
func (c HTTPCheck) RequestTimeout() time.Duration { return checkTimeout(c.RequestTimeoutMs) }

// Interval is the time between probes, or 0 for the executor's.
func (c HTTPCheck) Interval() time.Duration { return milliseconds(c.IntervalMs) }

func checkTimeout(ms int64) time.Duration {
	if ms == 0 {
		return DefaultCheckTimeout
	}
	return milliseconds(ms)
}
