package examples_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
)

// A holder is a diegoctl that holds a lock, or waits for one.
type holder struct {
	cmd *exec.Cmd
	// epochs gets the epoch once the command runs, and is closed when neither
	// diegoctl nor its command is left.
	epochs chan int64
	said   chan string
}

// holdLock runs a command that says its epoch and its process id, and then does
// not end.
func holdLock(t *testing.T, diegoctl string, flags ...string) *holder {
	t.Helper()
	h := &holder{
		cmd:    exec.Command(diegoctl, append(flags, "lock", "hold", "router/dns", "--ttl", "5s", "--", "sh", "-c", "echo $DIEGO_LOCK_EPOCH; exec sleep 600")...),
		epochs: make(chan int64, 1), said: make(chan string, 100),
	}
	stdout, err := h.cmd.StdoutPipe()
	stderr, err2 := h.cmd.StderrPipe()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			h.said <- s.Text()
		}
		close(h.said)
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(h.epochs)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			var epoch int64
			fmt.Sscan(s.Text(), &epoch)
			h.epochs <- epoch
		}
	}()
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		<-ended
		_ = h.cmd.Wait()
	})
	return h
}

// await is what comes through a channel, or false if it is closed.
func await[T any](t *testing.T, what string, c <-chan T) (T, bool) {
	t.Helper()
	select {
	case v, ok := <-c:
		return v, ok
	case <-time.After(patience):
		t.Fatalf("not in %v: %s", patience, what)
		panic("unreachable")
	}
}

// Elsewhere than on Linux, a command outlives a diegoctl that is killed.
func TestOneOfTwoHoldersOfALockRunsItsCommandWhicheverBBSLeads(t *testing.T) {
	diegoctl := builtDiegoctl(t)
	c := newCertificates(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "diego.db")
	serve := func(name string) *process {
		return start(t, "bbs", append(c.issue(name, httpapi.BBSRole, httpapi.AuctioneerRole), "--store", store, "--leader-ttl", "2s")...)
	}
	leader := serve("bbs-1")
	leader.await("leading")
	standby := serve("bbs-2")
	cert, key, err := c.authority.Issue(devcerts.Request{File: "router", Name: "router", Units: []string{"diego-locker", "diego-lock:router/dns"}, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--bbs", leader.URL + "," + standby.URL, "--cert", cert, "--key", key, "--ca", c.authority.CA()}
	operator := c.bbs(httpapi.OperatorRole, leader.URL, standby.URL)
	locks := func() []bbs.Lock {
		t.Helper()
		list, err := operator.Locks(within(t), "")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}

	first := holdLock(t, diegoctl, flags...)
	epoch, _ := await(t, "the first one holds", first.epochs)
	if list := locks(); len(list) != 1 || list[0].Name != "router/dns" || list[0].Epoch != epoch {
		t.Errorf("there are %+v", list)
	}
	second := holdLock(t, diegoctl, flags...)
	if text, _ := await(t, "the second one waits", second.said); !strings.HasPrefix(text, "waiting for the lock router/dns, which ") {
		t.Errorf("the second one says %q", text)
	}

	// The leader dies. The lock is renewed at the other one.
	leader.kill()
	standby.await("leading")
	before := locks()[0]
	eventually(t, "the lock is renewed", func() (bool, error) {
		now := locks()
		if len(now) != 1 || now[0].Epoch != epoch {
			t.Fatalf("there are %+v", now)
		}
		return now[0].ExpiresAt.After(before.ExpiresAt), nil
	})
	select {
	case e := <-second.epochs:
		t.Fatalf("the second one holds, too, with epoch %d", e)
	default:
	}

	// The holder dies, and its command with it, before the other one holds.
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, runs := await(t, "the command of the first one ends", first.epochs); runs {
		t.Error("it says more")
	}
	after, _ := await(t, "the second one holds", second.epochs)
	if after <= epoch {
		t.Errorf("the epochs are %d and %d", epoch, after)
	}

	// One that is interrupted ends its command, and releases the lock.
	if err := second.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, runs := await(t, "the command of the second one ends", second.epochs); runs {
		t.Error("it says more")
	}
	await(t, "diegoctl ends", second.said)
	if list := locks(); len(list) > 0 {
		t.Errorf("there are %+v", list)
	}

	// A lock that the certificate does not name is refused.
	refused := exec.Command(diegoctl, append(flags, "lock", "hold", "other", "true")...)
	out, err := refused.CombinedOutput()
	if refused.ProcessState.ExitCode() != 7 || !strings.Contains(string(out), "diego-lock:other") {
		t.Errorf("%v: %s", err, out)
	}
}
