//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // lets cgroups restrict devices
	devices "github.com/opencontainers/cgroups/devices/config"

	"github.com/diegosdk/diego/executor"
)

// Limits returns the resources of a container. maxPIDs is the limit of processes
// of one that names none, and swap says whether swap can be limited. CPU shares
// are given in both forms: each version of cgroups reads its own.
func Limits(spec executor.ContainerSpec, maxPIDs int64, swap bool) *cgroups.Resources {
	pids := spec.Resources.MaxPIDs
	pids = cmp.Or(pids, maxPIDs)
	pids++ // the first process is ours
	weight := uint64(spec.CPUWeight)
	weight = cmp.Or(weight, executor.MaxCPUWeight)
	r := &cgroups.Resources{
		PidsLimit: &pids,
		CpuShares: max(2, weight*1024/executor.MaxCPUWeight),
		CpuWeight: weight,
		Devices:   deviceRules(spec.Privileged),
	}
	if r.Memory = spec.Resources.MemoryMB << 20; r.Memory > 0 && swap {
		r.MemorySwap = r.Memory
	}
	return r
}

func deviceRules(privileged bool) []*devices.Rule {
	if privileged {
		return []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm", Allow: true}}
	}
	rules := []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm", Allow: false}}
	for _, d := range DeviceNodes() {
		rules = append(rules, &d.Rule)
	}
	// Terminals that the container makes for itself.
	return append(rules,
		&devices.Rule{Type: devices.CharDevice, Major: 5, Minor: 2, Permissions: "rwm", Allow: true},
		&devices.Rule{Type: devices.CharDevice, Major: 136, Minor: devices.Wildcard, Permissions: "rwm", Allow: true})
}

// DeviceNodes returns the devices of every container. They give away nothing.
func DeviceNodes() []*devices.Device {
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

// StartMemory is the least memory, in bytes, that a container may use while it
// is set up. libcontainer's own code runs in its cgroup then and takes more than
// a small container may have. Tests take from it.
var StartMemory int64 = 64 << 20

// startPIDs is the same for processes and threads.
const startPIDs = 32

// Widen raises limits for the time until the first process runs.
func Widen(r *cgroups.Resources) {
	if r.Memory > 0 && r.Memory < StartMemory {
		r.Memory = StartMemory
		if r.MemorySwap > 0 {
			r.MemorySwap = StartMemory
		}
	}
	if *r.PidsLimit < startPIDs {
		limit := int64(startPIDs)
		r.PidsLimit = &limit
	}
}

// errKilled is the error of Tighten if the limits that it has set made the kernel
// kill the first process, which may still be seen.
var errKilled = errors.New("the kernel has killed its first process")

// Tighten sets the limits that Widen has raised, and that of the buffers of
// sockets, before anything of the caller's runs.
func (g *Cgroup) Tighten(r *cgroups.Resources) error {
	if err := g.limitSockets(r.Memory); err != nil {
		return err
	}
	if *r.PidsLimit < startPIDs {
		if err := g.write(g.version.pidsLimit, *r.PidsLimit); err != nil {
			return err
		}
	}
	if r.Memory <= 0 || r.Memory >= StartMemory {
		return nil
	}
	before := g.OOMKills()
	if err := g.write(g.version.memoryLimit, r.Memory); err != nil {
		return err
	}
	if r.MemorySwap > 0 {
		if err := g.write(g.version.swapLimit, r.MemorySwap); err != nil {
			return err
		}
	}
	if g.OOMKills() > before {
		return errKilled
	}
	return nil
}

// limitSockets bounds the buffers of TCP and UDP sockets where the kernel does
// not count them as memory, which is v1. Without a limit, one container can fill
// those of the whole host. memory is the container's limit in bytes; 0 means
// none.
func (g *Cgroup) limitSockets(memory int64) error {
	const (
		share = 4
		least = 1 << 20
	)
	if memory <= 0 {
		return nil
	}
	err := g.write(g.version.socketLimit, max(least, memory/share))
	if errors.Is(err, fs.ErrNotExist) { // the kernel does not have it
		return nil
	}
	return err
}
