package exported_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/exported"
)

const root = "../.."

func TestTheExportedAPIIsTheOneThatIsWrittenDown(t *testing.T) {
	before, err := exported.Load(filepath.Join(root, exported.Dir))
	if err != nil {
		t.Fatal(err)
	}
	now, err := exported.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := exported.Compare(before, now, exported.Unreleased(string(changelog)))
	for _, line := range d.Unnamed {
		t.Errorf("%s\n  is gone or has changed; name the symbol in CHANGELOG.md under Unreleased, then run: go generate ./...", line)
	}
	if len(d.Unnamed) == 0 && len(d.Added)+len(d.Removed) > 0 {
		t.Errorf("%s/ is stale; run: go generate ./...\n  added:   %s\n  removed: %s", exported.Dir, strings.Join(d.Added, "\n           "), strings.Join(d.Removed, "\n           "))
	}
}

func TestThePageAboutCompatibilityNamesEveryInterface(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	api, err := exported.Load(filepath.Join(root, exported.Dir))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for of, symbols := range api {
		for _, line := range symbols {
			words := strings.Fields(line)
			if len(words) < 3 || words[0] != "type" || words[2] != "interface" {
				continue
			}
			found++
			if name := path.Base(of) + "." + words[1]; !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/compatibility.md does not say whether users implement %s, and how it may grow", name)
			}
		}
	}
	if found == 0 {
		t.Errorf("%s/ has no interface", exported.Dir)
	}
}

// lines type-checks a package of one file.
func lines(t *testing.T, source string) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", "package x\n"+source, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{}
	p, err := config.Check("example.org/x", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return exported.Lines(p)
}

func TestEverySymbolThatUsersSeeHasALine(t *testing.T) {
	got := lines(t, `
const Limit = 3
const hidden = 4
var Err error
type Kind uint8
func (k Kind) String() string { return "" }
type Box[T any] struct { Item T; inner int }
func (b *Box[T]) Put(item T) {}
type base struct{}
func (base) Close() error { return nil }
type Store interface { Get(key string) (value string, err error) }
type Open struct { base; Store; Limit Kind }
type Alias = Kind
func Make(name string, sizes ...int) (b *Box[string], err error) { return nil, nil }
func Each[K comparable](keys []K, f func(K)) {}
func internal() {}
`)
	want := []string{
		"const Limit untyped int = 3",
		"field Box.Item T",
		"field Open.Limit Kind",
		"field Open.Store embedded Store",
		"func Each[K comparable]([]K, func(K))",
		"func Make(string, ...int) (*Box[string], error)",
		"method (*Box) Put(T)",
		"method (Kind) String() string",
		"method (Open) Close() error",
		"method (Open) Get(string) (string, error)",
		"method (Store) Get(string) (string, error)",
		"type Alias = Kind",
		"type Box[T any] struct",
		"type Kind uint8",
		"type Open struct",
		"type Store interface { Get }",
		"var Err error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestARenamedParameterIsNoChangeAndANewMethodOfAnInterfaceIsOne(t *testing.T) {
	const before = "type Store interface { Get(key string) string }"
	if a, b := lines(t, before), lines(t, "type Store interface { Get(name string) string }"); !slices.Equal(a, b) {
		t.Errorf("got %q and %q", a, b)
	}
	d := exported.Compare(map[string][]string{"x": lines(t, before)}, map[string][]string{"x": lines(t, "type Store interface { Get(key string) string; Put() }")}, "")
	if len(d.Unnamed) != 1 || d.Unnamed[0] != "x: type Store interface { Get }" {
		t.Errorf("got %+v", d)
	}
}

func TestWhatIsGoneOrChangedMustBeNamed(t *testing.T) {
	before := map[string][]string{
		"lrp":         {"field Slot.Records []ActualLRP", "func Step(Slot) error", "method (*Slot) Apply(Decision) Slot", "type Slot struct"},
		"storage/old": {"func New() *Store"},
	}
	now := map[string][]string{"lrp": {"func Step(Slot, Policy) error", "func Added()"}}
	for _, c := range []struct {
		name, changelog string
		unnamed         int
	}{
		{"nothing", "", 5},
		{"the function", "`lrp.Step` takes a policy.", 4},
		{"a longer name", "`lrp.StepAll` and `lrp.Step.Foo` and `my/lrp.Step`", 5},
		{"the end of a sentence", "Gone is lrp.Step.", 4},
		{"a field", "`lrp.Slot.Records` is gone", 4},
		{"the type for all of it", "`lrp.Slot` is gone", 2},
		{"a package", "package `storage/old` is gone", 4},
		{"a package that is spoken of", "`storage/old`: what is new", 5},
		{"a call's member", "`modern` is gone from `/v1/bbs/claim`", 5},
		{"all", "`lrp.Step`, `lrp.Slot` and package `storage/old` have changed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := exported.Compare(before, now, c.changelog)
			if len(d.Unnamed) != c.unnamed || len(d.Removed) != 5 || len(d.Added) != 2 {
				t.Errorf("got %d unnamed, %d removed, %d added: %q", len(d.Unnamed), len(d.Removed), len(d.Added), d.Unnamed)
			}
			// What is generated has all that is, and forgets what is named only.
			next := exported.Next(before, now, c.changelog)
			d = exported.Compare(next, now, c.changelog)
			if len(d.Unnamed) != c.unnamed || len(d.Removed) != c.unnamed || len(d.Added) != 0 {
				t.Errorf("after generating: %+v", d)
			}
		})
	}
}

func TestATypeThatStaysDoesNotStandForItsMembers(t *testing.T) {
	before := map[string][]string{"lrp": {"field Slot.Records []ActualLRP", "method (*Slot) Apply(Decision) Slot", "type Slot struct"}}
	now := map[string][]string{"lrp": {"type Slot struct"}}
	for changelog, unnamed := range map[string]int{"`lrp.Slot` is new": 2, "`lrp.Slot.Records` is gone": 1, "lrp.Slot.Records and lrp.Slot.Apply": 0} {
		if d := exported.Compare(before, now, changelog); len(d.Unnamed) != unnamed {
			t.Errorf("%q: got %q", changelog, d.Unnamed)
		}
	}
}

func TestAMemberOnTheWireIsNamedByItsNameOrItsCall(t *testing.T) {
	before := map[string][]string{"wire": {`/v1/bbs/claim arguments.keys[].cell_id "x"`, "/v1/bbs/claim POST"}}
	for changelog, unnamed := range map[string]int{"": 2, "`cell_id` has another name": 1, "`/v1/bbs/claim` is gone": 0, "`/v1/bbs/claim_lrp` is gone": 2} {
		if d := exported.Compare(before, nil, changelog); len(d.Unnamed) != unnamed {
			t.Errorf("%q: got %q", changelog, d.Unnamed)
		}
	}
}

func TestOnlyTheUnreleasedPartOfTheChangelogCounts(t *testing.T) {
	got := exported.Unreleased("# Changelog\n\n## [Unreleased]\n\n### Changed\n\n- lrp.Step\n\n## [0.1.0]\n\n- task.Step\n")
	if !strings.Contains(got, "lrp.Step") || strings.Contains(got, "task.Step") {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsWrittenDownIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "api")
	api := map[string][]string{"lrp": {"func Step()"}, "storage/memstore": {"func New()", "type Store struct"}}
	for _, want := range []map[string][]string{api, {"lrp": {"func Step()", "type Slot struct"}}} {
		if err := exported.Save(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := exported.Load(dir)
		if err != nil || len(got) != len(want) || !slices.Equal(got["lrp"], want["lrp"]) || !slices.Equal(got["storage/memstore"], want["storage/memstore"]) {
			t.Errorf("got %v, %v", got, err)
		}
	}
}
