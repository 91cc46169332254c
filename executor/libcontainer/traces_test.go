//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
)

// traces are everything on this host that belongs to a backend with an id and
// a directory, but for the directory's own images.
func traces(t testing.TB, b *Backend) []string {
	t.Helper()
	var all []string
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	all = append(all, mounts(t, b.options.Dir)...)
	all = append(all, mounts(t, b.mounts)...)
	g, err := b.cgroups.Child("x")
	must(err)
	for _, path := range g.Dirs() {
		found, err := filepath.Glob(strings.TrimSuffix(path, "x") + "*/cgroup.procs")
		must(err)
		all = append(all, found...)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	must(err)
	for _, name := range processes {
		text, _ := os.ReadFile(name) // it may have ended
		if strings.Contains(string(text), b.cgroups.Path("")+"/") {
			all = append(all, "process "+name)
		}
	}
	devices, err := os.ReadDir("/sys/class/net")
	must(err)
	idle := map[string]bool{} // which wait for the next container
	if b.network != nil {
		_, waiting := b.network.Used()
		for _, name := range waiting {
			idle[name] = true
		}
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Name(), "dg"+b.id) && !idle[d.Name()] {
			all = append(all, "device "+d.Name())
		}
	}
	// A container that is set up on this host, as by other tests, begins with a
	// copy of all mounts, which holds a disk until it is given up.
	deadline := time.Now().Add(patience)
	held := func(s string) bool { return strings.HasSuffix(s, "(deleted)\n") }
	left := loops(t, b.options.Dir)
	for slices.ContainsFunc(left, held) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // between two looks
		left = loops(t, b.options.Dir)
	}
	all = append(all, left...)
	c, err := nftables.New()
	must(err)
	tables, err := c.ListTables()
	must(err)
	for _, table := range tables {
		if strings.Contains(table.Name, b.id) {
			all = append(all, "table "+table.Name)
		}
	}
	for _, dir := range []string{b.mounts, b.states} {
		names, err := filepath.Glob(dir + "/*")
		must(err)
		for _, name := range names {
			all = append(all, "directory "+name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(b.options.Dir, containersDir))
	must(err)
	for _, e := range entries {
		all = append(all, "directory "+e.Name())
	}
	slices.Sort(all)
	return all
}

// mounts are those below a directory that this process sees.
func mounts(t testing.TB, dir string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir+"/") {
			all = append(all, "mount "+line)
		}
	}
	return all
}

// loops are the loop devices of files below a directory.
func loops(t testing.TB, dir string) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, _ := os.ReadFile(name); strings.Contains(string(text), dir+"/") { // it may be free by now
			all = append(all, "loop "+string(text))
		}
	}
	return all
}

// running reports whether a process is left.
func running(t testing.TB, b *Backend) bool {
	return slices.ContainsFunc(traces(t, b), func(s string) bool { return strings.HasPrefix(s, "process") })
}

// What the daemon of a test is told by its environment.
const (
	daemonDir   = "DIEGO_TEST_LIBCONTAINER_DIR"
	daemonStage = "DIEGO_TEST_LIBCONTAINER_STAGE"
	// poor is before a number: make a container where inodes are too few.
	poor = "poor"
	// Instead of a number: be a mappedDaemon, an unroutedDaemon, a sharedDaemon.
	mapped   = "mapped"
	unrouted = "unrouted"
	shared   = "shared"
)

// full is a container that has some of everything.
func full(guid string) executor.ContainerSpec {
	return executor.ContainerSpec{
		GUID: guid, RootFS: "host:", Resources: executor.Resources{MemoryMB: 64, DiskMB: 16, MaxPIDs: 64},
		Ports:       []uint16{8080, 8081},
		EgressRules: []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.0/8"}}},
		Mounts:      []executor.Mount{{Source: "/etc", Target: "/mnt/etc"}},
		Files:       []executor.File{{Path: "/job/file", Content: "x"}},
	}
}

// fullWork is the same for a Manager.
func fullWork() executor.Work {
	return edited(script("nobody", "trap '' TERM; (setsid sleep 1000 &); while :; do sleep 1; done"), func(w *executor.Work) {
		spec := full("")
		w.Ports, w.EgressRules, w.VolumeMountedFiles = spec.Ports, spec.EgressRules, spec.Files
		w.Grace = time.Millisecond
	})
}

// daemon is a cell that makes a container, runs something in it, and deletes
// it. It is killed at a stage, or ends with status 0 if there are not so many.
func daemon() {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	switch os.Getenv(daemonStage) {
	case mapped:
		mappedDaemon()
	case probing:
		probingDaemon()
	case unrouted:
		unroutedDaemon()
	case locked:
		lockedDaemon()
	case shared:
		sharedDaemon()
	}
	if delay, ok := strings.CutPrefix(os.Getenv(daemonStage), doomed); ok {
		doomedDaemon(delay)
	}
	text, isPoor := strings.CutPrefix(os.Getenv(daemonStage), poor)
	last, err := strconv.Atoi(text)
	die(err)
	dir := os.Getenv(daemonDir)
	b, err := New(Options{Dir: dir})
	die(err)
	var n atomic.Int64
	stage.Reached = func() {
		if n.Add(1) == int64(last) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	ctx := context.Background()
	if isPoor {
		if _, err := b.Create(ctx, full("a")); !strings.Contains(err.Error(), "too few inodes") {
			die(err)
		}
		os.Exit(0)
	}
	m, err := manager.New(ctx, manager.Options{Backend: b, Dir: dir + "-cell", Capacity: executor.Capacity{MemoryMB: 1 << 10, DiskMB: 1 << 10}, Volumes: binderOf(dir)})
	die(err)
	go m.Run(ctx)
	for _, refused := range m.Reserve(executor.Reservation{GUID: "a", Resources: full("a").Resources}) {
		die(refused.Err)
	}
	stage.Reached()
	die(m.Initialize("a", volumeWork()))
	for {
		c, there := m.Get("a")
		if there && c.State == executor.Running {
			break
		}
		if c.State == executor.Completed {
			die(errors.New(c.RunResult.FailureReason))
		}
		time.Sleep(time.Millisecond) // between two looks
	}
	stage.Reached()
	m.Delete("a")
	for there := true; there; _, there = m.Get("a") {
		time.Sleep(time.Millisecond) // between two looks
	}
	stage.Reached()
	die(b.Close())
	os.Exit(0)
}

func TestADaemonThatIsKilledAtAnyStageLeavesNothingForGood(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "cell")
	const tooMany = 100
	step := 1
	if testing.Short() {
		step = 4
	}
	for n := 1; ; n += step {
		if n >= tooMany {
			t.Fatalf("there are more than %d stages", tooMany)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), daemonDir+"="+dir, daemonStage+"="+strconv.Itoa(n))
		out, err := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || status.Signal() != syscall.SIGKILL) {
			t.Fatalf("stage %d: %v: %s", n, err, out)
		}
		t.Run(fmt.Sprintf("stage %d", n), func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Dir = dir })
			// Nothing runs unwatched: it ends with its daemon.
			f.eventually("what ran has ended", func() bool { return !running(t, f.Backend) })
			// The next daemon needs nobody to remove what is left.
			m, stop := startManager(t, f.Backend, dir+"-cell", func(o *manager.Options) { o.Volumes = binderOf(dir) })
			defer stop()
			c := &cell{m, f, m.Subscribe()}
			defer c.news.Close()
			f.eventually("the volumes are unmounted", func() bool { return len(m.Volumes()) == 0 && len(mounts(t, dir+"-volumes")) == 0 })
			table := []string{"table diego-" + f.id}
			f.eventually("all but the table is removed", func() bool { return cmp.Equal(traces(t, f.Backend), table) })
			// And the guid can be used again, once the manager has seen that, too.
			f.eventually("there is room for it", func() bool {
				return len(m.Reserve(executor.Reservation{GUID: "a", Resources: full("a").Resources})) == 0
			})
			if err := m.Initialize("a", volumeWork()); err != nil {
				t.Fatal(err)
			}
			if now := c.await("a", executor.Running); now.State != executor.Running {
				t.Errorf("it is %v: %+v", now.State, now.RunResult)
			}
			c.remove("a")
		})
		if err == nil {
			const fewest = 10 // or the stages are not where they should be
			if n < fewest {
				t.Errorf("there are only %d stages", n)
			}
			return
		}
	}
}

var cyclesFlag = flag.Int("libcontainer.cycles", 250, "how many containers come and go where none may leave a trace")

func TestHundredsOfCyclesLeaveNoTrace(t *testing.T) {
	f := newFixture(t)
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	cycles := *cyclesFlag
	if testing.Short() {
		cycles = min(cycles, 40)
	}
	const parallel = 4
	cycle := func(guid string) error {
		if _, err := f.Create(f.ctx, full(guid)); err != nil {
			return err
		}
		ended := make(chan executor.Exit, 1)
		_, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & exit 3"}, User: "nobody",
			Stdout: &output{}, Exited: func(e executor.Exit) { ended <- e }})
		if err != nil {
			return err
		}
		if e := <-ended; e.Status != 3 {
			return fmt.Errorf("it ended with %v", e)
		}
		return f.Delete(f.ctx, guid)
	}
	if err := cycle("first"); err != nil { // what is made once
		t.Fatal(err)
	}
	filesBefore, before := files(), traces(t, f.Backend)
	var wait sync.WaitGroup
	for p := range parallel {
		wait.Go(func() {
			for i := range cycles / parallel {
				if err := cycle(fmt.Sprintf("c-%d-%d", p, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	if after := traces(t, f.Backend); !cmp.Equal(before, after) {
		t.Errorf("left behind: %s", cmp.Diff(before, after))
	}
	f.eventually("the descriptors are closed", func() bool { return files() <= filesBefore+parallel })
	if n := threads(); n > 100 {
		t.Errorf("the daemon has %d threads", n)
	}
	if addresses, _ := f.network.Used(); len(f.containers) != 0 || f.ports.Held() != 0 || addresses != 0 || f.poller.Watched() != 0 {
		t.Errorf("in memory there are %d containers, %d ports, %d addresses, %d watches",
			len(f.containers), f.ports.Held(), addresses, f.poller.Watched())
	}
}
