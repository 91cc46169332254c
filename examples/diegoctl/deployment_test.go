package main

import (
	"context"
	"strings"
	"testing"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
)

// A lingering is a BBS whose rollouts have replaced everything, and what was
// replaced still stops.
type lingering struct{ bbs.API }

func (l lingering) RolloutStatus(ctx context.Context, guid string) (lrp.RolloutStatus, error) {
	status, err := l.API.RolloutStatus(ctx, guid)
	n := status.Done + status.Stalled + status.Pending
	return lrp.RolloutStatus{Pending: n, Stopping: n, HeldBy: -1}, err
}

func TestStatusSaysWhatStillStops(t *testing.T) {
	w := newWorld(t)
	if got := w.run(w.local(), several, "apply", "-f", "-", "--wait"); got.code != exitOK {
		t.Fatal(got)
	}
	if got := w.run(w.local(), strings.ReplaceAll(several, "/bin/b", "/bin/after"), "apply", "-f", "-"); got.code != exitOK {
		t.Fatal(got)
	}
	late := *w.local()
	late.bbs = lingering{late.bbs}
	got := w.run(&late, "", "deployment", "status", "b")
	if want := "rollout  0 of 1 done, 1 more once what is replaced has stopped\n"; !strings.Contains(got.stdout, want) {
		t.Errorf("it says\n%s%s\nwant %s", got.stdout, got.stderr, want)
	}
	got = w.run(&late, "", "deployment", "status", "b", "-o", "json")
	if want := `"stopping":1,`; !strings.Contains(got.stdout, want) {
		t.Errorf("it says\n%s%s\nwant %s", got.stdout, got.stderr, want)
	}
	got = w.run(&late, "", "deployment", "activate", "b", "b", "--wait", "--for", "1s")
	if want := "not done after 1s: 1 of 1 run"; !strings.Contains(got.stderr, want) {
		t.Errorf("it says\n%s%s\nwant %s", got.stdout, got.stderr, want)
	}
}
