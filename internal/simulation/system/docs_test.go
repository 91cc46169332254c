package system_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/metrics"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

// module is the path to the top of the module.
const module = "../../../"

// named are the words in backquotes of docs/operations.md, without what they
// are qualified by.
func named(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, match := range regexp.MustCompile("`[^`]*?([A-Za-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		names[match[1]] = true
	}
	return names
}

func TestEveryKnobIsDocumented(t *testing.T) {
	names := named(t)
	for _, options := range []any{
		diego.Options{}, bbs.Options{}, bbs.DutiesOptions{}, bbs.LeadershipOptions{}, bbs.AnnouncerOptions{},
		httpapi.HandlerOptions{}, httpapi.ClientOptions{}, auctioneer.Options{},
		rep.Options{}, rep.SelfTest{}, converge.ConvergerOptions{}, converge.Guard{}, auction.RunnerOptions{}, auction.Policy{},
		lrp.Policy{}, lrp.RestartPolicy{}, task.Policy{}, task.CallbackPolicy{},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(options)) {
			if !names[field.Name] && field.Type != reflect.TypeOf(lrp.RestartPolicy{}) {
				t.Errorf("docs/operations.md does not say what %T.%s does", options, field.Name)
			}
		}
	}
}

// The default that a field's comment gives is the one in the table of knobs.
func TestTheDefaultsOfKnobsAreThoseOfTheirComments(t *testing.T) {
	text, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	// The defaults of all knobs of one name.
	columns := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for _, match := range regexp.MustCompile("[A-Za-z]+[`]").FindAllString(cells[1], -1) {
			columns[strings.TrimSuffix(match, "`")] += cells[3]
		}
	}
	checked := 0
	for _, dir := range []string{".", "bbs", "converge", "auction", "lrp", "task"} {
		files, err := filepath.Glob(filepath.Join(module, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for knob, value := range defaults(t, file) {
				_, name, _ := strings.Cut(knob, ".")
				for _, one := range strings.Split(value, " and ") {
					if column, known := columns[name]; known && !strings.Contains(column, one) {
						t.Errorf("%s: the default of %s is %s; docs/operations.md says%s", file, knob, one, column)
					}
				}
				checked++
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d defaults were found", checked)
	}
}

// knobs are the structs whose fields operators set.
var knobs = []string{"Options", "DutiesOptions", "LeadershipOptions", "AnnouncerOptions", "ConvergerOptions", "Guard", "RunnerOptions", "Policy", "RestartPolicy", "CallbackPolicy"}

// defaults are the numbers that comments of fields give as defaults, by type
// and field.
func defaults(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !slices.Contains(knobs, spec.Name.Name) {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range fields.Fields.List {
			comment := strings.Join(strings.Fields(field.Doc.Text()), " ")
			if match := regexp.MustCompile(`\(default ([0-9][^;:)]*)`).FindStringSubmatch(comment); match != nil {
				for _, name := range field.Names {
					found[spec.Name.Name+"."+name.Name] = match[1]
				}
			}
		}
		return true
	})
	return found
}

// A nest is a time that holds others: a caller that waits for the outer one sees
// the inner ones end within it.
type nest struct {
	outer string
	inner []part
	why   string
}

// A part is a knob, how often its time passes, and what for.
type part struct {
	times float64
	knob  string
}

var nests = []nest{
	{"executor.DefaultReservationExpiry", []part{{5, "rep.Options.CallTimeout"}, {1, "rep.Options.RetryInterval"}},
		"a cell reads a task and starts it, hears nothing, lists its records and tasks after the pause, reads the task again, and runs it"},
	{"rep.Options.CallTimeout", []part{{0.5, "rep.Options.CallTimeout"}, {1, "httpapi.ClientOptions.Pause"}},
		"a silent process gets half of a call's time; another one is asked in the rest"},
	{"rep.Options.AnnounceInterval", []part{{0.5, "rep.Options.AnnounceInterval"}, {1, "httpapi.ClientOptions.Pause"}},
		"the same for the announcement of a cell"},
	{"bbs.AnnouncerOptions.TTL", []part{{3, "rep.Options.AnnounceInterval"}},
		"a cell stays present while two announcements in a row fail"},
	{"diego.Options.LeaderTTL", []part{{3, "a third of diego.Options.LeaderTTL"}},
		"a leader renews its lease every third of its time, so two renewals in a row may fail"},
	{"httpapi.HandlerOptions.Timeout", []part{{1, "httpapi.ClientOptions.Timeout"}},
		"a client asks elsewhere before a server that hangs gives up; the call ends there when its client goes"},
	{"httpapi.ClientOptions.Patience", []part{{1, "diego.Options.LeaderTTL"}, {2, "httpapi.ClientOptions.Timeout"}},
		"a subscription outlives the leader and two silent processes"},
	{"task.Policy.StalePending", []part{{1, "auction.RunnerOptions.StateTimeout"}, {1, "auction.RunnerOptions.PerformTimeout"}, {1, "rep.Options.CallTimeout"}},
		"a task is not requested again while a slow round places it and its cell starts it"},
	{"lrp.Policy.StaleUnclaimed", []part{{1, "auction.RunnerOptions.StateTimeout"}, {1, "auction.RunnerOptions.PerformTimeout"}, {1, "rep.Options.CallTimeout"}},
		"the same for an instance and its claim"},
	{"task.Policy.StaleResolving", []part{{3, "task.CallbackPolicy.Timeout"}, {3, "task.CallbackPolicy.MinBackoff"}},
		"a callback with its three attempts, after waits of one and two times the first one, ends before another begins"},
	{"rep.Options.FinishTimeout", []part{{3, "rep.Options.CallTimeout"}},
		"a cell that leaves lists what is left and tells the BBS of it, though all answers are slow"},
	{"lrp.Policy.EvacuationTimeout", []part{{2, "rep.Options.EvacuationInterval"}},
		"an evacuating cell renews its records long before they expire"},
	{"rep.Options.EvacuationTimeout", []part{{1, "rep.Options.StopPause"}},
		"a replaced instance is stopped before its cell gives up"},
	{"sqlstore.MaxSilence", []part{{1, "sqlstore.MaxLockWait"}},
		"statements of clients that are gone leave the queue before a lock comes free"},
	{"sqlstore.MaxAnswer", []part{{1, "sqlstore.MaxSilence"}, {1, "sqlstore.MaxLockWait"}},
		"a commit outlives a client that holds the lock and says nothing, and a wait for the lock after that"},
	{"sqlstore.Options.RetryFor", []part{{1, "sqlstore.MaxAnswer"}, {1, "sqlstore.MaxSilence"}},
		"a commit whose answer was lost finds out what came of it, once the server has ended what is left of it"},
	{"diego.Options.LeaderTTL", []part{{1, "a third of diego.Options.LeaderTTL"}, {1, "sqlstore.MaxAnswer"}},
		"a renewal that got no answer is sent again, by another connection, when the lease ends at the latest"},
	{"httpapi.HandlerOptions.Timeout", []part{{1, "sqlstore.Options.RetryFor"}, {1, "sqlstore.MaxAnswer"}},
		"after a moment without the store, a call still learns what became of its commit; the last try may begin when RetryFor ends"},
	{"converge.Guard.Grace", []part{{1, "bbs.AnnouncerOptions.TTL"}, {1, "rep.Options.AnnounceInterval"}},
		"all cells can announce themselves again before the loss of many is believed"},
}

// timeOf is the default of a knob: its constant, or what the documents say,
// which is what the comment of its field says.
func timeOf(t *testing.T, knob string) time.Duration {
	t.Helper()
	if whole, third := strings.CutPrefix(knob, "a third of "); third {
		return timeOf(t, whole) / 3
	}
	if d, ok := map[string]time.Duration{
		"executor.DefaultReservationExpiry": executor.DefaultReservationExpiry,
		"rep.Options.CallTimeout":           rep.DefaultCallTimeout,
		"rep.Options.RetryInterval":         rep.DefaultRetryInterval,
		"rep.Options.AnnounceInterval":      rep.DefaultAnnounceInterval,
		"rep.Options.FinishTimeout":         rep.DefaultFinishTimeout,
		"sqlstore.Options.RetryFor":         sqlstore.DefaultRetryFor,
		"sqlstore.MaxAnswer":                sqlstore.MaxAnswer,
		"sqlstore.MaxLockWait":              sqlstore.MaxLockWait,
		"sqlstore.MaxSilence":               sqlstore.MaxSilence,
	}[knob]; ok {
		return d
	}
	d, err := time.ParseDuration(documented(t)[knob])
	if err != nil {
		t.Fatalf("the default of %s: %v", knob, err)
	}
	return d
}

// documented are the defaults of all knobs in docs/operations.md, as Go writes
// times.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var types []string
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			types = strings.Split(strings.TrimSpace(heading), " and ")
		}
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		values := strings.Split(cells[3], ",")
		for i, match := range regexp.MustCompile("`[A-Za-z.]+`").FindAllString(cells[1], -1) {
			if i >= len(values) {
				continue
			}
			value := strings.NewReplacer(" ", "", "min", "m").Replace(values[i])
			for _, name := range append(types, "") {
				found[strings.TrimPrefix(name+"."+strings.Trim(match, "`"), ".")] = value
			}
		}
	}
	return found
}

// spelled is a time as the documents write it.
func spelled(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return strings.NewReplacer("ms", " ms", "m", " min", "s", " s").Replace(text)
}

func TestTimesThatAreNestedFitOneAnother(t *testing.T) {
	text, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| this time | holds | why |\n|---|---|---|\n"
	for _, n := range nests {
		outer := timeOf(t, n.outer)
		var sum time.Duration
		var parts []string
		for _, p := range n.inner {
			d := timeOf(t, p.knob)
			sum += time.Duration(p.times * float64(d))
			name := "`" + p.knob + "`"
			if whole, third := strings.CutPrefix(p.knob, "a third of "); third {
				name = "a third of `" + whole + "`"
			}
			switch p.times {
			case 1:
				parts = append(parts, fmt.Sprintf("%s (%s)", name, spelled(d)))
			case 0.5:
				parts = append(parts, "half of "+name)
			default:
				parts = append(parts, fmt.Sprintf("%v × %s (%s)", p.times, name, spelled(d)))
			}
		}
		if sum > outer {
			t.Errorf("%s is %v and holds %v: %s", n.outer, outer, sum, n.why)
		}
		table += fmt.Sprintf("| `%s` (%s) | %s = %s | %s |\n", n.outer, spelled(outer), strings.Join(parts, " + "), spelled(sum), n.why)
	}
	if !strings.Contains(string(text), table+"\n") {
		t.Errorf("docs/operations.md should have this table:\n%s", table)
	}
}

// recorded are the names of figures that were published.
type recorded struct {
	mu    sync.Mutex
	names map[string]bool
}

func (r *recorded) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = true
}

func (r *recorded) Count(name string, _ int64, _ ...auction.Label)     { r.note(name) }
func (r *recorded) Gauge(name string, _ float64, _ ...auction.Label)   { r.note(name) }
func (r *recorded) Observe(name string, _ float64, _ ...auction.Label) { r.note(name) }

func TestEveryFigureIsDocumented(t *testing.T) {
	figures := &recorded{names: map[string]bool{}}
	s := newSystem(t, 2, func(o *diego.Options) { o.Metrics = figures })
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	_ = s.BBS.Desire(s.ctx, desired("web", 2))
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "http://127.0.0.1:1/")))
	s.pass(time.Minute)
	w := newTown(t, 1, func(o *rep.Options) {
		o.Metrics, o.SelfTest = figures, &rep.SelfTest{RunInfo: doing("wait 1s").RunInfo}
	})
	w.desire("web", 1, definition())
	w.pass(5 * time.Second)
	w.must(w.cells[0].Evacuate(w.ctx))
	for name := range figures.names {
		if !slices.ContainsFunc(figureRows(), func(row string) bool { return strings.HasPrefix(row, "| `"+name+"` |") }) {
			t.Errorf("the table of figures does not say what %s tells", name)
		}
	}
	for _, name := range []string{"auction_performed_total", "convergence_pass_seconds", "commit_seconds", "lrps", "bbs_errors_total", "callbacks_total", "rep_steps_total", "rep_capacity_remaining", "rep_evacuating"} {
		if !figures.names[name] {
			t.Errorf("%s was not published; there are %v", name, slices.Sorted(maps.Keys(figures.names)))
		}
	}
}

func TestTheTableOfFiguresIsTheOneInTheDocuments(t *testing.T) {
	text, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| name | type | labels | what it tells |\n|---|---|---|---|\n" + strings.Join(figureRows(), "\n") + "\n\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/operations.md should have this table:\n%s", want)
	}
}

// Figures of cells are published by package rep, which has a table of names in
// its code only.
func TestEveryFigureInTheCodeIsInTheTable(t *testing.T) {
	rows := strings.Join(figureRows(), "\n")
	for _, pattern := range []string{"*.go", "bbs/*.go", "httpapi/*.go", "auction/*.go", "converge/*.go", "rep/*.go"} {
		files, err := filepath.Glob(module + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(`\.(?:Count|Gauge|Observe)\("([a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
				if !strings.HasSuffix(file, "_test.go") && !strings.Contains(rows, "| `"+match[1]+"` |") {
					t.Errorf("%s publishes %s, which the table of figures has not", file, match[1])
				}
			}
		}
	}
}

// An instance is CRASHED first at the count after the immediate restarts.
func TestTheFirstBackOffIsTheOneInTheDocuments(t *testing.T) {
	page, err := os.ReadFile(module + "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var policy lrp.RestartPolicy
	count, start := 0, time.Unix(0, 0)
	for policy.AtOnce(count) {
		count++
	}
	count++ // the crash after which it waits
	text := fmt.Sprintf("after three immediate restarts, at a count of %d, is %g min", count, policy.Next(count, start).At.Sub(start).Minutes())
	if !strings.Contains(string(page), text) {
		t.Errorf("docs/operations.md does not say %q", text)
	}
}

// figureRows are the rows of the table in docs/operations.md.
func figureRows() (rows []string) {
	for _, f := range metrics.All {
		labels := make([]string, len(f.Labels))
		for i, l := range f.Labels {
			labels[i] = "`" + l + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", f.Name, f.Kind, strings.Join(labels, ", "), f.Help))
	}
	return rows
}
