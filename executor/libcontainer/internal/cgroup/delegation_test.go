//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencontainers/cgroups"
)

func TestCgroupsAreMadeInTheNearestDelegatedOne(t *testing.T) {
	const unit = "/system.slice/diego-rep.service"
	for _, test := range []struct {
		name, text string
		marked     []string
		want       string
	}{
		{"a unit with Delegate=yes", "0::" + unit + "\n", []string{unit}, unit},
		{"the same once the daemon has moved", "0::" + unit + "/daemon\n", []string{unit}, unit},
		{"delegated twice", "0::" + unit + "/a/b\n", []string{unit, unit + "/a"}, unit + "/a"},
		{"a unit without", "0::" + unit + "\n", nil, "/"},
		{"somebody else's unit", "0::" + unit + "\n", []string{"/system.slice/other.service"}, "/"},
		{"in the root", "0::/\n", []string{"/"}, "/"},
		{"v1 beside it", "1:name=systemd:/x\n0::" + unit + "\n", []string{unit}, unit},
		{"nothing", "", []string{"/"}, "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := delegatedTo(ownCgroup(test.text), func(cgroup string) bool { return slices.Contains(test.marked, cgroup) })
			if got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheProcessesOfADelegatedCgroupMakeRoomInIt(t *testing.T) {
	root := realV2(t)
	if root == "" {
		return
	}
	g := newV2(t, root, fmt.Sprintf("diego-test-delegated-%d", os.Getpid()))
	dir := g.paths[""]
	if err := makeRoom(dir); err != nil || exists(filepath.Join(dir, daemonCgroup)) {
		t.Errorf("in an empty one nothing has to be moved: %v", err)
	}
	cmd := inside(t, g, idle)
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	await(t, "the process is inside", func() bool {
		pids, _ := cgroups.GetAllPids(dir)
		return len(pids) > 0
	})
	for range 2 { // also if the cgroup for the daemon is there
		if err := makeRoom(dir); err != nil {
			t.Fatal(err)
		}
	}
	if left := words(filepath.Join(dir, "cgroup.procs")); len(left) != 0 {
		t.Errorf("%q are still in it", left)
	}
	if now := words(filepath.Join(dir, daemonCgroup, "cgroup.procs")); !slices.Contains(now, fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("%d is not among %q", cmd.Process.Pid, now)
	}
}
