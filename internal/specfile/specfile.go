// Package specfile reads what people want to run from files in YAML or JSON.
// Everything that is wrong with a file is reported at once, with line, column
// and field:
//
//	web.yaml:9:5: action.run.user: want a text that is not empty
//	web.yaml:14:3: instnaces: unknown member; did you mean "instances"?
//
// The files hold [lrp.DesiredLRP], [lrp.DeploymentDefinition], [lrp.Update] or a
// task's guid, domain and definition, with the members of their JSON; [Documents]
// reads several of them from one file. A file that begins with "{" or "[" is
// JSON; any other is YAML 1.2 without anchors and tags.
//
// Beyond what encoding/json refuses, these slips are errors, because they would
// go unnoticed otherwise: unknown members, names in other letters, a member given
// twice, a number that is null, and anything after the document.
//
// document.go makes nodes of a file, each with its place and its JSON.
// compare.go compares them with the Go type.
package specfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// MaxBytes is the longest file that is read: 16 MiB.
const MaxBytes = 16 << 20

// A kind says what an object is about.
type kind string

const (
	kindLRP        kind = "lrp"
	kindDeployment kind = "deployment"
	kindTask       kind = "task"
	// kindUpdate is never guessed, because an update may have members of any kind.
	kindUpdate kind = "update"
)

// A Document is one thing that a file asks for. Either Process or Task is set.
type Document struct {
	// File, Line and Column say where it begins.
	File         string
	Line, Column int
	// Process is an LRP or a deployment. The DefinitionID of an LRP is empty.
	Process *lrp.DeploymentDefinition
	Task    *task.Desire
}

// Documents reads all LRPs, deployments and tasks of a file, at least one, in
// their order. The file is an object, a list of objects, or several documents of
// YAML that are one or the other. The members of an object tell what it is; one
// that could be anything is meant to be an LRP. The error is an [*Error] about all
// objects.
func Documents(name string, data []byte) ([]Document, error) {
	objects, err := parseObjects(data)
	if err != nil {
		return nil, named(name, data, err)
	}
	var list []Document
	found := new(Error)
	for _, n := range objects {
		d, err := n.document()
		var wrong *Error
		switch {
		case errors.As(err, &wrong):
			found.merge(wrong)
		case err != nil:
			found.add(n.line, n.column, "", "%v", err)
		}
		d.File, d.Line, d.Column = name, n.line, n.column
		list = append(list, d)
	}
	if len(found.Problems) > 0 {
		return nil, named(name, data, found)
	}
	return list, nil
}

// document reads an object without its place.
func (n *node) document() (d Document, err error) {
	switch n.looksLike() {
	case kindTask:
		t, err := decodeAs(kindTask, n, checkTask)
		return Document{Task: &task.Desire{GUID: t.GUID, Domain: t.Domain, Definition: t.Definition}}, err
	case kindDeployment:
		p, err := decodeAs(kindDeployment, n, checkDeployment)
		return Document{Process: &p}, err
	}
	l, err := decodeAs(kindLRP, n, checkLRP)
	return Document{Process: &lrp.DeploymentDefinition{
		ProcessGUID: l.ProcessGUID, Domain: l.Domain, UpdateStrategy: l.UpdateStrategy, Settings: l.Settings, Definition: l.Definition,
	}}, err
}

// looksLike is the kind of a document that has members of that kind alone, or
// empty.
func (n *node) looksLike() kind {
	switch {
	case n.has("task_guid"):
		return kindTask
	case n.has("definition") || n.has("definition_id"):
		return kindDeployment
	case n.has("process_guid") && (n.has("action") || n.has("root_fs")):
		return kindLRP
	}
	return ""
}

func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

// LRP reads a desired LRP. Its modification tag, which a file has that was
// made from an answer, is left out. The error is an [*Error].
func LRP(name string, data []byte) (lrp.DesiredLRP, error) {
	l, err := read(kindLRP, name, data, checkLRP)
	l.ModificationTag = lrp.ModificationTag{}
	return l, err
}

// Deployment reads the definition of a deployment. The error is an [*Error].
func Deployment(name string, data []byte) (lrp.DeploymentDefinition, error) {
	return read(kindDeployment, name, data, checkDeployment)
}

// Update reads what to change of a deployment. The error is an [*Error].
func Update(name string, data []byte) (lrp.Update, error) {
	return read(kindUpdate, name, data, func(u *lrp.Update) error {
		var v executor.Validator
		v.Check(u.DefinitionID == nil || u.Definition != nil, "definition_id", "", "a definition beside it")
		v.Check(u.Definition == nil || u.DefinitionID != nil, "definition", "", "a definition_id beside it")
		if err := v.Err(); err != nil {
			return err
		}
		// An update is as valid as the deployment that it would make of a
		// valid one.
		d := lrp.DeploymentDefinition{ProcessGUID: "any", Domain: "any", DefinitionID: "any", Definition: anyDefinition()}
		set(&d.Instances, u.Instances)
		set(&d.Routes, u.Routes)
		set(&d.Annotation, u.Annotation)
		set(&d.Labels, u.Labels)
		d.Policies = lrp.Policies{Restart: u.Restart, Rollout: u.Rollout, Disruption: u.Disruption}
		set(&d.MetricTags, u.MetricTags)
		// The credentials may be changed one at a time.
		set(&d.DefinitionID, u.DefinitionID)
		set(&d.Definition, u.Definition)
		return checkDeployment(&d)
	})
}

// Task reads a task to be made. The error is an [*Error].
func Task(name string, data []byte) (task.Desire, error) {
	t, err := read(kindTask, name, data, checkTask)
	return task.Desire{GUID: t.GUID, Domain: t.Domain, Definition: t.Definition}, err
}

// taskSpec is a task as its JSON has it, without what is known of its life.
type taskSpec struct {
	GUID   string `json:"task_guid"`
	Domain string `json:"domain"`
	task.Definition
}

// read reads a file that is one object.
func read[T any](want kind, name string, data []byte, validate func(*T) error) (T, error) {
	var v T
	root, err := parse(data)
	if err == nil {
		v, err = decodeAs(want, root, validate)
	}
	if err != nil {
		var none T
		return none, named(name, data, err)
	}
	return v, nil
}

// decodeAs makes a T of an object. If that fails and the object is of another
// kind than is wanted, it is told as such and not by all that is wrong with it
// then.
func decodeAs[T any](want kind, root *node, validate func(*T) error) (T, error) {
	v, err := decode[T](root)
	if err == nil {
		err = validate(&v)
	}
	if err == nil {
		return v, nil
	}
	is := root.looksLike()
	if want == kindUpdate && !root.has("process_guid") {
		is = ""
	}
	var invalid *executor.ValidationError
	switch {
	case is != "" && is != want:
		err = problemAt(root.line, root.column, "this is the spec of %s, and that of %s is wanted: %s", is.article(), want.article(), shapes[want])
	case errors.As(err, &invalid):
		found := new(Error)
		found.addInvalid(root, "", invalid)
		err = found
	}
	return v, err
}

// shapes say by what a kind is known.
var shapes = map[kind]string{
	kindLRP:        "with process_guid, root_fs and action",
	kindDeployment: "with process_guid, definition_id and definition",
	kindTask:       "with task_guid, root_fs and action",
	kindUpdate:     "with nothing but what is to change",
}

func (k kind) article() string {
	switch k {
	case kindLRP:
		return "an LRP"
	case kindUpdate:
		return "an update"
	}
	return "a " + string(k)
}

func checkLRP(l *lrp.DesiredLRP) error { return l.Validate() }

// checkTask tells what the making of the task would say.
func checkTask(t *taskSpec) error {
	// A record that was never committed says the rest.
	record := task.Task{GUID: t.GUID, Domain: t.Domain, Definition: t.Definition, State: task.Pending}
	var v executor.Validator
	v.GUID("task_guid", t.GUID)
	v.Name("domain", t.Domain)
	v.OneLine("domain", t.Domain)
	return join(v.Err(), record.Definition.Validate())
}

// checkDeployment tells what lrp.Create would say of d, by the names that the
// file has.
func checkDeployment(d *lrp.DeploymentDefinition) error {
	_, err := lrp.Create(*d, time.Time{})
	var invalid *executor.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	in := "definitions"
	if d.DefinitionID != "" {
		in += "." + d.DefinitionID
	}
	for i := range invalid.Fields {
		f := &invalid.Fields[i]
		if rest, ok := strings.CutPrefix(f.Field, in); ok {
			f.Field = "definition" + rest
		}
	}
	return invalid
}

// anyDefinition is a valid one.
func anyDefinition() lrp.Definition {
	return lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "any:", Action: executor.Action{Run: &executor.RunAction{Path: "any", User: "any"}},
	}}
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// join puts the fields of validation errors into one.
func join(errs ...error) error {
	var all executor.ValidationError
	for _, err := range errs {
		var invalid *executor.ValidationError
		switch {
		case errors.As(err, &invalid):
			all.Fields = append(all.Fields, invalid.Fields...)
			all.Omitted += invalid.Omitted
		case err != nil:
			return err
		}
	}
	if len(all.Fields) == 0 {
		return nil
	}
	return &all
}

// An Error lists what is wrong with a file, in the order of its lines. It wraps
// [executor.ErrInvalid].
type Error struct {
	File string
	// Problems are at most [executor.MaxFieldErrors].
	Problems []Problem
	// Omitted is how many more were found.
	Omitted int
}

// A Problem is one thing that is wrong with a file.
type Problem struct {
	// Line and Column are counted from 1, columns in characters. They are those
	// of the field's value, or of what should have held it.
	Line, Column int
	// Field is the path to the field, such as "action.run.env[2].name". It is
	// empty if the file as a whole is meant.
	Field string
	Text  string
}

func (e *Error) add(line, column int, field, format string, args ...any) {
	if len(e.Problems) == executor.MaxFieldErrors {
		e.Omitted++
		return
	}
	e.Problems = append(e.Problems, Problem{line, column, field, fmt.Sprintf(format, args...)})
}

// merge adds the problems of another part of the file.
func (e *Error) merge(other *Error) {
	for _, p := range other.Problems {
		e.add(p.Line, p.Column, p.Field, "%s", p.Text)
	}
	e.Omitted += other.Omitted
}

// named is err, as an [*Error] of the file with its problems in order. A place
// beyond the text becomes the end of the text: the YAML parser takes a carriage
// return without a newline for the end of a line.
func named(file string, data []byte, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Problems: []Problem{{Line: 1, Column: 1, Text: err.Error()}}}
	}
	e.File = file
	lines := bytes.Split(data, []byte("\n"))
	for i := range e.Problems {
		p := &e.Problems[i]
		if p.Line > len(lines) {
			p.Line, p.Column = len(lines), math.MaxInt
		}
		p.Column = min(p.Column, utf8.RuneCount(lines[p.Line-1])+1)
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return e
}

// Error has a line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems), len(e.Problems)+1)
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.File, p.Line, p.Column, p.Text)
		if p.Field != "" {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s: %s", e.File, p.Line, p.Column, p.Field, p.Text)
		}
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more problems", e.File, e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, executor.ErrInvalid) true.
func (e *Error) Unwrap() error { return executor.ErrInvalid }
