package httpapi

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/metrics"
)

// Prometheus keeps metrics and serves them in Prometheus' text format, version
// 0.0.4. Set it as Options.Metrics and mount it as an http.Handler, usually at
// /metrics. The zero value is ready to use; set its fields before the first
// metric.
//
// Histograms with names that end in _seconds have buckets from 0.1 ms to 1 min,
// others from 1 to 1,000,000. docs/operations.md has the names and their
// meaning.
//
// All methods may be called at the same time.
type Prometheus struct {
	// Prefix begins every name (default "diego_").
	Prefix string
	// MaxSeries is how many combinations of label values one name may have
	// (default 1,000). Further ones are dropped, and counted by
	// metrics_dropped_total.
	MaxSeries int
	// Collect, unless it is nil, is called before each page is written, to bring
	// figures that are kept elsewhere. It may call all methods but WriteTo and
	// ServeHTTP.
	Collect func()

	mu       sync.Mutex
	families map[string]*family
}

// A family is all series of one name.
type family struct {
	kind   metrics.Kind
	bounds []float64 // of a histogram
	series map[string]*series
}

// A series is one combination of label values. Its key in the family is the
// text of its labels.
type series struct {
	value   float64  // of a counter or gauge, or the sum of a histogram
	count   uint64   // of a histogram's values
	buckets []uint64 // values up to each bound, and above the one before
}

var (
	secondsBounds = []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	countBounds   = []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000, 1_000_000}
)

// Count implements [auction.Metrics]. A negative n is ignored: counters do not fall.
func (p *Prometheus) Count(name string, n int64, labels ...auction.Label) {
	if n < 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, s := p.find(name, metrics.Counter, labels); s != nil {
		s.value += float64(n)
	}
}

// Gauge implements [auction.Metrics].
func (p *Prometheus) Gauge(name string, value float64, labels ...auction.Label) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, s := p.find(name, metrics.Gauge, labels); s != nil {
		s.value = value
	}
}

// A Sample is one series of a name: the value for a combination of labels.
type Sample struct {
	Labels []auction.Label
	Value  float64
}

// Replace makes samples all series of a gauge, or of a counter if the name ends in
// _total. Of two samples with the same labels the first counts.
func (p *Prometheus) Replace(name string, samples []Sample) {
	kind := metrics.Gauge
	if strings.HasSuffix(name, "_total") {
		kind = metrics.Counter
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.families, name)
	for _, sample := range slices.Backward(samples) {
		if _, s := p.find(name, kind, sample.Labels); s != nil {
			s.value = sample.Value
		}
	}
}

// Forget implements [auction.Forgetter]. Counters and histograms stay: they only grow.
func (p *Prometheus) Forget(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if f := p.families[name]; f != nil && f.kind == metrics.Gauge {
			delete(p.families, name)
		}
	}
}

// Observe implements [auction.Metrics]. NaN is ignored.
func (p *Prometheus) Observe(name string, value float64, labels ...auction.Label) {
	if math.IsNaN(value) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, s := p.find(name, metrics.Histogram, labels); s != nil {
		i, _ := slices.BinarySearch(f.bounds, value)
		s.buckets[i]++
		s.count++
		s.value += value
	}
}

const dropped = "metrics_dropped_total"

// find returns the series of a name and labels, and makes it if necessary. It
// returns nil if there may be no more series.
func (p *Prometheus) find(name string, kind metrics.Kind, labels []auction.Label) (*family, *series) {
	f := p.families[name]
	if f == nil {
		f = &family{kind: kind, series: map[string]*series{}}
		if kind == metrics.Histogram {
			f.bounds = countBounds
			if strings.HasSuffix(name, "_seconds") {
				f.bounds = secondsBounds
			}
		}
		if p.families == nil {
			p.families = map[string]*family{}
		}
		p.families[name] = f
	}
	key := labelText(labels)
	s := f.series[key]
	switch {
	case f.kind != kind, s == nil && len(f.series) >= cmp.Or(max(p.MaxSeries, 0), 1000):
		if name != dropped {
			if _, d := p.find(dropped, metrics.Counter, []auction.Label{{Name: "name", Value: name}}); d != nil {
				d.value++
			}
		}
		return nil, nil
	case s == nil:
		s = &series{}
		if kind == metrics.Histogram {
			s.buckets = make([]uint64, len(f.bounds)+1)
		}
		f.series[key] = s
	}
	return f, s
}

// labelText is the labels in the text format, without the braces. Of two labels
// with the same name the first counts.
func labelText(labels []auction.Label) string {
	if len(labels) == 0 {
		return ""
	}
	labels = slices.Clone(labels)
	for i := range labels {
		labels[i].Name = labelName(labels[i].Name)
	}
	slices.SortStableFunc(labels, func(a, b auction.Label) int { return strings.Compare(a.Name, b.Name) })
	labels = slices.CompactFunc(labels, func(a, b auction.Label) bool { return a.Name == b.Name })
	var b strings.Builder
	for i, l := range labels {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.Name)
		b.WriteString(`="`)
		b.WriteString(labelEscaper.Replace(strings.ToValidUTF8(l.Value, "\uFFFD")))
		b.WriteByte('"')
	}
	return b.String()
}

var (
	labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "`", "") // no code in plain text
)

// labelName is a legal name of a label. Those that begin with two underscores are
// Prometheus' own.
func labelName(name string) string {
	name = legalName(name, "")
	if strings.HasPrefix(name, "__") {
		return "_" + strings.TrimLeft(name, "_")
	}
	return name
}

// legalName replaces characters that a name may not have. also are allowed
// characters besides letters, digits and underscores.
func legalName(name, also string) string {
	if name == "" {
		return "_"
	}
	legal := strings.Map(func(c rune) rune {
		if c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune(also, c) {
			return c
		}
		return '_'
	}, name)
	if legal[0] >= '0' && legal[0] <= '9' {
		return "_" + legal
	}
	return legal
}

// WriteTo writes all metrics of one moment, ordered by name and labels.
func (p *Prometheus) WriteTo(w io.Writer) (int64, error) {
	if p.Collect != nil {
		p.Collect()
	}
	var b bytes.Buffer
	p.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(p.families)) {
		p.families[name].write(&b, legalName(cmp.Or(p.Prefix, "diego_")+name, ":"), metrics.Help(name))
	}
	p.mu.Unlock()
	return b.WriteTo(w)
}

func (f *family) write(b *bytes.Buffer, name, help string) {
	if help != "" {
		b.WriteString("# HELP " + name + " " + helpEscaper.Replace(help) + "\n")
	}
	b.WriteString("# TYPE " + name + " " + string(f.kind) + "\n")
	for _, labels := range slices.Sorted(maps.Keys(f.series)) {
		s := f.series[labels]
		if f.kind != metrics.Histogram {
			writeSample(b, name, labels, number(s.value))
			continue
		}
		upTo, comma := uint64(0), ""
		if labels != "" {
			comma = ","
		}
		for i, n := range s.buckets {
			upTo += n
			bound := math.Inf(1)
			if i < len(f.bounds) {
				bound = f.bounds[i]
			}
			writeSample(b, name+"_bucket", labels+comma+`le="`+number(bound)+`"`, strconv.FormatUint(upTo, 10))
		}
		writeSample(b, name+"_sum", labels, number(s.value))
		writeSample(b, name+"_count", labels, strconv.FormatUint(s.count, 10))
	}
}

func writeSample(b *bytes.Buffer, name, labels, value string) {
	b.WriteString(name)
	if labels != "" {
		b.WriteString("{" + labels + "}")
	}
	b.WriteString(" " + value + "\n")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var _ auction.Forgetter = (*Prometheus)(nil)

// ServeHTTP answers GET and HEAD with all metrics.
func (p *Prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "figures are read with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = p.WriteTo(w) // the reader has gone
}
