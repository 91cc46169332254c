//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// A cell is a Manager over real containers.
type cell struct {
	*manager.Manager
	f    *fixture
	news executor.Subscription
}

const (
	testGrace        = 300 * time.Millisecond
	testLogSegment   = 1 << 20
	testContentLimit = 32 << 20
)

func newCell(t testing.TB, edit ...func(*Options)) *cell {
	t.Helper()
	return cellOf(t, newFixture(t, edit...))
}

func cellOf(t testing.TB, f *fixture, edit ...func(*manager.Options)) *cell {
	t.Helper()
	m, stop := startManager(t, f.Backend, t.TempDir(), edit...)
	t.Cleanup(stop)
	c := &cell{m, f, m.Subscribe()}
	t.Cleanup(c.news.Close)
	return c
}

// startManager runs a Manager until stop is called.
func startManager(t testing.TB, b *Backend, dir string, edit ...func(*manager.Options)) (m *manager.Manager, stop func()) {
	t.Helper()
	o := manager.Options{
		Backend: b, Dir: dir, Capacity: manager.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: 1000},
		Grace: testGrace, UnhealthyInterval: 10 * time.Millisecond,
		LogSegmentBytes: testLogSegment, MaxContentBytes: testContentLimit,
		TransferAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // where tests serve files
	}
	for _, e := range edit {
		e(&o)
	}
	m, err := manager.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); m.Run(ctx) }()
	return m, func() { cancel(); <-stopped }
}

// launch gives the cell a container to make and to run.
func (c *cell) launch(guid string, r executor.Resources, w manager.Work) {
	c.f.Helper()
	for _, refused := range c.Reserve(manager.Reservation{GUID: guid, Resources: r}) {
		c.f.Fatal(refused.Err)
	}
	if err := c.Initialize(guid, w); err != nil {
		c.f.Fatal(err)
	}
}

// await waits until a container has come to a state, or further.
func (c *cell) await(guid string, state executor.State) executor.Container {
	c.f.Helper()
	for {
		now, ok := c.Get(guid)
		if !ok || now.State >= state {
			return now
		}
		if _, err := c.news.Next(c.f.ctx); err != nil {
			c.f.Fatalf("%s is still %v, want %v", guid, now.State, state)
		}
	}
}

// result is how a container ends.
func (c *cell) result(guid string) executor.RunResult {
	c.f.Helper()
	return c.await(guid, executor.Completed).RunResult
}

func (c *cell) log(guid string, s manager.Stream) string {
	c.f.Helper()
	r, err := c.Log(c.f.ctx, guid, s, 0, false)
	if err != nil {
		c.f.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		c.f.Fatal(err)
	}
	return string(text)
}

// remove deletes containers and waits until nothing is left of them.
func (c *cell) remove(guids ...string) {
	c.f.Helper()
	for _, guid := range guids {
		c.Delete(guid)
	}
	for _, guid := range guids {
		c.f.eventually(guid+" is gone", func() bool { _, there := c.Get(guid); return !there })
	}
	if !c.Remaining().Equal(c.Total()) {
		c.f.Errorf("%+v remains of %+v", c.Remaining(), c.Total())
	}
	if left := traces(c.f, c.f.Backend); len(left) != 1 { // the table
		c.f.Errorf("left behind: %q", left)
	}
}

// stop stops a container and says how long that took.
func (c *cell) stop(guid string) time.Duration {
	c.f.Helper()
	start := time.Now()
	if err := c.Stop(guid); err != nil {
		c.f.Fatal(err)
	}
	if r := c.result(guid); r != executor.Stopped() {
		c.f.Errorf("the result is %+v", r)
	}
	return time.Since(start)
}

var modest = executor.Resources{MemoryMB: 64, MaxPIDs: 64}

func script(user, text string) manager.Work {
	return manager.Work{RunInfo: executor.RunInfo{RootFS: "host:",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", text}, User: user}}}}
}

func edited(w manager.Work, edit func(*manager.Work)) manager.Work {
	edit(&w)
	return w
}

// Work that cannot be done ends by itself with a reason that a stranger
// understands, and may be tried elsewhere only if nothing of it has begun.
func TestWorkThatCannotBeDoneEndsWithItsReason(t *testing.T) {
	// It is made beforehand, because a busy machine takes long to pack it, and a
	// download that is slow ends for that reason.
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	entry, err := archive.Create("zeros")
	if err == nil {
		_, err = io.CopyN(entry, zeros{}, 2*testContentLimit)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	bomb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(packed.Bytes()) }))
	defer bomb.Close()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := uint16(taken.Addr().(*net.TCPAddr).Port)
	images := t.TempDir()
	c := newCell(t, func(o *Options) { o.FirstPort, o.LastPort, o.ImageDirs = port, port, []string{images} })
	c.launch("neighbour", modest, script("nobody", "echo ready; "+idle))

	run := func(path, user string) manager.Work {
		return edited(script(user, ""), func(w *manager.Work) { w.Action.Run.Path, w.Action.Run.Args = path, nil })
	}
	for i, test := range []struct {
		name      string
		resources executor.Resources
		work      manager.Work
		reason    string
		neverRan  bool
	}{
		{"a missing root file system", modest,
			edited(script("nobody", "true"), func(w *manager.Work) { w.RootFS = "dir:" + images + "/none" }), "no such root file system", true},
		{"a root file system that nobody allows", modest,
			edited(script("nobody", "true"), func(w *manager.Work) { w.RootFS = "dir:/etc" }), "/etc", true},
		{"a port that is taken", modest,
			edited(script("nobody", "true"), func(w *manager.Work) { w.Ports = []uint16{8080} }), "no port available", true},
		{"a command that is not there", modest, run("/no/such", "nobody"), "cannot execute the command: /no/such", false},
		{"a command that is not in PATH", modest, run("no-such", "nobody"), "cannot execute the command: no-such", false},
		{"a command that is not executable", modest, run("/etc/passwd", "nobody"), "cannot execute the command: /etc/passwd", false},
		{"an unknown user", modest, run("/bin/true", "stranger"), "no such user", false},
		{"a memory hog", executor.Resources{MemoryMB: 32, MaxPIDs: 64},
			script("nobody", `exec perl -e '$x .= "x" x 1_000_000 while 1'`), "the container ran out of memory", false},
		{"a disk filler", executor.Resources{MemoryMB: 64, DiskMB: 16, MaxPIDs: 64},
			script("root", "dd if=/dev/zero of=/filler bs=1M count=100 || exit 28"), "exit status 28", false},
		{"a zip bomb", executor.Resources{MemoryMB: 64, DiskMB: 16, MaxPIDs: 64},
			edited(script("nobody", "true"), func(w *manager.Work) {
				w.Setup = &executor.Action{Download: &executor.DownloadAction{From: bomb.URL + "/bomb.zip", To: "/tmp", User: "nobody"}}
			}), "too large", false},
		{"a small process that fails", modest, script("nobody", "exit 3"), "exit status 3", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			guid := fmt.Sprint("bad-", i)
			c.launch(guid, test.resources, test.work)
			r := c.result(guid)
			if !r.Failed || r.Stopped || r.Retryable != test.neverRan || !strings.Contains(r.FailureReason, test.reason) {
				t.Errorf("the result is %+v, want the reason %q", r, test.reason)
			}
			if n := c.await("neighbour", executor.Running); n.State != executor.Running {
				t.Errorf("its neighbour is %v", n.State)
			}
			c.Delete(guid)
		})
	}
	c.f.eventually("only the neighbour is left", func() bool { return len(c.List()) == 1 })
	if got := c.log("neighbour", manager.Stdout); got != "ready\n" {
		t.Errorf("the neighbour said %q", got)
	}
	c.remove("neighbour")
}

func TestAForkBombIsStoppedAndTheCellGoesOn(t *testing.T) {
	c := newCell(t)
	c.launch("bomb", executor.Resources{MemoryMB: 64, MaxPIDs: 32}, script("nobody", `exec perl -e 'fork while 1'`))
	c.f.eventually("it has filled its container", func() bool {
		m, err := c.Usage(c.f.ctx, "bomb")
		return err == nil && m.PIDs >= 30
	})
	c.launch("neighbour", modest, script("nobody", "exit 0"))
	if r := c.result("neighbour"); r != executor.Succeeded() {
		t.Errorf("its neighbour ended with %+v", r)
	}
	if took := c.stop("bomb"); took > patience/2 {
		t.Errorf("it took %v to stop it", took)
	}
	if m, err := c.Usage(c.f.ctx, "bomb"); err != nil || m.PIDs != 0 {
		t.Errorf("after the stop it has %d processes, %v", m.PIDs, err)
	}
	c.remove("bomb", "neighbour")
}

func TestWhatIgnoresTERMIsKilledAfterItsGrace(t *testing.T) {
	c := newCell(t)
	c.launch("deaf", modest, script("nobody", "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo ready; while :; do sleep 1; done"))
	c.launch("polite", modest, script("nobody", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
	for _, guid := range []string{"deaf", "polite"} {
		c.f.eventually(guid+" is ready", func() bool {
			return c.await(guid, executor.Running).State == executor.Running && c.log(guid, manager.Stdout) == "ready\n"
		})
	}
	if took := c.stop("deaf"); took < testGrace {
		t.Errorf("it was killed after %v, before its grace was over", took)
	}
	c.stop("polite")
	if got := c.log("polite", manager.Stdout); got != "ready\nbye\n" {
		t.Errorf("what obeys said %q", got)
	}
	c.remove("deaf", "polite")
}

func TestOrphansThatHoldTheOutputDoNotKeepAContainerAlive(t *testing.T) {
	c := newCell(t)
	c.launch("task", modest, script("nobody", "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &); echo done"))
	if r := c.result("task"); r != executor.Succeeded() {
		t.Errorf("the result is %+v", r)
	}
	if got := c.log("task", manager.Stdout); got != "done\n" {
		t.Errorf("it said %q", got)
	}
	if m, err := c.Usage(c.f.ctx, "task"); err != nil || m.PIDs != 0 {
		t.Errorf("%d processes outlive their container, %v", m.PIDs, err)
	}
	c.remove("task")
}

// 100 MB each second, for as long as it likes: the disk holds what it may, the
// end of the output is there, and the cell answers meanwhile.
func TestAFloodOfOutputFillsNoDiskAndDelaysNobody(t *testing.T) {
	const megabytes = 100 // far more than is kept
	c := newCell(t)
	start := time.Now()
	c.launch("flood", modest, script("nobody", fmt.Sprintf("head -c %d /dev/zero; echo; echo the end", megabytes*1_000_000)))
	c.launch("neighbour", modest, script("nobody", "echo heard; exit 0"))
	if r := c.result("neighbour"); r != executor.Succeeded() || c.log("neighbour", manager.Stdout) != "heard\n" {
		t.Errorf("its neighbour ended with %+v", r)
	}
	if r := c.result("flood"); r != executor.Succeeded() {
		t.Errorf("the result is %+v", r)
	}
	t.Logf("%.0f MB/s", megabytes/time.Since(start).Seconds())
	if text := c.log("flood", manager.Stdout); len(text) > 2*testLogSegment || !strings.HasSuffix(text, "\nthe end\n") {
		t.Errorf("%d bytes are kept, which end in %q", len(text), text[max(0, len(text)-20):])
	}
	c.launch("endless", modest, script("nobody", "exec cat /dev/zero"))
	c.await("endless", executor.Running)
	if took := c.stop("endless"); took > patience/2 {
		t.Errorf("it took %v to stop what writes without end", took)
	}
	c.remove("flood", "neighbour", "endless")
}

func TestTenThousandVariablesReachAProcessInAContainer(t *testing.T) {
	c := newCell(t)
	c.launch("c", modest, edited(script("nobody", "env | grep -c ^V; echo $V9999"), func(w *manager.Work) {
		for i := range executor.MaxListLength {
			w.Env = append(w.Env, executor.EnvVar{Name: fmt.Sprint("V", i), Value: fmt.Sprint(i)})
		}
	}))
	if r := c.result("c"); r != executor.Succeeded() || c.log("c", manager.Stdout) != "10000\n9999\n" {
		t.Errorf("the result is %+v, and it said %q", r, c.log("c", manager.Stdout))
	}
	c.remove("c")
}

func TestAStopReachesAContainerThatIsBeingMade(t *testing.T) {
	c := newCell(t)
	for i := range 10 {
		guid := fmt.Sprint("early-", i)
		c.launch(guid, modest, script("nobody", idle))
		if i%2 == 0 {
			c.await(guid, executor.Created)
		}
		c.stop(guid)
		c.remove(guid)
	}
}

func TestAContainerWhoseFirstProcessDiesHasFailed(t *testing.T) {
	c := newCell(t)
	c.launch("c", modest, script("nobody", idle))
	c.await("c", executor.Running)
	kill(t, c.f.containers["c"].initPID)
	if r := c.result("c"); !r.Failed || !strings.Contains(r.FailureReason, "signal 9") {
		t.Errorf("the result is %+v", r)
	}
	if _, err := c.f.Start(c.f.ctx, "c", executor.ProcessSpec{Path: "/bin/true"}); !errors.Is(err, executor.ErrNoContainer) {
		t.Errorf("Start: %v", err)
	}
	c.remove("c")
}

// What a new daemon finds of an old one it removes by itself, also while it
// works.
func TestAManagerRemovesWhatAnEarlierOneLeft(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		guid, _ := f.create()
		f.as("nobody", guid, idle)
	}
	_, stop := startManager(t, f.Backend, t.TempDir())
	defer stop()
	f.eventually("nothing is left", func() bool {
		guids, err := f.List(f.ctx)
		return err == nil && len(guids) == 0
	})
}
