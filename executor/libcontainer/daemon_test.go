//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/stdio"
)

func TestAnArgumentAloneDoesNotMakeTheBinarySetUpContainers(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "init")
	cmd.Env = []string{daemonDir + "=" + t.TempDir(), daemonStage + "=none"}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `parsing "none"`) {
		t.Errorf("main was not reached: %v: %s", err, out)
	}
}

func TestTheFirstThreadNeverEntersAContainer(t *testing.T) {
	f := newFixture(t)
	before, err := os.Readlink("/proc/self/ns/mnt") // of the first thread
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		guid, _ := f.create()
		f.delete(guid)
	}
	if after, err := os.Readlink("/proc/self/ns/mnt"); after != before || err != nil {
		t.Errorf("the first thread was in %s and is in %s, %v", before, after, err)
	}
}

// A cost is what this process has of what the kernel and the runtime limit.
type cost struct{ files, goroutines, threads int }

func costs(t testing.TB) cost {
	t.Helper()
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	return cost{count("/proc/self/fd"), runtime.NumGoroutine(), count("/proc/self/task")}
}

func (c cost) since(before cost) cost {
	return cost{c.files - before.files, c.goroutines - before.goroutines, c.threads - before.threads}
}

// What an idle container with one port costs the daemon, at most: the socket
// of its first process, that process itself, the root directory, the network
// namespace, the user namespace and the claim on the host port; if somebody reads
// its output, two pipes. Logs are not held open.
const (
	filesOfContainer = 6
	filesOfOutput    = 2

	idleWires = 32 // and namespaces of users, that wait for the next container
)

func TestIdleContainersCostFewDescriptorsAndNeitherThreadsNorGoroutines(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	f.as("nobody", guid, idle)
	before := costs(t)
	const containers = 30
	for range containers {
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.Ports = []uint16{80} })
		if _, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", idle}, User: "nobody"}); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("the goroutines have ended", func() bool { return costs(t).since(before).goroutines <= 0 })
	more := costs(t).since(before)
	t.Logf("%d containers cost %+v", containers, more)
	if more.threads > containers/3 || more.files > containers*filesOfContainer {
		t.Errorf("%d containers cost %+v", containers, more)
	}
}

func TestIdleContainersOfTheManagerCostAFewDescriptorsEach(t *testing.T) {
	f := newFixture(t)
	m, stop := startManager(t, f.Backend, t.TempDir())
	defer stop()
	c := &cell{m, f, m.Subscribe()}
	defer c.news.Close()
	launch := func(guid string) {
		c.launch(guid, modest, edited(script("nobody", idle), func(w *executor.Work) { w.Ports = []uint16{8080} }))
		if now := c.await(guid, executor.Running); now.State != executor.Running {
			t.Fatalf("it is %v: %+v", now.State, now.RunResult)
		}
	}
	launch("first")
	before := costs(t)
	const containers = 50
	guids := []string{"first"}
	for i := range containers {
		guid := fmt.Sprint("idle-", i)
		launch(guid)
		guids = append(guids, guid)
	}
	more := costs(t).since(before)
	t.Logf("%d containers cost %+v", containers, more)
	// The pools and timers of the manager come and go.
	const slack = 20
	if more.files > containers*(filesOfContainer+filesOfOutput)+slack || more.goroutines > slack || more.threads > slack {
		t.Errorf("%d containers cost %+v", containers, more)
	}
	c.remove(guids...)
	f.eventually("all is given back", func() bool {
		more := costs(t).since(before)
		return more.files <= 2*idleWires+slack && more.goroutines <= slack
	})
}

func TestManyProcessesOfAContainerCostABoundedNumberOfDescriptors(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources = executor.Resources{MemoryMB: 256, MaxPIDs: 512} })
	before := costs(t)
	var err error
	started := 0
	for err == nil && started <= stdio.MaxProcesses {
		if _, err = f.try("nobody", guid, idle); err == nil {
			started++
		}
	}
	if !errors.Is(err, executor.ErrProcesses) || started != stdio.MaxProcesses {
		t.Errorf("after %d processes: %v", started, err)
	}
	if more := costs(t).since(before).files; more > filesOfOutput*stdio.MaxProcesses {
		t.Errorf("they cost %d descriptors", more)
	}
	if err := f.Backend.Signal(f.ctx, guid, executor.Kill); err != nil {
		t.Fatal(err)
	}
	f.eventually("another one starts", func() bool {
		_, err := f.try("nobody", guid, idle)
		return err == nil
	})
}

func TestAFailedStartKeepsNoDescriptor(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	f.as("nobody", guid, "true").end()
	files := func() []string {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			to, _ := os.Readlink("/proc/self/fd/" + e.Name())
			all = append(all, e.Name()+" "+to)
		}
		return all
	}
	fail := func(i int) {
		if _, err := f.try("nobody", guid, "", func(s *executor.ProcessSpec) { s.Path = "/no/such" }); err == nil {
			t.Fatal("it started")
		}
		spec := f.spec(func(c *executor.ContainerSpec) {
			c.GUID = fmt.Sprint("failing-", i)
			c.Mounts = []executor.Mount{{Source: "/no/such", Target: "/mnt"}}
		})
		if _, err := f.Create(f.ctx, spec); err == nil {
			t.Fatal("it was made")
		}
	}
	fail(0) // its network waits for the next one
	before := files()
	for i := range 10 {
		fail(i)
	}
	runtime.GC() // libcontainer leaves some of a failed start to it
	f.eventually("the descriptors are closed", func() bool { return len(files()) <= len(before) })
}

func TestWhatMakesASessionOfItsOwnIsKilledWithItsContainer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("nobody", guid, "setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & wait")
	r.says("ready")
	if err := r.Signal(executor.Terminate); err != nil {
		t.Fatal(err)
	}
	r.end()
	if n := f.containers[guid].cgroup.PIDs(); n < 2 {
		t.Errorf("the session has ended with its parent: %d processes", n)
	}
	if err := f.Backend.Signal(f.ctx, guid, executor.Kill); err != nil {
		t.Fatal(err)
	}
	if n := f.containers[guid].cgroup.PIDs(); n != 1 {
		t.Errorf("%d processes are left, want the first one", n)
	}
}
