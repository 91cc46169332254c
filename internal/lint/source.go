package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// testenv is the only package that may skip a test or make a bubble.
const testenv = "internal/testenv/"

// CheckTests refuses a test that skips on its own: only testenv.Missing may skip,
// because it fails where nothing may be missing. It also refuses a bubble of
// synctest on several processors, in which the race detector crashes, and a test
// that asks for the race detector unless scripts/test runs it without, too.
func CheckTests(fset *token.FileSet, file string, parsed *ast.File) []string {
	if strings.HasPrefix(file, testenv) {
		return nil
	}
	withoutToo := slices.Contains(WithoutRace, path.Dir(file)) ||
		slices.ContainsFunc(Pure, func(p PurePackage) bool { return p.Path == path.Dir(file) })
	var findings []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Race" && !withoutToo {
			if of, _ := s.X.(*ast.Ident); of != nil && of.Name == "testenv" {
				findings = append(findings, fmt.Sprintf("%v: asks for the race detector; list the package in lint.WithoutRace", fset.Position(s.Pos())))
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch of, _ := s.X.(*ast.Ident); {
		case slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name):
			findings = append(findings, fmt.Sprintf("%v: skips; use testenv.Missing", fset.Position(call.Pos())))
		case s.Sel.Name == "Test" && of != nil && of.Name == "synctest":
			findings = append(findings, fmt.Sprintf("%v: makes a bubble; use testenv.Bubble", fset.Position(call.Pos())))
		}
		return true
	})
	return findings
}

// tenants is the only package that may use os.Root.
const tenants = "executor/internal/tenant/"

// CheckRoots refuses os.Root outside package tenant: it opens anything that a
// tenant has put at a path, even a terminal.
func CheckRoots(fset *token.FileSet, path string, file *ast.File) []string {
	if strings.HasPrefix(path, tenants) {
		return nil
	}
	var findings []string
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Root", "OpenRoot", "OpenInRoot"}, s.Sel.Name) {
			return true
		}
		if p, ok := s.X.(*ast.Ident); ok && p.Name == "os" {
			findings = append(findings, fmt.Sprintf("%v: os.%s; use package tenant", fset.Position(s.Pos()), s.Sel.Name))
		}
		return true
	})
	return findings
}

// CheckCorpus refuses a fuzz target without a committed corpus, so that every
// run tries what fuzzing has found. dir is the directory of its file.
func CheckCorpus(fset *token.FileSet, dir fs.FS, file *ast.File) []string {
	var findings []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		corpus := "testdata/fuzz/" + f.Name.Name
		if inputs, err := fs.ReadDir(dir, corpus); err != nil || len(inputs) == 0 {
			findings = append(findings, fmt.Sprintf("%v: %s has no corpus in %s", fset.Position(f.Pos()), f.Name.Name, corpus))
		}
	}
	return findings
}

// selfExplained are methods that mean the same for all types.
var selfExplained = []string{"Error", "Unwrap", "Is", "String", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// CheckDocs refuses exported identifiers of a package without a doc comment.
// The constants and variables of a group may share the group's, and the
// constants of an enumeration that of their type. Fields need none, nor do
// methods that an interface documents: one of the package, or a well-known one.
func CheckDocs(fset *token.FileSet, files []*ast.File) []string {
	var findings []string
	need := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		documented := slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d.Text() != "" })
		if name.IsExported() && !documented {
			findings = append(findings, fmt.Sprintf("%v: %s is exported and has no doc comment", fset.Position(name.Pos()), name.Name))
		}
	}
	known := documented{methods: slices.Concat(selfExplained, documentedMethods(files)), types: make(map[string]*ast.CommentGroup)}
	for _, file := range files {
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.TYPE && !decl.Lparen.IsValid() {
				known.types[decl.Specs[0].(*ast.TypeSpec).Name.Name] = decl.Doc
			}
		}
	}
	for _, file := range files {
		checkDeclarations(file, known, need)
	}
	return findings
}

// documented holds the comments that explain other identifiers of a package.
type documented struct {
	methods []string
	types   map[string]*ast.CommentGroup
}

// documentedMethods are the methods that the interfaces of a package document.
func documentedMethods(files []*ast.File) []string {
	var names []string
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, method := range i.Methods.List {
					if method.Doc.Text() != "" && len(method.Names) == 1 {
						names = append(names, method.Names[0].Name)
					}
				}
			}
			return true
		})
	}
	return names
}

func checkDeclarations(file *ast.File, known documented, need func(*ast.Ident, ...*ast.CommentGroup)) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || receiver(decl).IsExported() && !slices.Contains(known.methods, decl.Name.Name) {
				need(decl.Name, decl.Doc)
			}
		case *ast.GenDecl:
			var enumeration *ast.CommentGroup // of the type of the constants
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if decl.Lparen.IsValid() {
						need(spec.Name, spec.Doc, spec.Comment)
					} else {
						need(spec.Name, decl.Doc, spec.Doc)
					}
				case *ast.ValueSpec:
					if t, ok := spec.Type.(*ast.Ident); ok && decl.Tok == token.CONST {
						enumeration = known.types[t.Name]
					} else if len(spec.Values) > 0 {
						enumeration = nil // not repeated
					}
					for _, name := range spec.Names {
						need(name, decl.Doc, spec.Doc, spec.Comment, enumeration)
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(decl *ast.FuncDecl) *ast.Ident {
	t := decl.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.ParenExpr:
			t = u.X
		case *ast.Ident:
			return u
		default:
			return ast.NewIdent("_") // does not compile anyway
		}
	}
}
