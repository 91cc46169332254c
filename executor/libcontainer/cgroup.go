//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// cgroup is the cgroup of a container, in every hierarchy of v1 or the only
// one of v2. It is named after the container and therefore found without any
// record.
type cgroup struct {
	manager cgroups.Manager
	unified bool              // v2
	paths   map[string]string // by v1 controller; "" is v2, also beside v1
}

func (b *Backend) cgroupPath(guid string) string { return path.Join(b.cgroupParent(), guid) }

// cgroupParent is this backend's alone, so that nobody minds when it goes.
func (b *Backend) cgroupParent() string { return path.Join("/", b.options.CgroupParent+"-"+b.id) }

func (b *Backend) cgroup(guid string) (*cgroup, error) {
	return newCgroup(&cgroups.Cgroup{Path: b.cgroupPath(guid), Resources: &cgroups.Resources{}})
}

func newCgroup(config *cgroups.Cgroup) (*cgroup, error) {
	m, err := manager.New(config)
	if err != nil {
		return nil, err
	}
	return &cgroup{m, cgroups.IsCgroup2UnifiedMode(), m.GetPaths()}, nil
}

// file is the path of a control file: of v1 in a controller's directory.
func (g *cgroup) file(controller, v1, v2 string) string {
	if g.unified {
		return filepath.Join(g.paths[""], v2)
	}
	return filepath.Join(g.paths[controller], v1)
}

const killPause = time.Millisecond

// kill returns when no process is left. Usually there is none: the kernel has
// killed them with the first one.
func (g *cgroup) kill(ctx context.Context) error {
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
		case <-time.After(killPause):
		}
	}
}

// remove removes the directories.
func (g *cgroup) remove() error { return g.manager.Destroy() }

// oomKills is how many processes were killed for want of memory.
func (g *cgroup) oomKills() int64 {
	return keyed(g.file("memory", "memory.oom_control", "memory.events"), "oom_kill")
}

// keyed is the number behind a key in a file of "key number" lines, or
// executor.Unknown.
func keyed(name, key string) int64 {
	f, err := os.Open(name)
	if err != nil {
		return executor.Unknown
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), key+" "); ok {
			if n, err := strconv.ParseInt(number, 10, 64); err == nil {
				return n
			}
		}
	}
	return executor.Unknown
}

// number is the content of a file that holds one, or executor.Unknown.
func number(name string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return executor.Unknown
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return executor.Unknown
	}
	return n
}

// pids is the number of processes and threads.
func (g *cgroup) pids() int64 { return number(g.file("pids", "pids.current", "pids.current")) }

// usage measures the container without its first process.
func (g *cgroup) usage() executor.Metrics {
	m := executor.Metrics{
		MemoryBytes: number(g.file("memory", "memory.usage_in_bytes", "memory.current")),
		PIDs:        g.pids(),
		CPU:         executor.Unknown,
	}
	// What the kernel can drop at any time is nobody's use.
	if cache := keyed(g.file("memory", "memory.stat", "memory.stat"), g.key("total_inactive_file", "inactive_file")); cache > 0 {
		m.MemoryBytes = max(0, m.MemoryBytes-cache)
	}
	if m.PIDs > 0 {
		m.PIDs--
	}
	if g.unified {
		if us := keyed(g.file("", "", "cpu.stat"), "usage_usec"); us >= 0 {
			m.CPU = time.Duration(us) * time.Microsecond
		}
	} else if ns := number(g.file("cpuacct", "cpuacct.usage", "")); ns >= 0 {
		m.CPU = time.Duration(ns)
	}
	return m
}

func (g *cgroup) key(v1, v2 string) string {
	if g.unified {
		return v2
	}
	return v1
}

// limits are the resources of a container. CPU shares are given in both
// forms: each version of cgroups reads its own.
func (b *Backend) limits(spec executor.ContainerSpec) *cgroups.Resources {
	pids := spec.Resources.MaxPIDs
	if pids == 0 {
		pids = b.options.MaxPIDs
	}
	pids++ // the first process is ours
	weight := uint64(spec.CPUWeight)
	if weight == 0 {
		weight = executor.MaxCPUWeight
	}
	r := &cgroups.Resources{
		PidsLimit: &pids,
		CpuShares: max(2, weight*1024/executor.MaxCPUWeight),
		CpuWeight: weight,
		Devices:   deviceRules(spec.Privileged),
	}
	if r.Memory = spec.Resources.MemoryMB << 20; r.Memory > 0 && b.host.swapLimit {
		r.MemorySwap = r.Memory
	}
	return r
}

func deviceRules(privileged bool) []*devices.Rule {
	if privileged {
		return []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm", Allow: true}}
	}
	rules := []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm", Allow: false}}
	for _, d := range deviceNodes() {
		rules = append(rules, &d.Rule)
	}
	// Terminals that the container makes for itself.
	return append(rules,
		&devices.Rule{Type: devices.CharDevice, Major: 5, Minor: 2, Permissions: "rwm", Allow: true},
		&devices.Rule{Type: devices.CharDevice, Major: 136, Minor: devices.Wildcard, Permissions: "rwm", Allow: true})
}

// deviceNodes are the devices of every container; they give away nothing.
func deviceNodes() []*devices.Device {
	var all []*devices.Device
	for _, d := range []struct {
		path         string
		major, minor int64
	}{
		{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7},
		{"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
	} {
		all = append(all, &devices.Device{Path: d.path, FileMode: 0o666, Rule: devices.Rule{
			Type: devices.CharDevice, Major: d.major, Minor: d.minor, Permissions: "rwm", Allow: true}})
	}
	return all
}
