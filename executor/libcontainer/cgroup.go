//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
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
	version *version
	paths   map[string]string // by v1 controller; "" is v2, also beside v1
}

func (b *Backend) cgroupPath(guid string) string { return path.Join(b.cgroupParent(), guid) }

// cgroupParent is this backend's alone, so that nobody minds when it goes.
func (b *Backend) cgroupParent() string {
	return path.Join("/", b.base, b.options.CgroupParent+"-"+b.id)
}

func (b *Backend) cgroup(guid string) (*cgroup, error) {
	return newCgroup(&cgroups.Cgroup{Path: b.cgroupPath(guid), Resources: &cgroups.Resources{}})
}

func newCgroup(config *cgroups.Cgroup) (*cgroup, error) {
	m, err := manager.New(config)
	if err != nil {
		return nil, err
	}
	return &cgroup{m, versionAt(cgroupRoot), m.GetPaths()}, nil
}

// processes is the directory that lists the processes.
func (g *cgroup) processes() string { return g.paths[g.version.pids.controller] }

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

// oomKills is how many processes were killed for want of memory, as far as
// that is known.
func (g *cgroup) oomKills() int64 { return max(0, g.read(g.version.oomKills)) }

// pids is the number of processes and threads.
func (g *cgroup) pids() int64 { return g.read(g.version.pids) }

// usage measures the container without its first process.
func (g *cgroup) usage() executor.Usage {
	m := executor.Usage{
		MemoryBytes: g.read(g.version.memory),
		PIDs:        g.pids(),
		CPU:         executor.Unknown,
	}
	// What the kernel can drop at any time is nobody's use.
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
