package show_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"unicode"
	"unicode/utf8"

	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
)

func TestNothingThatIsShownMovesTheCursorOrReordersText(t *testing.T) {
	for text, want := range map[string]string{
		"käse 芝士":              "käse 芝士",
		"a\x1b[2Jb\r\n":        "a [2Jb  ",
		"a\u202etxt.exe\u202c": "a txt.exe ",
		"a\u2066b\u2069c":      "a b c",
		"a\u2028b\u2029":       "a b ",
		"a\xff":                "a ",
	} {
		if got := show.Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestJSONForATerminalHasTheSameValueWithoutControls(t *testing.T) {
	shown := func(doc any) string {
		var out bytes.Buffer
		if err := (&show.Printer{Out: &out, Programs: true}).Emit(doc); err != nil {
			t.Fatal(err)
		}
		line := out.String()
		if !strings.HasSuffix(line, "\n") {
			t.Errorf("%q is not a line", line)
		}
		return strings.TrimSuffix(line, "\n")
	}
	for text, want := range map[string]string{
		"käse 芝士 <a> 🧀":            `"käse 芝士 <a> 🧀"`,
		"a\x1b[2Jb\r\n\x7f":        `"a\u001b[2Jb\r\n\u007f"`,
		"a\u009b2Jb\u0085":         `"a\u009b2Jb\u0085"`,
		"a\u202etxt.exe\u202c":     `"a\u202etxt.exe\u202c"`,
		"\u2066\u2069\u200e\u200f": `"\u2066\u2069\u200e\u200f"`,
		"\u061c\u2028\u2029":       `"\u061c\u2028\u2029"`,
		`\`:                        `"\\"`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
		// Some JSON comes as it is stored, and encoding/json does not escape it.
		raw := json.RawMessage(`{"routes":"` + text + `"}`)
		if want := `{"routes":` + want + `}`; json.Valid(raw) && shown(raw) != want {
			t.Errorf("%s is shown as %s, want %s", raw, shown(raw), want)
		}
	}
	same := func(doc map[string][]string, raw string) bool {
		document := map[string]any{"doc": doc, raw: raw + "\u0080\u061c\x7f" + raw, "raw": json.RawMessage("\"\x9b\u202e\u2028\"")}
		plain, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		line := shown(document)
		var got, want any
		if json.Unmarshal([]byte(line), &got) != nil || json.Unmarshal(plain, &want) != nil {
			return false
		}
		return reflect.DeepEqual(got, want) && utf8.ValidString(line) &&
			!strings.ContainsFunc(line, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) })
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

func TestSentencesAndNotesHaveNoControlsButLineEnds(t *testing.T) {
	var out bytes.Buffer
	p := show.Printer{Out: &out}
	v := &show.View{Notes: []string{"cell \x1b[2J"}}
	if err := errors.Join(p.Say(nil, "web goes to %s\nand stays", "v2\u009b2J"), p.Show(v)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "web goes to v2 2J\nand stays\n\ncell  [2J\n"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}
