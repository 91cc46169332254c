//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
)

// eachBackend runs a test with plain processes and with real containers.
func eachBackend(t *testing.T, test func(t *testing.T, backend string)) {
	for _, backend := range []string{daemon.ProcessBackend, daemon.RealBackend} {
		t.Run(backend, func(t *testing.T) {
			if backend == daemon.RealBackend {
				needRealContainers(t)
			}
			test(t, backend)
		})
	}
}

func needRealContainers(t *testing.T) {
	t.Helper()
	b, err := daemon.OpenBackend(t.Context(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: t.TempDir()})
	if err != nil {
		testenv.Missing(t, "a host for real containers", err.Error())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFleetGoesOnWhateverHappensToIt(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		data := t.TempDir()
		args := []string{"--data", data, "--backend", backend}

		p := start(t, args...)
		p.wait("containers", backend+": ")
		p.wait("sample ", "desired: 3 instances")
		p.says("task primes", `succeeded: "664579 primes below 10000000"`)
		if p.last("sample/0", "placed on cell-") == "" {
			t.Error("it has not said where sample/0 was placed")
		}
		p.wait("3 running")
		for i := range 3 {
			if got := ask(t, "GET", p.address(i)); !strings.HasPrefix(got, fmt.Sprintf("Hello from instance %d, ", i)) {
				t.Errorf("sample/%d answers %q", i, got)
			}
		}
		if runtime.GOOS == "linux" { // elsewhere nothing says which process it is
			var pid int
			if _, err := fmt.Sscanf(strings.TrimSpace(p.wait("kill -9 ", "kill sample/1")), "kill -9 %d", &pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.wait("sample/1", "crashed: ", "killed by signal 9", "(crash 1, restarts at once)")
			p.wait("sample/1", "restarted after crash 1: runs on")
			if got := ask(t, "GET", p.address(1)); !strings.HasPrefix(got, "Hello from instance 1, ") {
				t.Errorf("sample/1 answers %q", got)
			}
		}
		interrupt(t, p)
		nothingIsLeft(t, data)

		p = start(t, args...)
		p.wait("3 running")
		if crashed := p.last("crashed"); crashed != "" {
			t.Errorf("what was stopped counts as crashed: %s", crashed)
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.ends(-1)

		p = start(t, args...)
		p.wait("3 running")
		if crashed := p.last("crashed"); crashed != "" {
			t.Errorf("what died with the process counts as crashed: %s", crashed)
		}
		for i := range 3 {
			ask(t, "GET", p.address(i))
		}
		for crash := 1; crash <= 3; crash++ {
			ask(t, "POST", p.address(2)+"/exit/3")
			p.wait("sample/2", "crashed: ", "exit status 3", fmt.Sprintf("(crash %d, restarts at once)", crash))
			p.wait("sample/2", fmt.Sprintf("restarted after crash %d: runs on", crash))
		}
		ask(t, "POST", p.address(2)+"/exit/3")
		p.wait("sample/2", "exit status 3 (crash 4); back-off until ", ", for 1m0s")
		interrupt(t, p)
		nothingIsLeft(t, data)
	})
}

func TestAStartWithFewerCellsEndsWhatTheOthersHaveLeft(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		data := t.TempDir()
		p := start(t, "--data", data, "--backend", backend)
		p.wait("3 running")
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.ends(-1)

		p = start(t, "--data", data, "--backend", backend, "--cells", "1")
		for _, former := range []string{"cell-2", "cell-3"} {
			p.wait(former, "not one of these cells any more", "was ended (containers: ")
			noProcessOf(t, data+"/"+former)
		}
		// Nobody has to wait until the presences of the others have run out.
		p.wait("3 running")
		if doubted := p.last("not believed"); doubted != "" {
			t.Error(doubted)
		}
		for i := range 3 {
			ask(t, "GET", p.address(i))
		}
		interrupt(t, p)
		nothingIsLeft(t, data)

		p = start(t, "--data", data, "--backend", backend, "--cells", "1")
		p.wait("3 running")
		if said := p.last("not one of these cells"); said != "" {
			t.Errorf("where nothing was left it says %s", said)
		}
		interrupt(t, p)
	})
}

// interrupt presses Ctrl-C once.
func interrupt(t *testing.T, p *program) {
	t.Helper()
	before := p.last("crashed")
	p.signal(syscall.SIGINT)
	p.wait("stopping")
	p.wait("stopped; nothing runs any more")
	p.ends(0)
	if after := p.last("crashed"); after != before {
		t.Errorf("it ended in disorder: %s", after)
	}
}

func TestASecondCtrlCForcesTheEnd(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		data := t.TempDir()
		stubborn := data + "/stubborn.json"
		if err := os.WriteFile(stubborn, []byte(`{
			"process_guid": "stubborn", "domain": "tests", "instances": 1, "root_fs": "host:",
			"action": {"run": {"path": "/bin/sh", "args": ["-c", "trap '' TERM; while :; do sleep 1; done"], "user": "root"}}
		}`), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, "--data", data, "--backend", backend, "--cells", "1", "--no-sample", "--lrp", stubborn)
		p.wait("stubborn/0", "runs on cell-1")
		p.wait("1 running")
		began := time.Now()
		p.signal(syscall.SIGINT)
		p.wait("stopping")
		p.signal(syscall.SIGINT)
		p.ends(130)
		if took := time.Since(began); took >= 10*time.Second {
			t.Errorf("it took %v, the whole grace", took)
		}
		nothingIsLeft(t, data)
	})
}

func TestAChangedFileIsRolledOutAtTheNextStart(t *testing.T) {
	data := t.TempDir()
	file := data + "/app.json"
	args := []string{"--data", data, "--backend", daemon.ProcessBackend, "--cells", "1", "--no-sample", "--lrp", file}
	for i, c := range []struct{ instances, argument, policy, want string }{
		{"1", "1000", `{}`, "desired: 1 instance"},
		{"1", "1000", `{}`, ""},
		{"1", "1000", `{"max_in_flight": 1}`, ""}, // means the same
		{"2", "1000", `{}`, "scaled from 1 instance to 2"},
		{"2", "1001", `{}`, "rollout from definition app to "},
	} {
		text := fmt.Sprintf(`{"process_guid": "app", "domain": "tests", "instances": %s, "rollout_policy": %s, "root_fs": "host:",
			"action": {"run": {"path": "sleep", "args": [%q], "user": "root"}}}`, c.instances, c.policy, c.argument)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, args...)
		if c.want != "" {
			p.wait(" app  ", c.want)
		}
		p.wait(c.instances + " running")
		if changed := p.last("rollout from"); i < 4 && changed != "" {
			t.Errorf("start %d: %s", i, changed)
		}
		if changed := p.last(" app  ", "updated"); changed != "" {
			t.Errorf("start %d: %s", i, changed)
		}
		interrupt(t, p)
	}
	if err := os.WriteFile(file, []byte(`{"process_guid": "app", "domain": "other", "instances": 1, "root_fs": "host:",
		"action": {"run": {"path": "sleep", "args": ["1000"], "user": "root"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, args...)
	p.wait(`app is there with domain "tests"`, "cannot change")
	p.ends(daemon.ExitFailed)
	nothingIsLeft(t, data)
}
