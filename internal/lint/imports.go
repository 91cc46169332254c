package lint

import (
	"fmt"
	"slices"
	"strings"
)

// A Package is what `go list -json` says about a package.
type Package struct {
	ImportPath   string
	Dir          string
	Standard     bool
	Export       string
	GoFiles      []string
	CgoFiles     []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// under reports whether path is root or below it.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// relative is the path of a package of this module within it.
func relative(importPath string) (path string, inModule bool) {
	if importPath == Module {
		return "", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// layerOf finds the layer of a package, or nil. The root's layer covers
// nothing below it.
func layerOf(path string) *Layer {
	var found *Layer
	for i, l := range Layers {
		if path == l.Path || l.Path != "" && under(path, l.Path) {
			if found == nil || len(l.Path) > len(found.Path) {
				found = &Layers[i]
			}
		}
	}
	return found
}

// CheckImports refuses imports of a package that its layer does not allow.
func CheckImports(p Package) []string {
	path, _ := relative(p.ImportPath)
	layer := layerOf(path)
	if layer == nil {
		return []string{fmt.Sprintf("%s: the package has no layer; give it one in internal/lint/layers.go", p.ImportPath)}
	}
	test := Layer{Imports: slices.Concat(layer.Imports, layer.TestImports, testImports), Modules: slices.Concat([]string{cmp}, layer.Modules, layer.TestModules)}
	if path != "" {
		test.Imports = append(test.Imports, path)
	}
	var findings []string
	for _, imports := range []struct {
		layer Layer
		list  []string
	}{{*layer, p.Imports}, {test, p.TestImports}, {test, p.XTestImports}} {
		for _, imported := range imports.list {
			if imported != p.ImportPath && !imports.layer.allows(imported) {
				findings = append(findings, fmt.Sprintf("%s: may not import %s", p.ImportPath, imported))
			}
		}
	}
	return findings
}

func (l Layer) allows(imported string) bool {
	if path, inModule := relative(imported); inModule {
		return slices.ContainsFunc(l.Imports, func(root string) bool {
			// A path does not cover packages below it that have a layer of
			// their own.
			return root == everything || under(path, root) && (path == root || layerOf(path).Path == root || under(root, "internal"))
		})
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return true // the standard library, and "C"
	}
	return slices.ContainsFunc(l.Modules, func(root string) bool { return under(imported, root) })
}

// CheckLinked refuses dependencies of a package of Light that its importers
// should not have to link.
func CheckLinked(path string, deps []Package) []string {
	var findings []string
	for _, d := range deps {
		_, inModule := relative(d.ImportPath)
		if slices.Contains(unlinked, d.ImportPath) || !d.Standard && !inModule {
			findings = append(findings, fmt.Sprintf("%s: links %s", path, d.ImportPath))
		}
	}
	return findings
}
