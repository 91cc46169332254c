package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage/memstore"
)

// A fleet is a real Diego: a control plane and cells of plain processes, each
// behind a server of its own, in real time.
type fleet struct {
	t   *testing.T
	url string
}

// newFleet runs one until the test ends.
func newFleet(t *testing.T, cells int) *fleet {
	t.Helper()
	f := &fleet{t: t}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	serve := func(o httpapi.HandlerOptions) (url string) {
		o.AllowPlain = true
		h, err := httpapi.NewHandler(o)
		must(err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(err)
		running.Go(func() { _ = daemon.Serve(ctx, l, h, nil, log) })
		return "http://" + l.Addr().String()
	}
	store := memstore.New(nil)
	plane, err := diego.New(diego.Options{
		Store: store, Dial: httpapi.Dial(httpapi.ClientOptions{AllowPlain: true}), Owner: "plane", Guard: converge.Guard{Grace: -1},
	})
	must(err)
	f.url = serve(httpapi.HandlerOptions{BBS: plane.BBS, Convergence: plane, Auctioneer: plane})
	for i := range cells {
		id := fmt.Sprintf("cell-%d", i+1)
		dir := t.TempDir()
		backend, err := daemon.OpenBackend(ctx, daemon.BackendOptions{Kind: daemon.ProcessBackend, Dir: dir})
		must(err)
		m, err := manager.New(ctx, manager.Options{
			Backend: backend.ContainerBackend, Dir: dir + "/manager", Capacity: executor.Capacity{MemoryMB: 256, DiskMB: 256}, Grace: 5 * time.Second,
		})
		must(err)
		// The address is known once the cell is served, and the cell says it.
		cell := &localcell.Cell{Manager: m}
		url := serve(httpapi.HandlerOptions{Cell: cell})
		announcer, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
			Store: store, Owner: id,
			Presence: bbs.CellPresence{CellID: id, Address: url, Capacity: m.Total(), RootFSProviders: []string{"host"}},
		})
		must(err)
		made, err := localcell.New(m, rep.Options{CellID: id, BBS: plane.BBS, Announcer: announcer, RootFSProviders: []string{"host"}})
		must(err)
		*cell = *made
		must(announcer.Tick(ctx))
		managing, stopManaging := context.WithCancel(context.Background())
		managed := make(chan struct{})
		go func() { defer close(managed); m.Run(managing) }()
		running.Go(func() { _ = cell.Rep.Run(ctx) })
		t.Cleanup(func() {
			cancel()
			running.Wait()
			stopManaging()
			<-managed
			if err := m.Clear(context.Background()); err != nil {
				t.Error(err)
			}
			if err := backend.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Go(func() { _ = plane.Run(ctx) })
	return f
}

// run carries out a command line as main does.
func (f *fleet) run(line string) ran {
	var out, errs bytes.Buffer
	code := run(context.Background(), split(line), f.process(&out, &errs))
	return ran{out.String(), errs.String(), code}
}

func (f *fleet) process(stdout, stderr io.Writer) *process {
	env := map[string]string{"DIEGO_BBS": f.url}
	return &process{
		stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, env: func(name string) string { return env[name] },
		now: time.Now, after: time.After, dial: dialHTTP,
	}
}

// ok carries out a command line that succeeds.
func (f *fleet) ok(line string) string {
	f.t.Helper()
	r := f.run(line)
	if r.code != exitOK {
		f.t.Fatalf("%s exits with %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// shows carries out a command line until it shows a text.
func (f *fleet) shows(line, text string) {
	f.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		r := f.run(line)
		if strings.Contains(r.stdout, text) {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s never shows %q but\n%s%s", line, text, r.stdout, r.stderr)
		}
	}
}

func TestAnOperatorCanDoEverythingWithARealFleet(t *testing.T) {
	f := newFleet(t, 2)
	f.shows("cells", "cell-2  -     ready")
	// The first leader leads after a moment; clients wait for it.
	f.ok("lrp create -f ../specs/greeter.json --wait --for 30s")
	f.shows("logs greeter 0", "hello from instance 0")
	f.shows("logs greeter", "greeter/1  hello from instance 1")

	out, errs := new(testenv.Output), new(testenv.Output)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, split("logs greeter 1 --follow"), f.process(out, errs)) }()
	out.Await(t, "hello from instance 1")

	// The log goes on in the container that comes after a restart.
	f.ok("lrp restart-instance greeter 1")
	errs.Await(t, "--- greeter/1 goes on in container")
	f.shows("logs greeter/1 --previous", "hello from instance 1")
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("following a log ends with %d", code)
	}

	got := f.ok("task run -f ../specs/task.json --wait --for 30s -o json")
	var task struct{ State, Result string }
	if err := json.Unmarshal([]byte(got), &task); err != nil || task.State != "COMPLETED" || task.Result != "42\n" {
		t.Errorf("%v: the task is %s", err, got)
	}
	f.ok("task delete sum")

	// The log of a task stays when its container goes, and when its record does.
	f.ok("task run -f " + slowTask(t))
	f.shows("logs slow", "adding up")
	f.ok("task cancel slow")
	f.shows("task get slow", "cancelled")
	f.shows("logs slow", "adding up")
	f.ok("task delete slow")
	f.shows("logs slow", "adding up")

	f.ok("apply -f ../specs/deployment.json --wait --for 30s")
	f.shows("logs greeter 2", "a very good day from instance 2")
	got = f.ok("timeline greeter 0")
	for _, want := range []string{"rollout from definition greeter to politely", "placed on cell-", ": score 0."} {
		if !strings.Contains(got, want) {
			t.Errorf("the timeline does not say %q:\n%s", want, got)
		}
	}

	if r := f.run("plan -f ../specs/greeter.json --instances 100"); r.code != exitFailed || !strings.Contains(r.stdout, "short of memory; the nearest, cell-") {
		t.Errorf("a plan for too much says %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	f.ok("drain cell-1 --wait --for 30s")
	f.shows("instances --cell cell-1", "there is no instance")
	f.shows("instances --cell cell-2 --state RUNNING", "greeter/2")

	f.ok("converge")
	f.ok("lrp delete greeter")
	f.shows("instances", "there is no instance")
	if got := f.ok("events --kind task_created -o json"); strings.Count(got, "\n") != 2 {
		t.Errorf("two tasks were made, and the events say\n%s", got)
	}
}

// slowTask is a file with a task that writes a line and goes on.
func slowTask(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slow.json")
	spec := `{"task_guid": "slow", "domain": "examples", "memory_mb": 32, "disk_mb": 16, "root_fs": "host:",
		"action": {"run": {"path": "/bin/sh", "args": ["-c", "echo adding up; exec sleep 1000"], "user": "nobody"}}}`
	if err := os.WriteFile(path, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
