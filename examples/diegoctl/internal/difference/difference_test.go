package difference

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/specfile"
)

func TestEachFieldThatDiffersIsNamed(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", `{"a": 1, "b": [1, {"c": null}]}`, `{"b": [1, {"c": null}], "a": 1}`, ``},
		{"a value", `{"instances": 3, "same": 1}`, `{"instances": 5, "same": 1}`, `instances: 3 → 5`},
		{"a large number", `{"n": 9007199254740993}`, `{"n": 9007199254740992}`, `n: 9007199254740993 → 9007199254740992`},
		{"a value of another type", `{"a": "1"}`, `{"a": 1}`, `a: "1" → 1`},
		{"text that HTML would escape", `{"a": "x<y"}`, `{"a": "x&y"}`, `a: "x<y" → "x&y"`},
		{"below", `{"a": {"b": {"c": true}}}`, `{"a": {"b": {"c": false}}}`, `a.b.c: true → false`},
		{"new and gone", `{"a": 1}`, `{"b": 2}`, `a: 1 →; b: → 2`},
		{"null is a value", `{"a": null}`, `{}`, `a: null →`},
		{"a new object, by its leaves", `{}`, `{"a": {"b": 1, "c": {"d": 2}}}`, `a.b: → 1; a.c.d: → 2`},
		{"an object that is gone", `{"a": {"b": 1}}`, `{}`, `a.b: 1 →`},
		{"an object in place of null", `{"a": null}`, `{"a": {"b": 1}}`, `a.b: → 1`},
		{"an empty object", `{}`, `{"a": {}}`, `a: → {}`},
		{"an object in place of a list", `{"a": [1]}`, `{"a": {"b": 2}}`, `a[0]: 1 →; a.b: → 2`},
		{"a list by position", `{"args": ["a", "b"]}`, `{"args": ["a", "c", "d"]}`, `args[1]: "b" → "c"; args[2]: → "d"`},
		{"a shorter list", `{"ports": [1, 2]}`, `{"ports": [1]}`, `ports[1]: 2 →`},
		{"no list any more", `{"ports": [1]}`, `{}`, `ports[0]: 1 →`},
		{"a list of lists", `{"a": [[1], [2]]}`, `{"a": [[1], [3]]}`, `a[1][0]: 2 → 3`},
		{"by name", `{"layers": [{"name": "x", "url": "1"}, {"name": "y", "url": "2"}]}`, `{"layers": [{"name": "z", "url": "0"}, {"name": "x", "url": "1"}, {"name": "y", "url": "3"}]}`,
			`layers[y].url: "2" → "3"; layers[z].url: → "0"`},
		{"by name, gone", `{"layers": [{"name": "x", "url": "1"}]}`, `{}`, `layers[x].url: "1" →`},
		{"a name alone", `{"a": [{"name": "x"}]}`, `{"a": [{"name": "x"}, {"name": "y"}]}`, `a[y]: → {}`},
		{"another order alone", `{"a": [{"name": "x"}, {"name": "y"}]}`, `{"a": [{"name": "y"}, {"name": "x"}]}`, `a: ["x","y"] → ["y","x"]`},
		{"a name twice", `{"a": [{"name": "x", "b": 1}, {"name": "x", "b": 2}]}`, `{"a": [{"name": "x", "b": 1}, {"name": "x", "b": 3}]}`, `a[1].b: 2 → 3`},
		{"an environment", `{"env": [{"name": "A", "value": "s1"}, {"name": "B", "value": "s2"}]}`, `{"env": [{"name": "B", "value": "s3"}, {"name": "C", "value": "s4"}]}`,
			`env[A].value: secret; env[B].value: secret; env[C].value: secret`},
		{"secrets in what is of another kind", `{"a": "x"}`, `{"a": [{"value": "s1"}]}`, `a: "x" →; a[0].value: secret`},
		{"passwords and files", `{"image_password": "s1", "files": [{"path": "/a", "content": "s2"}]}`, `{"image_password": "s3", "files": [{"path": "/b", "content": "s4"}]}`,
			`files[0].content: secret; files[0].path: "/a" → "/b"; image_password: secret`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fields, err := Of(json.RawMessage(tt.before), json.RawMessage(tt.after))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range fields {
				text := f.Name + ": secret"
				if !f.Secret {
					text = strings.Join(strings.Fields(fmt.Sprintf("%s: %s → %s", f.Name, f.Before, f.After)), " ")
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

func TestAValueWithoutJSONIsAnError(t *testing.T) {
	for _, pair := range [][2]any{{func() {}, 1}, {1, func() {}}} {
		if _, err := Of(pair[0], pair[1]); err == nil {
			t.Error("a function has JSON")
		}
	}
}

// For any two values, no difference is found exactly if they mean the same, and a
// secret is never among what is shown.
func FuzzOnlyEqualValuesDifferInNothing(f *testing.F) {
	f.Add(`{"a": [{"name": "x", "value": 1}], "b": null}`, `{"a": {"name": 2}, "b": []}`)
	f.Add(`[{"name": "x"}, {"name": "y"}]`, `[{"name": "y"}, {"name": "x"}]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			return
		}
		fields, err := Of(json.RawMessage(a), json.RawMessage(b))
		if err != nil {
			t.Fatal(err)
		}
		treeA, _ := specfile.Meaning(json.RawMessage(a))
		treeB, _ := specfile.Meaning(json.RawMessage(b))
		if equal := string(text(treeA)) == string(text(treeB)); equal != (len(fields) == 0) {
			t.Errorf("%s and %s differ in %v", a, b, fields)
		}
		for _, field := range fields {
			if field.Secret != (field.Before == nil && field.After == nil) {
				t.Errorf("%s and %s: %+v", a, b, field)
			}
		}
	})
}
