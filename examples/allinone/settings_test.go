package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/syslogtest"
	"github.com/diegosdk/diego/rep"
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

// operatorTLS is what a client has that asks as the user of a fleet.
func operatorTLS(t *testing.T, api fleetdir.API) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(api.Operator.CA)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(api.Operator.Cert, api.Operator.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// running is a fleet with one cell of plain processes, which ends with the test.
func running(t *testing.T, data string, flags ...string) *fleet {
	t.Helper()
	s := new(settings)
	if err := daemon.Load(s, append([]string{"--data", data, "--listen", "127.0.0.1:0", "--cells", "1", "--backend", "process"}, flags...)); err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), s, nil)
	stop, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		end()
		running.Wait()
		if _, err := f.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = f.lead(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { f.run(stop, context.Background()) })
	return f
}

func TestLogsOfTheCellsOfAFleetAreLimitedAsTheirSettingsAndDefinitionsSay(t *testing.T) {
	data := t.TempDir()
	f := running(t, data, "--max-subscriptions-each", "1", "--cell-log-segment-bytes", "4096", "--cell-log-segments", "1",
		"--cell-ended-logs", "1", "--cell-ended-log-bytes", "100")
	api, err := fleetdir.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	cell, err := httpapi.NewRemoteCell(httpapi.ClientOptions{
		TLS: operatorTLS(t, api), Addresses: []string{f.cells[0].service.url()}, CellID: "cell-1", Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	eventually := func(what string, ask func() bool) {
		t.Helper()
		for !ask() {
			select {
			case <-ctx.Done():
				t.Fatal("not in time: " + what)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	read := func(instance string) (text string, err error) {
		for chunk, err := range cell.Logs(ctx, rep.LogRequest{ContainerGUID: instance}) {
			if err != nil {
				return text, err
			}
			text += string(chunk.Data)
		}
		return text, nil
	}
	// writes starts a task that writes 10,000 bytes and stays.
	writes := func(guid string, limit *executor.LogRateLimit) (instance string) {
		t.Helper()
		if err := f.BBS.DesireTask(ctx, task.Desire{GUID: guid, Domain: "apps", Definition: task.Definition{
			Resources: executor.Resources{MemoryMB: 64},
			RunInfo: executor.RunInfo{RootFS: "host:", LogRateLimit: limit, Action: executor.Action{Run: &executor.RunAction{
				Path: "/bin/sh", Args: []string{"-c", "i=0; while [ $i -lt 1000 ]; do echo line $((1000+i)); i=$((i+1)); done; exec sleep 1000"}, User: "nobody",
			}}},
		}}); err != nil {
			t.Fatal(err)
		}
		eventually(guid+" runs", func() bool {
			task, err := f.BBS.Task(ctx, guid)
			if err != nil {
				t.Fatal(err)
			}
			instance = task.InstanceGUID
			return instance != ""
		})
		return instance
	}

	much, slow := writes("much", nil), writes("slow", &executor.LogRateLimit{BytesPerSecond: 100})
	var text string
	eventually("the end is in the log", func() bool {
		text, _ = read(much)
		return strings.HasSuffix(text, "line 1999\n")
	})
	if len(text) > 2*4096 {
		t.Errorf("%d bytes are kept of a log that has one file of 4096", len(text))
	}
	eventually("the log says that there is a limit", func() bool {
		text, _ = read(slow)
		return strings.Contains(text, "bytes dropped: more than 100 bytes per second")
	})
	if n := strings.Count(text, "line "); n > 500 {
		t.Errorf("%d of 1000 lines are kept, of which 10 are allowed per second", n)
	}

	follow := rep.LogRequest{ContainerGUID: much, Follow: true}
	for _, err := range cell.Logs(ctx, follow) {
		if err != nil {
			t.Errorf("the first log: %v", err)
		}
		for _, err := range cell.Logs(ctx, follow) {
			if many := (*problem.TooManyError)(nil); !errors.As(err, &many) || many.Limit != 1 {
				t.Errorf("the second log at once: %v", err)
			}
			break
		}
		break
	}

	for _, guid := range []string{"slow", "much"} {
		if err := f.BBS.CancelTask(ctx, guid); err != nil {
			t.Fatal(err)
		}
		eventually("the container is gone", func() bool {
			task, err := f.BBS.Task(ctx, guid)
			return err == nil && task.State.String() == "COMPLETED" && len(f.cells[0].Manager.List()) == map[string]int{"slow": 1}[guid]
		})
	}
	if text, err := read(much); len(text) > 100 || !strings.HasSuffix(text, "line 1999\n") || err != nil {
		t.Errorf("of the container that is gone are kept %q, %v", text, err)
	}
	if text, err := read(slow); err == nil {
		t.Errorf("of the one before are kept %q", text)
	}
}

func TestCellsOfAFleetMountVolumesAndForwardLogsAsTheirSettingsSay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	root := filepath.Join(t.TempDir(), "volumes")
	f := running(t, t.TempDir(), "--cell-volume-root", root, "--cell-log-forward", "syslog-tcp://"+l.Addr().String())
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
