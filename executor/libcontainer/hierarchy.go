//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// cgroupRoot is where hosts have their cgroups: v2 itself, or a directory with
// what is mounted of v1 and, in a hybrid, v2 beside it without most controllers.
const cgroupRoot = "/sys/fs/cgroup"

// A version says where one version of cgroups keeps the numbers that we read
// and write.
type version struct {
	memory, cache, memoryLimit, swapLimit, oomKills control

	pids, pidsLimit control

	cpu     control
	cpuUnit time.Duration

	owner string // the controller in whose directory we see who owns cgroups
}

// A control is a number: alone in a file, or behind a key.
type control struct {
	controller string // whose directory it is in; v2 has one for all
	file, key  string // no file means that there is no such number
}

var (
	v1 = version{
		memory:      control{"memory", "memory.usage_in_bytes", ""},
		cache:       control{"memory", "memory.stat", "total_inactive_file"},
		memoryLimit: control{"memory", "memory.limit_in_bytes", ""},
		swapLimit:   control{"memory", "memory.memsw.limit_in_bytes", ""},
		oomKills:    control{"memory", "memory.oom_control", "oom_kill"},
		pids:        control{"pids", "pids.current", ""},
		pidsLimit:   control{"pids", "pids.max", ""},
		cpu:         control{"cpuacct", "cpuacct.usage", ""},
		cpuUnit:     time.Nanosecond,
		owner:       "devices",
	}
	v2 = version{
		memory:      control{"", "memory.current", ""},
		cache:       control{"", "memory.stat", "inactive_file"},
		memoryLimit: control{"", "memory.max", ""},
		oomKills:    control{"", "memory.events", "oom_kill"},
		pids:        control{"", "pids.current", ""},
		pidsLimit:   control{"", "pids.max", ""},
		cpu:         control{"", "cpu.stat", "usage_usec"},
		cpuUnit:     time.Microsecond,
	}
)

// versionAt is the version of which a host is whose cgroups are at root.
func versionAt(root string) *version {
	if exists(filepath.Join(root, controllersFile)) {
		return &v2
	}
	return &v1
}

// The files of a v2 cgroup that say which controllers it has, and which of
// them its children have.
const (
	controllersFile = "cgroup.controllers"
	handedOnFile    = "cgroup.subtree_control"
)

func (g *cgroup) path(c control) string { return filepath.Join(g.paths[c.controller], c.file) }

// read is a number, or executor.Unknown.
func (g *cgroup) read(c control) int64 {
	text, err := os.ReadFile(g.path(c))
	if err != nil {
		return executor.Unknown
	}
	number := string(text)
	if c.key != "" {
		number = ""
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, c.key+" "); ok {
				number = value
			}
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 {
		return executor.Unknown
	}
	return n
}

// write does nothing where this version has no such number.
func (g *cgroup) write(c control, n int64) error {
	if c.file == "" {
		return nil
	}
	err := put(g.path(c), strconv.FormatInt(n, 10))
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%d is less than what is in use: %w", n, err)
	}
	return err
}

// put writes to a file of a cgroup, which is never made by that.
func put(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// lookAtCgroups finds out what cgroups at root can limit. mount is where a
// controller of v1 is mounted.
func (f *facts) lookAtCgroups(root string, mount func(controller string) (string, error)) {
	missing := func(controller string) string { return missingV1(root, controller, mount) }
	if versionAt(root) == &v2 {
		if err := unix.Access(root, unix.W_OK); err != nil {
			f.fatal = "cgroups cannot be made in " + root + ": " + err.Error() + "; mount cgroup2 there writable"
		}
		missing = func(controller string) string { return missingV2(root, controller) }
		f.swapLimit = true
	} else {
		// It finds what belongs to a container; without it none can be removed.
		f.fatal = missing("devices")
		if path, err := mount("memory"); err == nil {
			f.swapLimit = exists(filepath.Join(path, v1.swapLimit.file))
		}
	}
	f.memory, f.cpu, f.pids = missing("memory"), missing("cpu"), missing("pids")
}

func missingV1(root, controller string, mount func(string) (string, error)) string {
	path, err := mount(controller)
	if err != nil {
		if beside := filepath.Join(root, "unified"); slices.Contains(words(filepath.Join(beside, controllersFile)), controller) {
			return "the cgroup controller " + controller + " is in the v2 hierarchy " + beside + " while others are in v1; mount all in one version"
		}
		return "the cgroup controller " + controller + " is not mounted; mount cgroups (v2 preferred)"
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return "the cgroup controller " + controller + " cannot be written: " + err.Error()
	}
	return ""
}

// missingV2 tries whether root hands a controller on to the cgroups below it,
// as setting a container up does.
func missingV2(root, controller string) string {
	if !slices.Contains(words(filepath.Join(root, controllersFile)), controller) {
		return "the cgroup controller " + controller + " is not available in " + root + "; enable it in " + handedOnFile + " of the parent, and with cgroup_enable= if the kernel has it off"
	}
	handedOn := filepath.Join(root, handedOnFile)
	if slices.Contains(words(handedOn), controller) {
		return ""
	}
	switch err := put(handedOn, "+"+controller); {
	case errors.Is(err, unix.EBUSY):
		return "the cgroup controller " + controller + " cannot be had below " + root + ", as there are processes in it itself; move them, this daemon included, to a cgroup below it first"
	case err != nil:
		return "the cgroup controller " + controller + " cannot be had below " + root + ": " + err.Error()
	}
	return ""
}

// words are those of a file, or none if it cannot be read.
func words(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Fields(string(text))
}
