package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/syslogtest"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for listen, allowed := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:8889": true, "localhost:1": true, "127.8.9.10:1": true,
		"0.0.0.0:1": false, ":8889": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false, "": false,
	} {
		var s settings
		err := daemon.Load(&s, []string{"--listen", listen})
		if (err == nil) != allowed {
			t.Errorf("--listen %q: %v", listen, err)
		}
		if want := "want an address of this machine alone"; err != nil && listen != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("--listen %q: %v", listen, err)
		}
	}
}

func TestTheDataIsWhereItIsSaidOrWhereDiegoctlLooks(t *testing.T) {
	for data, want := range map[string]string{"": fleetdir.Default(), "here": "here"} {
		if got := (&settings{Data: data}).data(); got != want {
			t.Errorf("--data %q: %q, want %q", data, got, want)
		}
	}
}

func TestSettingsOfTheDaemonsHoldForTheFleetToo(t *testing.T) {
	s := new(settings)
	if err := daemon.Load(s, []string{
		"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--cells", "1", "--backend", "process", "--cell-presence-ttl", "9m", "--max-subscriptions", "1",
	}); err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), s, nil)
	defer f.close(t.Context())
	if err == nil {
		err = f.lead(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	now, err := f.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for lease, err := range f.store.Leases(t.Context(), storage.CellLease) {
		if left := lease.ExpiresAt.Sub(now); err != nil || left < 8*time.Minute {
			t.Errorf("the presence of %s lasts %v, %v", lease.Name, left, err)
		}
	}

	err = daemon.Load(new(settings), []string{"--max-restarts", "0", "--cell-grace", "0s", "--min-backoff", "1h"})
	for _, want := range []string{"max_restarts: 0: want", "--cell-grace: 0s: want", "min_backoff: 1h0m0s: want"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestHelpDescribesTheSettingsOfDaemonsOnlyWhenAllAreAskedFor(t *testing.T) {
	for flag, want := range map[string]struct {
		err  error
		all  bool
		line int
	}{"-h": {daemon.ErrHelp, false, 40}, "--help-all": {daemon.ErrHelpAll, true, 250}} {
		var b strings.Builder
		if err := daemon.Load(new(settings), []string{flag}); !errors.Is(err, want.err) {
			t.Errorf("%s: %v", flag, err)
		}
		daemon.Help(&b, "allinone", summary, new(settings), want.all)
		text := b.String()
		if n := strings.Count(text, "\n"); n > want.line {
			t.Errorf("%s prints %d lines, want at most %d", flag, n, want.line)
		}
		if strings.Contains(text, "--cell-grace ") != want.all || strings.Contains(text, "--help-all describes:\n  convergence ") == want.all {
			t.Errorf("%s prints\n%s", flag, text)
		}
	}
}

func TestCellsOfAFleetMountVolumesAndForwardLogsAsTheirSettingsSay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	root := filepath.Join(t.TempDir(), "volumes")
	s := new(settings)
	if err := daemon.Load(s, []string{
		"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--cells", "1", "--backend", "process",
		"--cell-volume-root", root, "--cell-log-forward", "syslog-tcp://" + l.Addr().String(),
	}); err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), s, nil)
	stop, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() {
		end()
		running.Wait()
		if _, err := f.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err == nil {
		err = f.lead(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { f.run(stop, t.Context()) })
	script := "echo kept > mnt/file && echo heard"
	if err := f.BBS.DesireTask(t.Context(), task.Desire{GUID: "writer", Domain: "apps", Definition: task.Definition{
		Resources: executor.Resources{MemoryMB: 64},
		RunInfo: executor.RunInfo{
			RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", script}, User: "nobody"}},
			VolumeMounts: []executor.VolumeMount{{Driver: "local", ContainerDir: "/mnt", Mode: executor.MountReadWrite, Shared: &executor.SharedDevice{VolumeID: "v"}}},
		},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(conn); ; {
		m, err := syslogtest.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(m.Text) == "heard" {
			break
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "v", "file")); string(text) != "kept\n" || err != nil {
		t.Errorf("the volume holds %q, %v", text, err)
	}
}

func TestSettingsOfVolumesAndLogsOfAFleetThatCannotBeAreNamed(t *testing.T) {
	for flag, want := range map[string]string{
		"--cell-volume-plugins=sample=/x.sock": `cell_volume_plugins: sample=/x.sock: want another name than "sample"`,
		"--cell-volume-plugins=local=/x.sock":  `cell_volume_plugins: local=/x.sock: want another name than "local"`,
		"--cell-volume-exports-writable=a":     `cell_volume_exports_writable: a: want names from volume_exports`,
		"--cell-log-forward=gopher://x":        `cell_log_forward: gopher://x: want syslog-tls`,
	} {
		if err := daemon.Load(new(settings), []string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", flag, err, want)
		}
	}
}

// taken is an address that somebody listens at.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
