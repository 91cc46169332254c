package main

import (
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
)

func TestAgesHaveAtMostTwoUnits(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 65 * time.Second: "1m5s",
		9*time.Minute + 59*time.Second: "9m59s", 10*time.Minute + 5*time.Second: "10m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h", 2*time.Hour + 3*time.Minute: "2h3m", 12*time.Hour + 30*time.Minute: "12h", 24 * time.Hour: "1d",
		50 * time.Hour: "2d2h", 500 * time.Hour: "20d",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := age(now, time.Time{}); got != "-" {
		t.Errorf("the zero time is %q ago", got)
	}
}

func TestTablesKeepTheirColumnsWhateverIsInThem(t *testing.T) {
	columns := func(a, b, c string) bool {
		tab := table{heading: []string{"A", "B", "LAST"}, rows: [][]cell{{text(a), text(b), text(c)}, {text("x"), text("y"), text("z")}}}
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
	tab := table{rows: [][]cell{{text("a\x1b[2Jb\rc\nd\xff"), text("e")}}}
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
	m := &merged{out: &out}
	a, b := &part{of: m, name: "a"}, &part{of: m, name: "b"}
	for _, write := range []struct {
		to   *part
		text string
	}{{a, "on"}, {b, "t"}, {a, "e\nthree"}, {b, "wo\n"}, {a, ""}, {a, "\n\nla"}} {
		if n, err := write.to.Write([]byte(write.text)); n != len(write.text) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.flush(); err != nil {
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

// Whatever is typed, reading it ends with a command line or says what is wrong.
func FuzzCommandLinesAreReadOrRefused(f *testing.F) {
	for _, line := range []string{"lrp list -o json", "lrp scale web -3", "-o json help", "-- x", "logs -follow=1 a 2 -- -x", "lrp\x00-bbs"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := parse(strings.Split(line, " "))
		if err == nil && (p.command == nil || len(p.args) < required(p.command)) {
			t.Errorf("%q is read as %+v", line, p)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%q is refused without a reason", line)
		}
		c := &call{process: &process{env: func(string) string { return "" }, dial: func(connection) (*remote, error) { return nil, errHelp }}, ctx: t.Context()}
		words := strings.Split(line, " ")
		c.parsed.command = &commands()[0]
		c.candidates(words[:len(words)-1], words[len(words)-1])
	})
}

func required(c *command) (n int) {
	for _, a := range c.args {
		if !a.optional {
			n++
		}
	}
	return n
}

func TestCellsThatAreNotThereAreNamedOnce(t *testing.T) {
	on := func(cell string, p lrp.Presence) lrp.ActualLRP {
		return lrp.ActualLRP{InstanceKey: lrp.InstanceKey{CellID: cell}, Presence: p}
	}
	list := []lrp.ActualLRP{on("c", lrp.Ordinary), on("a", lrp.Ordinary), on("c", lrp.Ordinary), on("", lrp.Ordinary), on("s", lrp.Suspect)}
	for _, tt := range []struct {
		present string
		want    string
	}{
		{"a c", ""},
		{"a", "c is not present: what is on it is shown as it was reported last"},
		{"b", "a, c are not present: what is on them is shown as it was reported last"},
		{"", allAbsent},
	} {
		var present []bbs.CellPresence
		for _, id := range strings.Fields(tt.present) {
			present = append(present, bbs.CellPresence{CellID: id})
		}
		if got := absence(list, present); got != tt.want {
			t.Errorf("with %q present it says %q, want %q", tt.present, got, tt.want)
		}
	}
	if got := absence(nil, nil); got != "" {
		t.Errorf("of nothing it says %q", got)
	}
}
