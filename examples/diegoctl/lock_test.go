package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
)

func TestACommandRunsWhileItsLockIsHeldAndItsCodeIsTheAnswer(t *testing.T) {
	for _, r := range []func(*world) *remote{(*world).local, (*world).overHTTP} {
		w := newWorld(t)
		to := r(w)
		for epoch, c := range []struct {
			script, stdout, stderr string
			code                   int
		}{
			{`cat; echo $DIEGO_LOCK $DIEGO_LOCK_EPOCH`, "input\nnightly 1\n", "", exitOK},
			{`echo $DIEGO_LOCK_EPOCH; echo wrong >&2; exit 7`, "2\n", "wrong\n", 7},
			{`kill -9 $$`, "", "diegoctl lock hold: signal: killed\n", exitFailed},
		} {
			got := w.run(to, "input\n", "lock", "hold", "nightly", "--", "sh", "-c", c.script)
			if got != (ran{c.stdout, c.stderr, c.code}) {
				t.Errorf("command %d: %+v", epoch+1, got)
			}
		}
		if got := w.run(to, "", "lock", "list"); got.stdout != "no lock is held\n" {
			t.Errorf("afterwards %+v", got)
		}
		if got := w.run(to, "", "lock", "hold", "nightly", "no-such-command"); got.code != exitFailed || !strings.Contains(got.stderr, `"no-such-command"`) {
			t.Errorf("a command that does not exist: %+v", got)
		}
	}
}

// lossy locks are lost at the first renewal after the file is there.
type lossy struct {
	bbs.LocksAPI
	after string
}

func (k lossy) RenewLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	if _, err := os.Stat(k.after); err != nil {
		return k.LocksAPI.RenewLock(ctx, l, ttl)
	}
	return bbs.Lock{}, &bbs.LockLostError{Name: "nightly", Epoch: 1}
}

func TestACommandEndsWithItsLock(t *testing.T) {
	w := newWorld(t)
	for name, script := range map[string]string{
		"it ends when it is asked to": `trap 'echo asked; exit 3' TERM; >"$0"; while :; do sleep 0.01; done`,
		"it does not end by itself":   `trap '' TERM; echo asked; >"$0"; while :; do sleep 0.01; done`,
	} {
		to, ready := *w.local(), filepath.Join(t.TempDir(), "ready")
		to.locks = lossy{to.locks, ready}
		got := w.run(&to, "", "lock", "hold", "nightly", "--ttl", "4s", "--", "sh", "-c", script, ready)
		if got.code != exitRefused || got.stdout != "asked\n" || !strings.Contains(got.stderr, `lock "nightly" with epoch`) || !strings.Contains(got.stderr, "the command was ended with it") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
