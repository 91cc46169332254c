package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/lrp"
)

// Every command line is carried out or refused with a reason, and so is its
// completion.
func FuzzCommandLinesAreReadOrRefused(f *testing.F) {
	for _, line := range []string{"lrp list -o json", "lrp scale web -3", "-o json help", "-- x", "logs --follow=1 a 2 -- -x", "lrp\x00--bbs", "-follow", "__complete"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		for _, words := range [][]string{words, append([]string{"__complete"}, words...)} {
			var out, errs strings.Builder
			code := run(t.Context(), words, &process{
				stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(string) string { return "" },
				now: time.Now, after: func(time.Duration) <-chan time.Time { return nil },
				dial:    func(connection) (*remote, error) { return nil, errors.New("there is no server") },
				examine: func(context.Context, string) daemon.Examination { return daemon.Examination{} },
			})
			if code != exitOK && out.Len()+errs.Len() == 0 {
				t.Errorf("%q exits with %d and says nothing", words, code)
			}
		}
	})
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
