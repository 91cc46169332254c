package logforward

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

// A Record is a line and whose output it is.
type Record struct {
	// Time is when the line ended.
	Time time.Time
	// CellID is where.
	CellID string
	// Labels say whose output it is; of the tags, those that the container began
	// with.
	Labels rep.LogLabels
	// Text is the line without its end: any bytes, at most
	// manager.MaxLogLineBytes. Sinks share it and must not change it.
	Text []byte
}

// A RefusedError says that the destination will never take some of the records.
// They are dropped, and the others have arrived.
type RefusedError struct {
	// Lines is how many; 0 means all.
	Lines int64
	// Whole says that all are refused because of what some of them may be, or
	// because they are too many. Then each half is sent by itself, and so on, to
	// find what is refused.
	Whole bool
	// Err is why.
	Err error
}

func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// A Sink sends records to one destination. Its methods are called by one
// goroutine at a time.
type Sink interface {
	// Send sends records in order and returns once they are handed over. After an
	// error, the same records are sent again later, even if some have arrived,
	// unless it is a *RefusedError. Send connects when it has to, and must
	// end with ctx.
	Send(ctx context.Context, records []Record) error
	// Close frees what Send holds. It is called once, after the last Send.
	Close() error
}

// A Destination is a sink with a name.
type Destination struct {
	// Name is for figures, the log and the line about dropped lines; it must not
	// contain secrets.
	Name string
	Sink Sink
}

// The defaults of Options.
const (
	DefaultBufferBytes  = 8 << 20
	DefaultFlushTimeout = 5 * time.Second
)

// Options configure a Forwarder. CellID and Destinations are required.
type Options struct {
	// CellID is the cell's.
	CellID string
	// Destinations each get every line. Their names differ.
	Destinations []Destination
	// BufferBytes bounds the lines that wait for one destination, at 200 bytes and
	// its text for each, and the labels of their containers once; 0 means 8 MiB. A
	// batch that is being sent, of at most 500 lines, is not counted.
	BufferBytes int64
	// FlushTimeout is how long Run may go on sending when its context has ended; 0
	// means 5 s.
	FlushTimeout time.Duration
	// Metrics receives the figures; nil discards them.
	Metrics auction.Metrics
	// Logger receives when a destination fails and when it works again; nil
	// discards that.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Forwarder sends lines to destinations. Its methods may be called at the same
// time; Run is called once.
type Forwarder struct {
	o            Options
	labels       labeller
	destinations []*destination
}

// New returns a Forwarder that takes lines, and sends them once Run is called.
// It fails with an *executor.ValidationError.
func New(o Options) (*Forwarder, error) {
	var v executor.Validator
	v.Check(o.CellID != "", "cell_id", "", "set")
	v.Check(len(o.Destinations) > 0, "destinations", "", "at least one")
	executor.NotNegative(&v, "buffer_bytes", o.BufferBytes)
	executor.NotNegative(&v, "flush_timeout", o.FlushTimeout)
	for i, d := range o.Destinations {
		v.Check(d.Sink != nil, fmt.Sprintf("destinations[%d].sink", i), d.Name, "set")
		v.Check(!slices.ContainsFunc(o.Destinations[:i], func(e Destination) bool { return e.Name == d.Name }),
			fmt.Sprintf("destinations[%d].name", i), d.Name, "another name than the destinations before")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.BufferBytes = cmp.Or(o.BufferBytes, DefaultBufferBytes)
	o.FlushTimeout = cmp.Or(o.FlushTimeout, DefaultFlushTimeout)
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Forwarder{o: o}
	for _, d := range o.Destinations {
		f.destinations = append(f.destinations, &destination{Destination: d, forwarder: f, news: make(chan struct{}, 1), by: make(map[string]*queue), of: make(map[*labels]int)})
	}
	return f, nil
}

// Line takes a line for all destinations. It never waits for one. It is for
// manager.Options.LogSink.
func (f *Forwarder) Line(l manager.LogLine) {
	waits := line{at: l.Time, stream: l.Stream, text: l.Text, labels: f.labels.of(&l)}
	for _, d := range f.destinations {
		d.add(l.GUID, waits)
	}
}

// Run sends until ctx ends. Then it sends what is left, for FlushTimeout at most,
// and closes the sinks.
func (f *Forwarder) Run(ctx context.Context) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(f.o.FlushTimeout, cancel) })
	defer stop()
	var running sync.WaitGroup
	for _, d := range f.destinations {
		running.Go(func() { d.run(ctx, late) })
	}
	running.Wait()
}
