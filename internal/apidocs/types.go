package apidocs

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

// types collects the types of the calls and describes each of them once.
type types struct {
	docs   map[string]string // by "lrp.ActualLRP" and "lrp.ActualLRP.State"
	limits map[string]string // by "executor.MaxReasonBytes"
	named  map[string]reflect.Type
}

// A member is one member of a JSON object.
type member struct {
	name     string
	kind     string
	optional bool
	doc      string
}

// members describes arguments or answers: a named type by its name, any other
// type by its members.
func (t *types) members(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if isNone(of) {
		return "none, `{}`"
	}
	if of.Kind() != reflect.Struct || ast.IsExported(of.Name()) {
		return t.link(of)
	}
	var list []string
	for _, m := range t.fields(of) {
		text := fmt.Sprintf("`%s` %s", m.name, m.kind)
		if m.optional {
			text += " (optional)"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

var textType = reflect.TypeFor[encoding.TextMarshaler]()

// link is the name of a type in JSON, with a link to its description.
func (t *types) link(of reflect.Type) string {
	switch {
	case of.Kind() == reflect.Pointer:
		return t.link(of.Elem())
	case of == reflect.TypeFor[time.Time]():
		return timestamp
	case of == reflect.TypeFor[time.Duration]():
		return "integer (nanoseconds)"
	case of == reflect.TypeFor[json.RawMessage]():
		return "any JSON"
	case of.Implements(textType):
		return "string" + values(of)
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		return "object of " + t.link(of.Elem())
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "string (base64)"
		}
		return "array of " + t.link(of.Elem())
	case reflect.Struct:
		name := of.String()
		if _, known := t.named[name]; !known {
			t.named[name] = of
			for i := range of.NumField() {
				if f := of.Field(i); f.IsExported() {
					t.link(f.Type) // its type is described too
				}
			}
		}
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(strings.ReplaceAll(name, ".", "")))
	}
	return "integer"
}

// values lists the texts of an enumeration.
func values(of reflect.Type) string {
	var list []string
	for n := range 64 {
		v := reflect.New(of).Elem()
		if v.Kind() != reflect.Uint8 {
			return ""
		}
		v.SetUint(uint64(n))
		if text, err := v.Interface().(encoding.TextMarshaler).MarshalText(); err == nil && len(text) > 0 {
			list = append(list, "`"+string(text)+"`")
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

const timestamp = "string (RFC 3339)"

// written are the members of types that write their JSON themselves.
var written = map[reflect.Type][]member{
	reflect.TypeFor[task.Task]():           {{"created_at", timestamp, false, ""}, {"updated_at", timestamp, false, "When the record last changed."}, {"first_completed_at", timestamp, true, "When the task first was COMPLETED."}},
	reflect.TypeFor[auction.Refusal]():     {{"invalid", "[executor.ValidationError](#executorvalidationerror)", true, "Set if the item itself is at fault."}},
	reflect.TypeFor[auction.InvalidCell](): {{"invalid", "[executor.ValidationError](#executorvalidationerror)", false, ""}},
}

// fields are the members of a struct, including those of embedded structs.
func (t *types) fields(of reflect.Type) (list []member) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			list = append(list, t.fields(f.Type)...)
		case !f.IsExported(), name == "-":
		default:
			kind := t.link(f.Type)
			if options == "string" {
				kind = "string (a number)"
			}
			list = append(list, member{name, kind, strings.Contains(options, "omit"), t.inJSON(t.docs[of.String()+"."+f.Name], of, f.Name)})
		}
	}
	return append(list, written[of]...)
}

func (t *types) write(b *bytes.Buffer) {
	t.link(reflect.TypeFor[executor.ValidationError]())
	b.WriteString("\n## Types\n\nMembers are in the order in which they are written. An *optional* one is left out if it is empty.\n")
	for _, name := range slices.Sorted(maps.Keys(t.named)) {
		fields := t.fields(t.named[name])
		if len(fields) == 0 || strings.Contains(name, "[") || !ast.IsExported(name[strings.Index(name, ".")+1:]) {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n", name)
		if doc := t.inJSON(t.docs[name], t.named[name], ""); doc != "" {
			b.WriteString(doc + "\n\n")
		}
		b.WriteString("| member | type | |\n| --- | --- | --- |\n")
		for _, m := range fields {
			doc := strings.ReplaceAll(m.doc, "|", "\\|")
			if m.optional {
				doc = strings.TrimSpace("*Optional.* " + doc)
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", m.name, m.kind, doc)
		}
	}
}

// packages are those whose types the calls use.
var packages = []string{"bbs", "rep", "lrp", "task", "auction", "storage", "executor"}

// readDocs reads the comments of the types of the module's packages.
func readDocs(root string) (map[string]string, error) {
	docs := map[string]string{}
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			collect(docs, file)
		}
	}
	return docs, nil
}

func collect(docs map[string]string, file *ast.File) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			s := spec.(*ast.TypeSpec)
			name := file.Name.Name + "." + s.Name.Name
			comment := s.Doc
			if comment == nil && !g.Lparen.IsValid() {
				comment = g.Doc
			}
			docs[name] = plain(comment)
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				text := plain(f.Doc)
				if text == "" {
					text = plain(f.Comment)
				}
				for _, n := range f.Names {
					docs[name+"."+n.Name] = text
				}
			}
		}
	}
}

// plain is a comment as one line of text.
func plain(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	text := strings.Join(strings.Fields(c.Text()), " ")
	return strings.NewReplacer("[", "", "]", "", "<", "&lt;").Replace(text)
}
