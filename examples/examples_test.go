package examples_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A main function fits on one page or two; packages do its work.
func TestMainFunctionsAreShort(t *testing.T) {
	limits := map[string]int{"minimal": 100, "bbs": 150, "auctioneer": 150, "rep": 150}
	for dir, limit := range limits {
		text, err := os.ReadFile(filepath.Join(dir, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > limit {
			t.Errorf("%s/main.go has %d lines, more than %d", dir, n, limit)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); name != "main.go" && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s is beside main.go", file)
			}
		}
	}
}

func TestTheMinimalControlPlaneImportsThreePackages(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "minimal/main.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path, ours := strings.CutPrefix(path, "github.com/diegosdk/diego/"); ours {
			imports = append(imports, path)
		} else if strings.Contains(path, ".") {
			t.Errorf("it imports %s", path)
		}
	}
	if want := []string{"converge", "lrp", "storage", "storage/memstore"}; !slices.Equal(imports, want) {
		t.Errorf("it imports %q, want %q", imports, want)
	}
}
