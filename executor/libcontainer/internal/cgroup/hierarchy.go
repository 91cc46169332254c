//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/kernelfile"
)

// hostRoot is where hosts have their cgroups: v2 itself, or a directory with
// what is mounted of v1 and, in a hybrid, v2 beside it without most controllers.
const hostRoot = "/sys/fs/cgroup"

// A version says where one version of cgroups keeps the numbers that we read
// and write.
type version struct {
	memory, kernelMemory, cache, memoryLimit, swapLimit, socketLimit, oomKills control

	pids, pidsLimit control
	threads         control // a list of numbers

	cpu     control
	cpuUnit time.Duration

	cpuWeight     control
	fullCPUWeight int64 // what stands there for executor.MaxCPUWeight

	owner string // the controller in whose directory we see who owns cgroups
}

// A control is a number: alone in a file, or behind a key.
type control struct {
	controller string // whose directory it is in; v2 has one for all
	file, key  string // no file means that there is no such number
}

var (
	v1 = version{
		memory:        control{"memory", "memory.usage_in_bytes", ""},
		kernelMemory:  control{"memory", "memory.kmem.usage_in_bytes", ""},
		cache:         control{"memory", "memory.stat", "total_inactive_file"},
		memoryLimit:   control{"memory", "memory.limit_in_bytes", ""},
		swapLimit:     control{"memory", "memory.memsw.limit_in_bytes", ""},
		socketLimit:   control{"memory", "memory.kmem.tcp.limit_in_bytes", ""}, // of UDP, too
		oomKills:      control{"memory", "memory.oom_control", "oom_kill"},
		pids:          control{"pids", "pids.current", ""},
		pidsLimit:     control{"pids", "pids.max", ""},
		threads:       control{"pids", "tasks", ""},
		cpu:           control{"cpuacct", "cpuacct.usage", ""},
		cpuUnit:       time.Nanosecond,
		cpuWeight:     control{"cpu", "cpu.shares", ""},
		fullCPUWeight: 1024,
		owner:         "devices",
	}
	v2 = version{
		memory:        control{"", "memory.current", ""},
		kernelMemory:  control{"", "memory.stat", "kernel"}, // since Linux 5.18
		cache:         control{"", "memory.stat", "inactive_file"},
		memoryLimit:   control{"", "memory.max", ""},
		oomKills:      control{"", "memory.events", "oom_kill"},
		pids:          control{"", "pids.current", ""},
		pidsLimit:     control{"", "pids.max", ""},
		threads:       control{"", "cgroup.threads", ""},
		cpu:           control{"", "cpu.stat", "usage_usec"},
		cpuUnit:       time.Microsecond,
		cpuWeight:     control{"", "cpu.weight", ""},
		fullCPUWeight: executor.MaxCPUWeight,
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

func (g *Cgroup) path(c control) string { return filepath.Join(g.paths[c.controller], c.file) }

// read is a number, or executor.Unknown.
func (g *Cgroup) read(c control) int64 {
	n, there := kernelfile.Number(g.path(c), c.key)
	if !there {
		return executor.Unknown
	}
	return n
}

// write does nothing where this version has no such number.
func (g *Cgroup) write(c control, n int64) error {
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
