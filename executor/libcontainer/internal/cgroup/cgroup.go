//go:build linux && cgo && (amd64 || arm64)

// Package cgroup limits, measures and kills what runs in a container, by its
// cgroup in version 1 or 2. [Base] finds the part of the tree that belongs to
// this daemon, a [Parent] owns the cgroups of one Backend there, and a [Cgroup]
// is that of one container. [TurnOn] turns the controllers on and says what this
// host can limit.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/kernelfile"
)

// A Cgroup is the cgroup of a container, in every hierarchy of v1 or the only
// one of v2. It is named after the container and therefore found without any
// record. Its methods may be called concurrently.
type Cgroup struct {
	manager cgroups.Manager
	version *version
	paths   map[string]string // by v1 controller; "" is v2, also beside v1
	hunts   hunts
}

// at returns the cgroup with a path, as libcontainer names it. The cgroup need not
// exist. dirs are its directories as Dirs returns them; if it is empty, at finds
// them.
func at(path string, dirs map[string]string) (*Cgroup, error) {
	m, err := manager.NewWithPaths(&cgroups.Cgroup{Path: path, Resources: &cgroups.Resources{}}, dirs)
	if err != nil {
		return nil, err
	}
	// The manager removes from its own map, without a lock.
	return &Cgroup{manager: m, version: versionAt(hostRoot), paths: maps.Clone(m.GetPaths())}, nil
}

// Dirs returns the directories that the cgroup has or would have, by controller
// of v1; "" is that of v2.
func (g *Cgroup) Dirs() map[string]string { return g.paths }

// Exists reports whether a part of the cgroup is there.
func (g *Cgroup) Exists() bool {
	for _, dir := range g.paths {
		if exists(dir) {
			return true
		}
	}
	return false
}

// processes is the directory that lists the processes.
func (g *Cgroup) processes() string { return g.paths[g.version.pids.controller] }

// KillPause is the time between two looks at what has not yet died.
const KillPause = time.Millisecond

// Kill returns when no process is left. Usually there is none: the kernel has
// killed them with the first one.
func (g *Cgroup) Kill(ctx context.Context) error {
	for {
		left := false
		for _, dir := range g.paths {
			pids, err := cgroups.GetAllPids(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
				return err
			}
			for _, pid := range pids {
				if pid <= 1 {
					continue // a process of another pid namespace
				}
				left = true
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		if !left {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes do not die: %w", ctx.Err())
		case <-time.After(KillPause):
		}
	}
}

// KillOthers sends SIGKILL to all processes that are there now, but to that one.
func (g *Cgroup) KillOthers(pid int) {
	pids, _ := cgroups.GetAllPids(g.processes())
	for _, p := range pids {
		if p > 1 && p != pid {
			unix.Kill(p, unix.SIGKILL)
		}
	}
}

// Remove removes the directories.
func (g *Cgroup) Remove() error { return g.manager.Destroy() }

// OOMKills is how many processes were killed for lack of memory, as far as that
// is known.
func (g *Cgroup) OOMKills() int64 { return max(0, g.read(g.version.oomKills)) }

// HostStall is how long, in total, some thread of the host has waited for memory, or for
// room below a limit, as each does before the kernel looks for one to kill. The kernel adds
// to it every 2 s. known is false if it does not, as some do without psi=1.
func HostStall() (stall time.Duration, known bool) {
	text, _ := kernelfile.Read("/proc/pressure/memory") // some avg10=0.00 avg60=0.00 avg300=0.00 total=123
	line, _, _ := strings.Cut(text, "\n")
	_, total, _ := strings.Cut(line, " total=")
	n, err := strconv.ParseInt(total, 10, 64)
	return time.Duration(n) * time.Microsecond, err == nil
}

// Memory is how many bytes count towards the limit of the container, with those that the
// kernel can take back: 0 if that is not known.
func (g *Cgroup) Memory() int64 { return max(0, g.read(g.version.memory)) }

// Processes are the numbers of the container's processes on the host, as far as they
// can be read.
func (g *Cgroup) Processes() []int {
	pids, _ := cgroups.GetAllPids(g.processes())
	return pids
}

// Threads are the numbers of the threads of these processes, as far as they can be read.
func (g *Cgroup) Threads() (ids []int) {
	text, _ := os.ReadFile(g.path(g.version.threads))
	for id := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(id); err == nil && n > 0 { // 0 is one of another pid namespace
			ids = append(ids, n)
		}
	}
	return ids
}

// CPUWeight is the weight of the container among others, in the kernel's unit.
func (g *Cgroup) CPUWeight() int64 { return g.read(g.version.cpuWeight) }

// SetCPUWeight replaces the weight that Limits has set; it is from 1 to
// executor.MaxCPUWeight.
func (g *Cgroup) SetCPUWeight(weight int64) error {
	return g.write(g.version.cpuWeight, max(1, weight*g.version.fullCPUWeight/executor.MaxCPUWeight))
}

// PIDs is the number of processes and threads.
func (g *Cgroup) PIDs() int64 { return g.read(g.version.pids) }

// KernelMemory is how many bytes the kernel holds for the container and counts for it: 0
// if that is not known.
func (g *Cgroup) KernelMemory() int64 { return max(0, g.read(g.version.kernelMemory)) }

// Usage measures the container without its first process.
func (g *Cgroup) Usage() executor.Usage {
	m := executor.Usage{
		MemoryBytes: g.read(g.version.memory),
		PIDs:        g.PIDs(),
		CPU:         executor.Unknown,
	}
	// What the kernel can drop at any time does not count as used.
	if cache := g.read(g.version.cache); cache > 0 && m.MemoryBytes > 0 {
		m.MemoryBytes = max(0, m.MemoryBytes-cache)
	}
	if m.PIDs > 0 {
		m.PIDs--
	}
	if spent := g.read(g.version.cpu); spent >= 0 {
		m.CPU = time.Duration(spent) * g.version.cpuUnit
	}
	return m
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
