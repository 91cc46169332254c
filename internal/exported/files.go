package exported

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/internal/lint"
)

// Dir is the directory of the module in which the API is written down, a file for
// each package.
const Dir = "api"

const module = "github.com/diegosdk/diego"

// rootName is how the root package is written down.
const rootName = "diego"

// Read describes the public packages of the module at root and the calls over HTTP
// as they are. It builds the packages.
func Read(root string) (map[string][]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", root, err)
	}
	exports := map[string]string{}
	var public []string
	for d := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p struct{ ImportPath, Name, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if isPublic(p.ImportPath) && p.Name != "main" {
			public = append(public, p.ImportPath)
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	api := map[string][]string{}
	for _, path := range public {
		p, err := from.Import(path)
		if err != nil {
			return nil, err
		}
		name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), rootName)
		if lines := Lines(p); len(lines) > 0 {
			api[name] = lines
		}
	}
	api[wireName], err = Wire()
	return api, err
}

// isPublic reports whether a package is part of the promise: a public one of
// this module.
func isPublic(path string) bool {
	rest, ours := strings.CutPrefix(path, module)
	return ours && (rest == "" || rest[0] == '/') && lint.IsPublic(strings.TrimPrefix(rest, "/"))
}

// Load reads what was written down in a directory. One that is not there holds
// nothing.
func Load(dir string) (map[string][]string, error) {
	api := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		name, isText := strings.CutSuffix(path, ".txt")
		if err != nil || d.IsDir() || !isText {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err = filepath.Rel(dir, name)
		api[filepath.ToSlash(name)] = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return err
	})
	return api, err
}

// Save writes a description down, and removes the files of packages that it does
// not have.
func Save(dir string, api map[string][]string) error {
	old, err := Load(dir)
	if err != nil {
		return err
	}
	for name := range old {
		if api[name] == nil {
			err = errors.Join(err, os.Remove(file(dir, name)))
		}
	}
	for name, lines := range api {
		path := file(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	return err
}

func file(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)+".txt") }
