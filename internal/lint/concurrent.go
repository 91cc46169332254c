package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// IsPublic reports whether other modules can import the package in a directory
// of this module. Examples and test data are not for import.
func IsPublic(dir string) bool {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	return parts[0] != "examples" && !slices.Contains(parts, "internal") && !slices.Contains(parts, "testdata")
}

// sharing matches a comment that says so.
var sharing = regexp.MustCompile(`goroutine|at the\s+same\s+time|concurrently`)

// CheckConcurrency refuses a package whose comment has no section "Concurrent
// use". It also refuses an exported interface, function type or struct with
// unexported fields whose comment does not say whether goroutines may share it.
// The section speaks for plain values.
func CheckConcurrency(fset *token.FileSet, files []*ast.File) []string {
	var findings []string
	section := false
	for _, file := range files {
		section = section || strings.Contains(file.Doc.Text(), "# Concurrent use\n")
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.TypeSpec)
				doc := spec.Doc
				if doc == nil {
					doc = group.Doc
				}
				if spec.Name.IsExported() && !isValue(spec.Type) && !sharing.MatchString(doc.Text()) {
					findings = append(findings, fmt.Sprintf("%v: %s does not say whether goroutines may share it", fset.Position(spec.Pos()), spec.Name))
				}
			}
		}
	}
	if !section {
		findings = append(findings, fmt.Sprintf("package %s: its comment has no section \"Concurrent use\"", files[0].Name))
	}
	return findings
}

func isValue(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.InterfaceType, *ast.FuncType:
		return false
	case *ast.StructType:
		for _, field := range t.Fields.List {
			for _, name := range field.Names {
				if !name.IsExported() {
					return false
				}
			}
		}
	}
	return true
}
