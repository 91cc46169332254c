package console

import (
	"bufio"
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/internal/version"
)

// A health is how the control plane is, as far as this process knows. The page
// makes rates of two of them.
type health struct {
	bbs.Readiness
	Version string    `json:"version"`
	Now     time.Time `json:"now"`
	// EventsTotal is the number of the newest event.
	EventsTotal  *int64   `json:"events_total,omitempty"`
	CommitsTotal *float64 `json:"commits_total,omitempty"`
	Subscribers  *float64 `json:"subscribers,omitempty"`
	LeaseSeconds *float64 `json:"lease_seconds,omitempty"`
	// LastPassAt and LastPassSeconds are the end of the last pass and the mean time
	// of all.
	LastPassAt      *time.Time `json:"last_pass_at,omitempty"`
	LastPassSeconds *float64   `json:"last_pass_seconds,omitempty"`
	// Figures are the counters, summed over their labels, and the gauges without
	// labels, by their names without the prefix.
	Figures map[string]float64 `json:"figures"`
}

// health answers with a health.
func (c *console) health(w http.ResponseWriter, r *http.Request) {
	program, _ := version.Of()
	out := health{Readiness: bbs.Readiness{Ready: true}, Version: program, Now: time.Now().UTC(), Figures: map[string]float64{}}
	if c.Calls.Ready != nil {
		out.Readiness = c.Calls.Ready(r.Context())
	}
	if log, err := c.Calls.BBS.Log(r.Context()); err == nil {
		newest := int64(log.Newest)
		out.EventsTotal = &newest
	}
	if c.Figures != nil {
		page := &figuresPage{header: http.Header{}}
		inner := r.Clone(r.Context())
		inner.Header = http.Header{}
		c.Figures.ServeHTTP(page, inner)
		out.Figures = parseFigures(page.Bytes())
		known := func(name string) *float64 {
			if value, ok := out.Figures[name]; ok {
				return &value
			}
			return nil
		}
		out.CommitsTotal, out.Subscribers, out.LeaseSeconds = known("commit_seconds_count"), known("subscriptions_open"), known("leader_lease_seconds")
		if at := known("convergence_passed_at_seconds"); at != nil {
			end := time.UnixMilli(int64(*at * 1000)).UTC()
			out.LastPassAt = &end
		}
		if n := known("convergence_pass_seconds_count"); n != nil && *n > 0 {
			mean := out.Figures["convergence_pass_seconds_sum"] / *n
			out.LastPassSeconds = &mean
		}
	}
	answer(w, out)
}

// A figuresPage keeps what a handler writes.
type figuresPage struct {
	bytes.Buffer
	header http.Header
}

func (p *figuresPage) Header() http.Header { return p.header }
func (p *figuresPage) WriteHeader(int)     {}

// parseFigures reads Prometheus' text format as far as a health needs it.
func parseFigures(text []byte) map[string]float64 {
	figures := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name, labels, _ := strings.Cut(line[:cut], "{")
		name = strings.TrimPrefix(name, "diego_")
		grows := strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") || strings.HasSuffix(name, "_sum")
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil || math.IsInf(value, 0) || math.IsNaN(value) || labels != "" && !grows {
			continue
		}
		figures[name] += value
	}
	return figures
}
