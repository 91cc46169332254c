package tabledocs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// fieldRoots are the types whose fields the table has, with all types within
// them that are of this module.
var fieldRoots = []reflect.Type{
	reflect.TypeFor[lrp.DesiredLRP](), reflect.TypeFor[lrp.Deployment](), reflect.TypeFor[task.Task](),
	reflect.TypeFor[bbs.CellPresence](), reflect.TypeFor[auction.CellState](),
}

// A fieldRow says what a field does.
type fieldRow struct {
	// field is such as "RunInfo.Env".
	field, effect string
	// reader is the package that acts on it.
	reader string
	// plain says what plain processes do with it, where that is different from
	// real containers. Of a field with a demand, executor.Demands says it.
	plain string
	// test proves the effect: "executor/manager.TestName".
	test string
}

// elsewhere are features that no backend of this module has.
var elsewhere = []executor.FeatureName{executor.FeatureNetworkProperties, executor.FeatureImageCredentials}

// demandOf returns the demand that concerns a field, which a type has under a
// name in JSON.
func demandOf(typeName, name string) *executor.Demand {
	switch {
	case name == "image_password":
		name = "image_username"
	case typeName == "Network":
		name = "network"
	case typeName == "CertificateConfig":
		name = "certificate_properties"
	}
	if !slices.Contains([]string{"Resources", "RunInfo", "Settings", "task.Definition", "Network", "CertificateConfig"}, typeName) {
		return nil
	}
	for _, d := range executor.Demands() {
		if d.Field == name {
			return &d
		}
	}
	return nil
}

// backends says what real containers and plain processes do with a field.
func (r *fieldRow) backends(d *executor.Demand) (real, plain string) {
	switch {
	case d != nil && slices.Contains(elsewhere, d.Feature):
		return "refused", "refused"
	case d != nil && d.Feature == executor.FeatureIdentity:
		return "yes; refused on a cell without an authority", "the same"
	case d != nil:
		return fmt.Sprintf("yes; refused on a host without %s", d.Feature), cmp.Or(d.Instead, plainRootFS(d), "refused")
	case !inContainer(r.reader):
		return "", ""
	}
	return "yes", cmp.Or(r.plain, "yes")
}

// plainRootFS is the one demand that plain processes refuse only in part.
func plainRootFS(d *executor.Demand) string {
	if d.Feature == executor.FeatureRootFS {
		return "refused, but for host:"
	}
	return ""
}

// inContainer reports whether a field is for what makes containers.
func inContainer(reader string) bool { return strings.HasPrefix(reader, "executor") }

// A fieldGroup is the fields of one type.
type fieldGroup struct {
	name   string // such as "RunInfo"
	of     reflect.Type
	fields []reflect.StructField
}

// fieldGroups finds the fields of the roots by reflection. The order is that of
// the types and of their fields.
func fieldGroups() (groups []fieldGroup) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || !strings.HasPrefix(t.PkgPath(), "github.com/diegosdk/diego/") {
			return
		}
		seen[t] = true
		g := fieldGroup{name: typeName(t), of: t}
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !f.Anonymous {
				g.fields = append(g.fields, f)
			}
		}
		groups = append(groups, g)
		for i := range t.NumField() {
			walk(t.Field(i).Type)
		}
	}
	for _, t := range fieldRoots {
		walk(t)
	}
	return groups
}

// typeName is the name of a type, with its package where two have one name.
func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[task.Definition]() {
		return t.String()
	}
	return t.Name()
}

// jsonNames are members that types write by themselves, or that have a call of
// their own.
var jsonNames = map[string]string{
	"Task.CreatedAt": "created_at", "Task.UpdatedAt": "updated_at", "Task.FirstCompletedAt": "first_completed_at",
	"Deployment.Revisions": "revisions",
}

func jsonName(group string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return jsonNames[group+"."+f.Name]
	}
	return name
}

// FieldsPage renders docs/fields.md.
func FieldsPage() string {
	var b strings.Builder
	b.WriteString("# Every field and its effect\n\n" + generated + `
This page has every field that a consumer or a cell can set or read in a desired LRP, a deployment, a task and a cell: what it does, which package acts on it, what the two backends make of it, and the test that proves it. A test finds all fields by reflection and fails for one that is missing here.

A cell never ignores a field that it cannot honour. It tells placement what it refuses (` + "`refused_fields`" + `), so such work goes to another cell or stays where it is with an error that names the field. Work that comes to such a cell all the same ends before it begins, with the same name in its reason. The rule is ` + "`executor.Demands`" + `; cells with other backends may honour more.
`)
	rows := map[string]*fieldRow{}
	for i := range fieldRows {
		rows[fieldRows[i].field] = &fieldRows[i]
	}
	for _, g := range fieldGroups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g.of)
		var table [][]string
		for _, f := range g.fields {
			row := rows[g.name+"."+f.Name]
			if row == nil {
				continue // the test says so
			}
			name := jsonName(g.name, f)
			real, plain := row.backends(demandOf(g.name, name))
			table = append(table, []string{"`" + name + "`", row.effect, row.reader, real, plain, row.test})
		}
		writeMarkdown(&b, []string{"field", "effect", "read by", "real containers", "plain processes", "test"}, table)
	}
	return b.String()
}
