package show

import (
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"
)

func TestAgesHaveAtMostTwoUnits(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 65 * time.Second: "1m5s",
		9*time.Minute + 59*time.Second: "9m59s", 10*time.Minute + 5*time.Second: "10m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h", 2*time.Hour + 3*time.Minute: "2h3m", 12*time.Hour + 30*time.Minute: "12h", 24 * time.Hour: "1d",
		50 * time.Hour: "2d2h", 500 * time.Hour: "20d",
	} {
		if got := Age(now, now.Add(-d)); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := Age(now, time.Time{}); got != "-" {
		t.Errorf("the zero time is %q ago", got)
	}
}

func TestTablesKeepTheirColumnsWhateverIsInThem(t *testing.T) {
	columns := func(a, b, c string) bool {
		tab := table{heading: []string{"A", "B", "LAST"}, rows: [][]Cell{{Text(a), Text(b), Text(c)}, {Text("x"), Text("y"), Text("z")}}}
		drawn := strings.Split(tab.draw(0, false), "\n")
		if len(drawn) != 4 || drawn[3] != "" {
			return false
		}
		last := strings.Index(drawn[0], "LAST")
		return strings.Index(drawn[2], "z") >= last && utf8.ValidString(drawn[1])
	}
	if err := quick.Check(columns, nil); err != nil {
		t.Error(err)
	}
}

func TestTextOfOthersCannotMoveTheCursor(t *testing.T) {
	tab := table{rows: [][]Cell{{Text("a\x1b[2Jb\rc\nd\xff"), Text("e")}}}
	if got := tab.draw(0, false); got != "a [2Jb c d   e\n" {
		t.Errorf("drawn as %q", got)
	}
}

func TestLongTextsBreakAtSpaces(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 13, "one two three"},
		{"one two three", 8, "one two|three"},
		{"one two three", 3, "one|two|three"},
		{"indivisible", 3, "indivisible"},
		{"", 3, ""},
	} {
		if got := strings.Join(wrap(tt.text, tt.width), "|"); got != tt.want {
			t.Errorf("%q at %d is %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestLinesOfSeveralSourcesDoNotMix(t *testing.T) {
	var out strings.Builder
	m := &Merger{Out: &out}
	a, b := m.Source("a"), m.Source("b")
	for _, write := range []struct {
		to   *Source
		text string
	}{{a, "on"}, {b, "t"}, {a, "e\nthree"}, {b, "wo\n"}, {a, ""}, {a, "\n\nla"}} {
		if n, err := write.to.Write([]byte(write.text)); n != len(write.text) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "a  one\nb  two\na  three\na  \na  la\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if _, err := a.Write([]byte(strings.Repeat("x", maxLine+1))); err != nil || out.Len() == 0 {
		t.Errorf("a line without an end is kept for ever: %v", err)
	}
}
