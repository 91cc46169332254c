package executor

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestASelectorChoosesByLabelsAsItsTextSays(t *testing.T) {
	blog := map[string]string{"team": "blog", "tier": "web", "empty": ""}
	for _, c := range []struct {
		text string
		want bool
		none bool // what it says of a process without labels
	}{
		{"", true, true},
		{"team=blog", true, false},
		{"team=shop", false, false},
		{"team!=blog", false, true},
		{"team!=shop", true, true},
		{"team", true, false},
		{"!team", false, true},
		{"owner", false, false},
		{"!owner", true, true},
		{"empty=", true, false},
		{"team=", false, false},
		{"empty!=", false, true},
		{"owner!=", true, true},
		{"team=blog,tier=web", true, false},
		{"team=blog,tier!=web", false, false},
		{" team = blog , ! owner ", true, false},
		{"team != shop", true, true},
		{"Team=blog", false, false},
	} {
		s, err := ParseSelector(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := s.Matches(blog); got != c.want {
			t.Errorf("%q matches %v: %v, want %v", c.text, blog, got, c.want)
		}
		if got := s.Matches(nil); got != c.none {
			t.Errorf("%q matches no labels: %v, want %v", c.text, got, c.none)
		}
		if s.IsZero() != (c.text == "") {
			t.Errorf("%q is zero: %v", c.text, s.IsZero())
		}
	}
}

func TestASelectorThatIsWrongIsRefusedWithTheRequirement(t *testing.T) {
	key := `want key=value, key!=value, key or !key; a key has 1 to 128 letters`
	for _, c := range []struct{ text, want string }{
		{"=blog", `"=blog": ` + key},
		{"!", `"!": ` + key},
		{"team=blog,", `"": ` + key},
		{",team", `"": ` + key},
		{"team=blog tier=web", `"team=blog tier=web": want a value that is empty, or 1 to 128`},
		{"team==blog", `"team==blog": want a value`},
		{"team in (blog", `"team in (blog": ` + key},
		{"!team=blog", `"!team=blog": ` + key},
		{"-team", `"-team": ` + key},
		{"tëam", `"tëam": ` + key},
		{"team=" + strings.Repeat("x", MaxLabelBytes+1), `want a value`},
		{strings.Repeat("x,", MaxLabels) + "x", "33: want at most 32 requirements"},
	} {
		s, err := ParseSelector(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "invalid input: selector: ") || !strings.Contains(err.Error(), c.want) || !s.IsZero() {
			t.Errorf("%q: %v, %v; want %s", c.text, s, err, c.want)
		}
	}
}

func TestLabelsOutsideTheirLimitsAreNamed(t *testing.T) {
	many := map[string]string{}
	for i := range MaxLabels + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{"team": "blog", "empty": "", "example.com/Owner_1": "a.b@c:d/e-f"}, ""},
		{map[string]string{strings.Repeat("k", MaxLabelBytes): strings.Repeat("v", MaxLabelBytes)}, ""},
		{many, "labels: 33: want at most 32 labels"},
		{map[string]string{"": "v"}, "labels: want keys of " + labelKeyLimit},
		{map[string]string{"a b": "v"}, "labels: a b: want keys of " + labelKeyLimit},
		{map[string]string{"team": "a b", "tier": "-"}, "labels.team: a b: want " + labelValueLimit + "; labels.tier: -: want " + labelValueLimit},
		{map[string]string{"team": strings.Repeat("v", MaxLabelBytes+1)}, "labels.team: " + strings.Repeat("v", 64) + "…: want " + labelValueLimit},
	} {
		var v Validator
		ValidateLabels(&v, c.labels)
		got := ""
		if err := v.Err(); err != nil {
			got = strings.TrimPrefix(err.Error(), "invalid input: ")
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.labels, got, c.want)
		}
	}
}

// A selector of keys and values that labels may have chooses as its text says,
// and its text makes the same selector again.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"", "team=blog", "team!=blog,!tier", " a = b , c", "a==b", "a,,b", "a=\x00"} {
		f.Add(text, "team", "blog")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		s, err := ParseSelector(text)
		if err != nil {
			if !s.IsZero() {
				t.Errorf("%q is refused and makes %q", text, s)
			}
			return
		}
		again, err := ParseSelector(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q makes %q, which makes %q: %v", text, s, again, err)
		}
		var v Validator
		labels := map[string]string{key: value}
		if ValidateLabels(&v, labels); v.Err() != nil {
			return
		}
		// The same rule, written the other way round: by sets of all that must be
		// and must not be there.
		want := true
		for _, part := range strings.FieldsFunc(s.String(), func(r rune) bool { return r == ',' }) {
			has := slices.Collect(maps.Keys(labels))
			for k, v := range labels {
				has = append(has, k+"="+v)
			}
			not := ""
			if k, v, is := strings.Cut(part, "!="); is {
				part, not = k+"="+v, "!"
			} else if part[0] == '!' {
				part, not = part[1:], "!"
			}
			want = want && slices.Contains(has, part) == (not == "")
		}
		if got := s.Matches(labels); got != want {
			t.Errorf("%q matches %v: %v, want %v", text, labels, got, want)
		}
	})
}
