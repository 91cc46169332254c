package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/diegosdk/diego/executor"
)

func TestTheDoctorFindsThatOnlyContainersWithSharedIDsCanBeMade(t *testing.T) {
	refused := errors.New("mount proc: operation not permitted")
	for name, tt := range map[string]struct {
		own, shared error
		want        error
		missing     string
	}{
		"own ids":          {nil, nil, nil, ""},
		"only shared ones": {refused, nil, nil, "a container with them could not be made: mount proc: operation not permitted"},
		"none":             {refused, errors.New("no cgroups"), refused, ""},
	} {
		features, err := tryIDs(func(shared bool) ([]executor.Feature, error) {
			if shared {
				return []executor.Feature{{Name: executor.FeatureRootFS}, {Name: executor.FeatureOwnIDs, Missing: "Options.SharedIDs is set"}}, tt.shared
			}
			return []executor.Feature{{Name: executor.FeatureRootFS}, {Name: executor.FeatureOwnIDs}}, tt.own
		})
		if !errors.Is(err, tt.want) || features[1].Missing != tt.missing || features[0].Missing != "" {
			t.Errorf("%s: %v, %v", name, features, err)
		}
	}
}

func TestWhatIsReadOfAHostSaysWhatWouldHelp(t *testing.T) {
	type files map[string]string
	tests := []struct {
		row   string
		host  files
		state FindingState
		says  string
	}{
		{"kernel", files{"proc/sys/kernel/osrelease": "6.1.0-31-cloud-amd64\n"}, FindingOK, "Linux 6.1.0-31-cloud-amd64"},
		{"kernel", files{"proc/sys/kernel/osrelease": "5.12.1\n"}, FindingOK, "Linux 5.12.1"},
		{"kernel", files{"proc/sys/kernel/osrelease": "5.11.22\n"}, FindingLacking, "5.12; upgrade"},
		{"kernel", files{"proc/sys/kernel/osrelease": "4.19.0\n"}, FindingLacking, "upgrade"},
		{"kernel", files{}, FindingFatal, "take Linux"},
		{"rights", files{"proc/self/status": "Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n", "proc/self/uid_map": "         0          0 4294967295\n"}, FindingOK, "CAP_SYS_ADMIN"},
		{"rights", files{"proc/self/status": "CapEff:\t000001ffffffffff\n", "proc/self/uid_map": "         0       1000          1\n"}, FindingLacking, "as root of the host"}, // unshare -r
		{"rights", files{"proc/self/status": "CapEff:\t000001ffffffffff\n", "proc/self/uid_map": "         0     100000      65536\n"}, FindingLacking, "its uids: 0 100000 65536"},
		{"rights", files{"proc/self/status": "CapEff:\t00000000a80425fb\n"}, FindingFatal, "run as root"}, // root in somebody's container
		{"rights", files{"proc/self/status": "CapEff:\t0000000000000000\n"}, FindingFatal, "run as root"},
		{"rights", files{}, FindingUnknown, "/proc/self/status"},
		{"cgroups", files{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"}, FindingOK, "v2 with cpuset, cpu, io, memory, pids"},
		{"cgroups", files{"proc/self/mounts": "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\ncgroup /c cgroup rw,cpu,cpuacct 0 0\ntmpfs /m tmpfs rw,memory 0 0\n"}, FindingOK, "v1 with cpu, cpuacct, memory"},
		{"cgroups", files{"sys/fs/cgroup/cgroup.controllers": "\n"}, FindingFatal, "mount -t cgroup2"},
		{"cgroups", files{}, FindingFatal, "mount -t cgroup2"},
		{"overlayfs", files{"proc/filesystems": "nodev\tsysfs\n\text4\nnodev\toverlay\n"}, FindingOK, "known"},
		{"overlayfs", files{"proc/filesystems": "nodev\tsysfs\n"}, FindingUnknown, "modprobe overlay"},
		{"user namespaces", files{"proc/sys/user/max_user_namespaces": "63432\n"}, FindingOK, "at most 63432"},
		{"user namespaces", files{"proc/sys/user/max_user_namespaces": "0\n"}, FindingLacking, "sysctl user.max_user_namespaces"},
		{"user namespaces", files{}, FindingLacking, "CONFIG_USER_NS"},
		{"seccomp", files{"proc/sys/kernel/seccomp/actions_avail": "kill_process kill_thread trap errno trace log allow\n"}, FindingOK, "filtered"},
		{"seccomp", files{}, FindingFatal, "CONFIG_SECCOMP_FILTER"},
		{"AppArmor", files{"sys/module/apparmor/parameters/enabled": "Y\n"}, FindingOK, "on; "},
		{"AppArmor", files{"sys/module/apparmor/parameters/enabled": "N\n"}, FindingOK, "off; "},
		{"AppArmor", files{}, FindingOK, "off; "},
		{"loop devices", files{"dev/loop-control": "x"}, FindingOK, "disk limits"},
		{"loop devices", files{}, FindingLacking, "modprobe loop"},
		{"IPv4 forwarding", files{"proc/sys/net/ipv4/ip_forward": "1\n"}, FindingOK, "on"},
		{"IPv4 forwarding", files{"proc/sys/net/ipv4/ip_forward": "0\n"}, FindingOK, "a cell turns it on"},
		{"IPv4 forwarding", files{}, FindingUnknown, "ip_forward"},
		{"tracked connections", files{"proc/sys/net/netfilter/nf_conntrack_max": "65536\n"}, FindingOK, "at most 65536"},
		{"tracked connections", files{}, FindingOK, "a cell loads it"},
		{"process ids", files{"proc/sys/kernel/pid_max": "4194304\n"}, FindingOK, "4194304"},
		{"process ids", files{"proc/sys/kernel/pid_max": "4096\n"}, FindingLacking, "sysctl kernel.pid_max=32768"},
		{"process ids", files{}, FindingUnknown, "pid_max"},
		{"inotify", files{"proc/sys/fs/inotify/max_user_instances": "128\n", "proc/sys/fs/inotify/max_user_watches": "8192\n"}, FindingOK, "128 instances and 8192 watches"},
		{"inotify", files{}, FindingUnknown, "inotify"},
		{"descriptors", files{"proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n"}, FindingOK, "at most 524288"},
		{"descriptors", files{"proc/self/limits": "Max open files            1024                 unlimited            files\n"}, FindingOK, "at most unlimited"},
		{"descriptors", files{"proc/self/limits": "Max open files            1024                 1024                 files\n"}, FindingLacking, "LimitNOFILE"},
		{"descriptors", files{}, FindingUnknown, "/proc/self/limits"},
	}
	seen := map[string]bool{}
	for _, i := range inspections {
		seen[i.name] = false
	}
	for _, test := range tests {
		host := fstest.MapFS{}
		for name, text := range test.host {
			host[name] = &fstest.MapFile{Data: []byte(text)}
		}
		for _, i := range inspections {
			if i.name != test.row {
				continue
			}
			seen[i.name] = true
			f := i.look(host)
			if f.State != test.state || !strings.Contains(f.Text(), test.says) {
				t.Errorf("%s of %q: %s, %q, want %s and %q", test.row, test.host, f.State, f.Text(), test.state, test.says)
			}
			if f.State != FindingOK && f.Help == "" {
				t.Errorf("%s of %q is %s, and nothing says what would help", test.row, test.host, f.State)
			}
		}
	}
	for name, tested := range seen {
		if !tested {
			t.Errorf("no test looks at %s", name)
		}
	}
}

func TestAnExaminationSaysWhatTheBackendSaysAndLeavesNothing(t *testing.T) {
	real, realErr := OpenBackend(t.Context(), BackendOptions{Kind: RealBackend, Dir: t.TempDir()})
	if realErr == nil {
		if err := real.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	e := Examine(t.Context(), filepath.Join(dir, "not", "there"))
	if e.RealContainers != (realErr == nil) {
		t.Errorf("it says %q, and the backend %v", e.Verdict, realErr)
	}
	states := map[FindingState]int{}
	for _, f := range e.Findings {
		states[f.State]++
		if f.Name == "" || f.Text() == "" {
			t.Errorf("it says nothing of %+v", f)
		}
	}
	if (states[FindingFatal] == 0) != e.RealContainers {
		t.Errorf("it says %q with %v", e.Verdict, states)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has left %v, %v", left, err)
	}
	var out strings.Builder
	if err := e.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"WHAT", "\nkernel ", "\na trial container ", "\n\n" + e.Verdict + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not write %q:\n%s", want, out.String())
		}
	}
}

func TestADiskLimitThatFailsIsLackingThoughItWasPromised(t *testing.T) {
	for _, test := range []struct {
		name, missing string
		start         func(executor.ProcessSpec) error
		want          string
	}{
		{"it works", "", func(p executor.ProcessSpec) error { p.Exited(executor.Exit{}); return nil }, ""},
		{"it is forbidden", "", func(executor.ProcessSpec) error { return errors.New("operation not permitted") }, "operation not permitted"},
		{"it was not promised", "mkfs.ext4 is missing", func(executor.ProcessSpec) error { return errors.New("tried") }, "mkfs.ext4 is missing"},
	} {
		features := []executor.Feature{{Name: executor.FeatureUsers}, {Name: executor.FeatureDiskLimit, Missing: test.missing}}
		tryDisk(t.Context(), &trial{start: test.start}, features)
		got := features[1].Missing
		if features[0].Missing != "" || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %+v, want %q", test.name, features, test.want)
		}
	}
}
