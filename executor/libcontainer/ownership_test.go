//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/internal/testenv"
)

// deleteTree deletes a directory with everything that is mounted in it, as an
// administrator does.
func deleteTree(t *testing.T, dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, dir+"/") {
			unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// cgroupDirs are the directories of a container's cgroup that are there.
func cgroupDirs(t *testing.T, b *Backend, guid string) (dirs []string) {
	t.Helper()
	g, err := b.cgroups.Child(guid)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.Dirs() {
		if exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// startSurvivor starts a process in the cgroup of a container, as if it had lived on.
func startSurvivor(t *testing.T, dirs []string) (died <-chan error) {
	t.Helper()
	survivor := exec.Command("/bin/sleep", "1000")
	if err := survivor.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- survivor.Wait() }()
	for _, dir := range dirs {
		if filepath.Base(filepath.Dir(filepath.Dir(dir))) == "cpuset" {
			continue // takes nobody before it has processors
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(survivor.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	return waited
}

func TestCgroupsOfADeletedDirEndWithTheNextDaemonAndNobodyElses(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "cell")
	for _, deleted := range []string{dir, filepath.Join(dir, containersDir, "a")} {
		t.Run("deleted "+filepath.Base(deleted), func(t *testing.T) {
			other := newFixture(t)
			neighbour, _ := other.create()
			works := other.as("nobody", neighbour, "echo ready; exec sleep 1000")
			works.says("ready")

			killedDaemon(t, dir)
			deleteTree(t, deleted)
			f := newFixture(t, func(o *Options) { o.Dir = dir })
			dirs := cgroupDirs(t, f.Backend, "a")
			if len(dirs) == 0 {
				t.Fatal("the daemon has left no cgroup; what is tested?")
			}
			died := startSurvivor(t, dirs)
			if guids, err := f.List(f.ctx); err != nil || !cmp.Equal(guids, []string{"a"}) {
				t.Errorf("the containers are %q, %v", guids, err)
			}
			m, stop := startManager(t, f.Backend, dir+"-cell")
			f.eventually("all but the table is removed", func() bool { return cmp.Equal(traces(t, f.Backend), []string{"table diego-" + f.id}) })
			f.eventually("the manager has seen that", func() bool { return len(m.Deletions()) == 0 })
			stop()
			<-died

			if guids, err := f.List(f.ctx); err != nil || len(guids) != 0 {
				t.Errorf("the containers are %q, %v", guids, err)
			}
			if len(cgroupDirs(t, other.Backend, neighbour)) == 0 {
				t.Error("the cgroups of another Dir are gone")
			}
			if err := works.Signal(executor.Kill); err != nil {
				t.Errorf("the neighbour's process: %v", err)
			}
			works.end()
		})
	}
}

func TestStraysAreListedWhenTheDirectoryOfAllContainersIsGone(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "cell")
	killedDaemon(t, dir)
	f := newFixture(t, func(o *Options) { o.Dir = dir })
	deleteTree(t, f.dir(""))
	mustList := func(when string, want ...string) {
		t.Helper()
		if guids, err := f.List(f.ctx); err != nil || !slices.Equal(guids, want) {
			t.Errorf("%s, the containers are %q, %v", when, guids, err)
		}
	}
	mustList("at first", "a")
	died := startSurvivor(t, cgroupDirs(t, f.Backend, "a"))
	late, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := f.Delete(late, "a"); err == nil {
		t.Error("it is deleted while a process runs in it")
	}
	<-died
	mustList("after a deletion that has failed", "a")
	if err := f.Delete(f.ctx, "a"); err != nil {
		t.Error(err)
	}
	mustList("at last")
	if err := os.Mkdir(f.dir(""), 0o700); err != nil { // it is part of what is looked at
		t.Fatal(err)
	}
	f.eventually("nothing is left", func() bool { return cmp.Equal(traces(t, f.Backend), []string{"table diego-" + f.id}) })
}

// As in two containers that see each other's cgroups and not each other's
// files.
func TestTheCgroupsOfALiveDaemonWithTheSameDirAreNotTouched(t *testing.T) {
	first := newFixture(t)
	guid, _ := first.create()
	works := first.as("nobody", guid, "echo ready; exec sleep 1000")
	works.says("ready")
	directory, away := first.dir(guid), first.options.Dir+"-away"
	if err := os.Rename(directory, away); err != nil {
		t.Fatal(err)
	}
	second := openBackend(t, Options{Dir: first.options.Dir, HostNetwork: true})
	if guids, err := second.List(first.ctx); err != nil || len(guids) != 0 {
		t.Errorf("the containers are %q, %v", guids, err)
	}
	if err := second.Delete(first.ctx, guid); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(away, directory); err != nil {
		t.Fatal(err)
	}
	if err := first.containers[guid].usable(); err != nil || len(cgroupDirs(t, first.Backend, guid)) == 0 {
		t.Errorf("the container is gone: %v", err)
	}
	if err := works.Signal(executor.Kill); err != nil {
		t.Error(err)
	}
	works.end()
}

func TestAContainerThatIsThereIsNotTakenForLost(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	away := f.options.Dir + "-away"
	if err := os.Rename(f.dir(guid), away); err != nil {
		t.Fatal(err)
	}
	if guids, err := f.List(f.ctx); err != nil || len(guids) != 0 {
		t.Errorf("what has lost its directory is listed: %q, %v", guids, err)
	}
	if err := os.Rename(away, f.dir(guid)); err != nil {
		t.Fatal(err)
	}
}

// The unit of systemd in which scripts/test-hosts runs the tests has
// Delegate=yes.
func TestContainersAreInTheDelegatedCgroup(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	g, err := f.cgroups.Child(guid)
	if err != nil {
		t.Fatal(err)
	}
	base, err := cgroup.Base()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if path := g.Dirs()[""]; base != "/" && !(strings.HasPrefix(path, filepath.Join("/sys/fs/cgroup", base)+"/") && strings.Contains(string(own), "0::"+base+"/")) {
		t.Errorf("the container is in %s and the daemon in %s, but %s was delegated", path, own, base)
	}
}
