package auction

// Metrics receives metrics by name. It is called from several goroutines, must
// not block and must not call back. docs/operations.md lists the names.
type Metrics interface {
	// Count adds n to a counter.
	Count(name string, n int64, labels ...Label)
	// Gauge replaces the value of a gauge.
	Gauge(name string, value float64, labels ...Label)
	// Observe adds a value to a histogram. Durations are in seconds.
	Observe(name string, value float64, labels ...Label)
}

// A Forgetter is a [Metrics] that can drop metrics. A process that stops
// leading makes it forget the gauges that only a leader knows: otherwise their
// last values would stand beside those of the next leader. Forget may be called
// at the same time as the methods of Metrics.
type Forgetter interface {
	// Forget drops all values of these gauges until they are set again.
	Forget(names ...string)
}

// A Label distinguishes metrics of one name. Each label has few values.
type Label struct{ Name, Value string }

// NoMetrics ignores all metrics.
type NoMetrics struct{}

// Count implements [Metrics].
func (NoMetrics) Count(string, int64, ...Label) {}

// Gauge implements [Metrics].
func (NoMetrics) Gauge(string, float64, ...Label) {}

// Observe implements [Metrics].
func (NoMetrics) Observe(string, float64, ...Label) {}
