package lint_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/diegosdk/diego/internal/lint"
)

// Each rule refuses what it is there to refuse, and nothing else.

func TestTheImportGraphRefusesWhatItDoesNotList(t *testing.T) {
	const m = lint.Module
	tests := []struct {
		name    string
		p       lint.Package
		refused bool
	}{
		{"upwards", lint.Package{ImportPath: m + "/executor", Imports: []string{m + "/lrp"}}, true},
		{"sideways", lint.Package{ImportPath: m + "/task", Imports: []string{m + "/lrp"}}, true},
		{"the root", lint.Package{ImportPath: m + "/rep", Imports: []string{m}}, true},
		{"a subpackage of what is allowed", lint.Package{ImportPath: m + "/lrp", Imports: []string{m + "/executor/manager"}}, true},
		{"internal from a pure package", lint.Package{ImportPath: m + "/lrp", Imports: []string{m + "/internal/testdb"}}, true},
		{"the module of another layer", lint.Package{ImportPath: m + "/storage", Imports: []string{"github.com/lib/pq"}}, true},
		{"an unknown module", lint.Package{ImportPath: m + "/rep", Imports: []string{"example.com/logging"}}, true},
		{"an unknown module in a test", lint.Package{ImportPath: m + "/rep", TestImports: []string{"example.com/assert"}}, true},
		{"a package without a layer", lint.Package{ImportPath: m + "/util"}, true},
		{"upwards in a test", lint.Package{ImportPath: m + "/lrp", XTestImports: []string{m + "/rep"}}, true},
		{"a helper outside of a test", lint.Package{ImportPath: m + "/storage", Imports: []string{m + "/internal/testdb"}}, true},

		{"downwards", lint.Package{ImportPath: m + "/rep", Imports: []string{m + "/lrp", m + "/executor", "context"}}, false},
		{"a helper in a test", lint.Package{ImportPath: m + "/storage/sqlstore", TestImports: []string{m + "/internal/testdb"}}, false},
		{"comparing in a test", lint.Package{ImportPath: m + "/lrp", XTestImports: []string{m + "/lrp", "github.com/google/go-cmp/cmp"}}, false},
		{"all of it in an example", lint.Package{ImportPath: m + "/examples/allinone", Imports: []string{m, m + "/executor/manager"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, lint.CheckImports(tt.p), tt.refused) })
	}
}

func TestLightPackagesAreRefusedHeavyDependencies(t *testing.T) {
	tests := []struct {
		dep     lint.Package
		refused bool
	}{
		{lint.Package{ImportPath: "net/http", Standard: true}, true},
		{lint.Package{ImportPath: "os/exec", Standard: true}, true},
		{lint.Package{ImportPath: "database/sql", Standard: true}, true},
		{lint.Package{ImportPath: "golang.org/x/sync/errgroup"}, true},
		{lint.Package{ImportPath: "encoding/json", Standard: true}, false},
		{lint.Package{ImportPath: lint.Module + "/executor"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.dep.ImportPath, func(t *testing.T) {
			expect(t, lint.CheckLinked("lrp", []lint.Package{tt.dep}), tt.refused)
		})
	}
}

func TestPureCodeIsRefusedClocksRandomnessAndMapOrder(t *testing.T) {
	compiled := goList(t, nil, "-export", "-deps", "cmp", "maps", "slices", "time")
	tests := []struct {
		name, imports, body string
		refused             bool
	}{
		{"importing context", `_ "context"`, "", true},
		{"importing log/slog", `_ "log/slog"`, "", true},
		{"importing sync", `_ "sync"`, "", true},
		{"importing os", `_ "os"`, "", true},
		{"importing os/exec", `_ "os/exec"`, "", true},
		{"importing database/sql", `_ "database/sql"`, "", true},
		{"importing net", `_ "net"`, "", true},
		{"importing net/http", `_ "net/http"`, "", true},
		{"importing math/rand/v2", `_ "math/rand/v2"`, "", true},
		{"importing net/netip and net/url", `_ "net/netip"; _ "net/url"`, "", false},

		{"calling time.Now", `"time"`, `func f() time.Time { return time.Now() }`, true},
		{"calling time.Since by another name", `clock "time"`, `func f(t clock.Time) clock.Duration { return clock.Since(t) }`, true},
		{"calling time.Until", `"time"`, `func f(t time.Time) time.Duration { return time.Until(t) }`, true},
		{"calling time.Sleep", `"time"`, `func f() { time.Sleep(1) }`, true},
		{"calling time.After", `"time"`, `func f() { <-time.After(1) }`, true},
		{"passing time.Now on", `"time"`, `var now = time.Now`, true},
		{"comparing times", `"time"`, `func f(a, b time.Time) bool { return a.After(b) }`, false},
		{"starting a goroutine", ``, `func f() { go f() }`, true},

		{"appending in map order", ``, `func f(m map[int]int) (r []int) { for k := range m { r = append(r, k) }; return r }`, true},
		{"returning an entry of a map", ``, `func f(m map[int]int) int { for k := range m { return k }; return 0 }`, true},
		{"breaking out of a map", ``, `func f(m map[int]int) (n int) { for range m { n++; if n > 3 { break } }; return n }`, true},
		{"adding floats in map order", ``, `func f(m map[int]float64) (s float64) { for _, v := range m { s += v }; return s }`, true},
		{"joining strings in map order", ``, `func f(m map[string]int) (s string) { for k := range m { s += k }; return s }`, true},
		{"overwriting a foreign key", ``, `func f(m map[int]string, r map[string]int) { for k, v := range m { r[v] = k } }`, true},
		{"calling out in map order", ``, `func f(m map[int]int, g func(int)) { for k := range m { g(k) } }`, true},
		{"one of two constants", ``, `func f(m map[int]int) bool { for k := range m { if k > 1 { return true }; return false }; return false }`, true},
		{"a named map type", ``, `type set map[int]bool; func f(m set) (r []int) { for k := range m { r = append(r, k) }; return r }`, true},
		{"a generic map", ``, `func f[M ~map[int]bool](m M) (r []int) { for k := range m { r = append(r, k) }; return r }`, true},
		{"maps.Keys unsorted", `"maps"; "slices"`, `func f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }`, true},
		{"ranging over maps.Values", `"maps"`, `func f(m map[int]int) (r []int) { for v := range maps.Values(m) { r = append(r, v) }; return r }`, true},
		{"a comment without a reason", ``, "func f(m map[int]int, g func(int)) {\n//lint:maporder\nfor k := range m { g(k) } }", true},
		{"a comment elsewhere", ``, "//lint:maporder it sorts\n\nfunc f(m map[int]int, g func(int)) {\nfor k := range m { g(k) } }", true},

		{"ranging over a slice", ``, `func f(l []int) (r []int) { for _, v := range l { r = append(r, v) }; return r }`, false},
		{"keys sorted at once", `"maps"; "slices"`, `func f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }`, false},
		{"values sorted by a function", `"cmp"; "maps"; "slices"`, `func f(m map[int]int) []int { return slices.SortedFunc(maps.Values(m), cmp.Compare[int]) }`, false},
		{"copying entries", ``, `func f(m, r map[int]int) { for k, v := range m { r[k] = v } }`, false},
		{"deleting entries", ``, `func f(m map[int]int) { for k, v := range m { if v == 0 { delete(m, k) } } }`, false},
		{"counting", ``, `func f(m map[int]int) (n int) { for _, v := range m { if v < 0 { continue }; n += v }; return n }`, false},
		{"searching", ``, `func f(m map[int]int) bool { for _, v := range m { if v == 3 { return true } }; return false }`, false},
		{"a comment with a reason", ``, "func f(m map[int]int, g func(int)) {\n//lint:maporder g keeps the largest\nfor k := range m { g(k) } }", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file := parse(t, fset, "rule.go", []byte(fmt.Sprintf("package p\nimport (%s)\n%s\n", tt.imports, tt.body)))
			info := new(types.Info) // imports are judged by their names
			if tt.body != "" {
				info = typeCheck(t, fset, "p", []*ast.File{file}, compiled)
			}
			expect(t, lint.CheckPure(fset, file, info), tt.refused)
		})
	}
}

func TestExportedIdentifiersWithoutCommentsAreRefused(t *testing.T) {
	tests := []struct {
		name, source string
		refused      bool
	}{
		{"function", "func F() {}", true},
		{"type", "type T int", true},
		{"type in a group", "// These are types.\ntype (\n\tT int\n)", true},
		{"variable", "var V = 1", true},
		{"constant in a group", "const (\n\tC = 1\n)", true},
		{"method", "// T is a type.\ntype T int\nfunc (*T) Method() {}", true},
		{"method of a generic type", "// T is a type.\ntype T[E any] int\nfunc (T[E]) Method() {}", true},

		{"documented function", "// F does it.\nfunc F() {}", false},
		{"documented group of constants", "// What there is.\nconst (\n\tC = 1\n)", false},
		{"documented line", "var (\n\tV = 1 // one\n)", false},
		{"method of an unexported type", "type t int\nfunc (t) Method() {}", false},
		{"what its name explains", "// T is a type.\ntype T int\nfunc (T) String() string { return \"\" }", false},
		{"what an interface documents", "type i interface {\n// Method does it.\nMethod()\n}\n// T is a type.\ntype T int\nfunc (T) Method() {}", false},
		{"what an interface does not document", "type i interface { Method() }\n// T is a type.\ntype T int\nfunc (T) Method() {}", true},
		{"constants of a documented type", "// T is one of these.\ntype T int\nconst (\n\tA T = iota\n\tB\n)", false},
		{"constants of an undocumented type", "type t int\nconst (\n\tA t = iota\n\tB\n)", true},
		{"a constant of no type beside them", "// T is one of these.\ntype T int\nconst (\n\tA T = iota\n\tN = 4\n)", true},
		{"unexported", "func f() {}", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file := parse(t, fset, "rule.go", []byte("package p\n\n"+tt.source+"\n"))
			expect(t, lint.CheckDocs(fset, []*ast.File{file}), tt.refused)
		})
	}
}

func TestTypesThatDoNotSayWhetherGoroutinesMayShareThemAreRefused(t *testing.T) {
	const section = "// Package p is one.\n//\n// # Concurrent use\n//\n// All are values.\n"
	tests := []struct {
		name, doc, source string
		refused           bool
	}{
		{"no section", "// Package p is one.\n", "", true},
		{"interface", section, "// T is a type.\ntype T interface{ M() }", true},
		{"function", section, "// T is a type.\ntype T func()", true},
		{"hidden field", section, "// T is a type.\ntype T struct{ F, f int }", true},
		{"hidden field in a group", section, "// Types.\ntype (\n\t// T is a type.\n\tT struct{ f int }\n)", true},

		{"value", section, "// T is a type.\ntype T struct{ F int }", false},
		{"number", section, "// T is a type.\ntype T int", false},
		{"unexported", section, "type t struct{ f int }", false},
		{"interface that says so", section, "// T is a type. Goroutines may share it.\n// Its methods may be called at the\n// same time.\ntype T interface{ M() }", false},
		{"struct that says so", section, "// T is used by one goroutine.\ntype T struct{ f int }", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file := parse(t, fset, "rule.go", []byte(tt.doc+"package p\n\n"+tt.source+"\n"))
			expect(t, lint.CheckConcurrency(fset, []*ast.File{file}), tt.refused)
		})
	}
}

func TestNamesWithTwoMeaningsAreRefused(t *testing.T) {
	tests := []struct {
		name, a, b string
		refused    bool
	}{
		{"function and struct", "func Desire() {}", "type Desire struct{}", true},
		{"interface and struct", "type Metrics interface{ M() }", "type Metrics struct{}", true},
		{"function and type in a group", "func Desire() {}", "type (\n\tDesire struct{}\n)", true},

		{"two functions", "func Step() {}", "func Step() {}", false},
		{"two structs", "type Key struct{}", "type Key struct{}", false},
		{"alias", "type Metrics interface{ M() }", "type Metrics = int", false},
		{"method", "func Step() {}\ntype T int\nfunc (T) Key() {}", "type Key struct{}", false},
		{"unexported", "func step() {}", "type step struct{}", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			packages := map[string][]*ast.File{}
			for path, source := range map[string]string{"a": tt.a, "b": tt.b} {
				packages[path] = []*ast.File{parse(t, token.NewFileSet(), "rule.go", []byte("package "+path+"\n\n"+source+"\n"))}
			}
			expect(t, lint.CheckNames(packages), tt.refused)
		})
	}
}

func TestRootsOfPackageOSAreRefused(t *testing.T) {
	tests := []struct {
		path, body string
		refused    bool
	}{
		{"executor/process/stream.go", `os.OpenRoot("/")`, true},
		{"executor/process/stream_test.go", `var root *os.Root; root.Close()`, true},
		{"executor/process/stream.go", `os.OpenInRoot("/", "x")`, true},
		{"executor/process/stream.go", `tenant.OpenRoot("/")`, false},
		{"executor/internal/tenant/root.go", `os.OpenRoot("/")`, false},
	}
	for _, tt := range tests {
		t.Run(tt.path+" "+tt.body, func(t *testing.T) {
			fset := token.NewFileSet()
			source := "package p\nfunc f() { " + tt.body + " }\n"
			expect(t, lint.CheckRoots(fset, tt.path, parse(t, fset, tt.path, []byte(source))), tt.refused)
		})
	}
}

func TestSkipsBubblesAndShortTestsAreRefused(t *testing.T) {
	tests := []struct {
		path, body string
		refused    bool
	}{
		{"lrp/step_test.go", `t.Skip("slow")`, true},
		{"lrp/step_test.go", `t.Skipf("%s", "slow")`, true},
		{"lrp/step_test.go", `if testing.Short() { t.SkipNow() }`, true},
		{"lrp/step_test.go", `t.Log("slow")`, false},
		{"lrp/step_test.go", `synctest.Test(t, f)`, true},
		{"lrp/step_test.go", `synctest.Wait()`, false},
		{"lrp/step_test.go", `if testenv.Race { return }`, false},
		{"internal/simulation/world_test.go", `if testenv.Race { return }`, false},
		{"bbs/spans_test.go", `if testenv.Race { return }`, true},
		{"internal/testenv/testenv.go", `t.Skip("missing")`, false},
		{"internal/testenv/bubble.go", `synctest.Test(t, f)`, false},
	}
	for _, tt := range tests {
		t.Run(tt.path+" "+tt.body, func(t *testing.T) {
			fset := token.NewFileSet()
			source := "package p\nimport \"testing\"\nfunc f(t testing.TB) { " + tt.body + " }\n"
			expect(t, lint.CheckTests(fset, tt.path, parse(t, fset, tt.path, []byte(source))), tt.refused)
		})
	}
}

func TestFuzzTargetsWithoutACorpusAreRefused(t *testing.T) {
	dir := fstest.MapFS{
		"testdata/fuzz/FuzzKept/seed": &fstest.MapFile{Data: []byte("go test fuzz v1\n")},
		"testdata/fuzz/FuzzEmpty":     &fstest.MapFile{Mode: fs.ModeDir},
	}
	for name, refused := range map[string]bool{"FuzzKept": false, "FuzzEmpty": true, "FuzzForgotten": true, "helper": false} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			source := "package p\nimport \"testing\"\nfunc " + name + "(f *testing.F) {}\n"
			expect(t, lint.CheckCorpus(fset, dir, parse(t, fset, "rule_test.go", []byte(source))), refused)
		})
	}
}

func TestInternalPackagesAndTheTableOfLibrariesMustAgree(t *testing.T) {
	document := []byte("| `internal/a` | none |\n| `internal/b` | none |\n| `x/internal/d` | none |\n\n`internal/c` is mentioned.\n")
	expect(t, lint.CheckConsidered(document, []string{"internal/a", "internal/b", "x/internal/d"}), false)
	expect(t, lint.CheckConsidered(document, []string{"internal/a", "internal/c", "internal/b", "x/internal/d"}), true)
	expect(t, lint.CheckConsidered(document, []string{"internal/a", "internal/b"}), true)
}

func TestPackagesThatTheMapLeavesOutAreRefused(t *testing.T) {
	document := []byte("```\na         what a is     imports b\n  b, a/c  two\n```\n\nd is mentioned.\n")
	expect(t, lint.CheckMap(document, []string{"a", "a/b", "a/c"}), false)
	expect(t, lint.CheckMap(document, []string{"a", "x/d"}), true)
	expect(t, lint.CheckMap(document, []string{"is"}), true)
}

// The words are split here so that this file passes the rule itself.
func TestStiltedWordsAreRefused(t *testing.T) {
	tests := []struct {
		name, file, text string
		refused          bool
	}{
		{"document", "a.md", "Ask who" + "ever leads.\n", true},
		{"upper case", "a.md", "Who" + "ever leads answers.\n", true},
		{"two words", "a.md", "It is told" + " of the end.\n", true},
		{"comment", "a.go", "x := 1 // hen" + "ce it is one\n", true},

		{"plain document", "a.md", "The leader answers; it told of no end, whoeverly.\n", false},
		{"string", "a.go", "t.Error(\"what" + "ever\")\n", true},
		{"a noun", "a.md", "A cell is no" + " consumer.\n", true},

		{"nothing", "a.md", "There is no consumer, it is no longer there, and 0 is no limit.\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, lint.CheckProse(tt.file, []byte(tt.text)), tt.refused) })
	}
}

// The words are split here so that this file passes the rule itself, wherever
// it is checked out.
func TestTextIsRefusedUnfinishedWorkMergesRegistriesAndLocalPaths(t *testing.T) {
	tests := []struct {
		name, root, text string
		refused          bool
	}{
		{"a note to self", "/bu" + "ilds/diego", "// TO" + "DO: later", true},
		{"a broken thing", "/bu" + "ilds/diego", "# FIX" + "ME", true},
		{"a registry", "/bu" + "ilds/diego", "GOPROXY=https://proxy.golang" + ".org", true},
		{"the parent of the checkout", "/bu" + "ilds/diego", "cd /bu" + "ilds/other", true},
		{"the checkout in a common directory", "/tmp/diego", "cd /tmp/diego", true},
		{"the begin of a merge", "/tmp/diego", "<<<<<<" + "< HEAD", true},
		{"the end of a merge", "/tmp/diego", ">>>>>>" + "> 1234567 (A commit)", true},

		{"the line below a heading", "/tmp/diego", "=======", false},
		{"a common directory", "/tmp/diego", "cd /tmp/other", false},
		{"a word that contains one", "/bu" + "ilds/diego", "MASTO" + "DON", false},
		{"an ordinary host", "/bu" + "ilds/diego", "https://go.dev/dl/", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, lint.CheckText(tt.root, "file", []byte("first line\n"+tt.text+"\n")), tt.refused)
		})
	}
}

func TestLinksThatLeadNowhereAreRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/a.md"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		text    string
		refused bool
	}{
		{"[b](b.md)", true},
		{"[b](docs/a.md)", true}, // relative to docs
		{"[out](../../other/README.md)", true},
		{"[a](a.md), [readme](../README.md#top) and [web](https://go.dev/)", false},
		{"[below](#below)", false},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			expect(t, lint.CheckLinks(root, "docs/index.md", []byte(tt.text)), tt.refused)
		})
	}
}

func TestGoCodeThatNobodyCompilesIsRefused(t *testing.T) {
	sources := []string{lint.Unindent("func Example() {\n\tstart()\n\tif ok {\n\t\tstop()\n\t}\n}\n")}
	expect(t, lint.CheckGoBlocks("a.md", []byte("text\n```go\nstart()\nif ok {\n\tstop()\n```\n"), sources), false)
	expect(t, lint.CheckGoBlocks("a.md", []byte("text\n```go\nstart()\nstop()\n```\n"), sources), true)
	expect(t, lint.CheckGoBlocks("a.md", []byte("```\nnot Go\n```\n"), sources), false)
}

func TestCoverageCountsThePureFilesOnly(t *testing.T) {
	shell := lint.Pure[slices.IndexFunc(lint.Pure, func(p lint.PurePackage) bool { return p.Path == "auction" })].Shell[0]
	profile := strings.Join([]string{
		"mode: set",
		lint.Module + "/lrp/step.go:10.2,12.3 3 1",
		lint.Module + "/lrp/step.go:13.2,14.3 1 0",
		lint.Module + "/auction/place.go:1.1,2.2 4 7",
		lint.Module + "/auction/" + shell + ":1.1,2.2 100 0",
		lint.Module + "/storage/apply.go:1.1,2.2 100 0",
	}, "\n")
	got, err := lint.ReadCoverage(profile)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{lrp 4 3 [lrp/step.go:13.2,14.3]} {auction 4 4 []}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if percent := got[0].Percent(); percent != 75 {
		t.Errorf("lrp is covered by %v %%, want 75", percent)
	}
	if _, err := lint.ReadCoverage("mode: set\nnonsense"); err == nil {
		t.Error("nonsense is read as a profile")
	}
}

func expect(t *testing.T, findings []string, refused bool) {
	t.Helper()
	if refused && len(findings) == 0 {
		t.Error("not refused")
	}
	if !refused && len(findings) > 0 {
		t.Errorf("refused: %q", findings)
	}
}
