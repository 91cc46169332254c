// Package exported writes down what users of this module may rely on, and compares
// it with what was written down before: the exported API, one line for each symbol
// ([Lines]), and the JSON of all calls over HTTP, one line for each member
// ([Wire]). The text is in the directory api; docs/compatibility.md says what the
// module promises about it.
package exported

//go:generate go run ./generate ../..

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Lines describes the exported symbols of a package, sorted, one per line:
//
//	func Step(Slot, *Deployment, Command, time.Time, Policy) (Decision, error)
//	type Slot struct
//	field Slot.Index int
//	method (Slot) Apply(Decision) Slot
//
// Names of parameters are left out, because they are documentation. The line of
// an interface lists its methods, because a new one breaks the types that
// implement it.
func Lines(p *types.Package) []string {
	l := lister{p: p}
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) {
			l.object(p.Scope().Lookup(name))
		}
	}
	slices.Sort(l.lines)
	return l.lines
}

type lister struct {
	p     *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// text is how a type is written in the package.
func (l *lister) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.p {
			return ""
		}
		return p.Name()
	})
}

// signature is that of a function, from its parentheses on.
func (l *lister) signature(s *types.Signature) string {
	unnamed := types.NewSignatureType(nil, nil, nil, l.unnamed(s.Params()), l.unnamed(s.Results()), s.Variadic())
	text := strings.TrimPrefix(l.text(unnamed), "func")
	var parameters []string
	for p := range s.TypeParams().TypeParams() {
		parameters = append(parameters, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	if len(parameters) > 0 {
		text = "[" + strings.Join(parameters, ", ") + "]" + text
	}
	return text
}

func (l *lister) unnamed(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(vars...)
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.text(o.Type()), value(o.Val()))
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.TypeName:
		if alias, ok := o.Type().(*types.Alias); ok {
			l.add("type %s = %s", o.Name(), l.text(alias.Rhs()))
			return
		}
		l.named(o.Type().(*types.Named))
	}
}

func value(v constant.Value) string {
	if v.Kind() == constant.Float {
		return v.String() // ExactString is a fraction
	}
	return v.ExactString()
}

func (l *lister) named(n *types.Named) {
	name := n.Obj().Name()
	switch u := n.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", l.text(n))
		for f := range u.Fields() {
			switch {
			case f.Embedded() && f.Exported():
				l.add("field %s.%s embedded %s", name, f.Name(), l.text(f.Type()))
			case f.Exported():
				l.add("field %s.%s %s", name, f.Name(), l.text(f.Type()))
			}
		}
	case *types.Interface:
		var methods []string
		for m := range u.Methods() {
			methods = append(methods, m.Name())
		}
		slices.Sort(methods)
		if u.IsMethodSet() {
			l.add("type %s interface { %s }", l.text(n), strings.Join(methods, ", "))
		} else {
			l.add("type %s %s", l.text(n), l.text(u))
		}
		for m := range u.Methods() {
			if m.Exported() {
				l.add("method (%s) %s%s", name, m.Name(), l.signature(m.Signature()))
			}
		}
		return
	default:
		l.add("type %s %s", l.text(n), l.text(u))
	}
	l.methods(name, n)
}

// methods lists those of a type and of pointers to it, with those of embedded
// types.
func (l *lister) methods(name string, n *types.Named) {
	values := types.NewMethodSet(n)
	all := types.NewMethodSet(types.NewPointer(n))
	for s := range all.Methods() {
		m := s.Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		receiver := name
		if values.Lookup(m.Pkg(), m.Name()) == nil {
			receiver = "*" + name
		}
		l.add("method (%s) %s%s", receiver, m.Name(), l.signature(m.Signature()))
	}
}
