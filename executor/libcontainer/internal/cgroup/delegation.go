//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// With v2, the manager of the host's cgroups, such as systemd, may have given
// this daemon a part of the tree: a unit with Delegate=yes. Everything that it
// makes then belongs there, and nobody else changes it.

// delegationMarks are the extended attributes by which systemd says so.
var delegationMarks = []string{"trusted.delegate", "user.delegate"}

// delegatedTo is the cgroup that a process in the cgroup own may manage: the
// nearest one, from its own upwards, that is marked so. Without one it is the
// root.
func delegatedTo(own string, marked func(cgroup string) bool) string {
	for at := path.Clean("/" + own); at != "/"; at = path.Dir(at) {
		if marked(at) {
			return at
		}
	}
	return "/"
}

// ownCgroup is the v2 cgroup of a process, by the text of its /proc/PID/cgroup.
func ownCgroup(text string) string {
	for line := range strings.Lines(text) {
		if own, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(own)
		}
	}
	return "/"
}

// daemonCgroup is the name of the cgroup, below a delegated one, that holds the
// daemon itself: Linux limits nothing below a cgroup that has processes.
const daemonCgroup = "daemon"

// Base returns the cgroup below which this host's manager of cgroups, if it
// has one, lets us make ours. The processes that are in it move to one below. It takes
// root.
func Base() (string, error) {
	if versionAt(hostRoot) != &v2 {
		return "/", nil
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	base := delegatedTo(ownCgroup(string(text)), func(cgroup string) bool {
		var value [1]byte
		for _, mark := range delegationMarks {
			if n, err := unix.Getxattr(filepath.Join(hostRoot, cgroup), mark, value[:]); err == nil && string(value[:n]) == "1" {
				return true
			}
		}
		return false
	})
	if base == "/" {
		return base, nil
	}
	if err := makeRoom(filepath.Join(hostRoot, base)); err != nil {
		return "", fmt.Errorf("%w: the cgroup %s, which was delegated to this daemon, cannot be used: %w", executor.ErrUnsupported, base, err)
	}
	return base, nil
}

// makeRoom moves the processes of a v2 cgroup to one below it.
func makeRoom(dir string) error {
	pids := words(filepath.Join(dir, "cgroup.procs"))
	if len(pids) == 0 {
		return nil
	}
	below := filepath.Join(dir, daemonCgroup)
	if err := os.Mkdir(below, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	for _, pid := range pids {
		if _, err := strconv.Atoi(pid); err != nil {
			return fmt.Errorf("%s lists %q", dir, pid)
		}
		if err := put(filepath.Join(below, "cgroup.procs"), pid); err != nil && exists("/proc/"+pid) {
			return err
		}
	}
	return nil
}
