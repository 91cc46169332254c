//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs2"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// patience bounds everything that must happen; nothing waits for it to pass. An
// emulated processor is slow.
const patience = 3 * time.Minute

// idle is a script that goes on until somebody ends it.
const idle = "exec sleep 1000"

// manyPIDs is the limit of processes of a container that names none.
const manyPIDs = 1024

// tree is a directory with files, as a hierarchy of cgroups looks. A name that
// ends in "/" is a directory.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// fakeCgroups is a cgroup of each version in such a directory.
func fakeCgroups(t *testing.T, files map[string]string) map[string]*Cgroup {
	root := tree(t, files)
	return map[string]*Cgroup{
		"v1": {version: &v1, paths: map[string]string{
			"memory": filepath.Join(root, "memory"), "pids": filepath.Join(root, "pids"), "cpuacct": filepath.Join(root, "cpuacct")}},
		"v2": {version: &v2, paths: map[string]string{"": filepath.Join(root, "unified")}},
	}
}

func TestACgroupIsReadAsItsVersionWritesIt(t *testing.T) {
	const unknown = executor.Unknown
	whole := map[string]string{
		"memory/memory.usage_in_bytes":  "5000000\n",
		"memory/memory.stat":            "cache 1\ninactive_file 7\ntotal_inactive_file 1000000\n",
		"memory/memory.oom_control":     "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		"pids/pids.current":             "4\n",
		"cpuacct/cpuacct.usage":         "1500000000\n",
		"unified/memory.current":        "5000000\n",
		"unified/memory.stat":           "anon 1\nfile 2\ninactive_anon 3\ninactive_file 1000000\n",
		"unified/memory.events":         "low 0\nhigh 8\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n",
		"unified/pids.current":          "4\n",
		"unified/cpu.stat":              "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n",
		"unified/memory.oom_control":    "oom_kill 99\n", // of the other version
		"unified/memory.usage_in_bytes": "99\n",
	}
	with := func(changes map[string]string) map[string]string {
		files := make(map[string]string)
		for name, content := range whole {
			files[name] = content
		}
		for name, content := range changes {
			files[name] = content
		}
		return files
	}
	garbled := make(map[string]string)
	for name := range whole {
		garbled[name] = "usage_usec\noom_kill many\ninactive_file -\ntotal_inactive_file \x00\n"
	}
	empty := make(map[string]string)
	for name := range whole {
		empty[name] = ""
	}
	directories := make(map[string]string)
	for name := range whole {
		directories[name+"/"] = ""
	}
	for _, test := range []struct {
		name     string
		files    map[string]string
		want     executor.Usage
		oomKills int64
		memory   int64 // with what can be dropped
	}{
		{"all is there", whole, executor.Usage{MemoryBytes: 4_000_000, PIDs: 3, CPU: 1500 * time.Millisecond}, 2, 5_000_000},
		{"nothing is there", nil, executor.Usage{MemoryBytes: unknown, PIDs: unknown, CPU: unknown}, 0, 0},
		{"no number is one", garbled, executor.Usage{MemoryBytes: unknown, PIDs: unknown, CPU: unknown}, 0, 0},
		{"the files are empty", empty, executor.Usage{MemoryBytes: unknown, PIDs: unknown, CPU: unknown}, 0, 0},
		{"the files are directories", directories, executor.Usage{MemoryBytes: unknown, PIDs: unknown, CPU: unknown}, 0, 0},
		{"numbers are words, negative or too large", with(map[string]string{
			"memory/memory.usage_in_bytes": "max\n", "pids/pids.current": "-3\n", "cpuacct/cpuacct.usage": "99999999999999999999\n", "memory/memory.oom_control": "oom_kill -1\n",
			"unified/memory.current": "max\n", "unified/pids.current": "-3\n", "unified/cpu.stat": "usage_usec 99999999999999999999\n", "unified/memory.events": "oom_kill -1\n",
		}), executor.Usage{MemoryBytes: unknown, PIDs: unknown, CPU: unknown}, 0, 0},
		{"more can be dropped than is in use", with(map[string]string{
			"memory/memory.usage_in_bytes": "5\n", "unified/memory.current": "5\n",
		}), executor.Usage{PIDs: 3, CPU: 1500 * time.Millisecond}, 2, 5},
		{"nothing says what can be dropped", with(map[string]string{
			"memory/memory.stat": "", "unified/memory.stat": "",
		}), executor.Usage{MemoryBytes: 5_000_000, PIDs: 3, CPU: 1500 * time.Millisecond}, 2, 5_000_000},
		{"no process is left", with(map[string]string{
			"pids/pids.current": "0", "unified/pids.current": "0",
		}), executor.Usage{MemoryBytes: 4_000_000, CPU: 1500 * time.Millisecond}, 2, 5_000_000},
		{"nobody was killed for want of memory", with(map[string]string{
			"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 1\noom_kill 0\n", "unified/memory.events": "oom 9\noom_kill 0\noom_group_kill 9\n",
		}), executor.Usage{MemoryBytes: 4_000_000, PIDs: 3, CPU: 1500 * time.Millisecond}, 0, 5_000_000},
		{"the kernel is older than the count of kills", with(map[string]string{
			"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 1\n", "unified/memory.events": "oom 9\n",
		}), executor.Usage{MemoryBytes: 4_000_000, PIDs: 3, CPU: 1500 * time.Millisecond}, 0, 5_000_000},
	} {
		for name, g := range fakeCgroups(t, test.files) {
			t.Run(test.name+" in "+name, func(t *testing.T) {
				if got := g.Usage(); got != test.want {
					t.Errorf("it uses %+v, want %+v", got, test.want)
				}
				if got := g.Memory(); got != test.memory {
					t.Errorf("%d bytes count towards its limit, want %d", got, test.memory)
				}
				if got := g.OOMKills(); got != test.oomKills {
					t.Errorf("%d were killed for want of memory, want %d", got, test.oomKills)
				}
			})
		}
	}
}

func TestLimitsBelowWhatStartingTakesAreSetAfterwards(t *testing.T) {
	limitFiles := []string{"memory/memory.limit_in_bytes", "memory/memory.memsw.limit_in_bytes", "memory/memory.kmem.tcp.limit_in_bytes", "pids/pids.max", "unified/memory.max", "unified/pids.max"}
	for _, test := range []struct {
		name      string
		resources executor.Resources
		v1, v2    map[string]string // what has changed
	}{
		{"both", executor.Resources{MemoryMB: 4, MaxPIDs: 3},
			map[string]string{"memory/memory.limit_in_bytes": "4194304", "memory/memory.memsw.limit_in_bytes": "4194304", "memory/memory.kmem.tcp.limit_in_bytes": "1048576", "pids/pids.max": "4"},
			map[string]string{"unified/memory.max": "4194304", "unified/pids.max": "4"}},
		{"memory", executor.Resources{MemoryMB: 63, MaxPIDs: 100},
			map[string]string{"memory/memory.limit_in_bytes": "66060288", "memory/memory.memsw.limit_in_bytes": "66060288", "memory/memory.kmem.tcp.limit_in_bytes": "16515072"},
			map[string]string{"unified/memory.max": "66060288"}},
		{"processes", executor.Resources{MaxPIDs: 30}, map[string]string{"pids/pids.max": "31"}, map[string]string{"unified/pids.max": "31"}},
		{"neither", executor.Resources{MemoryMB: 64, MaxPIDs: 31}, map[string]string{"memory/memory.kmem.tcp.limit_in_bytes": "16777216"}, map[string]string{}},
		{"no limits", executor.Resources{MaxPIDs: 31}, map[string]string{}, map[string]string{}},
	} {
		files := make(map[string]string)
		for _, name := range limitFiles {
			files[name] = "as before"
		}
		root := tree(t, files)
		for _, version := range []struct {
			name string
			g    *Cgroup
			want map[string]string
		}{
			{"v1", &Cgroup{version: &v1, paths: map[string]string{"memory": root + "/memory", "pids": root + "/pids"}}, test.v1},
			{"v2", &Cgroup{version: &v2, paths: map[string]string{"": root + "/unified"}}, test.v2},
		} {
			t.Run(test.name+" in "+version.name, func(t *testing.T) {
				if err := version.g.Tighten(Limits(executor.ContainerSpec{Resources: test.resources}, manyPIDs, true)); err != nil {
					t.Fatal(err)
				}
				got := make(map[string]string)
				for _, name := range limitFiles {
					if (strings.HasPrefix(name, "unified")) != (version.g.version == &v2) {
						continue
					}
					text, err := os.ReadFile(filepath.Join(root, name))
					if err != nil {
						t.Error(err)
					}
					if string(text) != "as before" {
						got[name] = string(text)
					}
				}
				if diff := cmp.Diff(version.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestALimitThatCannotBeSetIsAnError(t *testing.T) {
	for name, g := range fakeCgroups(t, nil) {
		for _, r := range []executor.Resources{{MemoryMB: 4, MaxPIDs: 100}, {MaxPIDs: 4}} {
			if err := g.Tighten(Limits(executor.ContainerSpec{Resources: r}, manyPIDs, false)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: with %+v the error is %v", name, r, err)
			}
		}
	}
}

// What libcontainer makes of our limits on v2.
func TestTheLimitsOfAContainerAreThoseOfV2(t *testing.T) {
	cgroups.TestMode = true // lets it write outside of cgroups
	defer func() { cgroups.TestMode = false }()
	root := tree(t, map[string]string{controllersFile: "cpu memory pids", "cpu.weight": "", "memory.max": "", "memory.swap.max": "", "memory.current": "0", "pids.max": "", "cpu.max": "as before"})
	r := Limits(executor.ContainerSpec{CPUWeight: 25, Resources: executor.Resources{MemoryMB: 128, MaxPIDs: 40}}, manyPIDs, true)
	r.SkipDevices = true // devices are not files
	m, err := fs2.NewManager(&cgroups.Cgroup{Resources: r}, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cpu.weight": "25", "memory.max": "134217728", "memory.swap.max": "0", "pids.max": "41",
		"cpu.max": "as before", // who is alone may have it all
	} {
		if text, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, want %q; %v", name, text, want, err)
		}
	}
}

func TestWhatCgroupsLackIsSaidWithWhatToDo(t *testing.T) {
	const notThere = " is not available in ROOT; enable it in cgroup.subtree_control of the parent, and with cgroup_enable= if the kernel has it off"
	lacks := func(controller, why string) string { return "the cgroup controller " + controller + why }
	notMounted := func(controller string) string {
		return lacks(controller, strings.ReplaceAll(" is not mounted; boot with cgroup v2, or: mkdir -p ROOT/NAME && mount -t cgroup -o NAME none ROOT/NAME", "NAME", controller))
	}
	allOfV1 := map[string]string{"memory/memory.memsw.limit_in_bytes": "", "cpu/": "", "pids/": "", "devices/": ""}
	but := func(files map[string]string, without string, with ...string) map[string]string {
		changed := make(map[string]string)
		for name, content := range files {
			if name != without {
				changed[name] = content
			}
		}
		for i := 0; i < len(with); i += 2 {
			changed[with[i]] = with[i+1]
		}
		return changed
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  Features
	}{
		{"v2", map[string]string{controllersFile: "cpuset cpu io memory pids\n", handedOnFile: "cpu memory pids\n"}, Features{Swap: true}},
		{"v2 that hands nothing on yet", map[string]string{controllersFile: "cpu memory pids\n", handedOnFile: ""}, Features{Swap: true}},
		{"v2 beside directories of v1", but(allOfV1, "", controllersFile, "cpu memory pids\n", handedOnFile, "cpu memory pids\n"), Features{Swap: true}},
		{"v2 without memory", map[string]string{controllersFile: "cpu pids\n", handedOnFile: "cpu pids\n"},
			Features{Swap: true, Memory: lacks("memory", notThere)}},
		{"v2 without any", map[string]string{controllersFile: "\n", handedOnFile: "\n"},
			Features{Swap: true, Memory: lacks("memory", notThere), CPU: lacks("cpu", notThere), PIDs: lacks("pids", notThere)}},
		{"v2 with names that only begin alike", map[string]string{controllersFile: "cpuset memory2 pids,cpu\x00\n", handedOnFile: "cpuset memory2\n"},
			Features{Swap: true, Memory: lacks("memory", notThere), CPU: lacks("cpu", notThere), PIDs: lacks("pids", notThere)}},
		{"v2 whose controllers cannot be read", map[string]string{controllersFile + "/": "", handedOnFile: ""},
			Features{Swap: true, Memory: lacks("memory", notThere), CPU: lacks("cpu", notThere), PIDs: lacks("pids", notThere)}},
		{"v2 that cannot hand on", map[string]string{controllersFile: "cpu memory pids\n", handedOnFile + "/": ""},
			Features{Swap: true,
				Memory: lacks("memory", " cannot be had below ROOT: open ROOT/cgroup.subtree_control: is a directory"),
				CPU:    lacks("cpu", " cannot be had below ROOT: open ROOT/cgroup.subtree_control: is a directory"),
				PIDs:   lacks("pids", " cannot be had below ROOT: open ROOT/cgroup.subtree_control: is a directory")}},
		{"v1", allOfV1, Features{Swap: true}},
		{"v1 with v2 beside it", but(allOfV1, "", "unified/"+controllersFile, "\n"), Features{Swap: true}},
		{"v1 that cannot limit swap", but(allOfV1, "memory/memory.memsw.limit_in_bytes", "memory/", ""), Features{}},
		{"v1 without pids", but(allOfV1, "pids/"), Features{Swap: true, PIDs: notMounted("pids")}},
		{"v1 without memory", but(allOfV1, "memory/memory.memsw.limit_in_bytes"), Features{Memory: notMounted("memory")}},
		{"v1 with memory in v2", but(allOfV1, "memory/memory.memsw.limit_in_bytes", "unified/"+controllersFile, "hugetlb memory\n"),
			Features{Memory: lacks("memory", " is in the v2 hierarchy ROOT/unified while others are in v1; mount all in one version")}},
		{"v1 without devices", but(allOfV1, "devices/"), Features{Swap: true, Fatal: notMounted("devices")}},
		{"nothing", nil, Features{Memory: notMounted("memory"), CPU: notMounted("cpu"), PIDs: notMounted("pids"), Fatal: notMounted("devices")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := tree(t, test.files)
			got := lookAtTree(root)
			for _, text := range []*string{&got.Memory, &got.CPU, &got.PIDs, &got.Fatal} {
				*text = strings.ReplaceAll(*text, root, "ROOT")
			}
			if got != test.want {
				t.Errorf("it is\n%+v, want\n%+v", got, test.want)
			}
		})
	}
}

// lookAtTree takes the directories in root for what is mounted of v1.
func lookAtTree(root string) Features {
	return turnOn(root, func(controller string) (string, error) {
		path := filepath.Join(root, controller)
		_, err := os.Stat(path)
		return path, err
	})
}

func TestCgroupsThatCannotBeWrittenAreSaid(t *testing.T) {
	testenv.Root(t)
	for _, test := range []struct {
		name  string
		files []string
		want  func(root string, f Features) bool
	}{
		{"v2", []string{controllersFile, handedOnFile}, func(root string, f Features) bool {
			return f.Fatal == "cgroups cannot be made in "+root+": read-only file system; mount cgroup2 there writable"
		}},
		{"v1", []string{"memory", "cpu", "pids", "devices"}, func(_ string, f Features) bool {
			return f.Fatal == "the cgroup controller devices cannot be written: read-only file system" &&
				f.Memory == "the cgroup controller memory cannot be written: read-only file system"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range test.files {
				if err := os.WriteFile(filepath.Join(root, name), []byte("cpu memory pids"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, flags := range []uintptr{unix.MS_BIND, unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY} {
				if err := unix.Mount(root, root, "", flags, ""); err != nil {
					t.Fatal(err)
				}
				if flags == unix.MS_BIND {
					t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
				}
			}
			if f := lookAtTree(root); !test.want(root, f) {
				t.Errorf("it is %+v", f)
			}
		})
	}
}

func TestTheVersionOfThisHostIsTheOneThatLibcontainerSees(t *testing.T) {
	if got := versionAt(hostRoot) == &v2; got != cgroups.IsCgroup2UnifiedMode() {
		t.Errorf("is it v2: %v, and libcontainer says %v", got, !got)
	}
}

// realV2 is where this host has v2, alone or beside v1.
func realV2(t *testing.T) (root string) {
	testenv.Root(t)
	for _, root := range []string{hostRoot, filepath.Join(hostRoot, "unified")} {
		if exists(filepath.Join(root, controllersFile)) {
			return root
		}
	}
	t.Log("this host has no v2")
	return ""
}

// newV2 makes a cgroup of v2, which is removed at the end of the test.
func newV2(t *testing.T, parent, name string) *Cgroup {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := fs2.NewManager(&cgroups.Cgroup{Resources: &cgroups.Resources{}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &Cgroup{manager: m, version: &v2, paths: m.GetPaths()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(g.Kill(ctx), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// inside starts a shell in a cgroup.
func inside(t *testing.T, g *Cgroup, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "echo $$ > "+filepath.Join(g.paths[""], "cgroup.procs")+"\n"+script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestThreadsAreThoseThatTheKernelLists(t *testing.T) {
	for name, g := range fakeCgroups(t, map[string]string{
		"pids/tasks": "12\n0\n7\n", "unified/cgroup.threads": "12\n0\n7\n",
	}) {
		if got := g.Threads(); !slices.Equal(got, []int{12, 7}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestARealCgroupOfV2IsMeasuredEmptiedAndRemoved(t *testing.T) {
	root := realV2(t)
	if root == "" {
		return
	}
	g := newV2(t, root, fmt.Sprintf("diego-test-measured-%d", os.Getpid()))
	child := newV2(t, g.paths[""], "child") // which a process inside may make
	busy := inside(t, child, "(while :; do :; done) & wait")
	await(t, "it has used the CPU", func() bool { return g.Usage().CPU > 0 })
	for what, value := range map[control]int64{v2.memory: g.Usage().MemoryBytes, v2.pids: g.Usage().PIDs} {
		if here := exists(g.path(what)); here == (value == executor.Unknown) {
			t.Errorf("%s is there: %v, and read as %d", what.file, here, value)
		}
	}
	if n := g.OOMKills(); n != 0 {
		t.Errorf("%d were killed for want of memory", n)
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy.Wait()
	if err := g.Remove(); err != nil || exists(g.paths[""]) {
		t.Errorf("it is there: %v", err)
	}
}

// As a daemon in somebody's container finds it: what is its root is a cgroup
// with processes.
func TestARealV2HandsOnWhatItHasUnlessProcessesAreInTheWay(t *testing.T) {
	root := realV2(t)
	if root == "" {
		return
	}
	// Any controller will do that is for whole processes, as memory is.
	available := words(filepath.Join(root, controllersFile))
	var controller string
	for _, c := range []string{"memory", "io", "hugetlb", "misc", "rdma"} {
		if slices.Contains(available, c) {
			controller = c
			break
		}
	}
	if controller == "" {
		t.Logf("%s has only the controllers %q", root, available)
		return
	}
	if why := turnOnV2(root, "nonsense"); !strings.Contains(why, "is not available in "+root) {
		t.Errorf("of no controller at all it is said that %q", why)
	}
	if !slices.Contains(words(filepath.Join(root, handedOnFile)), controller) {
		t.Cleanup(func() { put(filepath.Join(root, handedOnFile), "-"+controller) })
	}
	if why := turnOnV2(root, controller); why != "" {
		t.Fatal(why)
	}
	empty := newV2(t, root, fmt.Sprintf("diego-test-empty-%d", os.Getpid()))
	if why := turnOnV2(empty.paths[""], controller); why != "" {
		t.Errorf("where no process is: %s", why)
	}
	full := newV2(t, root, fmt.Sprintf("diego-test-full-%d", os.Getpid()))
	cmd := inside(t, full, idle)
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	await(t, "the process is inside", func() bool {
		pids, _ := cgroups.GetAllPids(full.paths[""])
		return len(pids) > 0
	})
	if why := turnOnV2(full.paths[""], controller); !strings.Contains(why, "there are processes in it itself; move them") {
		t.Errorf("where a process is it is said that %q", why)
	}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) { // between two looks
		if time.Now().After(deadline) {
			t.Fatalf("it has not happened that %s", what)
		}
	}
}
