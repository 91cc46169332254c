package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// OneVocabulary are the packages of rules and records. Across them, an exported
// name means one kind of thing.
var OneVocabulary = []string{"auction", "converge", "executor", "lrp", "storage", "task"}

// twoMeanings are names that the specification uses both for a command about
// tasks and for a question about instances.
var twoMeanings = []string{"Resolve"}

// CheckNames takes the files of packages by their paths. It refuses an exported
// name that is a function in one of them and a type in another, or an interface in
// one and a struct in another: readers should not have to ask which is meant.
func CheckNames(packages map[string][]*ast.File) []string {
	uses := map[string]map[string][]string{} // by name and kind, the packages
	use := func(path string, name *ast.Ident, kind string) {
		if !name.IsExported() || slices.Contains(twoMeanings, name.Name) {
			return
		}
		if uses[name.Name] == nil {
			uses[name.Name] = map[string][]string{}
		}
		uses[name.Name][kind] = append(uses[name.Name][kind], path)
	}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		for _, file := range packages[path] {
			for _, decl := range file.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if decl.Recv == nil {
						use(path, decl.Name, "a function")
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						if spec, ok := spec.(*ast.TypeSpec); ok && decl.Tok == token.TYPE && !spec.Assign.IsValid() {
							use(path, spec.Name, kindOf(spec.Type))
						}
					}
				}
			}
		}
	}
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		var meanings []string
		for _, kind := range slices.Sorted(maps.Keys(uses[name])) {
			meanings = append(meanings, fmt.Sprintf("%s in %s", kind, strings.Join(uses[name][kind], ", ")))
		}
		if len(meanings) > 1 {
			findings = append(findings, fmt.Sprintf("%s is %s", name, strings.Join(meanings, " and ")))
		}
	}
	return findings
}

func kindOf(t ast.Expr) string {
	if _, ok := t.(*ast.InterfaceType); ok {
		return "an interface"
	}
	return "a type"
}
