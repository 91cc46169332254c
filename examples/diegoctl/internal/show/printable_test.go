package show_test

import (
	"testing"

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
