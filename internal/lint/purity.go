package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mapOrder is the comment that allows a loop over a map. It is on the loop's
// line or on the line above, and gives the reason.
var mapOrder = regexp.MustCompile(`^//lint:maporder \S+`)

// CheckPure checks one type-checked file of pure code. It may not import impure
// packages, look at a clock, start a goroutine or iterate over a map whose
// order could reach a result.
func CheckPure(fset *token.FileSet, file *ast.File, info *types.Info) []string {
	c := purity{fset: fset, info: info, answered: make(map[int]bool), sorted: make(map[ast.Node]bool)}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && !slices.Contains(pureImports, path) &&
			slices.ContainsFunc(impureImports, func(root string) bool { return under(path, root) }) {
			c.find(spec, "pure code may not import %s", path)
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if mapOrder.MatchString(comment.Text) {
				line := fset.Position(comment.Pos()).Line
				c.answered[line], c.answered[line+1] = true, true
			}
		}
	}
	ast.Inspect(file, c.visit)
	return c.findings
}

type purity struct {
	fset     *token.FileSet
	info     *types.Info
	answered map[int]bool      // lines where a mapOrder comment answers for the loop
	sorted   map[ast.Node]bool // calls whose result is sorted at once
	findings []string
}

func (c *purity) find(n ast.Node, format string, args ...any) {
	c.findings = append(c.findings, fmt.Sprintf("%v: %s", c.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

func (c *purity) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.find(n, "pure code may not start a goroutine")
	case *ast.SelectorExpr:
		if pkg, name := c.function(n); pkg == "time" && slices.Contains(impureTime, name) {
			c.find(n, "pure code may not look at a clock: time.%s; take the time as an argument", name)
		}
	case *ast.CallExpr:
		pkg, name := c.function(n.Fun)
		switch {
		case pkg == "slices" && strings.HasPrefix(name, "Sorted") && len(n.Args) > 0:
			c.sorted[n.Args[0]] = true
		case pkg == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, name) && !c.sorted[n] && !c.answeredAt(n):
			c.find(n, "maps.%s has a random order; sort it at once (slices.Sorted) or say in a //lint:maporder comment why it does not matter", name)
		}
	case *ast.RangeStmt:
		if c.overMap(n.X) && !c.answeredAt(n) && !c.orderFree(n) {
			c.find(n, "the loop runs over a map in random order; sort the keys or say in a //lint:maporder comment why it does not matter")
		}
	}
	return true
}

func (c *purity) answeredAt(n ast.Node) bool { return c.answered[c.fset.Position(n.Pos()).Line] }

// function resolves an expression that names a function of a package.
func (c *purity) function(e ast.Expr) (pkg, name string) {
	switch index := e.(type) {
	case *ast.IndexExpr:
		e = index.X
	case *ast.IndexListExpr:
		e = index.X
	}
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	f, ok := c.info.Uses[selector.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return "", ""
	}
	return f.Pkg().Path(), f.Name()
}

func (c *purity) overMap(e ast.Expr) bool {
	t := c.info.TypeOf(e)
	if t == nil {
		return true // what does not type-check is not trusted
	}
	if param, ok := t.(*types.TypeParam); ok {
		t = param.Constraint()
		if union, ok := t.Underlying().(*types.Interface); ok && union.NumEmbeddeds() == 1 {
			if u, ok := union.EmbeddedType(0).(*types.Union); ok && u.Len() == 1 {
				t = u.Term(0).Type()
			}
		}
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// orderFree reports whether the order of the loop does not matter: it only
// writes or deletes map entries at the loop's own key, counts in whole numbers,
// or returns one constant.
func (c *purity) orderFree(loop *ast.RangeStmt) bool {
	key, _ := loop.Key.(*ast.Ident)
	answer := "" // the constant that the loop returns
	var free func(ast.Stmt) bool
	all := func(list []ast.Stmt) bool {
		return !slices.ContainsFunc(list, func(s ast.Stmt) bool { return !free(s) })
	}
	isKey := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && key != nil && c.info.ObjectOf(id) == c.info.ObjectOf(key)
	}
	free = func(s ast.Stmt) bool {
		switch s := s.(type) {
		case nil, *ast.EmptyStmt:
			return true
		case *ast.BlockStmt:
			return all(s.List)
		case *ast.IfStmt:
			return s.Init == nil && free(s.Body) && (s.Else == nil || free(s.Else))
		case *ast.BranchStmt:
			return s.Tok == token.CONTINUE && s.Label == nil
		case *ast.IncDecStmt:
			return c.isInteger(s.X)
		case *ast.AssignStmt:
			if len(s.Lhs) != 1 {
				return false
			}
			if s.Tok == token.ADD_ASSIGN {
				return c.isInteger(s.Lhs[0])
			}
			entry, ok := s.Lhs[0].(*ast.IndexExpr)
			return s.Tok == token.ASSIGN && ok && c.overMap(entry.X) && isKey(entry.Index)
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || !isKey(call.Args[1]) {
				return false
			}
			id, ok := call.Fun.(*ast.Ident)
			return ok && c.info.Uses[id] == types.Universe.Lookup("delete")
		case *ast.ReturnStmt:
			if len(s.Results) != 1 {
				return false
			}
			value := c.info.Types[s.Results[0]].Value
			if value == nil || answer != "" && answer != value.ExactString() {
				return false
			}
			answer = value.ExactString()
			return true
		}
		return false
	}
	return free(loop.Body)
}

func (c *purity) isInteger(e ast.Expr) bool {
	t := c.info.TypeOf(e)
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}
