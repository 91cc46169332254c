//go:build unix

package manager_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
)

// A host is a Manager that Run drives over plain processes.
type host struct {
	*manager.Manager
	t       *testing.T
	backend *process.Backend
	news    executor.Subscription
}

func newHost(t *testing.T, edit ...func(*manager.Options)) *host {
	t.Helper()
	dir := t.TempDir()
	backend, err := process.New(process.Options{Dir: filepath.Join(dir, "containers")})
	if err != nil {
		t.Fatal(err)
	}
	o := manager.Options{
		Backend: backend, Dir: filepath.Join(dir, "cell"), Capacity: manager.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: 500},
		Grace: 500 * time.Millisecond, UnhealthyInterval: 5 * time.Millisecond, HealthyInterval: 20 * time.Millisecond,
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
	h := &host{m, t, backend, m.Subscribe()}
	t.Cleanup(func() {
		cancel()
		<-stopped
		if err := m.Clear(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A lateBackend has a container of an earlier daemon, with files that take long to
// remove.
type lateBackend struct {
	*process.Backend
	deleted atomic.Bool
	removed chan struct{} // its files, when closed
}

func (b *lateBackend) List(ctx context.Context) ([]string, error) {
	list, err := b.Backend.List(ctx)
	if !b.deleted.Load() {
		list = append(list, "old")
	}
	return list, err
}

func (b *lateBackend) Delete(ctx context.Context, guid string) error {
	if guid != "old" {
		return b.Backend.Delete(ctx, guid)
	}
	b.deleted.Store(true)
	return &executor.BackendError{Kind: executor.ErrSetAside, GUID: guid}
}

func (b *lateBackend) Aside(context.Context) ([]executor.Leftover, error) {
	select {
	case <-b.removed:
		return nil, nil
	default:
		return []executor.Leftover{{Path: "/lost/old", Bytes: 5 << 20}}, nil
	}
}

func (b *lateBackend) Sweep(ctx context.Context) ([]executor.Leftover, error) {
	if !b.deleted.Load() {
		return nil, nil
	}
	select {
	case <-b.removed:
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

func TestACellIsReadyWhileTheFilesOfAnEarlierDaemonAreRemoved(t *testing.T) {
	b := &lateBackend{removed: make(chan struct{})}
	h := newHost(t, func(o *manager.Options) {
		b.Backend = o.Backend.(*process.Backend)
		o.Backend = b
	})
	lacking := func(mib int64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); h.Total().DiskMB-h.Remaining().DiskMB != mib; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("remaining is %+v of %+v, want %d MiB of disk less", h.Remaining(), h.Total(), mib)
			}
		}
	}
	<-h.Cleared()
	lacking(5)
	h.launch("new", work(sh("true")))
	h.await("new", executor.Completed)
	h.remove("new")
	lacking(5)
	close(b.removed)
	lacking(0)
	if left := h.Leftovers(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// await waits until a container is in a state.
func (h *host) await(guid string, state executor.State) executor.Container {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		if c, ok := h.Get(guid); ok && c.State >= state {
			if c.State != state {
				h.t.Fatalf("the container is %s, want %v", describe(c), state)
			}
			return c
		}
		if _, err := h.news.Next(ctx); err != nil {
			c, _ := h.Get(guid)
			h.t.Fatalf("the container is still %s, want %v", describe(c), state)
		}
	}
}

func (h *host) launch(guid string, w manager.Work) {
	h.t.Helper()
	for _, r := range h.Reserve(manager.Reservation{GUID: guid, Tags: map[string]string{executor.TagProcessIndex: "3", executor.TagInstanceGUID: "instance-7"}}) {
		h.t.Fatal(r.Err)
	}
	if err := h.Initialize(guid, w); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) remove(guid string) {
	h.t.Helper()
	h.Delete(guid)
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, ok := h.Get(guid); !ok {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the container is not removed: %+v", h.Deletions())
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}

func (h *host) log(guid string, s manager.Stream) string {
	h.t.Helper()
	r, err := h.Log(context.Background(), guid, s, 0, false)
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

func sh(script string) executor.Action {
	return executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", script}, User: "app"}}
}

func TestAPlainProcessFindsItsCertificateByTheVariables(t *testing.T) {
	h := newHost(t, func(o *manager.Options) { o.Identity = newAuthority(t, time.Hour) })
	w := work(sh(`cat "$CF_INSTANCE_CERT" "$CF_INSTANCE_KEY" > result && echo "$CF_INSTANCE_KEY"`))
	w.CertificateProperties = &executor.CertificateConfig{OrganizationalUnit: []string{"app:a1"}}
	h.launch("c", w)
	if r := h.await("c", executor.Completed).RunResult; r != executor.Succeeded() {
		t.Fatalf("the result is %+v: %s", r, h.log("c", manager.Stderr))
	}
	text, err := h.ReadFile(context.Background(), "c", "result")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	if s := pair.Leaf.Subject; s.CommonName != "instance-7" || len(s.OrganizationalUnit) != 1 || s.OrganizationalUnit[0] != "app:a1" {
		t.Errorf("the certificate is of %v", s)
	}
	key := strings.TrimSpace(h.log("c", manager.Stdout))
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("%s: %v, %v", key, info, err)
	}
	h.remove("c")
	if _, err := os.Lstat(key); err == nil {
		t.Error("the key is there after the container")
	}
}

func TestPlainProcessesOfSeveralUsersGetNoCertificates(t *testing.T) {
	backend, err := process.New(process.Options{Dir: filepath.Join(t.TempDir(), "containers"), SwitchUser: true})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, func(o *manager.Options) { o.Backend, o.Identity = backend, newAuthority(t, time.Hour) })
	if refused := h.RefusedFields(); !slices.Contains(refused, "certificate_properties") {
		t.Errorf("the cell refuses only %q", refused)
	}
	w := work(sh(`test -z "$CF_INSTANCE_KEY"`))
	w.CertificateProperties = &executor.CertificateConfig{}
	h.launch("c", w)
	if r := h.await("c", executor.Completed).RunResult; !strings.Contains(r.FailureReason, "certificate_properties (instance identity): processes run as several users") {
		t.Errorf("the result is %+v", r)
	}
	h.remove("c")
}

func TestARealTaskLeavesItsLogsAndItsResult(t *testing.T) {
	h := newHost(t)
	h.launch("task", work(serial(
		executor.Action{EmitProgress: &executor.EmitProgressAction{StartMessage: "begin", SuccessMessage: "end", Action: sh("echo $INSTANCE_GUID $INSTANCE_INDEX; echo oops >&2; printf 42 > result")}},
		executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", "echo secret"}, User: "app", SuppressLogOutput: true}},
	)))
	c := h.await("task", executor.Completed)
	if c.RunResult != executor.Succeeded() {
		t.Fatalf("the result is %+v", c.RunResult)
	}
	if got := h.log("task", manager.Stdout); got != "begin\ninstance-7 3\nend\n" {
		t.Errorf("stdout is %q", got)
	}
	if got := h.log("task", manager.Stderr); got != "oops\n" {
		t.Errorf("stderr is %q", got)
	}
	result, err := h.ReadFile(context.Background(), "task", "/result")
	if err != nil || string(result) != "42" {
		t.Errorf("the result is %q, %v", result, err)
	}
	if _, err := h.ReadFile(context.Background(), "task", "/missing"); !errors.Is(err, executor.ErrNoFile) {
		t.Errorf("a missing file: %v", err)
	}
	h.remove("task")
	if got := h.log("task", manager.Stdout) + h.log("task", manager.Stderr) + h.log("task", manager.Health); got != "begin\ninstance-7 3\nend\noops\n" {
		t.Errorf("once it is deleted its logs are %q", got)
	}
	for guid, stream := range map[string]manager.Stream{"task": "other", "nobody": manager.Stdout, "../task": manager.Stdout} {
		if _, err := h.Log(context.Background(), guid, stream, 0, true); !errors.Is(err, manager.ErrNotFound) {
			t.Errorf("the log %q of %s: %v", stream, guid, err)
		}
	}
}

func TestTheLastOutputOfTheNewestContainersIsKept(t *testing.T) {
	var o manager.Options
	h := newHost(t, func(p *manager.Options) {
		p.EndedLogs, p.EndedLogBytes, p.LogSegmentBytes, p.LogSegments = 2, 10, 7, 3
		o = *p
	})
	run := func(h *host, guid, script string) {
		h.launch(guid, work(sh(script)))
		h.await(guid, executor.Completed)
		h.remove(guid)
	}
	gone := func(h *host, guid string) {
		t.Helper()
		if _, err := h.Log(context.Background(), guid, manager.Stdout, 0, true); !errors.Is(err, manager.ErrNotFound) {
			t.Errorf("the log of %s: %v", guid, err)
		}
	}
	run(h, "first", "echo first")
	run(h, "silent", "true") // takes no place
	run(h, "second", "echo 0123456789abcdefghi")
	gone(h, "silent")
	for _, guid := range []string{"first", "second", "first", "second"} { // as often as one likes
		if got, want := h.log(guid, manager.Stdout), map[string]string{"first": "first\n", "second": "abcdefghi\n"}[guid]; got != want {
			t.Errorf("the log of %s is %q, want %q", guid, got, want)
		}
	}
	r, err := h.Log(context.Background(), "second", manager.Stdout, 12, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); string(text) != "cdefghi\n" || err != nil || r.Offset() != 20 {
		t.Errorf("from byte 12 on it is %q up to %d, %v: bytes keep their numbers", text, r.Offset(), err)
	}
	run(h, "third", "echo third >&2")
	gone(h, "first")
	if got := h.log("third", manager.Stderr); got != "third\n" {
		t.Errorf("the log of the third is %q", got)
	}

	// A manager that is killed leaves logs of containers that it had.
	h.launch("cut-off", with(work(sh("echo cut off; sleep 1000")), func(w *manager.Work) { w.LogGUID = "app-7" }))
	h.await("cut-off", executor.Running)
	live, err := h.Log(context.Background(), "cut-off", manager.Stdout, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := bufio.NewReader(live).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	o.Dir = copyOf(t, o.Dir)
	next, err := manager.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	after := &host{Manager: next, t: t}
	gone(after, "second")
	if got := after.log("third", manager.Stderr) + after.log("cut-off", manager.Stdout); got != "third\ncut off\n" {
		t.Errorf("after the daemon's restart the logs are %q", got)
	}
	if owner, err := next.LogOwner("cut-off"); owner.LogGUID != "app-7" || owner.Tags[executor.TagProcessIndex] != "3" || err != nil {
		t.Errorf("after the daemon's restart it is the output of %+v, %v", owner, err)
	}
	o.EndedLogs = -1
	o.Dir = copyOf(t, o.Dir)
	if next, err = manager.New(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	gone(&host{Manager: next, t: t}, "third")
}

// copyOf is a copy of a directory, as it is at this moment.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestAResultFileMayBeFiftyKibibytes(t *testing.T) {
	h := newHost(t)
	h.launch("task", work(sh(fmt.Sprintf("head -c %d /dev/zero > right; head -c %d /dev/zero > large; mkdir dir; ln -s /etc/passwd link; mkfifo fifo",
		manager.MaxResultBytes, manager.MaxResultBytes+1))))
	h.await("task", executor.Completed)
	ctx := context.Background()
	if content, err := h.ReadFile(ctx, "task", "right"); err != nil || len(content) != manager.MaxResultBytes {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if _, err := h.ReadFile(ctx, "task", "large"); !errors.Is(err, manager.ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	for _, name := range []string{"dir", "link", "fifo", "../../../etc/passwd"} {
		if content, err := h.ReadFile(ctx, "task", name); !errors.Is(err, executor.ErrNoFile) {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// Most of what a short task leaves on the disk would be its logs.
func TestAContainerThatSaysNothingHasNoLogsOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, func(o *manager.Options) { o.Dir = dir })
	inLogs := func(guid string) []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "logs", guid, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	h.launch("silent", work(sh("true")))
	h.await("silent", executor.Completed)
	if _, err := os.Lstat(filepath.Join(dir, "logs", "silent")); !errors.Is(err, fs.ErrNotExist) || h.log("silent", manager.Stdout) != "" {
		t.Errorf("it said nothing and has %q, %v", inLogs("silent"), err)
	}
	h.launch("speaks", work(sh("echo here; echo there >&2")))
	h.await("speaks", executor.Completed)
	if got := inLogs("speaks"); len(got) != 3 || h.log("speaks", manager.Stdout)+h.log("speaks", manager.Stderr) != "here\nthere\n" {
		t.Errorf("its files are %q, want a stream, another and the owner", got)
	}
	h.remove("silent")
	h.remove("speaks")
	if left, err := os.ReadDir(filepath.Join(dir, "logs")); len(left) != 0 || err != nil {
		t.Errorf("in the end there are %v, %v", left, err)
	}
}

func TestAFollowedLogEndsWithItsContainer(t *testing.T) {
	h := newHost(t)
	h.launch("app", work(sh("for i in 1 2 3; do echo line $i; done; sleep 1000")))
	h.await("app", executor.Running)
	r, err := h.Log(context.Background(), "app", manager.Stdout, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, len("line 1\nline 2\nline 3\n"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "line 1\nline 2\nline 3\n" {
		t.Errorf("%q, %v", got, err)
	}
	if r.Offset() != int64(len(got)) {
		t.Errorf("the next byte is number %d, want %d", r.Offset(), len(got))
	}
	go h.Delete("app")
	if rest, err := io.ReadAll(r); len(rest) != 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}

func TestOutputWithoutEndIsRotated(t *testing.T) {
	h := newHost(t, func(o *manager.Options) { o.LogSegmentBytes = 1 << 16 })
	h.launch("app", work(sh("head -c 8000000 /dev/zero; echo; echo the end")))
	h.await("app", executor.Completed)
	text := h.log("app", manager.Stdout)
	if len(text) > 2<<16 || !strings.HasSuffix(text, "\nthe end\n") {
		t.Errorf("%d bytes are kept, which end in %q", len(text), text[max(0, len(text)-20):])
	}
}

func TestAContainerThatNobodyCanReachIsNotHealthy(t *testing.T) {
	h := newHost(t)
	h.launch("deaf", with(work(sh("echo on $PORT; sleep 1000")), func(w *manager.Work) {
		w.Ports = []uint16{8080}
		w.Check = &executor.CheckDefinition{Checks: []executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}}
	}))
	line := func(s manager.Stream) string {
		t.Helper()
		r, err := h.Log(context.Background(), "deaf", s, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		text, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := line(manager.Health); !strings.HasPrefix(got, "TCP check of port 8080: ") {
		t.Errorf("the log of health says %q", got)
	}
	said := line(manager.Stdout)
	c, _ := h.Get("deaf")
	if c.State != executor.Created {
		t.Errorf("the container is %s", describe(c))
	}
	if want := fmt.Sprintf("on %d\n", c.Ports[0].HostPort); said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}

func TestAStopReachesEverythingThatRuns(t *testing.T) {
	h := newHost(t)
	h.launch("app", with(work(sh("(trap '' TERM; while :; do sleep 1; done) & echo ready; wait")), func(w *manager.Work) {
		w.Sidecars = []executor.Sidecar{{Action: sh("trap '' TERM; while :; do sleep 1; done")}}
		w.Monitor = ptr(sh("exit 0"))
	}))
	h.await("app", executor.Running)
	if err := h.Stop("app"); err != nil {
		t.Fatal(err)
	}
	if c := h.await("app", executor.Completed); c.RunResult != executor.Stopped() {
		t.Errorf("the result is %+v", c.RunResult)
	}
	m, err := h.Usage(context.Background(), "app")
	if err != nil || m.PIDs > 0 {
		t.Errorf("%d processes are left, %v", m.PIDs, err)
	}
}

// tgz is an archive with one executable script.
func tgz(w io.Writer, name, script string) {
	zipped := gzip.NewWriter(w)
	out := tar.NewWriter(zipped)
	out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))})
	io.WriteString(out, script)
	out.Close()
	zipped.Close()
}

func TestWhatIsDownloadedRunsAndWhatIsUploadedArrives(t *testing.T) {
	var requests atomic.Int64
	var uploaded atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Method == http.MethodPost {
			zipped, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			in := tar.NewReader(zipped)
			h, err := in.Next()
			if err == nil {
				content, _ := io.ReadAll(in)
				uploaded.Store(ptr(h.Name + ": " + string(content)))
			}
			return
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		tgz(w, "run", "#!/bin/sh\ncat ../tools/run | tail -n 1\nprintf done > out\n")
	}))
	defer server.Close()
	h := newHost(t)
	for i := range 2 {
		guid := fmt.Sprint("task-", i)
		h.launch(guid, with(work(serial(
			executor.Action{Download: &executor.DownloadAction{Artifact: "app", From: server.URL + "/app.tgz", To: "/app", CacheKey: "app", User: "app"}},
			executor.Action{Run: &executor.RunAction{Path: "/app/run", Dir: "/app", User: "app"}},
			executor.Action{Upload: &executor.UploadAction{Artifact: "result", From: "/app/out", To: server.URL + "/out?token=secret", User: "app"}},
		)), func(w *manager.Work) {
			w.CachedDependencies = []executor.CachedDependency{{Name: "tools", From: server.URL + "/tools.tgz", To: "/tools", CacheKey: "tools"}}
		}))
		if c := h.await(guid, executor.Completed); c.RunResult != executor.Succeeded() {
			t.Fatalf("the result is %+v: %s", c.RunResult, h.log(guid, manager.Stderr))
		}
		if got := h.log(guid, manager.Stdout); got != "Downloading tools\nDownloaded tools\nDownloading app\nDownloaded app\nprintf done > out\nUploading result\nUploaded result\n" {
			t.Errorf("it says %q", got)
		}
	}
	if got := uploaded.Load(); got == nil || *got != "out: done" {
		t.Errorf("uploaded: %v", got)
	}
}

func TestIdleContainersCostNoThread(t *testing.T) {
	const containers = 40
	h := newHost(t)
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Logf("threads are counted on Linux only, and this is %s", runtime.GOOS)
		}
		return len(tasks)
	}
	before := threads()
	for i := range containers {
		h.launch(fmt.Sprint("c", i), work(sh("exec sleep 1000")))
	}
	for i := range containers {
		h.await(fmt.Sprint("c", i), executor.Running)
	}
	if got := threads() - before; got > containers/2 {
		t.Errorf("%d containers cost %d threads", containers, got)
	}
}

func TestManyCyclesLeaveNoTrace(t *testing.T) {
	h := newHost(t)
	cycle := func(from, to int) {
		for i := from; i < to; i++ {
			h.launch(fmt.Sprint("c", i), work(sh("echo x; sleep 1000 & sleep 1000")))
		}
		for i := from; i < to; i++ {
			h.await(fmt.Sprint("c", i), executor.Running)
			h.Delete(fmt.Sprint("c", i))
		}
		for i := from; i < to; i++ {
			h.remove(fmt.Sprint("c", i))
		}
	}
	files := func() int {
		open, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	cycle(0, 10) // what is kept for ever is there afterwards
	goroutines, open := runtime.NumGoroutine(), files()
	cycle(10, 60)
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > goroutines+2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // the last ones are on their way out
	}
	if now := runtime.NumGoroutine(); now > goroutines+2 {
		t.Errorf("%d goroutines before, %d now", goroutines, now)
	}
	if now := files(); now > open+2 {
		t.Errorf("%d files open before, %d now", open, now)
	}
	if guids, err := h.backend.List(context.Background()); err != nil || len(guids) != 0 {
		t.Errorf("left behind: %q, %v", guids, err)
	}
	if !h.Remaining().Equal(h.Total()) {
		t.Errorf("%+v remains of %+v", h.Remaining(), h.Total())
	}
}
