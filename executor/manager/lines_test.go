package manager_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

func TestASinkReceivesEveryLineWithItsSource(t *testing.T) {
	var got []string
	c := newCell(t, func(o *manager.Options) {
		o.Dir = t.TempDir()
		o.LogSink = func(l manager.LogLine) {
			got = append(got, fmt.Sprintf("%s %s %s %s %s", l.GUID, l.Owner.LogGUID, l.Stream, l.Source, l.Text))
		}
	})
	side := do("print beside", "wait forever")
	side.Run.LogSource = "SIDE"
	monitor := do("print fine")
	c.launch("c", with(work(do("print one", "print", "warn two", "wait forever")), func(w *manager.Work) {
		w.LogGUID, w.LogSource, w.Monitor = "app-7", "WEB", &monitor
		w.Sidecars = []executor.Sidecar{{Action: side}}
	}))
	c.advance(time.Second)
	slices.Sort(got)
	want := []string{"c app-7 health WEB fine", "c app-7 stderr WEB two", "c app-7 stdout SIDE beside", "c app-7 stdout WEB ", "c app-7 stdout WEB one"}
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A tenant may name any number of sources.
func TestFewSourcesHaveALineWithoutAnEndAtATime(t *testing.T) {
	var got []string
	add, end := manager.CutLines(func(l manager.LogLine) { got = append(got, l.Source+":"+string(l.Text)) })
	for i := range 16 {
		add(fmt.Sprintf("%02d", i), []byte("a"))
	}
	add("00", []byte("b")) // now 01 has waited longest
	if len(got) > 0 {
		t.Errorf("16 sources: %q was sent", got)
	}
	for i := 16; i < 1000; i++ {
		add(fmt.Sprintf("%02d", i), []byte("a"))
	}
	if len(got) != 1000-16 || got[0] != "01:a" || got[14] != "15:a" || got[15] != "00:ab" {
		t.Errorf("1000 sources: %d were sent, the first %q", len(got), got[:min(len(got), 16)])
	}
	end()
	if len(got) != 1000 {
		t.Errorf("%d lines, want 1000", len(got))
	}
}

func TestLinesAreCutWhereTheyEndOrAreTooLong(t *testing.T) {
	long := strings.Repeat("x", manager.MaxLogLineBytes)
	for name, c := range map[string]struct {
		writes []string // SOURCE:TEXT
		want   []string
	}{
		"pieces of a line":             {[]string{"A:on", "A:e\ntw", "A:o\n"}, []string{"A:one", "A:two"}},
		"sources that take turns":      {[]string{"A:on", "B:tw", "A:e\n", "B:o\n"}, []string{"A:one", "B:two"}},
		"line ends of other systems":   {[]string{"A:one\r\ntwo\rthree\r", "A:\n"}, []string{"A:one", "A:two\rthree"}},
		"empty lines":                  {[]string{"A:\n\n"}, []string{"A:", "A:"}},
		"the last line without an end": {[]string{"B:two", "A:one"}, []string{"A:one", "B:two"}},
		"a line of the longest length": {[]string{"A:" + long + "\n"}, []string{"A:" + long}},
		"a longer line":                {[]string{"A:" + long + "yz\n"}, []string{"A:" + long, "A:yz"}},
		"a longer line in pieces":      {[]string{"A:" + long, "A:y", "A:z\n"}, []string{"A:" + long, "A:yz"}},
		"no character is cut":          {[]string{"A:" + long[1:] + "é\n"}, []string{"A:" + long[1:], "A:é"}},
		"every kind of byte":           {[]string{"A:\x00\xff\x80\n"}, []string{"A:\x00\xff\x80"}},
		"bytes that begin nothing":     {[]string{"A:" + strings.Repeat("\x80", len(long)+9) + "\n"}, []string{"A:" + strings.Repeat("\x80", len(long)-4), "A:" + strings.Repeat("\x80", 13)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			add, end := manager.CutLines(func(l manager.LogLine) { got = append(got, l.Source+":"+string(l.Text)) })
			for _, w := range c.writes {
				source, text, _ := strings.Cut(w, ":")
				p := []byte(text)
				add(source, p)
				copy(p, bytes.Repeat([]byte("!"), len(p))) // it is not the sink's
			}
			end()
			if !slices.Equal(got, c.want) {
				t.Errorf("got %.99q, want %.99q", got, c.want)
			}
		})
	}
}
