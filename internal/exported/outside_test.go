package exported_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs are what README and docs tell users to copy, by directory of a module
// of theirs. A path ends in a file or, for all files, in a directory.
var programs = map[string]string{
	"step":         "lrp/example_test.go",
	"plane":        "example_test.go",
	"minimal":      "examples/minimal",
	"embed":        "examples/embed",
	"scorer":       "examples/scorer",
	"simulated":    "simulation/example_test.go",
	"storewrapper": "examples/storewrapper",
	"transaction":  "examples/transaction",
}

// What users are told to copy needs nothing that only this module may import.
func TestProgramsOfTheDocumentsCompileInAnotherModule(t *testing.T) {
	dir := newModule(t)
	for name, from := range programs {
		copyGo(t, filepath.Join(root, from), filepath.Join(dir, name))
	}
	run(t, dir, "vet", "./...")
	// These have no other test than their output.
	run(t, dir, "test", "./step", "./plane", "./minimal", "./simulated")
}

// newModule makes a module that requires this one from its directory, and needs
// no network.
func newModule(t *testing.T) string {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/diegosdk/diego"
	text := strings.Replace(string(mod), "module "+module, "module example.org/outside", 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + here + "\n"
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": text, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyGo copies a file of Go, or those of a directory.
func copyGo(t *testing.T, from, to string) {
	t.Helper()
	files := []string{from}
	if !strings.HasSuffix(from, ".go") {
		var err error
		if files, err = filepath.Glob(filepath.Join(from, "*.go")); err != nil || len(files) == 0 {
			t.Fatalf("%s has the files %v: %v", from, files, err)
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}
