package system_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func label(name, value string) auction.Label { return auction.Label{Name: name, Value: value} }

func text(t *testing.T, p *httpapi.Prometheus) string {
	t.Helper()
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFiguresAreWrittenInTheTextFormat(t *testing.T) {
	p := &httpapi.Prometheus{}
	p.Count("bbs_errors_total", 2, label("kind", "refused"), label("call", "Claim"))
	p.Count("bbs_errors_total", 1, label("call", "Claim"), label("kind", "refused"))
	p.Count("bbs_errors_total", 0, label("call", "Crash"), label("kind", "failed"))
	p.Gauge("domain_fresh", 1, label("domain", "a\\b \"c\"\nd"))
	p.Gauge("domain_fresh", 0, label("domain", "not UTF-8: \xff"))
	p.Gauge("cells_present", 12)
	p.Gauge("leader_lease_seconds", -0.25)
	for _, v := range []float64{0.0001, 0.004, 0.004, 59, 61} {
		p.Observe("commit_seconds", v)
	}
	p.Observe("subscriber_lag_events", 0)
	p.Observe("subscriber_lag_events", 4, label("who", "me"))
	p.Gauge("own.figure", math.Inf(1), label("9lives", "x"))

	const golden = "testdata/prometheus.txt"
	got := text(t, p)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-update accepts it:\n%s", diff)
	}
	if again := text(t, p); again != got {
		t.Error("a second time it is another text")
	}
}

// A sample as a scraper reads it.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// parseExposition is a reader of the format that knows nothing of the writer.
// It refuses what a scraper would, and groups that are not in one piece.
func parseExposition(text string) (samples []sample, err error) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line is not ended")
	}
	types, closed, current := map[string]string{}, map[string]bool{}, ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			words := strings.SplitN(rest, " ", 3)
			if len(words) != 3 || words[0] != "HELP" && words[0] != "TYPE" {
				return nil, fmt.Errorf("line %d: %q", n+1, line)
			}
			if words[1] != current {
				closed[current], current = true, words[1]
			}
			if closed[current] || types[current] != "" {
				return nil, fmt.Errorf("line %d: %s is there twice", n+1, current)
			}
			if words[0] == "TYPE" {
				types[current] = words[2]
			}
			continue
		}
		s := sample{labels: map[string]string{}}
		rest := line
		if s.name = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`).FindString(rest); s.name == "" {
			return nil, fmt.Errorf("line %d: no name in %q", n+1, line)
		}
		rest = rest[len(s.name):]
		if strings.HasPrefix(rest, "{") {
			for rest = rest[1:]; !strings.HasPrefix(rest, "}"); {
				name := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*="`).FindString(rest)
				if name == "" {
					return nil, fmt.Errorf("line %d: labels %q", n+1, rest)
				}
				rest = rest[len(name):]
				value := ""
				for !strings.HasPrefix(rest, `"`) {
					switch {
					case rest == "":
						return nil, fmt.Errorf("line %d: a value without an end", n+1)
					case strings.HasPrefix(rest, `\n`):
						value, rest = value+"\n", rest[2:]
					case strings.HasPrefix(rest, `\\`), strings.HasPrefix(rest, `\"`):
						value, rest = value+rest[1:2], rest[2:]
					default:
						value, rest = value+rest[:1], rest[1:]
					}
				}
				s.labels[strings.TrimSuffix(name, `="`)] = value
				rest = strings.TrimPrefix(rest[1:], ",")
			}
			rest = rest[1:]
		}
		if s.value, err = strconv.ParseFloat(strings.TrimPrefix(rest, " "), 64); err != nil || !strings.HasPrefix(rest, " ") {
			return nil, fmt.Errorf("line %d: value %q", n+1, rest)
		}
		base := s.name
		if types[current] == "histogram" {
			base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_sum"), "_count")
		}
		if base != current || types[current] == "" {
			return nil, fmt.Errorf("line %d: %s is not below its type", n+1, s.name)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

func find(samples []sample, name string, labels ...auction.Label) (float64, bool) {
	i := slices.IndexFunc(samples, func(s sample) bool {
		return s.name == name && len(s.labels) == len(labels) &&
			!slices.ContainsFunc(labels, func(l auction.Label) bool { v, ok := s.labels[l.Name]; return !ok || v != l.Value })
	})
	if i < 0 {
		return 0, false
	}
	return samples[i].value, true
}

func scrape(t *testing.T, p *httpapi.Prometheus) []sample {
	t.Helper()
	samples, err := parseExposition(text(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func TestLabelValuesComeBackAsTheyWere(t *testing.T) {
	for _, value := range []string{"", " ", `\`, `\\n`, "\n", `"`, `a"b`, "{}", `,x="y"`, "ü→", "}\n# TYPE x gauge\nx 1"} {
		p := &httpapi.Prometheus{}
		p.Gauge("domain_fresh", 1, label("domain", value))
		if v, ok := find(scrape(t, p), "diego_domain_fresh", label("domain", value)); !ok || v != 1 {
			t.Errorf("%q is gone: %s", value, text(t, p))
		}
	}
}

func FuzzWhateverIsPublishedCanBeScraped(f *testing.F) {
	f.Add("lrps", "state", "RUNNING", 1.5)
	f.Add("", "", "\"\\\n", math.Copysign(0, -1))
	f.Add("9\xff", "le", "}", math.MaxFloat64)
	f.Fuzz(func(t *testing.T, name, labelName, value string, v float64) {
		p := &httpapi.Prometheus{}
		p.Count(name, int64(len(value)), label(labelName, value))
		p.Gauge(name+"_", v, label(labelName, value))
		p.Observe(name+"__seconds", v, label("x", value))
		if _, err := parseExposition(text(t, p)); err != nil {
			t.Errorf("%v\n%s", err, text(t, p))
		}
	})
}

func TestBucketsCountAllValuesUpToTheirBound(t *testing.T) {
	p := &httpapi.Prometheus{}
	values := []float64{0.00005, 0.0001, 0.00011, 0.5, 0.75, 1, 1000}
	sum := 0.0
	for _, v := range values {
		p.Observe("convergence_pass_seconds", v)
		sum += v
	}
	p.Observe("convergence_pass_seconds", math.NaN())
	last := -1.0
	for _, s := range scrape(t, p) {
		switch s.name {
		case "diego_convergence_pass_seconds_bucket":
			bound, err := strconv.ParseFloat(s.labels["le"], 64)
			if err != nil {
				t.Fatal(err)
			}
			want := 0.0
			for _, v := range values {
				if v <= bound {
					want++
				}
			}
			if s.value != want || s.value < last {
				t.Errorf("%v values up to %v, want %v", s.value, bound, want)
			}
			last = s.value
		case "diego_convergence_pass_seconds_sum":
			if math.Abs(s.value-sum) > 1e-9 {
				t.Errorf("sum %v, want %v", s.value, sum)
			}
		case "diego_convergence_pass_seconds_count":
			if s.value != float64(len(values)) || s.value != last {
				t.Errorf("count %v", s.value)
			}
		}
	}
}

func TestSeriesBeyondTheLimitAreDroppedAndCounted(t *testing.T) {
	p := &httpapi.Prometheus{MaxSeries: 2, Prefix: "x_"}
	for range 2 {
		for _, domain := range []string{"a", "b", "c", "d"} {
			p.Gauge("domain_fresh", 1, label("domain", domain))
		}
	}
	p.Count("domain_fresh", 1) // it is a gauge
	p.Count("effects_lost_total", -1)
	samples := scrape(t, p)
	if len(samples) != 3 {
		t.Errorf("%d samples:\n%s", len(samples), text(t, p))
	}
	if v, _ := find(samples, "x_metrics_dropped_total", label("name", "domain_fresh")); v != 5 {
		t.Errorf("%v are counted as dropped", v)
	}
}

func TestFiguresAreServedWithTheirContentType(t *testing.T) {
	p := &httpapi.Prometheus{}
	p.Gauge("leader", 1)
	for _, tt := range []struct {
		method, body string
		status       int
	}{
		{http.MethodGet, text(t, p), http.StatusOK},
		{http.MethodHead, text(t, p), http.StatusOK}, // the server drops the body
		{http.MethodPost, "figures are read with GET\n", http.StatusMethodNotAllowed},
	} {
		t.Run(tt.method, func(t *testing.T) {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(tt.method, "/metrics", nil))
			if w.Code != tt.status || w.Body.String() != tt.body {
				t.Errorf("%d %q", w.Code, w.Body)
			}
			if got := w.Header().Get("Content-Type"); tt.status == http.StatusOK && got != "text/plain; version=0.0.4; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

func TestFiguresMayComeFromManyGoroutinesWhileTheyAreRead(t *testing.T) {
	p := &httpapi.Prometheus{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				p.Count("callbacks_total", 1, label("verdict", strconv.Itoa(n%3)))
				p.Gauge("auction_waiting", float64(i))
				p.Observe("commit_seconds", float64(n)/100)
				if n%50 == 0 {
					_, _ = p.WriteTo(io.Discard)
				}
			}
		})
	}
	wg.Wait()
	samples := scrape(t, p)
	total := 0.0
	for _, s := range samples {
		if s.name == "diego_callbacks_total" {
			total += s.value
		}
	}
	if count, _ := find(samples, "diego_commit_seconds_count"); total != 1600 || count != 1600 {
		t.Errorf("%v counted, %v observed", total, count)
	}
}

func TestAControlPlanePublishesWhatAnOperatorAsksFor(t *testing.T) {
	p := &httpapi.Prometheus{}
	s := newSystem(t, 2, func(o *diego.Options) { o.Metrics = p })
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.pass(time.Minute)
	samples := scrape(t, p)
	for _, want := range []struct {
		name   string
		labels []auction.Label
		value  float64
	}{
		{"diego_lrps", []auction.Label{label("state", "RUNNING"), label("presence", "ORDINARY")}, 2},
		{"diego_tasks", []auction.Label{label("state", "PENDING")}, 0},
		{"diego_cells_present", nil, 2},
		{"diego_leader", nil, 1},
		{"diego_leader_lease_seconds", nil, 15},
		{"diego_leader_lease_age_seconds", nil, 0},
		{"diego_auction_performed_total", nil, 2},
	} {
		if v, ok := find(samples, want.name, want.labels...); !ok || v != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, v, want.value)
		}
	}
	for _, name := range []string{"diego_commit_seconds", "diego_convergence_pass_seconds", "diego_auction_round_seconds"} {
		if v, _ := find(samples, name+"_count"); v == 0 {
			t.Errorf("nothing was observed of %s", name)
		}
	}

	// A standby knows that it does not lead, and says nothing of a lease.
	standby := &httpapi.Prometheus{}
	other := s.plane("plane-2", func(o *diego.Options) { o.Metrics = standby })
	s.must(other.Tick(s.ctx))
	for _, name := range []string{"diego_leader", "diego_leader_lease_seconds", "diego_leader_lease_age_seconds"} {
		if v, ok := find(scrape(t, standby), name); !ok || v != 0 {
			t.Errorf("%s of the standby is %v", name, v)
		}
	}
}

// Metrics of a control plane, as a scraper reads them.
func ExamplePrometheus() {
	ctx := context.Background()
	store, cells := memstore.New(nil), memcell.NewFleet(2, memcell.NewClock())
	metrics := new(httpapi.Prometheus)
	plane, err := diego.New(diego.Options{Store: store, Dial: cells.Dial, Owner: "me", Metrics: metrics})
	if err == nil {
		err = errors.Join(cells.Announce(ctx, store), plane.Tick(ctx))
	}
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "cells_present") {
			fmt.Print(line)
		}
	}
	// Output:
	// # HELP diego_cells_present cells at the last pass
	// # TYPE diego_cells_present gauge
	// diego_cells_present 2
}

func TestAProcessThatStopsLeadingDropsWhatOnlyALeaderKnows(t *testing.T) {
	for name, run := range map[string]bool{"tick by tick": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			clock := memcell.NewClock()
			store := memstore.New(&memstore.Options{Now: clock.Now})
			figures := new(httpapi.Prometheus)
			plane, err := diego.New(diego.Options{
				Store: store, Owner: "first", Now: clock.Now, Metrics: figures,
				Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") },
			})
			if err != nil {
				t.Fatal(err)
			}
			has := func() bool { return strings.Contains(text(t, figures), "diego_lrps{") }
			if !run {
				if err := plane.Tick(t.Context()); err != nil || !has() {
					t.Fatalf("leading, %v, it says\n%s", err, text(t, figures))
				}
				clock.Advance(time.Minute)
				if _, err := store.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "second"}, time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := plane.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan error, 1)
				go func() { over <- plane.Run(ctx) }()
				for !has() {
					select {
					case err := <-over:
						t.Fatal(err)
					default:
						runtime.Gosched()
					}
				}
				stop()
				<-over
			}
			if got := text(t, figures); has() || !strings.Contains(got, "diego_leader 0") || !strings.Contains(got, "diego_convergence_passes_total 1") {
				t.Errorf("it leads no longer and says\n%s", got)
			}
		})
	}
}

func TestFiguresThatAreHadElsewhereReplaceThoseOfThePageBefore(t *testing.T) {
	figures, containers := &httpapi.Prometheus{MaxSeries: 2}, []string{"a", "b"}
	figures.Collect = func() {
		var samples []httpapi.Sample
		for i, name := range containers {
			samples = append(samples, httpapi.Sample{Labels: []auction.Label{{Name: "source_id", Value: name}}, Value: float64(i + 1)})
		}
		figures.Replace("container_pids", samples)
		figures.Replace("container_cpu_seconds_total", samples[:1])
	}
	for _, page := range []struct {
		containers []string
		want       string
	}{
		{[]string{"a", "b"}, "diego_container_cpu_seconds_total{source_id=\"a\"} 1\ndiego_container_pids{source_id=\"a\"} 1\ndiego_container_pids{source_id=\"b\"} 2\n"},
		{[]string{"b"}, "diego_container_cpu_seconds_total{source_id=\"b\"} 1\ndiego_container_pids{source_id=\"b\"} 1\n"},
		{[]string{"b", "b"}, "diego_container_cpu_seconds_total{source_id=\"b\"} 1\ndiego_container_pids{source_id=\"b\"} 1\n"},
	} {
		containers = page.containers
		got := ""
		for line := range strings.Lines(text(t, figures)) {
			if !strings.HasPrefix(line, "#") {
				got += line
			}
		}
		if got != page.want {
			t.Errorf("of %q the page says\n%swant\n%s", page.containers, got, page.want)
		}
	}
}

func TestLabelsThatCallersChooseMakeALegalPage(t *testing.T) {
	figures := new(httpapi.Prometheus)
	figures.Gauge("x", 1, auction.Label{Name: "a-b", Value: "first"}, auction.Label{Name: "a_b", Value: "second"}, auction.Label{Name: "__name__", Value: "y"})
	if got, want := text(t, figures), "# TYPE diego_x gauge\ndiego_x{_name__=\"y\",a_b=\"first\"} 1\n"; got != want {
		t.Errorf("the page is\n%swant\n%s", got, want)
	}
}
