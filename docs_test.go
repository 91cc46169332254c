package diego_test

import (
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
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

// named are the words in backquotes of docs/operations.md, without what they
// are qualified by.
func named(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("docs/operations.md")
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
		diego.Options{}, diego.BBSOptions{}, diego.LeadershipOptions{}, diego.AnnouncerOptions{},
		diego.HandlerOptions{}, diego.ClientOptions{}, diego.AuctioneerOptions{},
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
	text, err := os.ReadFile("docs/operations.md")
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
	for _, dir := range []string{".", "converge", "auction", "lrp", "task"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
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
var knobs = []string{"Options", "BBSOptions", "LeadershipOptions", "AnnouncerOptions", "ConvergerOptions", "Guard", "RunnerOptions", "Policy", "RestartPolicy", "CallbackPolicy"}

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
		if !slices.ContainsFunc(diego.Figures(), func(row string) bool { return strings.HasPrefix(row, "| `"+name+"` |") }) {
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
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| name | type | labels | what it tells |\n|---|---|---|---|\n" + strings.Join(diego.Figures(), "\n") + "\n\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/operations.md should have this table:\n%s", want)
	}
}

// Figures of cells are published by package rep, which has a table of names in
// its code only.
func TestEveryFigureInTheCodeIsInTheTable(t *testing.T) {
	rows := strings.Join(diego.Figures(), "\n")
	for _, pattern := range []string{"*.go", "auction/*.go", "converge/*.go", "rep/*.go"} {
		files, err := filepath.Glob(pattern)
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
