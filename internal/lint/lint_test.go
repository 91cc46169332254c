package lint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/lint"
)

// platforms are what the import graph must hold on: files for other systems
// are invisible to the build here.
var platforms = map[string][]string{
	"this one":           nil,
	"darwin without cgo": {"GOOS=darwin", "CGO_ENABLED=0"},
}

func TestPackagesImportOnlyWhatTheirLayerMay(t *testing.T) {
	for name, env := range platforms {
		t.Run(name, func(t *testing.T) {
			for _, p := range goList(t, env, "./...") {
				report(t, lint.CheckImports(p))
			}
		})
	}
}

func TestLightPackagesLinkNothingHeavy(t *testing.T) {
	for _, path := range lint.Light {
		report(t, lint.CheckLinked(path, goList(t, nil, "-deps", "./"+path)))
	}
}

// Only programs serve the console, so nobody else links its pages.
func TestTheLibraryLinksNoConsole(t *testing.T) {
	for _, p := range goList(t, nil, "./...") {
		path, _ := strings.CutPrefix(p.ImportPath, lint.Module+"/")
		if strings.HasPrefix(path, "examples/") || path == "internal/daemon" || path == "console" {
			continue
		}
		if slices.Contains(p.Imports, lint.Module+"/console") || !strings.HasPrefix(path, "internal/") && slices.Contains(p.Imports, lint.Module+"/internal/daemon") {
			t.Errorf("%s links the console", p.ImportPath)
		}
	}
}

func TestPureFilesArePure(t *testing.T) {
	var patterns []string
	for _, p := range lint.Pure {
		patterns = append(patterns, "./"+p.Path)
	}
	packages := goList(t, nil, append([]string{"-export", "-deps"}, patterns...)...)
	for _, p := range packages {
		path, inModule := strings.CutPrefix(p.ImportPath, lint.Module+"/")
		if !inModule || !slices.Contains(patterns, "./"+path) {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			files = append(files, parse(t, fset, filepath.Join(p.Dir, name), nil))
		}
		info := typeCheck(t, fset, p.ImportPath, files, packages)
		for i, file := range files {
			if lint.IsPure(path, p.GoFiles[i]) {
				report(t, lint.CheckPure(fset, file, info))
			}
		}
	}
}

func TestListedShellFilesAreInPackagesThatMayHaveThem(t *testing.T) {
	// Executor holds interfaces and functions that take contexts, and no code behind them.
	allowed := map[string][]string{"executor": {"backend.go", "sessionbackend.go", "subscription.go", "work.go"}, "lrp": nil, "task": nil}
	for _, p := range lint.Pure {
		if want, strict := allowed[p.Path]; strict && !slices.Equal(p.Shell, want) {
			t.Errorf("%s lists the shell files %v and may have only %v", p.Path, p.Shell, want)
		}
	}
}

func TestExportedIdentifiersHaveDocComments(t *testing.T) {
	packages := make(map[string][]*ast.File)
	eachGoFile(t, func(path string, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		}
	})
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		report(t, lint.CheckDocs(fset, packages[dir]))
	}
}

func TestTypesSayWhetherGoroutinesMayShareThem(t *testing.T) {
	packages := make(map[string][]*ast.File)
	eachGoFile(t, func(path string, file *ast.File) {
		if dir := filepath.Dir(path); lint.IsPublic(dir) && !strings.HasSuffix(path, "_test.go") {
			packages[dir] = append(packages[dir], file)
		}
	})
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		report(t, lint.CheckConcurrency(fset, packages[dir]))
	}
}

func TestANameMeansOneKindOfThing(t *testing.T) {
	packages := make(map[string][]*ast.File)
	eachGoFile(t, func(path string, file *ast.File) {
		if dir := filepath.Dir(path); slices.Contains(lint.OneVocabulary, dir) && !strings.HasSuffix(path, "_test.go") {
			packages[dir] = append(packages[dir], file)
		}
	})
	if len(packages) != len(lint.OneVocabulary) {
		t.Errorf("%d packages of %q are there", len(packages), lint.OneVocabulary)
	}
	report(t, lint.CheckNames(packages))
}

func TestPackagesHaveOneComment(t *testing.T) {
	comments := make(map[string]int)
	eachGoFile(t, func(path string, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			n := comments[filepath.Dir(path)]
			if file.Doc.Text() != "" {
				n++
			}
			comments[filepath.Dir(path)] = n
		}
	})
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments", dir, n)
		}
	}
}

func TestNoTestSkipsOrMakesABubbleOnItsOwn(t *testing.T) {
	eachGoFile(t, func(path string, file *ast.File) {
		report(t, lint.CheckTests(fset, path, file))
	})
}

func TestOnlyOnePackageOpensWhatTenantsOwn(t *testing.T) {
	eachGoFile(t, func(path string, file *ast.File) {
		report(t, lint.CheckRoots(fset, path, file))
	})
}

func TestFuzzTargetsHaveACorpus(t *testing.T) {
	eachGoFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			report(t, lint.CheckCorpus(fset, os.DirFS(filepath.Join(root(t), filepath.Dir(path))), file))
		}
	})
}

func TestNoTextNamesUnfinishedWorkRegistriesOrThisMachine(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		// Libraries of others are as they are.
		if !bytes.Contains(content, []byte{0}) && !strings.HasPrefix(path, "console/assets/vendor/") {
			report(t, lint.CheckText(root(t), path, content))
		}
	})
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		if strings.HasSuffix(path, ".md") {
			report(t, lint.CheckLinks(root(t), path, content))
		}
	})
}

func TestGoCodeInDocumentsIsCompiledSomewhere(t *testing.T) {
	var sources []string
	eachFile(t, func(path string, content []byte) {
		if strings.HasSuffix(path, ".go") {
			sources = append(sources, lint.Unindent(string(content)))
		}
	})
	eachFile(t, func(path string, content []byte) {
		if strings.HasSuffix(path, ".md") {
			report(t, lint.CheckGoBlocks(path, content, sources))
		}
	})
}

func TestProseIsPlain(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		isText := strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "scripts/") || strings.HasPrefix(path, ".ci/")
		if isText && path != "internal/lint/rules_test.go" {
			report(t, lint.CheckProse(path, content))
		}
	})
}

func TestEveryInternalPackageHasALibraryConsidered(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root(t), "docs", "decisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	eachGoFile(t, func(path string, _ *ast.File) {
		if dir := filepath.ToSlash(filepath.Dir(path)); filepath.Base(filepath.Dir(dir)) == "internal" && !strings.HasPrefix(dir, "examples/") && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
	})
	report(t, lint.CheckConsidered(document, packages))
}

func TestEveryPackageIsInTheMap(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	eachGoFile(t, func(path string, f *ast.File) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir != "." && f.Name.Name != "main" && !strings.HasPrefix(dir+"/", "examples/") && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
	})
	report(t, lint.CheckMap(document, packages))
}

func report(t *testing.T, findings []string) {
	t.Helper()
	for _, finding := range findings {
		t.Error(strings.TrimPrefix(finding, root(t)+"/"))
	}
}

// root is the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The tree is read, parsed and listed once for all tests, which run one after
// another.
var (
	tree   []textFile
	fset   = token.NewFileSet()
	parsed = make(map[string]*ast.File)
	listed = make(map[string][]lint.Package)
)

type textFile struct {
	path    string
	content []byte
}

// eachFile visits the files of the tree. Directories that git does not keep
// hold nothing that is ours.
func eachFile(t *testing.T, visit func(path string, content []byte)) {
	t.Helper()
	if tree == nil {
		readTree(t)
	}
	for _, f := range tree {
		visit(f.path, f.content)
	}
}

func readTree(t *testing.T) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root(t)), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || path == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" || !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root(t), path))
		if err == nil {
			tree = append(tree, textFile{path, content})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func eachGoFile(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	eachFile(t, func(path string, content []byte) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			return
		}
		if parsed[path] == nil {
			parsed[path] = parse(t, fset, path, content)
		}
		visit(path, parsed[path])
	})
}

func parse(t *testing.T, fset *token.FileSet, path string, content []byte) *ast.File {
	t.Helper()
	var source any
	if content != nil {
		source = content
	}
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func goList(t *testing.T, env []string, args ...string) []lint.Package {
	t.Helper()
	key := fmt.Sprint(env, args)
	if known, ok := listed[key]; ok {
		return known
	}
	cmd := exec.Command("go", append([]string{"list",
		"-json=ImportPath,Dir,Standard,Export,GoFiles,CgoFiles,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	var packages []lint.Package
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p lint.Package
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			listed[key] = packages
			return packages
		case err != nil:
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// typeCheck checks files against the compiled packages that they import.
func typeCheck(t *testing.T, fset *token.FileSet, path string, files []*ast.File, compiled []lint.Package) *types.Info {
	t.Helper()
	exports := make(map[string]string)
	for _, p := range compiled {
		exports[p.ImportPath] = p.Export
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue),
		Uses:  make(map[*ast.Ident]types.Object),
		Defs:  make(map[*ast.Ident]types.Object),
	}
	if _, err := config.Check(path, fset, files, info); err != nil {
		t.Fatal(err)
	}
	return info
}
