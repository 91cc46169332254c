package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A world is a Diego in virtual time: a control plane over a store in memory,
// and cells that are models. Nothing happens in it but what its methods do.
type world struct {
	t     testing.TB
	plane *diego.ControlPlane
	clock *tickless
	store *memstore.Store
	cells memcell.Fleet
	// silent cells do not answer operators.
	silent map[string]bool
	// cut cells end the connection of the next reader of a log, after a piece. They are
	// reached over HTTP.
	cut map[string]bool
	// gone cells are not present any more.
	gone map[string]bool

	mu sync.Mutex
	// output is what containers have written, by their guids.
	output map[string]string
	// used is what containers use, by their guids.
	used   map[string]rep.ContainerUsage
	timers []timer
	// frames is how many pauses a command may take before it is interrupted,
	// and later what happens when so many are left.
	frames int
	later  map[int][]string
	cancel context.CancelFunc
	// terminal and width are those of standard output.
	terminal bool
	width    int
}

type timer struct {
	at time.Time
	c  chan time.Time
}

// A tickless clock stands still until it is advanced. Unlike the clock of a
// simulation, it may be read meanwhile, as followers of events do.
type tickless struct {
	mu  sync.Mutex
	now time.Time
}

func (c *tickless) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *tickless) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newWorld(t testing.TB) *world {
	t.Helper()
	start := memcell.NewClock()
	w := &world{t: t, clock: &tickless{now: start.Now()}, silent: map[string]bool{}, cut: map[string]bool{}, gone: map[string]bool{}, output: map[string]string{}, used: map[string]rep.ContainerUsage{}, later: map[int][]string{}}
	w.store = memstore.New(&memstore.Options{Now: w.clock.Now})
	w.cells = memcell.NewFleet(3, start)
	for _, c := range w.cells {
		c.Now = w.clock.Now
		c.Presence.RootFSProviders = []string{"host"}
		c.Presence.Capacity.MemoryMB, c.Presence.Capacity.DiskMB, c.Presence.Capacity.Containers = 1024, 4096, 20
		c.StartsIn, c.TaskTakes = time.Second, 5*time.Second
	}
	w.cells[2].Presence.Zone = "z2"
	var err error
	if w.plane, err = diego.New(diego.Options{
		Store: w.store, Dial: w.cells.Dial, Owner: "plane-1", Now: w.clock.Now, Concurrency: 1, Guard: converge.Guard{Grace: -1},
	}); err != nil {
		t.Fatal(err)
	}
	w.cells.ReportTo(w.plane.BBS)
	w.step()
	return w
}

// step lets everybody do once what is due.
func (w *world) step() {
	w.t.Helper()
	ctx := context.Background()
	for _, c := range w.cells {
		if !w.gone[c.Presence.CellID] {
			w.must(c.Announce(ctx, w.store))
		}
	}
	w.must(w.plane.Tick(ctx))
	w.cells.Step(ctx)
	w.cells.Poll(ctx)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass, in steps of a second.
func (w *world) pass(d time.Duration) {
	for range int(d / time.Second) {
		w.clock.Advance(time.Second)
		w.step()
	}
}

// after is the pause of a process in this world: time passes at once, but for
// long pauses, which are limits.
func (w *world) after(d time.Duration) <-chan time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan time.Time, 1)
	if d > 10*time.Second {
		w.timers = append(w.timers, timer{w.clock.Now().Add(d), c})
		return c
	}
	if d < time.Second {
		c <- w.clock.Now()
		return c
	}
	w.pass(d)
	for _, t := range w.timers {
		if !t.at.After(w.clock.Now()) {
			select {
			case t.c <- w.clock.Now():
			default:
			}
		}
	}
	w.frames--
	if words := w.later[w.frames]; words != nil {
		delete(w.later, w.frames)
		w.do(words)
	}
	if w.frames == 0 {
		w.cancel()
	}
	c <- w.clock.Now()
	return c
}

// A ran command is what came of it.
type ran struct {
	stdout, stderr string
	code           int
}

// run carries out a command line in this process.
func (w *world) run(r *remote, stdin string, line ...string) ran {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, errs bytes.Buffer
	w.mu.Lock()
	w.cancel, w.timers = cancel, nil
	w.mu.Unlock()
	code := run(ctx, line, &process{
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, env: func(string) string { return "" },
		terminal: w.terminal, stderrTerminal: w.terminal, width: w.width, now: w.clock.Now, after: w.after, dial: func(connection) (*remote, error) { return r, nil }, examine: examineModel,
	})
	return ran{out.String(), errs.String(), code}
}

// examineModel is what two hosts can do: the directories are theirs.
func examineModel(_ context.Context, dir string) daemon.Examination {
	if dir == "/var/lib/diego" {
		return daemon.Examination{RealContainers: true, Verdict: "this host runs real containers", Findings: []daemon.Finding{
			{Name: "kernel", State: daemon.FindingOK, Found: "Linux 6.12.48, amd64"},
			{Name: "disk limit", State: daemon.FindingLacking, Help: "mkfs.ext4 is missing; install e2fsprogs"},
			{Name: "a trial container", State: daemon.FindingOK, Found: "made, started in and deleted"},
		}}
	}
	return daemon.Examination{Verdict: "this host cannot run real containers: run as root", Findings: []daemon.Finding{
		{Name: "rights", State: daemon.FindingFatal, Found: "no CAP_SYS_ADMIN", Help: "run as root"},
	}}
}

// local is this world without a network.
func (w *world) local() *remote {
	return &remote{bbs: w.plane.BBS, locks: bbs.NewLocks(w.store), auctioneer: w.plane, convergence: w.plane, cell: func(p bbs.CellPresence) (rep.API, error) {
		return w.cell(p.CellID), nil
	}}
}

// overHTTP is this world through real servers, one for the control plane and
// one for each cell.
func (w *world) overHTTP() *remote {
	serve := func(o httpapi.HandlerOptions) string {
		o.AllowPlain = true
		h, err := httpapi.NewHandler(o)
		w.must(err)
		server := httptest.NewUnstartedServer(h)
		ctx, cancel := context.WithCancel(context.Background())
		server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
		server.Start()
		w.t.(*testing.T).Cleanup(func() { cancel(); server.Close() })
		return server.URL
	}
	plane := serve(httpapi.HandlerOptions{BBS: w.plane.BBS, Convergence: w.plane, Locks: bbs.NewLocks(w.store), Auctioneer: w.plane})
	addresses := map[string]string{}
	for _, c := range w.cells {
		addresses[c.Presence.CellID] = serve(httpapi.HandlerOptions{Cell: w.cell(c.Presence.CellID)})
	}
	r, err := dialHTTP(connection{bbs: []string{plane}, auctioneer: []string{plane}, timeout: 30 * time.Second})
	w.must(err)
	dial := r.cell
	r.cell = func(p bbs.CellPresence) (rep.API, error) {
		p.Address = addresses[p.CellID]
		return dial(p)
	}
	return r
}

func (w *world) cell(id string) rep.API {
	for _, c := range w.cells {
		if c.Presence.CellID == id {
			return &operated{c, w}
		}
	}
	w.t.Fatalf("there is no cell %s", id)
	return nil
}

// An operated cell also answers what operators ask.
type operated struct {
	*memcell.Cell
	w *world
}

var errSilent = errors.New("the cell does not answer")

// State implements [rep.API].
func (o *operated) State(ctx context.Context) (auction.CellState, error) {
	if o.w.silent[o.Presence.CellID] {
		return auction.CellState{}, errSilent
	}
	return o.Cell.State(ctx)
}

// Evacuation implements [rep.API].
func (o *operated) Evacuation(ctx context.Context) (rep.EvacuationStatus, error) {
	if o.w.gone[o.Presence.CellID] {
		return rep.EvacuationStatus{}, errSilent
	}
	s, err := o.Cell.Evacuation(ctx)
	if s.Evacuating && !s.Done {
		s.Waiting = []string{"greeter/1: its replacement has been asked for"}
	}
	return s, err
}

// Usages implements [rep.Meter].
func (o *operated) Usages(ctx context.Context) (list []rep.ContainerUsage, err error) {
	if o.w.silent[o.Presence.CellID] {
		return nil, context.DeadlineExceeded
	}
	containers, err := o.Containers(ctx)
	for _, c := range containers {
		if used, measured := o.w.used[c.GUID]; measured {
			u := rep.UsageOf(c.GUID, "", c.Tags, c.Resources, executor.Usage{MemoryBytes: used.MemoryBytes, DiskBytes: executor.Unknown, PIDs: 2, ReceivedBytes: executor.Unknown})
			u.Cores, u.SentPerSecond = used.Cores, 2048
			list = append(list, u)
		}
	}
	return list, err
}

// Logs implements [rep.API]. Following ends when the container is gone.
func (o *operated) Logs(ctx context.Context, r rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(yield func(rep.LogChunk, error) bool) {
		o.w.mu.Lock()
		text, ok := o.w.output[r.ContainerGUID+" "+r.Stream]
		o.w.mu.Unlock()
		if !ok {
			yield(rep.LogChunk{}, &storage.NotFoundError{Key: storage.TaskKey(r.ContainerGUID)})
			return
		}
		// In pieces that end nowhere in particular.
		for at := int(r.From); at < len(text); at += 7 {
			end := min(at+7, len(text))
			chunk := rep.LogChunk{Next: int64(end), Data: []byte(text[at:end])}
			if at == int(r.From) {
				chunk.Labels = &rep.LogLabels{Source: "APP", InstanceGUID: r.ContainerGUID, Stream: r.Stream, Tags: map[string]string{"colour": "\x1bblue"}}
			}
			if !yield(chunk, nil) {
				return
			}
			o.w.mu.Lock()
			cut := o.w.cut[o.Presence.CellID]
			delete(o.w.cut, o.Presence.CellID)
			o.w.mu.Unlock()
			if cut {
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// do carries out a line of a session that is about the world.
func (w *world) do(words []string) {
	w.t.Helper()
	switch words[0] {
	case "pass":
		d, err := time.ParseDuration(words[1])
		w.must(err)
		w.pass(d)
	case "crash": // PROCESS INDEX REASON...
		var index int
		fmt.Sscan(words[2], &index)
		hit := false
		for _, c := range w.cells {
			hit = c.Crash(words[1], index, strings.Join(words[3:], " ")) || hit
		}
		if !hit {
			w.t.Fatalf("no cell has %s/%d", words[1], index)
		}
		w.cells.Step(context.Background())
	case "crash-of": // PROCESS DEFINITION REASON...: what runs of it
		hit := false
		for r, err := range w.store.ActualLRPs(context.Background(), storage.ActualLRPFilter{ProcessGUIDs: words[1:2], States: []lrp.State{lrp.Running}}) {
			if w.must(err); r.DefinitionID == words[2] {
				hit = w.find(r.CellID).End(r.InstanceGUID, executor.Failed(strings.Join(words[3:], " "))) || hit
			}
		}
		if !hit {
			w.t.Fatalf("nothing of %s runs", words[2])
		}
		w.cells.Step(context.Background())
	case "full": // CELL: it has no memory
		w.find(words[1]).Presence.Capacity.MemoryMB = 16
	case "silent":
		w.silent[words[1]] = true
	case "cut":
		w.mu.Lock()
		w.cut[words[1]] = true
		w.mu.Unlock()
	case "gone": // CELL... at once
		for _, cell := range words[1:] {
			w.gone[cell] = true
		}
		w.pass(30 * time.Second)
	case "frames": // N: interrupt the next command after so many pauses
		fmt.Sscan(words[1], &w.frames)
	case "later": // N WHAT...: when so many frames are left
		var n int
		fmt.Sscan(words[1], &n)
		w.later[n] = words[2:]
	case "locks": // NAME OWNER VALUE...
		_, err := bbs.NewLocks(w.store).AcquireLock(context.Background(), bbs.Lock{Name: words[1], Owner: words[2], Value: strings.Join(words[3:], " ")}, time.Minute)
		w.must(err)
	case "uses": // CONTAINER CORES MEMORY-MIB: of late
		var u rep.ContainerUsage
		fmt.Sscan(strings.Join(words[2:], " "), &u.Cores, &u.MemoryBytes)
		u.MemoryBytes <<= 20
		w.used[words[1]] = u
	case "terminal": // WIDTH, or 0 for none
		fmt.Sscan(words[1], &w.width)
		w.terminal = w.width > 0
	case "writes": // CONTAINER STREAM TEXT...
		w.output[words[1]+" "+words[2]] += strings.ReplaceAll(strings.Join(words[3:], " "), `\n`, "\n")
	default:
		w.t.Fatalf("nobody knows how to %q", words)
	}
}

func (w *world) find(id string) *memcell.Cell {
	i := slices.IndexFunc(w.cells, func(c *memcell.Cell) bool { return c.Presence.CellID == id })
	if i < 0 {
		w.t.Fatalf("there is no cell %s", id)
	}
	return w.cells[i]
}
