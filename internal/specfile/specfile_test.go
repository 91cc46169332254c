package specfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

const specs = "../../examples/specs"

func example(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(specs, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryExampleIsReadAsWhatItSays(t *testing.T) {
	var l lrp.DesiredLRP
	var d lrp.DeploymentDefinition
	var u lrp.Update
	var k task.Definition
	for _, tt := range []struct {
		name string
		into any
		read func(string, []byte) (any, error)
	}{
		{"greeter.json", &l, func(n string, b []byte) (any, error) { v, err := specfile.LRP(n, b); return &v, err }},
		{"web.json", &l, func(n string, b []byte) (any, error) { v, err := specfile.LRP(n, b); return &v, err }},
		{"deployment.json", &d, func(n string, b []byte) (any, error) { v, err := specfile.Deployment(n, b); return &v, err }},
		{"update.json", &u, func(n string, b []byte) (any, error) { v, err := specfile.Update(n, b); return &v, err }},
		{"task.json", &k, func(n string, b []byte) (any, error) { v, err := specfile.Task(n, b); return &v.Definition, err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := example(t, tt.name)
			got, err := tt.read(tt.name, data)
			if err != nil {
				t.Fatal(err)
			}
			reflect.ValueOf(tt.into).Elem().SetZero()
			if err := json.Unmarshal(data, tt.into); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(meaning(t, tt.into), meaning(t, got)); diff != "" {
				t.Errorf("read otherwise than encoding/json reads it:\n%s", diff)
			}
		})
	}
	files, err := filepath.Glob(specs + "/*.json")
	if err != nil || len(files) != 5 {
		t.Errorf("there are %d examples, and the test knows 5: %v", len(files), err)
	}
}

func TestATaskHasItsGUIDAndDomain(t *testing.T) {
	got, err := specfile.Task("task.json", example(t, "task.json"))
	if err != nil || got.GUID != "sum" || got.Domain != "examples" {
		t.Errorf("got %q in %q: %v", got.GUID, got.Domain, err)
	}
}

func TestAFileHasAsManyDocumentsAsItSays(t *testing.T) {
	const (
		action = "root_fs: 'host:', action: {run: {path: /a, user: u}}"
		web    = "{process_guid: web, domain: d, " + action + "}"
		api    = "{process_guid: api, domain: d, definition_id: v1, definition: {" + action + "}}"
		sum    = "{task_guid: sum, domain: d, " + action + "}"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"one", "---\n" + web, "2:1 web"},
		{"each kind", "---\n" + web + "\n---\n" + api + "\n---\n" + sum, "2:1 web, 4:1 api v1, 6:1 task sum"},
		{"a list", "- " + web + "\n- " + sum, "1:3 web, 2:3 task sum"},
		{"a list in a document", "---\n" + web + "\n---\n- " + api + "\n- " + sum, "2:1 web, 4:3 api v1, 5:3 task sum"},
		{"empty documents between", "# why\n---\n# nothing\n---\n" + web + "\n---\n---\n\n---\n" + sum + "\n---\n# end\n", "5:1 web, 10:1 task sum"},
		{"the end of a document", "---\n" + web + "\n...\n# why\n" + sum + "\n...\n---\n" + api, "2:1 web, 5:1 task sum, 8:1 api v1"},
		{"a document on its line", "--- " + web + "\n--- # why\n" + sum, "1:5 web, 3:1 task sum"},
		{"a line of dashes in a text", "process_guid: web\ndomain: d\nroot_fs: 'host:'\nannotation: |\n  ---\n  x\naction: {run: {path: /a, user: u}}\n---\n" + sum, "1:1 web, 9:1 task sum"},
		{"a list in JSON", `[{"task_guid": "sum", "domain": "d", "root_fs": "host:", "action": {"run": {"path": "/a", "user": "u"}}}]`, "1:2 task sum"},
		{"answers", `[{"process_guid": "web", "domain": "d", "root_fs": "host:", "action": {"run": {"path": "/a", "user": "u"}}, "modification_tag": {"epoch": "1", "index": 7}}]`, "1:2 web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := specfile.Documents("f.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range list {
				what := ""
				if d.Task != nil {
					what = "task " + d.Task.GUID
				} else {
					what = strings.TrimSpace(d.Process.ProcessGUID + " " + d.Process.DefinitionID)
				}
				got = append(got, fmt.Sprintf("%d:%d %s", d.Line, d.Column, what))
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func TestDocumentsAreWhatReadersOfOneMakeOfThem(t *testing.T) {
	for _, name := range []string{"greeter.json", "web.json", "deployment.json", "task.json"} {
		data := example(t, name)
		list, err := specfile.Documents(name, data)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", name, list, err)
		}
		var got, want any = list[0].Process, nil
		switch name {
		case "task.json":
			task, err := specfile.Task(name, data)
			got, want = list[0].Task, &task
			if err != nil {
				t.Fatal(err)
			}
		case "deployment.json":
			d, err := specfile.Deployment(name, data)
			want = &d
			if err != nil {
				t.Fatal(err)
			}
		default:
			l, err := specfile.LRP(name, data)
			want = &lrp.DeploymentDefinition{ProcessGUID: l.ProcessGUID, Domain: l.Domain, UpdateStrategy: l.UpdateStrategy, Settings: l.Settings, Definition: l.Definition}
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestYAMLIsReadAsTheJSONThatItMeans(t *testing.T) {
	const file = `
# A worker, with what YAML has and JSON has not.
process_guid: worker
domain: examples
root_fs: 'host:'
instances: 0x3
privileged: false
annotation: "it''s \u00fc"
ports: [8080,
  9090]
env:
- name: COUNT
  value: '5'
- {name: "ON", value: yes}
routes:
  http:
  - hostname: web.example.com
    weight: 1.50
    big: 1e3
    none:
action:
  run:
    path: /bin/sh
    user: nobody
    args:
    - -c
    - |
      echo one
      echo two
`
	const same = `{"process_guid": "worker", "domain": "examples", "root_fs": "host:", "instances": 3, "privileged": false,
		"annotation": "it''s ü", "ports": [8080, 9090], "env": [{"name": "COUNT", "value": "5"}, {"name": "ON", "value": "yes"}],
		"routes": {"http": [{"hostname": "web.example.com", "weight": 1.5, "big": 1000, "none": null}]},
		"action": {"run": {"path": "/bin/sh", "user": "nobody", "args": ["-c", "echo one\necho two\n"]}}}`
	got, err := specfile.LRP("worker.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want, err := specfile.LRP("worker.json", []byte(same))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meaning(t, want), meaning(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerCanBeReadAsAFile(t *testing.T) {
	l, err := specfile.LRP("greeter.json", example(t, "greeter.json"))
	if err != nil {
		t.Fatal(err)
	}
	answer := l
	answer.ModificationTag = lrp.ModificationTag{Epoch: 17, Index: 4}
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	got, err := specfile.LRP("answer", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, got); diff != "" {
		t.Error(diff)
	}
}

// Each text has one thing wrong with it, or several, and says with "‸" where.
func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	read := map[string]func(string, []byte) error{
		"lrp":        func(n string, b []byte) error { _, err := specfile.LRP(n, b); return err },
		"deployment": func(n string, b []byte) error { _, err := specfile.Deployment(n, b); return err },
		"update":     func(n string, b []byte) error { _, err := specfile.Update(n, b); return err },
		"task":       func(n string, b []byte) error { _, err := specfile.Task(n, b); return err },
		"documents":  func(n string, b []byte) error { _, err := specfile.Documents(n, b); return err },
	}
	// valid makes an LRP valid but for what a test is about.
	valid := func(extra string) string {
		return "{\n\"process_guid\": \"p\",\n\"domain\": \"d\",\n\"root_fs\": \"host:\",\n" + extra + "\n}"
	}
	const action = `"action": {"run": {"path": "/a", "user": "u"}}`
	tests := []struct {
		name, kind, text string
		want             []string // field: text
	}{
		{"nothing", "lrp", ``, []string{"the file is empty; want an object"}},
		{"spaces", "lrp", " \n ", []string{"the file is empty; want an object"}},
		{"no object", "lrp", "\n ‸[1]", []string{"want an object"}},
		{"not UTF-8", "lrp", "{\"a\":\n \"‸\xff\"}", []string{"not UTF-8"}},
		{"broken off", "lrp", "{\n \"a\": [1,\n‸\n", []string{"unexpected end of JSON input"}},
		{"a comma too many", "lrp", "{\n \"a\": 1,\n‸}", []string{"invalid character '}' looking for beginning of object key string; names are in double quotes, and no comma comes after the last member"}},
		{"two documents", "lrp", "{}\n‸{}", []string{"invalid character '{' after top-level value; want one document in the file"}},
		{"a comment", "lrp", "{\n ‸// why\n}", []string{"invalid character '/' looking for beginning of object key string; names are in double quotes, and no comma comes after the last member"}},

		{"an unknown member", "lrp", valid(`  ‸"instnaces": 3,` + action), []string{`instnaces: unknown member; did you mean "instances"?`}},
		{"a name in other letters", "lrp", valid(`‸"Instances": 3,` + action), []string{`Instances: unknown member; did you mean "instances"?`}},
		{"behind tabs and returns", "lrp", "{\r\n\t\t‸\"instnaces\":\t3,\r\n\t‸\"a_name\": \"\\ud83d\\ude00\",\t‸\"b_name\": 1}", []string{`instnaces: unknown member; did you mean "instances"?`, "a_name: unknown", "b_name: unknown"}},
		{"names without quotes", "lrp", "{‸a: 1}", []string{"invalid character 'a' looking for beginning of object key string; names are in double quotes"}},
		{"a name like none", "lrp", valid(`"check": {‸"frequently": true},` + action), []string{`check.frequently: unknown member; want one of checks, log_source, readiness_checks`}},
		{"a member twice", "lrp", valid(`"instances": 1,` + "\n" + `  ‸"instances": 2,` + action), []string{"instances: given twice"}},
		{"a number as text", "lrp", valid(`"instances": ‸"3",` + action), []string{`instances: "3": want a whole number`}},
		{"half a number", "lrp", valid(`"instances": ‸1.5,` + action), []string{"instances: 1.5: want a whole number"}},
		{"no number", "lrp", valid(`"instances": ‸null,` + action), []string{"instances: null: want a whole number"}},
		{"a port too large", "lrp", valid(`"ports": [8080, ‸70000],` + action), []string{"ports[1]: 70000: want a whole number from 0 to 65535"}},
		{"a text as list", "lrp", valid(`"ports": ‸"8080",` + action), []string{`ports: "8080": want a list`}},
		{"a list as object", "lrp", valid(`"metric_tags": ‸[],` + action), []string{`metric_tags: a list: want an object`}},
		{"an object as text", "lrp", valid(`"annotation": ‸{},` + action), []string{`annotation: an object: want a text`}},
		{"a text as truth", "lrp", valid(`"privileged": ‸"yes",` + action), []string{`privileged: "yes": want true or false`}},
		{"a long value", "lrp", valid(`"privileged": ‸"` + strings.Repeat("x", 50) + `",` + action),
			[]string{`privileged: "` + strings.Repeat("x", 39) + `…: want true or false`}},
		{"an unknown word", "lrp", valid(`"update_strategy": ‸"SLOW",` + action), []string{`update_strategy: "SLOW": want ROLLING or RECREATE`}},
		{"a number as word", "lrp", valid(`"update_strategy": ‸1,` + action), []string{`update_strategy: 1: want a text`}},
		{"a broken tag", "lrp", valid(`"modification_tag": ‸7,` + action), []string{`modification_tag: 7: want a modification tag`}},

		{"outside its limit", "lrp", valid(`"instances": ‸-1,` + action), []string{"instances: -1: want 0 to 100000"}},
		{"missing in an object", "lrp", valid(`"action": {"run": ‸{"path": "/a"}}`), []string{"action.run.user: want a text that is not empty"}},
		{"missing in the file", "lrp", "\n‸{\"domain\": \"d\", \"root_fs\": \"host:\", " + action + "}", []string{"process_guid: want 1 to 255 letters, digits, - and _"}},
		{"in a list", "lrp", valid(`"env": [{"name": "A", "value": ""},` + "\n" + `{"name": ‸"=", "value": ""}],` + action), []string{"env[1].name: "}},
		{"missing in a list", "lrp", valid(`"env": [{"name": "A", "value": ""},` + "\n" + `‸{"value": ""}],` + action), []string{"env[1].name: "}},
		{"below a name", "lrp", valid(`"metric_tags": {"a": ‸{}},` + action), []string{"metric_tags.a"}},

		{"no kind of action", "lrp", valid(`"action": ‸{}`), []string{"action: []: want exactly one of "}},
		{"an unknown kind of action", "lrp", valid(`"action": {‸"rum": {}}`), []string{`action.rum: unknown member; did you mean "run"?`}},
		{"two kinds of action", "lrp", valid(`"action": {"run": {"path": "/a", "user": "u"}, "try": ‸{"action": {}}}`), []string{"action.try: want exactly one of "}},
		{"two kinds in an action", "lrp", valid(`"action": {"serial": {"actions": [{"run": {"path": "/a", "user": "u"}},` + "\n" + `{"run": {}, "try": ‸{}}]}}`),
			[]string{"action.serial.actions[1].try: want exactly one of "}},
		{"actions too deep", "lrp", valid(`"setup": ` + strings.Repeat(`{"try":{"action":`, executor.MaxActionDepth) + `‸{"run":{}}` + strings.Repeat(`}}`, executor.MaxActionDepth) + "," + action),
			[]string{"setup." + strings.Repeat("try.action.", executor.MaxActionDepth-1) + "try.action: 33: want actions nested at most 32 deep"}},

		{"a deployment without its definition", "deployment", `‸{"process_guid": "p", "domain": "d"}`, []string{"definition_id: want 1 to 255 bytes", "definition.root_fs: want a URL"}},
		{"an LRP as a deployment", "deployment", "‸" + valid(action), []string{"this is the spec of an LRP, and that of a deployment is wanted: with process_guid, definition_id and definition"}},
		{"an LRP as a task", "task", "‸" + valid(action), []string{"this is the spec of an LRP, and that of a task is wanted: with task_guid, root_fs and action"}},
		{"an LRP as an update", "update", "‸" + valid(action), []string{"this is the spec of an LRP, and that of an update is wanted: with nothing but what is to change"}},
		{"a task as an LRP", "lrp", `‸{"task_guid": "t"}`, []string{"this is the spec of a task, and that of an LRP is wanted: with process_guid, root_fs and action"}},
		{"in a definition", "deployment", `{"process_guid": "p", "domain": "d", "definition_id": "v1", "definition": {"root_fs": "host:",` + "\n" + `"action": {"run": ‸{"path": "/a"}}}}`,
			[]string{"definition.action.run.user: want a text that is not empty"}},

		{"a definition without its id", "update", `{"definition": ‸{}}`, []string{"definition: want a definition_id beside it"}},
		{"an id without its definition", "update", `{"definition_id": ‸"v2"}`, []string{"definition_id: want a definition beside it"}},
		{"what cannot be updated", "update", `{‸"domain": "d"}`, []string{"domain: unknown member"}},
		{"an update outside its limit", "update", `{"instances": ‸200000}`, []string{"instances: 200000: want 0 to 100000"}},
		{"a definition of an update", "update", `{"definition_id": "v2", "definition": {"memory_mb": ‸-1, "root_fs": "host:", ` + action + `}}`,
			[]string{"definition.memory_mb: -1: want at least 0"}},

		{"a task without a guid", "task", `‸{"domain": "d", "root_fs": "host:", ` + action + `}`, []string{"task_guid: want 1 to 255 letters"}},
		{"a callback", "task", `{"task_guid": "t", "domain": "d", "root_fs": "host:", "completion_callback_url": ‸"ftp://a",` + action + `}`,
			[]string{"completion_callback_url: ftp://a: want an http or https URL with a host"}},

		{"YAML that is broken", "lrp", "a: 1\nb: ‸[1\n", []string{"sequence end token ']' not found"}},
		{"YAML with a tab", "lrp", "a:\n‸\tb: 1\n", []string{"found character '\t' that cannot start any token"}},
		{"YAML with comments alone", "lrp", "# why\n---\n", []string{"the file is empty; want an object"}},
		{"a list in YAML", "lrp", "# why\n‸- 1\n", []string{"want an object"}},
		{"a text in YAML", "lrp", "‸why\n", []string{"want an object"}},
		{"two documents of YAML", "lrp", "a: 1\n---\n‸b: 1\n", []string{"want one document in the file"}},
		{"an anchor", "lrp", "a: ‸&x 1\nb: *x\n", []string{"&: anchors, aliases, tags"}},
		{"an alias", "lrp", "b: ‸*x\n", []string{"*: anchors, aliases, tags"}},
		{"a tag", "lrp", "b: ‸!!binary x\n", []string{"!!binary: anchors, aliases, tags"}},
		{"a number that JSON has not", "lrp", "b: ‸.inf\n", []string{".inf: anchors, aliases, tags"}},
		{"a merge key", "lrp", "‸<<: {a: 1}\n", []string{"<<: want a plain name"}},
		{"a key of several parts", "lrp", "‸? a\n: 1\n", []string{"?: want a plain name"}},
		{"wrong values in YAML", "update", "# ä\ninstances: ‸many\nannotation: ‸12 # a number\n‸instnaces: 1\nroutes:\n  http: x\n‸instances: ‸yes\n",
			[]string{`instances: "many": want a whole number`, "annotation: 12: want a text", `instnaces: unknown member; did you mean "instances"?`, "instances: given twice", `instances: "yes": want a whole number`}},
		{"missing in YAML", "lrp", "‸process_guid: p\ndomain: d\naction:\n  run:\n    ‸path: /a\n", []string{"root_fs: want a URL", "action.run.user: want a text that is not empty"}},

		{"no documents", "documents", "# why\n", []string{"the file is empty; want an object"}},
		{"an empty list of documents", "documents", "# why\n‸[]", []string{"the list is empty; want at least one object"}},
		{"documents that are values", "documents", "- ‸1\n- ‸[]\n---\n‸why\n", []string{"1: want an object", "a list: want an object", `"why": want an object`}},
		{"documents of JSON without a list", "documents", "{}\n‸{}", []string{"invalid character '{' after top-level value; want one document in the file, or a list of them"}},
		{"several wrong documents", "documents", "---\n‸‸{task_guid: t, domain: d}\n---\n" + `{process_guid: p, domain: d, definition_id: v1, definition: {root_fs: "host:", action: {run: ‸{path: /a}}}}` + "\n---\n- {‸instnaces: 1}",
			[]string{"root_fs: want a URL", "action: []: want exactly one of", "definition.action.run.user: want a text that is not empty", `instnaces: unknown member; did you mean "instances"?`}},

		{"several at once", "lrp", valid("‸\"a_name\": 1,\n\"ports\": ‸1,\n\"action\": {\"run\": {‸\"usr\": \"u\"}}"),
			[]string{"a_name: unknown", "ports: 1", `action.run.usr: unknown member; did you mean "user"?`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			text := tt.text
			for _, w := range tt.want {
				before, after, found := strings.Cut(text, "‸")
				if !found { // at the first byte
					before = ""
				} else {
					text = before + after
				}
				line := 1 + strings.Count(before, "\n")
				column := utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1
				want = append(want, fmt.Sprintf("f.json:%d:%d: %s", line, column, w))
			}
			err := read[tt.kind]("f.json", []byte(text))
			if !errors.Is(err, executor.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) < len(want) {
				t.Fatalf("got\n%s\nwant\n%s", err, strings.Join(want, "\n"))
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], want[i])
				}
			}
		})
	}
}

func TestNoMoreProblemsAreToldThanAnybodyReads(t *testing.T) {
	var text strings.Builder
	text.WriteString("{")
	for i := range 250 {
		fmt.Fprintf(&text, "%q: %d,\n", fmt.Sprintf("member-%d", i), i)
	}
	text.WriteString(`"domain": "d"}`)
	_, err := specfile.LRP("f", []byte(text.String()))
	var e *specfile.Error
	if !errors.As(err, &e) || len(e.Problems) != executor.MaxFieldErrors || e.Omitted != 150 {
		t.Fatalf("got %v", err)
	}
	if !strings.HasSuffix(err.Error(), "\nf: and 150 more problems") {
		t.Errorf("the end is %q", err.Error()[len(err.Error())-40:])
	}
}

func TestAFileThatIsTooLongIsRefused(t *testing.T) {
	_, err := specfile.LRP("f", bytes.Repeat([]byte(" "), specfile.MaxBytes+1))
	if err == nil || !strings.Contains(err.Error(), "want at most 16777216") {
		t.Errorf("got %v", err)
	}
}

func TestAFileThatIsNestedTooDeepIsRefused(t *testing.T) {
	const n = 1 << 14
	for name, text := range map[string]string{
		"brackets":       "a: " + strings.Repeat("[", n),
		"objects":        "a: " + strings.Repeat("{a: ", n),
		"dashes":         strings.Repeat("- ", n),
		"question marks": strings.Repeat("? ", n),
		"mixed":          "a: " + strings.Repeat("[{a: ", n),
		"indentation": func() string {
			var b strings.Builder
			for i := range 2000 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := specfile.LRP("f", []byte(text))
			if err == nil || !strings.HasSuffix(err.Error(), "nested too deep; want at most 100 levels") {
				t.Errorf("got %.200v", err)
			}
		})
	}
}

// For any text, a reader does not panic, what it accepts is what
// encoding/json makes of it, and what it tells lies within the text.
func FuzzReadersAgreeWithEncodingJSON(f *testing.F) {
	for _, name := range []string{"greeter.json", "web.json", "deployment.json", "update.json", "task.json"} {
		f.Add(example(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := specfile.LRP("f", data)
		check(t, data, err, &l, new(lrp.DesiredLRP))
		d, err := specfile.Deployment("f", data)
		check(t, data, err, &d, new(lrp.DeploymentDefinition))
		u, err := specfile.Update("f", data)
		check(t, data, err, &u, new(lrp.Update))
		k, err := specfile.Task("f", data)
		check(t, data, err, &k.Definition, new(task.Definition))
		list, err := specfile.Documents("f", data)
		check(t, data, err, nil, nil)
		if err == nil && len(list) == 0 {
			t.Fatal("accepted, and there is nothing")
		}
	})
}

// meaning is a value as JSON has it: raw messages may be spelled in another way.
func meaning(t testing.TB, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func check(t *testing.T, data []byte, err error, got, want any) {
	t.Helper()
	if err == nil {
		if want == nil || !json.Valid(data) { // YAML
			return
		}
		if err := json.Unmarshal(data, want); err != nil {
			t.Fatalf("accepted, and encoding/json says %v", err)
		}
		if l, ok := want.(*lrp.DesiredLRP); ok {
			l.ModificationTag = lrp.ModificationTag{}
		}
		if diff := cmp.Diff(meaning(t, want), meaning(t, got)); diff != "" {
			t.Fatalf("read otherwise than encoding/json reads it:\n%s", diff)
		}
		return
	}
	var e *specfile.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("an error without a place: %v", err)
	}
	lines := bytes.Split(data, []byte("\n"))
	line, column := 1, 1
	for _, p := range e.Problems {
		if p.Line < line || p.Line == line && p.Column < column {
			t.Fatalf("not in the order of lines: %v", err)
		}
		line, column = p.Line, p.Column
		if line > len(lines) || column > len(lines[line-1])+1 {
			t.Fatalf("line %d, column %d is not in the text", line, column)
		}
	}
}
