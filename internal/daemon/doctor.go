package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer"
)

// A FindingState says what a finding means for a cell.
type FindingState string

// The states of a Finding.
const (
	FindingOK      FindingState = "ok"
	FindingLacking FindingState = "lacking" // containers run, and something of them does not
	FindingFatal   FindingState = "fatal"   // there can be no real containers
	FindingUnknown FindingState = "unknown" // this process cannot find out
)

// A Finding is one thing that a host has or lacks for real containers.
type Finding struct {
	Name  string       `json:"name"`
	State FindingState `json:"state"`
	Found string       `json:"found,omitempty"`
	// Help says what would help; empty where nothing is wrong.
	Help string `json:"help,omitempty"`
}

// An Examination says what a host can do for a cell.
type Examination struct {
	// RealContainers is true if a container was made, started and deleted.
	RealContainers bool `json:"real_containers"`
	// Verdict is the same in a sentence, with the reason if they cannot be had.
	Verdict  string    `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Examine finds out what this host can do for a cell that keeps its containers
// in dir, which need not exist. It tries a container, and another one with a
// disk limit. It touches no existing cell: all that it makes is in a temporary
// directory on the same file system and is gone when it returns. Like a cell,
// it loads kernel modules and turns IPv4 forwarding on, and does not undo that.
func Examine(ctx context.Context, dir string) Examination {
	var e Examination
	host := os.DirFS("/")
	for _, i := range inspections {
		f := i.look(host)
		f.Name = i.name
		e.Findings = append(e.Findings, f)
	}
	features, err := tryIDs(func(shared bool) ([]executor.Feature, error) { return tryReal(ctx, dir, shared) })
	for _, f := range features {
		found := Finding{Name: string(f.Name), State: FindingOK, Found: "available"}
		switch {
		case f.Missing == "":
		case slices.Contains(essential, f.Name):
			found.State, found.Found, found.Help = FindingFatal, "", f.Missing
		default:
			found.State, found.Found, found.Help = FindingLacking, "", f.Missing
		}
		e.Findings = append(e.Findings, found)
	}
	trial := Finding{Name: "a trial container", State: FindingOK, Found: "made, started in and deleted"}
	e.RealContainers, e.Verdict = true, "this host runs real containers"
	if err != nil {
		trial = Finding{Name: trial.Name, State: FindingFatal, Help: err.Error()}
		e.RealContainers = false
		e.Verdict = fmt.Sprintf("this host cannot run real containers: %v", err)
	}
	e.Findings = append(e.Findings, trial)
	return e
}

// tryIDs does what a cell does: it tries containers with their own ids and, if
// they cannot be made, containers that share the host's ids.
func tryIDs(try func(shared bool) ([]executor.Feature, error)) ([]executor.Feature, error) {
	features, err := try(false)
	if err == nil {
		return features, nil
	}
	shared, sharedErr := try(true)
	if sharedErr != nil {
		return features, err
	}
	for i := range shared {
		if shared[i].Name == executor.FeatureOwnIDs {
			shared[i].Missing = noOwnIDs(err)
		}
	}
	return shared, nil
}

// tryReal returns what real containers can have on this host, as far as that is
// known, and why there can be none.
func tryReal(ctx context.Context, dir string, sharedIDs bool) (features []executor.Feature, err error) {
	at := existing(dir)
	temporary, err := os.MkdirTemp(at, "diego-doctor-")
	if err != nil {
		return nil, fmt.Errorf("nothing can be tried in %s: %w; run as root", at, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	real, err := libcontainer.New(libcontainer.Options{Dir: filepath.Join(temporary, RealBackend), SharedIDs: sharedIDs, AllowPrivileged: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, real.Close()) }()
	b := &Backend{ContainerBackend: real}
	err = b.probe(ctx, essential)
	host, probeErr := real.Probe(ctx)
	if err = errors.Join(err, probeErr); err == nil {
		err = try(ctx, real, trialSize)
	}
	if err == nil {
		tryDisk(ctx, real, host.Features)
	}
	return host.Features, err
}

// tryDisk makes a container with a disk limit, if that feature seems to be
// available, and adds a failure to the features. Device nodes and mounts may be
// forbidden.
func tryDisk(ctx context.Context, b executor.ContainerBackend, features []executor.Feature) {
	limited := trialSize
	limited.DiskMB = 16
	for i := range features {
		if f := &features[i]; f.Name == executor.FeatureDiskLimit && f.Missing == "" {
			if err := try(ctx, b, limited); err != nil {
				f.Missing = "a trial container with a disk limit failed: " + err.Error()
			}
		}
	}
}

// existing is the directory, or the nearest one above it that exists.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return dir
		}
		dir = above
	}
}

// Write writes an Examination as a table for people.
func (e Examination) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tSTATE\tFOUND")
	for _, f := range e.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, f.State, f.Text())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", e.Verdict)
	return err
}

// Text is what was found and what would help.
func (f Finding) Text() string {
	switch {
	case f.Found == "":
		return f.Help
	case f.Help == "":
		return f.Found
	}
	return f.Found + "; " + f.Help
}

// An inspection is one of the things that Examine reads from a host, besides
// what the backend's Probe says. It needs no rights, so it also helps where
// Probe fails. Paths are below the root of the host and have no leading slash.
type inspection struct {
	name string
	look func(host fs.FS) Finding
}

// inspections are in the order of the report.
var inspections = []inspection{
	{"kernel", lookAtKernel},
	{"rights", lookAtRights},
	{"cgroups", lookAtCgroups},
	{"overlayfs", func(host fs.FS) Finding {
		if slices.Contains(strings.Fields(text(host, "proc/filesystems")), "overlay") {
			return Finding{State: FindingOK, Found: "known to the kernel"}
		}
		return Finding{State: FindingUnknown, Help: "not loaded yet; if root file systems are missing below: modprobe overlay"}
	}},
	{"user namespaces", func(host fs.FS) Finding {
		n, known := number(host, "proc/sys/user/max_user_namespaces")
		switch {
		case !known:
			return Finding{State: FindingLacking, Found: "none", Help: "containers share the host's uids; it takes a kernel with CONFIG_USER_NS"}
		case n == 0:
			return Finding{State: FindingLacking, Found: "none are allowed", Help: "containers share the host's uids; sysctl user.max_user_namespaces=15000"}
		}
		return Finding{State: FindingOK, Found: fmt.Sprintf("at most %d", n)}
	}},
	{"seccomp", func(host fs.FS) Finding {
		actions := text(host, "proc/sys/kernel/seccomp/actions_avail")
		if slices.Contains(strings.Fields(actions), "errno") {
			return Finding{State: FindingOK, Found: "system calls can be filtered"}
		}
		return Finding{State: FindingFatal, Found: "system calls cannot be filtered", Help: "it takes a kernel with CONFIG_SECCOMP_FILTER"}
	}},
	{"AppArmor", func(host fs.FS) Finding {
		if strings.TrimSpace(text(host, "sys/module/apparmor/parameters/enabled")) == "Y" {
			return Finding{State: FindingOK, Found: "on; containers get no profile of their own"}
		}
		return Finding{State: FindingOK, Found: "off; nothing here needs it"}
	}},
	{"loop devices", func(host fs.FS) Finding {
		if _, err := fs.Stat(host, "dev/loop-control"); err != nil {
			return Finding{State: FindingLacking, Found: "none", Help: "no disk limits; modprobe loop"}
		}
		return Finding{State: FindingOK, Found: "for disk limits"}
	}},
	{"IPv4 forwarding", func(host fs.FS) Finding {
		n, known := number(host, "proc/sys/net/ipv4/ip_forward")
		switch {
		case !known:
			return Finding{State: FindingUnknown, Help: "/proc/sys/net/ipv4/ip_forward cannot be read"}
		case n == 0:
			return Finding{State: FindingOK, Found: "off; a cell turns it on"}
		}
		return Finding{State: FindingOK, Found: "on"}
	}},
	{"tracked connections", func(host fs.FS) Finding {
		if n, known := number(host, "proc/sys/net/netfilter/nf_conntrack_max"); known {
			return Finding{State: FindingOK, Found: fmt.Sprintf("at most %d of all containers and the host (net.netfilter.nf_conntrack_max)", n)}
		}
		return Finding{State: FindingOK, Found: "not loaded yet; a cell loads it"}
	}},
	{"process ids", func(host fs.FS) Finding {
		n, known := number(host, "proc/sys/kernel/pid_max")
		f := Finding{State: FindingOK, Found: fmt.Sprintf("%d (kernel.pid_max)", n)}
		if !known {
			return Finding{State: FindingUnknown, Help: "/proc/sys/kernel/pid_max cannot be read"}
		}
		if n < leastPIDs {
			f.State, f.Help = FindingLacking, fmt.Sprintf("a full cell may want more; sysctl kernel.pid_max=%d", leastPIDs)
		}
		return f
	}},
	{"inotify", func(host fs.FS) Finding {
		instances, known := number(host, "proc/sys/fs/inotify/max_user_instances")
		watches, _ := number(host, "proc/sys/fs/inotify/max_user_watches")
		if !known {
			return Finding{State: FindingUnknown, Help: "/proc/sys/fs/inotify cannot be read"}
		}
		return Finding{State: FindingOK, Found: fmt.Sprintf("%d instances and %d watches for each uid (fs.inotify); containers that share the host's uids share them too", instances, watches)}
	}},
	{"descriptors", lookAtDescriptors},
}

const (
	// leastPIDs is Linux's own default. It is enough for 250 containers.
	leastPIDs = 32768
	// leastDescriptors is enough for 250 containers with about ten each.
	leastDescriptors = 4096
)

func lookAtKernel(host fs.FS) Finding {
	release := strings.TrimSpace(text(host, "proc/sys/kernel/osrelease"))
	if release == "" {
		return Finding{State: FindingFatal, Found: runtime.GOOS + "/" + runtime.GOARCH, Help: "real containers take Linux with /proc"}
	}
	f := Finding{State: FindingOK, Found: fmt.Sprintf("Linux %s, %s", release, runtime.GOARCH)}
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 5 || major == 5 && minor < 12) {
		f.State, f.Help = FindingLacking, "what is tested begins with Linux 5.12; upgrade"
	}
	return f
}

// wholeMap is the uid_map of the host's own user namespace. In any other
// namespace, root has its rights only there.
const wholeMap = "0 0 4294967295"

func lookAtRights(host fs.FS) Finding {
	const sysAdmin = 21 // CAP_SYS_ADMIN
	for line := range strings.Lines(text(host, "proc/self/status")) {
		set, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		if err == nil && mask&(1<<sysAdmin) != 0 {
			if m := strings.Join(strings.Fields(text(host, "proc/self/uid_map")), " "); m != "" && m != wholeMap {
				return Finding{State: FindingLacking, Found: "CAP_SYS_ADMIN, but only in a user namespace (its uids: " + m + ")",
					Help: "the host's devices, cgroups and kernel settings are closed to it; start the daemon as root of the host, or in a privileged container"}
			}
			return Finding{State: FindingOK, Found: "CAP_SYS_ADMIN"}
		}
		return Finding{State: FindingFatal, Found: "no CAP_SYS_ADMIN", Help: "run as root; within a container, make that a privileged one"}
	}
	return Finding{State: FindingUnknown, Help: "/proc/self/status cannot be read"}
}

// lookAtCgroups reports which controllers there are. What a missing one means,
// the backend says.
func lookAtCgroups(host fs.FS) Finding {
	has, version := strings.Fields(text(host, "sys/fs/cgroup/cgroup.controllers")), "v2"
	if len(has) == 0 {
		has, version = mountedControllers(text(host, "proc/self/mounts")), "v1"
	}
	if len(has) == 0 {
		return Finding{State: FindingFatal, Found: "none", Help: "mount -t cgroup2 none /sys/fs/cgroup, and have the kernel or the parent cgroup hand controllers on"}
	}
	return Finding{State: FindingOK, Found: version + " with " + strings.Join(has, ", ")}
}

// mountedControllers lists the controllers of cgroup v1 in a file like
// /proc/self/mounts, sorted.
func mountedControllers(mounts string) (all []string) {
	known := []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "net_cls", "net_prio", "perf_event", "pids", "rdma"}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] != "cgroup" {
			continue
		}
		for option := range strings.SplitSeq(fields[3], ",") {
			if slices.Contains(known, option) && !slices.Contains(all, option) {
				all = append(all, option)
			}
		}
	}
	slices.Sort(all)
	return all
}

func lookAtDescriptors(host fs.FS) Finding {
	for line := range strings.Lines(text(host, "proc/self/limits")) {
		values, ok := strings.CutPrefix(line, "Max open files")
		fields := strings.Fields(values)
		if !ok || len(fields) < 2 {
			continue
		}
		f := Finding{State: FindingOK, Found: "at most " + fields[1]}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil && n < leastDescriptors {
			f.State, f.Help = FindingLacking, fmt.Sprintf("a full cell wants more; ulimit -Hn %d, or LimitNOFILE in its unit", leastDescriptors)
		}
		return f
	}
	return Finding{State: FindingUnknown, Help: "/proc/self/limits cannot be read"}
}

// text is the content of a file of the host, or "".
func text(host fs.FS, name string) string {
	data, _ := fs.ReadFile(host, path.Clean(name))
	return string(data)
}

// number is the first number in a file of the host.
func number(host fs.FS, name string) (n int64, known bool) {
	fields := strings.Fields(text(host, name))
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return n, err == nil
}
