package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
)

const several = `
process_guid: a
domain: apps
root_fs: 'host:'
action: {run: {path: /bin/a, user: nobody}}
---
process_guid: b
domain: apps
instances: 1
root_fs: 'host:'
action: {run: {path: /bin/b, user: nobody}}
---
process_guid: c
domain: apps
root_fs: 'host:'
action: {run: {path: /bin/c, user: nobody}}
`

// failing is a BBS that loses the calls, or the answers, about one process.
type failing struct {
	bbs.API
	process string
	carries bool
}

var errLost = errors.New("the connection was lost")

func (f *failing) CreateDeployment(ctx context.Context, d lrp.DeploymentDefinition) error {
	if d.ProcessGUID != f.process {
		return f.API.CreateDeployment(ctx, d)
	}
	if f.carries {
		_ = f.API.CreateDeployment(ctx, d)
	}
	return errLost
}

func (f *failing) ActivateDefinition(ctx context.Context, guid, id string) error {
	if guid != f.process {
		return f.API.ActivateDefinition(ctx, guid, id)
	}
	return errLost
}

func (f *failing) DeleteDeployment(ctx context.Context, guid string) error {
	if guid != f.process {
		return f.API.DeleteDeployment(ctx, guid)
	}
	return errLost
}

func TestAFailureInTheMiddleSaysWhatIsDoneAndTheNextRunDoesTheRest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		carries bool
		rest    string
	}{
		{"a call that is lost", false, "b is created\nc is created\n"},
		{"an answer that is lost", true, "c is created\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			broken := *w.local()
			broken.bbs = &failing{broken.bbs, "b", tt.carries}
			got := w.run(&broken, several, "apply", "-f", "-")
			want := "diegoctl apply: b: the connection was lost\ndone before: a; not begun: c\nthe same command does the rest\n"
			if got.code != exitFailed || got.stderr != want {
				t.Errorf("it exits with %d and says\n%swant\n%s", got.code, got.stderr, want)
			}
			got = w.run(w.local(), several, "apply", "-f", "-", "--wait")
			if got.code != exitOK || !strings.Contains(got.stdout, tt.rest) || strings.Contains(got.stdout, "a is created") {
				t.Errorf("the next run exits with %d and says\n%s%s", got.code, got.stdout, got.stderr)
			}
			got = w.run(w.local(), several, "apply", "-f", "-")
			if got.code != exitOK || !strings.HasSuffix(got.stdout, "nothing to do\n") {
				t.Errorf("the third run exits with %d and says\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// Between the two calls of a rollout back, the settings are new already and the
// definition is not.
func TestARollbackThatWasCutOffGoesOn(t *testing.T) {
	w := newWorld(t)
	before := strings.ReplaceAll(several, "/bin/b", "/bin/before")
	for _, text := range []string{before, several} {
		if got := w.run(w.local(), text, "apply", "-f", "-", "--wait"); got.code != exitOK {
			t.Fatal(got)
		}
	}
	broken := *w.local()
	broken.bbs = &failing{API: broken.bbs, process: "b"}
	scaled := strings.ReplaceAll(before, "instances: 1", "instances: 2")
	if got := w.run(&broken, scaled, "apply", "-f", "-"); got.code != exitFailed {
		t.Errorf("it exits with %d and says\n%s", got.code, got.stdout)
	}
	got := w.run(w.local(), scaled, "apply", "-f", "-", "--wait")
	if got.code != exitOK || !strings.Contains(got.stdout, "b: roll out definition b, 2 instances\n") || strings.Contains(got.stdout, "instances: 1") {
		t.Errorf("it exits with %d and says\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestAProcessThatCannotBePrunedKeepsTheOthersUntilTheNextRun(t *testing.T) {
	w := newWorld(t)
	if got := w.run(w.local(), several, "apply", "-f", "-"); got.code != exitOK {
		t.Fatal(got)
	}
	line := []string{"apply", "-f", "-", "--domain", "apps", "--prune"}
	broken := *w.local()
	broken.bbs = &failing{API: broken.bbs, process: "a"}
	last := several[strings.LastIndex(several, "---"):]
	if got := w.run(&broken, last, line...); got.code != exitFailed || !strings.Contains(got.stderr, "done before: none; not begun: b\n") {
		t.Errorf("it exits with %d and says\n%s", got.code, got.stderr)
	}
	if got := w.run(w.local(), last, line...); got.code != exitOK || !strings.HasSuffix(got.stdout, "a is deleted\nb is deleted\n") {
		t.Errorf("it exits with %d and says\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestWhatAContainerSaysCannotMoveTheCursorOfApply(t *testing.T) {
	w := newWorld(t)
	if got := w.run(w.local(), several, "apply", "-f", "-", "--wait"); got.code != exitOK {
		t.Fatal(got)
	}
	w.do([]string{"crash", "b", "0", "\x1b[2Jgone"})
	got := w.run(w.local(), several, "apply", "-f", "-", "--wait")
	if got.code != exitOK || !strings.Contains(got.stdout, "gone") || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("it exits with %d and says\n%q", got.code, got.stdout)
	}
}
