package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// handedOn says which option, or which constant, has the default of an option
// that its package hands on.
var handedOn = map[string]string{
	"diego.Options.LeaderTTL":               "bbs.LeadershipOptions.TTL",
	"diego.Options.MaxClockSkew":            "bbs.LeadershipOptions.MaxClockSkew",
	"diego.Options.WatchInterval":           "bbs.DutiesOptions.WatchInterval",
	"diego.Options.StopTimeout":             "bbs.DutiesOptions.StopTimeout",
	"diego.Options.InventoryInterval":       "bbs.DutiesOptions.InventoryInterval",
	"diego.Options.MaxCallbacks":            "bbs.DutiesOptions.MaxCallbacks",
	"diego.Options.ConvergenceInterval":     "converge.ConvergerOptions.Interval",
	"diego.Options.FullConvergenceInterval": "converge.ConvergerOptions.FullInterval",
	"auctioneer.Options.LeaderTTL":          "bbs.LeadershipOptions.TTL",
	"auctioneer.Options.MaxClockSkew":       "bbs.LeadershipOptions.MaxClockSkew",
	"lrp.Policy.RolloutGiveUp":              "lrp.defaultRolloutGiveUp",
	"manager.Options.CacheBytes":            "transfer.Options.CacheBytes",
	"manager.Options.MaxDownloadBytes":      "transfer.Options.MaxBytes",
	"manager.Options.MaxContentBytes":       "archive.Limits.MaxContentBytes",
	"manager.Options.MaxContentEntries":     "archive.Limits.MaxContentEntries",
	"manager.Options.LogSegmentBytes":       "logfile.Options.SegmentBytes",
	"manager.Options.LogSegments":           "logfile.Options.Segments",
}

// ownDefaults says why a default of a setting is not a constant of a package.
var ownDefaults = map[string]string{
	"max_subscriptions_each": "a quarter of max_subscriptions",
	"usage_interval":         "an embedder's cell measures nothing unless it asks for it",
}

// A default of a setting is a tag, because the help text shows it. This test
// compares it with the code of the package: cmp.Or(o.Option, default).
func TestTheDefaultsOfSettingsAreThoseOfTheirPackages(t *testing.T) {
	defaults := defaultsOfPackages(t)
	for _, settings := range allSettings() {
		for _, f := range describe(reflect.ValueOf(settings).Elem()) {
			if f.byDefault != "" {
				f.parse(f.byDefault)
			}
		}
		for _, s := range optionsOf(reflect.ValueOf(settings).Elem()) {
			if s.value.IsZero() || !s.value.CanInt() && !s.value.CanUint() && !s.value.CanFloat() && s.value.Kind() != reflect.String {
				continue
			}
			name := s.owner + "." + s.option
			name = cmp.Or(handedOn[name], name)
			got, want := constantOf(s.value), defaults[name]
			same := want != nil && constant.Compare(want, token.EQL, got)
			if same == (ownDefaults[s.setting] != "") {
				t.Errorf("%s is %v by default, and %s is %v; the reason for a difference is %q", s.setting, got, name, want, ownDefaults[s.setting])
			}
		}
	}
}

func constantOf(v reflect.Value) constant.Value {
	switch {
	case v.CanInt():
		return constant.MakeInt64(v.Int())
	case v.CanUint():
		return constant.MakeUint64(v.Uint())
	case v.CanFloat():
		return constant.MakeFloat64(v.Float())
	}
	return constant.MakeString(v.String())
}

// defaultsOfPackages finds the constants that replace zeros in the packages of
// this module, by option, such as "manager.Options.Grace". An option with two of
// them has an unknown default. Named constants are in the result as well.
func defaultsOfPackages(t *testing.T) map[string]constant.Value {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,Export", ".")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, files, fset := map[string]string{}, map[string][]*ast.File{}, token.NewFileSet()
	for d := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles, CgoFiles       []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !strings.HasPrefix(p.ImportPath, "github.com/diegosdk/diego") || strings.HasSuffix(p.ImportPath, "/internal/daemon") {
			continue
		}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[p.ImportPath] = append(files[p.ImportPath], f)
		}
	}
	config := types.Config{FakeImportC: true, Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	defaults := map[string]constant.Value{}
	for path, files := range files {
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		p, err := config.Check(path, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.Scope().Names() {
			if c, ok := p.Scope().Lookup(name).(*types.Const); ok {
				defaults[p.Name()+"."+name] = c.Val()
			}
		}
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				field, value := fallback(info, n)
				if was := defaults[field]; was != nil && !constant.Compare(was, token.EQL, value) {
					value = constant.MakeUnknown() // which equals nothing
				}
				if field != "" {
					defaults[field] = value
				}
				return true
			})
		}
	}
	return defaults
}

// fallback reads cmp.Or(o.Field, constant), orDefault(&o.Field, constant), a row
// {name, &o.Field, constant}, and an if that compares o.Field with 0 and then
// assigns or returns a constant. min(constant, …) counts as the constant, and
// max(o.Field, …) as the field.
func fallback(info *types.Info, n ast.Node) (field string, value constant.Value) {
	var option, instead ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if name := types.ExprString(n.Fun); len(n.Args) == 2 && (name == "cmp.Or" || name == "orDefault") {
			option, instead = n.Args[0], n.Args[1]
		}
	case *ast.CompositeLit:
		if len(n.Elts) == 3 {
			option, instead = n.Elts[1], n.Elts[2]
		}
	case *ast.IfStmt:
		compared, ok := n.Cond.(*ast.BinaryExpr)
		if !ok || types.ExprString(compared.Y) != "0" || len(n.Body.List) != 1 {
			break
		}
		switch s := n.Body.List[0].(type) {
		case *ast.AssignStmt:
			if types.ExprString(s.Lhs[0]) == types.ExprString(compared.X) {
				option, instead = s.Lhs[0], s.Rhs[0]
			}
		case *ast.ReturnStmt:
			if len(s.Results) == 1 {
				option, instead = compared.X, s.Results[0]
			}
		}
	}
	if call, ok := instead.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "min" {
		instead = call.Args[0]
	}
	switch o := option.(type) {
	case *ast.UnaryExpr:
		option = o.X
	case *ast.CallExpr:
		if types.ExprString(o.Fun) == "max" {
			option = o.Args[0]
		}
	}
	of, ok := option.(*ast.SelectorExpr)
	if !ok || info.Types[of.X].Type == nil || info.Types[instead].Value == nil {
		return "", nil
	}
	owner := info.Types[of.X].Type
	if pointer, ok := owner.Underlying().(*types.Pointer); ok {
		owner = pointer.Elem()
	}
	return types.TypeString(owner, (*types.Package).Name) + "." + of.Sel.Name, info.Types[instead].Value
}
