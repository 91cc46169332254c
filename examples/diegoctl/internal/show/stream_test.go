package show

import (
	"bytes"
	"testing"
)

func TestATerminalGetsNoControlCharactersOfContainers(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":                  "plain\ttext\n",
		"\x1b[31mred\x1b[0m":             `\x1b[31mred\x1b[0m`,
		"50%\r100%\n":                    `50%\x0d100%` + "\n",
		"bell\a, delete\x7f":             `bell\x07, delete\x7f`,
		"a C1 control: \u009b2J":         `a C1 control: \u009b2J`,
		"in Latin-1, C1: \x9b2J, \xc2!":  `in Latin-1, C1: \x9b2J, \xc2!`,
		"backwards: \u202eabc\u2028":     `backwards: \u202eabc\u2028`,
		"Grüße, \u00a0\u20ac \U0001f600": "Grüße, \u00a0\u20ac \U0001f600",
	} {
		for _, size := range []int{1, 2, 3, 100} { // as it may arrive
			var out bytes.Buffer
			v := &Visible{Out: &out}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if m, err := v.Write(rest[:n]); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if out.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, out.String(), want)
			}
		}
	}
}
