//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// facts are what a host can do. A text says why it cannot; empty means that
// it can.
type facts struct {
	cgroup.Features
	overlay         string
	disk            string
	network         string
	connections     string // why they are not bounded
	openFiles       string // why the host's limit is left
	ids             string
	mkfs            string // the path of mkfs.ext4
	cgroupNamespace bool
	totalMemoryMB   int64
	oomScoreAdjust  int // of containers
}

// allowed is an error if there can be no containers at all.
func (f facts) allowed(uid int) error {
	if uid != 0 {
		return fmt.Errorf("%w: real containers take root: namespaces, mounts and cgroups; run as root or use the process backend", executor.ErrUnsupported)
	}
	if f.Fatal != "" {
		return fmt.Errorf("%w: %s", executor.ErrUnsupported, f.Fatal)
	}
	return nil
}

// look finds out about this host, for containers whose cgroups are below base.
func look(o Options, base string) facts {
	own, _ := os.ReadFile(oomScoreAdjustFile) // or nothing, which is 0
	f := facts{cgroupNamespace: exists("/proc/self/ns/cgroup"), oomScoreAdjust: oomScoreAdjust(string(own))}
	var err error
	if f.mkfs, err = exec.LookPath("mkfs.ext4"); err != nil {
		f.disk = "mkfs.ext4 is missing; install e2fsprogs"
	} else if !exists("/dev/loop-control") {
		f.disk = "/dev/loop-control is missing; load the kernel module loop"
	}
	if o.HostNetwork {
		f.network = "Options.HostNetwork is set"
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		f.totalMemoryMB = int64(uint64(info.Totalram) * uint64(info.Unit) >> 20)
	}
	f.Features = cgroup.TurnOn(base)
	if !exists("/proc/self/ns/pid") || !exists("/proc/self/ns/mnt") {
		f.Fatal = "the kernel has no namespaces, or /proc is not mounted"
	}
	if !capable() {
		f.Fatal = "this root lacks CAP_SYS_ADMIN, so it can mount nothing; start the daemon with it"
	}
	return f
}

// capable reports whether this process has CAP_SYS_ADMIN, which root in
// somebody's container mostly lacks.
func capable() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// oomScoreAdjust is that of containers: the daemon's, but never below 0. A
// daemon that the kernel is told to spare would otherwise have it spare the
// containers too, and there would be nothing to end when one of them is out of
// memory.
func oomScoreAdjust(own string) int {
	n, err := strconv.Atoi(strings.TrimSpace(own))
	if err != nil {
		return 0
	}
	return max(0, n)
}

const oomScoreAdjustFile = "/proc/self/oom_score_adj"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// features are what Probe answers, in a fixed order.
func (f facts) features(o Options) []executor.Feature {
	privileged := ""
	if !o.AllowPrivileged {
		privileged = "Options.AllowPrivileged is not set"
	}
	return []executor.Feature{
		{Name: executor.FeatureRootFS, Missing: f.overlay},
		{Name: executor.FeatureUsers},
		{Name: executor.FeatureOwnIDs, Missing: f.ids},
		{Name: executor.FeatureMemoryLimit, Missing: f.Memory},
		{Name: executor.FeatureDiskLimit, Missing: f.disk},
		{Name: executor.FeatureCPUWeight, Missing: f.CPU},
		{Name: executor.FeaturePIDLimit, Missing: f.PIDs},
		{Name: executor.FeatureOwnNetwork, Missing: f.network},
		{Name: executor.FeatureEgressRules, Missing: f.network},
		{Name: executor.FeatureConnectionLimit, Missing: cmp.Or(f.network, f.connections)},
		{Name: executor.FeatureOpenFiles, Missing: f.openFiles},
		{Name: executor.FeatureReadOnlyMounts},
		{Name: executor.FeatureSeccomp},
		{Name: executor.FeaturePrivileged, Missing: privileged},
	}
}

// Probe implements [executor.ContainerBackend].
func (b *Backend) Probe(context.Context) (executor.Host, error) {
	h := executor.Host{
		Backend: "libcontainer", Isolated: true, MemoryMB: b.host.totalMemoryMB,
		Features: b.host.features(b.options),
	}
	var s unix.Statfs_t
	if err := unix.Statfs(b.options.Dir, &s); err != nil {
		return h, fmt.Errorf("libcontainer: %s: %w", b.options.Dir, err)
	}
	h.DiskMB = int64(s.Blocks) * s.Bsize >> 20
	return h, nil
}

// supported is an error for what this host cannot enforce.
func (b *Backend) supported(spec executor.ContainerSpec) error {
	has := executor.Host{Isolated: true, Features: b.host.features(b.options)}
	for _, feature := range []executor.FeatureName{executor.FeatureRootFS, executor.FeaturePIDLimit, executor.FeatureOwnNetwork} {
		if feature == executor.FeatureOwnNetwork && b.options.HostNetwork || has.Has(feature) {
			continue
		}
		return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: spec.GUID,
			Detail: string(feature) + ": " + missing(has, feature)}
	}
	if err := has.Refuse(&spec); err != nil {
		return err
	}
	if m := spec.Resources.DiskMB; m > 0 && m < rootfs.MinDiskMB {
		return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: spec.GUID,
			Detail: fmt.Sprintf("a disk of %d MiB; a file system takes at least %d MiB", m, rootfs.MinDiskMB)}
	}
	for _, m := range spec.Mounts {
		if kept := keptFrom(m.Target); kept != "" {
			return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: spec.GUID,
				Detail: fmt.Sprintf("a mount at %q: the container needs its own %s; mount it elsewhere", m.Target, kept)}
		}
	}
	// The kernel takes away a mount of the container if the daemon removes what it is on.
	for _, f := range spec.Files {
		kept := keptFrom(f.Path)
		if strings.HasPrefix(path.Clean("/"+f.Path), "/dev/shm/") {
			kept = ""
		}
		if kept != "" {
			return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: spec.GUID,
				Detail: fmt.Sprintf("a file at %q: the container needs its own %s; write it elsewhere", f.Path, kept)}
		}
	}
	return nil
}

// keptFrom returns the directory of a container that a mount would hide, or "".
// What is there keeps a container from the host. Links are left to runc, which
// follows none out of the root file system and checks what it finds.
func keptFrom(target string) string {
	target = path.Clean("/" + target)
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if target == dir || strings.HasPrefix(target, dir+"/") {
			return dir
		}
	}
	if target == "/" {
		return "root directory"
	}
	return ""
}

func missing(h executor.Host, name executor.FeatureName) string {
	for _, f := range h.Features {
		if f.Name == name {
			return f.Missing
		}
	}
	return ""
}
