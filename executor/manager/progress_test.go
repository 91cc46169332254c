package manager_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

func TestMessagesKeepTheirPlaceAmongTheOutput(t *testing.T) {
	say := func(name string) executor.Action {
		return executor.Action{EmitProgress: &executor.EmitProgressAction{
			Action: do("print " + name), StartMessage: "begin " + name, SuccessMessage: "end " + name,
		}}
	}
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	c.delays[manager.JobLog] = time.Minute // until then, only the next output writes them
	c.launch("c", work(serial(say("one"), say("two"), do("print last", "wait forever"))))
	c.advance(time.Second)
	want := "begin one\none\nend one\nbegin two\ntwo\nend two\nlast\n"
	if got := all(t, c.Manager, "c", manager.Stdout); got != want {
		t.Errorf("stdout says %q, want %q", got, want)
	}
}

func TestMessagesThatWaitAreBounded(t *testing.T) {
	const room = 32 << 10
	long := strings.Repeat("x", 3*room)
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	c.launch("c", work(executor.Action{EmitProgress: &executor.EmitProgressAction{Action: do("print out", "wait forever"), StartMessage: long}}))
	c.advance(time.Second)
	want := fmt.Sprintf("%s\n[%d bytes dropped: more than 32 KiB of messages waited to be written]\nout\n", long[:room], 2*room+1)
	if got := all(t, c.Manager, "c", manager.Stdout); got != want {
		t.Errorf("stdout has %d bytes and ends with %.200q, want %d bytes", len(got), got[max(0, len(got)-200):], len(want))
	}
}

func TestMessagesOfFailureHaveTheBeginningOfTheReason(t *testing.T) {
	a := executor.Action{Download: &executor.DownloadAction{From: "http://127.0.0.1:1/", To: "/" + strings.Repeat("x", 100<<10), User: "app"}}
	for range 8 {
		a = executor.Action{EmitProgress: &executor.EmitProgressAction{Action: a, FailureMessagePrefix: "failed"}}
	}
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	c.launch("c", work(a))
	c.advance(time.Second)
	lines := slices.Collect(strings.Lines(all(t, c.Manager, "c", manager.Stderr)))
	if len(lines) != 8 {
		t.Errorf("there are %d lines, want 8", len(lines))
	}
	for _, l := range lines {
		if len(l) > executor.MaxReasonBytes+len("failed: \n") || !strings.HasPrefix(l, "failed: ") {
			t.Errorf("a line has %d bytes and begins with %.20q", len(l), l)
		}
	}
}

// all is what a log holds.
func all(t *testing.T, m *manager.Manager, guid string, s manager.Stream) string {
	t.Helper()
	r, err := m.Log(t.Context(), guid, s, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
