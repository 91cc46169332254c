//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// firstCapabilities are what starting and signalling processes of any user
// takes. Only the first process has them.
var firstCapabilities = []string{"CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"}

// privilegedCapabilities are what the processes of a privileged container may
// have if their user is root.
var privilegedCapabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	"CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE",
}

// maxTerminals is how many pseudoterminals a container may have. The kernel
// counts them for the whole host alone, which has 4096 unless kernel.pty.max
// says otherwise. What is written to one is worked on by a thread of the kernel that no
// weight holds back, and some input takes far longer than its writing: with
// 60 terminals, one container delayed the starts of others by 4 s, and six by 32.
const maxTerminals = 8

// What a container must not see or change in /proc, and what it sees of /sys.
var (
	// procShown are the entries of /proc, beside the processes, of which a
	// container sees as much as everybody. Each kernel has others, some of which
	// root may write without any capability. "locks" is not among them: while it
	// is read, nobody on the host gets a lock, and reading it takes as long as
	// there are many locks. Nor is "fs", which tells how full the neighbours' disks are.
	procShown = []string{
		"buddyinfo", "bus", "cgroups", "cmdline", "config.gz", "consoles", "cpuinfo", "crypto", "devices", "diskstats", "dma",
		"execdomains", "fb", "filesystems", "iomem", "ioports", "irq", "kallsyms", "key-users", "loadavg",
		"mdstat", "meminfo", "misc", "modules", "mounts", "net", "partitions", "pressure", "schedstat", "self", "softirqs",
		"stat", "swaps", "sys", "sysrq-trigger", "sysvipc", "thread-self", "tty", "uptime", "version", "vmstat", "zoneinfo",
	}
	// maskedPaths are masked also if they come after the daemon has begun.
	maskedPaths = []string{
		"/proc/acpi", "/proc/allocinfo", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/kmsg",
		"/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/pagetypeinfo",
		"/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
	}
	readOnlyPaths = []string{"/proc/bus", "/proc/irq", "/proc/pressure", "/proc/sys", "/proc/sysrq-trigger"}
	// sysShown are the directories of /sys that programs ask how many processors
	// there are and how memory is laid out. There are no others: root owns all of
	// /sys, and to read a file there may already change the host.
	sysShown = []string{
		"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/hugepages", "/sys/kernel/mm/transparent_hugepage",
	}
)

// hiddenInProc are the paths of what a container is not shown of /proc.
func hiddenInProc() ([]string, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	return notShown(names), err
}

// notShown are maskedPaths and the paths of those entries of /proc that are
// neither processes nor in procShown.
func notShown(proc []string) []string {
	paths := slices.Clone(maskedPaths)
	for _, name := range proc {
		path := "/proc/" + name
		if _, err := strconv.Atoi(name); err != nil && !slices.Contains(procShown, name) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// config is what libcontainer is told, but for the network. masks are what
// the root file system holds and must not be seen, beside what none may see.
func (b *Backend) config(spec executor.ContainerSpec, own ids.Range, rootFS string, masks []string) *configs.Config {
	c := &configs.Config{
		Rootfs:          rootFS,
		RootPropagation: unix.MS_SLAVE | unix.MS_REC,
		Hostname:        hostname(spec.GUID),
		OomScoreAdj:     &b.host.oomScoreAdjust,
		Namespaces: configs.Namespaces{
			{Type: configs.NEWNS}, {Type: configs.NEWUTS}, {Type: configs.NEWIPC}, {Type: configs.NEWPID},
		},
		Cgroups:         &cgroups.Cgroup{Path: b.cgroups.Path(spec.GUID), Resources: b.limits(spec)},
		Devices:         cgroup.DeviceNodes(),
		Capabilities:    capabilities(spec.Privileged),
		NoNewPrivileges: !spec.Privileged,
		MaskPaths:       slices.Concat(b.hidden, masks),
		ReadonlyPaths:   readOnlyPaths,
		Mounts: []*configs.Mount{
			{Source: "proc", Destination: "/proc", Device: "proc", Flags: unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV},
			{Source: "tmpfs", Destination: "/dev", Device: "tmpfs", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Data: "mode=755,size=65536k"},
			{Source: "devpts", Destination: "/dev/pts", Device: "devpts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Data: fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,max=%d", maxTerminals)},
			{Source: "shm", Destination: "/dev/shm", Device: "tmpfs", Flags: unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, Data: "mode=1777,size=65536k"},
		},
	}
	if own.Own() {
		c.Namespaces = append(c.Namespaces, configs.Namespace{Type: configs.NEWUSER, Path: own.Path()})
		mapping := []configs.IDMap{{ContainerID: 0, HostID: int64(own.First), Size: int64(own.Size)}}
		c.UIDMappings, c.GIDMappings = mapping, mapping
		// libcontainer would mount the nodes of the host.
		c.Devices = nil
		for _, n := range nodes() {
			c.Mounts = append(c.Mounts, &configs.Mount{
				Source: b.roots.Node(spec.GUID, n.Name), Destination: "/dev/" + n.Name, Device: "bind",
				Flags: unix.MS_BIND | unix.MS_NOSUID | unix.MS_NOEXEC, PropagationFlags: []int{unix.MS_PRIVATE},
			})
		}
	}
	if b.host.cgroupNamespace {
		c.Namespaces = append(c.Namespaces, configs.Namespace{Type: configs.NEWCGROUP})
	}
	const sysFlags = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV | unix.MS_RDONLY
	if spec.Privileged {
		c.MaskPaths, c.ReadonlyPaths = nil, nil
		c.Mounts = append(c.Mounts, &configs.Mount{Source: "sysfs", Destination: "/sys", Device: "sysfs", Flags: sysFlags})
	} else {
		c.Mounts = append(c.Mounts, &configs.Mount{Source: "sys", Destination: "/sys", Device: "tmpfs", Flags: sysFlags, Data: "mode=755,size=64k"})
		for _, dir := range sysShown {
			if exists(dir) {
				c.Mounts = append(c.Mounts, bind(executor.Mount{Source: dir, Target: dir}))
			}
		}
	}
	for _, m := range spec.Mounts {
		mount := bind(m)
		if own.Own() {
			mount.IDMapping = &configs.MountIDMapping{Recursive: true, UserNSPath: own.Path()}
		}
		c.Mounts = append(c.Mounts, mount)
	}
	return c
}

// nodes are the devices that a container with ids of its own has for itself.
func nodes() (list []rootfs.Node) {
	for _, d := range cgroup.DeviceNodes() {
		list = append(list, rootfs.Node{Name: path.Base(d.Path), Major: uint32(d.Major), Minor: uint32(d.Minor)})
	}
	return list
}

// limits are the resources of a container.
func (b *Backend) limits(spec executor.ContainerSpec) *cgroups.Resources {
	return cgroup.Limits(spec, b.options.MaxPIDs, b.host.Swap)
}

func bind(m executor.Mount) *configs.Mount {
	flags := unix.MS_BIND | unix.MS_REC | unix.MS_NOSUID | unix.MS_NODEV
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !m.Writable {
		flags |= unix.MS_RDONLY
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return &configs.Mount{
		Source: m.Source, Destination: path.Clean("/" + m.Target), Device: "bind", Flags: flags,
		PropagationFlags: []int{unix.MS_PRIVATE | unix.MS_REC},
		RecAttr:          &unix.MountAttr{Attr_set: attributes}, // also for what is mounted below the source
	}
}

func capabilities(privileged bool) *configs.Capabilities {
	list := firstCapabilities
	if privileged {
		list = privilegedCapabilities
	}
	return &configs.Capabilities{Bounding: list, Effective: list, Permitted: list}
}

// hostname is as much of the guid as a name may have.
func hostname(guid string) string {
	const longest = 63
	return guid[:min(len(guid), longest)]
}
