//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// attempts are tried by a shell in a container, as root and as nobody. Each
// ends with status 0 if it has got through, and does no harm then: to open for
// writing is enough.
var attempts = []struct{ name, script string }{
	{"writing to /proc/sys", ": >> /proc/sys/kernel/shmmax"},
	{"writing to /proc/sysrq-trigger", "echo h > /proc/sysrq-trigger"},
	{"writing to /sys", "echo 1 > /sys/kernel/profiling || mkdir /sys/fs/cgroup/x"},
	{"changing the core pattern", ": >> /proc/sys/kernel/core_pattern"},
	{"mounting a tmpfs", "mkdir -p /tmp/m && mount -t tmpfs none /tmp/m"},
	{"mounting /proc again", "mount -t proc proc /mnt"},
	{"making /proc/sys writable", "mount -o remount,rw /proc/sys"},
	{"unmounting a mask", "umount /proc/kcore"},
	{"binding a directory", "mount --bind / /mnt"},
	{"a namespace of its own", "unshare -r true"},
	{"a mount namespace", "unshare -m true"},
	{"joining the first process's namespaces", "nsenter -t 1 -m true"},
	{"making a device", "mknod /tmp/sda b 8 0 && head -c 1 /tmp/sda"},
	{"making a memory device", "mknod /tmp/mem c 1 1 && head -c 1 /tmp/mem"},
	{"reading the kernel's memory", "head -c 1 /proc/kcore | grep -q ."},
	{"reading the kernel's log", "dmesg | grep -q ."},
	{"changing root by force", "chroot /tmp true"},
	{"setting the time", `date -s "$(date)"`},
	{"setting the host name", "hostname evil"},
	{"becoming somebody by su", "[ $(id -u) != 0 ] && su root -c true"},
	{"reading the first process's memory", "head -c 1 /proc/1/mem"},
	{"reading the first process's environment", "cat /proc/1/environ"},
	{"reading the first process's descriptors", "ls -l /proc/1/fd/3"},
	{"writing the first process's program", "echo x > /proc/1/exe"},
	{"killing the first process", "kill -9 1 && sleep 0.1 && ! kill -0 1"},
	{"seeing the host's processes", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 12 ]"},
	{"reading the host's shadow file", "grep -q . /etc/shadow"},
	{"reading the host's home directories", "ls /root/* /home/*"},
	{"changing the host's programs", "touch /usr/bin/evil"},
	{"replacing the host's shell", "echo > /bin/sh"},
	{"a raw socket", `perl -e 'use Socket; socket(S, PF_INET, SOCK_RAW, 1) or exit 1'`},
	{"a packet socket", `perl -e 'socket(S, 17, 3, 768) or exit 1'`},
	{"tracing another process", call(unix.SYS_PTRACE, "16, 1, 0, 0", "$r == 0")},
	{"the keyring", call(unix.SYS_KEYCTL, "0, -3, 0", "$r >= 0")},
	{"bpf", call(unix.SYS_BPF, "0, 0, 0", "$r >= 0 || !$!{EPERM}")},
	{"io_uring", call(unix.SYS_IO_URING_SETUP, "1, 0", "$r >= 0 || !$!{EPERM}")},
	{"opening a file by its handle", call(unix.SYS_OPEN_BY_HANDLE_AT, "0, 0, 0", "$r >= 0 || !$!{EPERM}")},
	{"capabilities of any kind", `grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status | grep -vq 0000000000000000`},
	{"new privileges", `! grep -q '^NoNewPrivs:.*1' /proc/self/status`},
	{"running without a filter", `! grep -q '^Seccomp:.*2' /proc/self/status`},
	{"raising its own limits", "ulimit -n 99999999"},
	{"a program that the kernel runs for the host's cgroups", "find / -xdev -name release_agent | grep -q . || mount -t cgroup -o memory none /mnt"},
	{"making the host's programs writable", "mount -o remount,rw /usr || mount -o remount,rw,bind /usr"},
	{"the first process's root", "ls /proc/1/root/ || ls /proc/1/cwd/ || cat /proc/1/maps"},
	{"a way out of its root", `perl -e 'mkdir "/tmp/c"; chroot "/tmp/c" or exit 1'`},
	{"rights attached to a program", "cp /usr/bin/id /tmp/cap-$$ && perl -e '" +
		`($p, $n, $v) = ("/tmp/cap-".getppid(), "security.capability", pack("V5", 0x02000001, 1 << 21, 0, 0, 0)); ` +
		fmt.Sprintf("exit(syscall(%d, $p, $n, $v, 20, 0) ? 1 : 0)'", unix.SYS_SETXATTR)},
	{"a socket to the machine below", `perl -e 'socket(S, 40, 1, 0) or exit 1'`},
	{"changing its network", `perl -e 'socket(S, 2, 2, 0) or exit 2; $r = pack("a16 s x22", "lo", 0); ioctl(S, 0x8914, $r) or exit 1'`},
	{"leaving its cgroup", "echo $$ > /sys/fs/cgroup/cgroup.procs"},
}

// call is a system call by its number, which has got through if the condition
// holds for its result $r.
func call(number int, args, condition string) string {
	return fmt.Sprintf(`perl -MErrno -e '$r = syscall(%d, %s); exit(%s ? 0 : 1)'`, number, args, condition)
}

func TestNoAttemptToEscapeGetsThrough(t *testing.T) {
	eachIDs(t, noAttemptGetsThrough)
}

func noAttemptGetsThrough(t *testing.T, edit func(*Options)) {
	f := newFixture(t, edit)
	guid, _ := f.create()
	for _, user := range []string{"root", "nobody"} {
		for _, a := range attempts {
			r := f.as(user, guid, "{ "+a.script+"; } >/dev/null")
			if r.end().Success() {
				t.Errorf("%s, as %s, got through", a.name, user)
			}
			if strings.Contains(r.stderr.String(), "not found") {
				t.Errorf("%s, as %s, cannot be attempted: %s", a.name, user, r.stderr)
			}
		}
	}
	// The attempts are only worth something if the shell works.
	if e := f.as("nobody", guid, "true").end(); !e.Success() {
		t.Errorf("after the attempts nothing runs any more: %v", e)
	}
}

// The kernel runs no handler of core dumps for a process with this limit, with any
// core_pattern, and has no room for a file.
func TestNoProcessOfAContainerGetsRidOfTheLimitThatForbidsCoreDumps(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for _, user := range []string{"root", "nobody"} {
		r := f.as(user, guid, "ulimit -c unlimited; ulimit -S -c 0; ulimit -H -c 0; grep '^Max core' /proc/self/limits")
		r.end()
		if got := strings.Fields(r.stdout.String()); len(got) < 6 || got[4] != "1" || got[5] != "1" {
			t.Errorf("as %s, it has %q, %s", user, r.stdout, r.stderr)
		}
	}
}

// walked makes the test's own binary, in a container, open every file of the
// kernel below the directories that it lists. Nothing is read: that has effects,
// too.
const walked = "DIEGO_TEST_WALKED"

// walk ends the process.
func walk() {
	for dir := range strings.SplitSeq(os.Getenv(walked), ":") {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if _, number := strconv.Atoi(filepath.Base(path)); number == nil && filepath.Dir(path) == "/proc" {
					return fs.SkipDir // a process
				}
				return nil
			}
			info, err := os.Lstat(path) // what is mounted there
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			for mode, what := range map[int]string{unix.O_RDONLY: "reads", unix.O_WRONLY: "writes"} {
				if mode == unix.O_RDONLY && info.Mode()&0o004 != 0 {
					continue // everybody may
				}
				if fd, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
					unix.Close(fd)
					fmt.Println(what, path)
				}
			}
			return nil
		})
	}
	fmt.Println("done")
	os.Exit(0)
}

func TestRootInAContainerOpensNothingOfTheKernelThatOthersMayNot(t *testing.T) {
	harmless := func(line string) bool {
		// Settings of the container's own network or that say nothing; where
		// a crash would be noted.
		return strings.HasPrefix(line, "reads /proc/sys/") || strings.HasPrefix(line, "reads /sys/") && strings.Contains(line, "/crash_notes")
	}
	f := newFixture(t)
	guid, _ := f.create(withOwnBinary(t))
	r := f.as("root", guid, "", func(s *executor.ProcessSpec) {
		s.Path, s.Args, s.Env = ownBinary, nil, []executor.EnvVar{{Name: walked, Value: "/proc:/sys:/dev"}}
	})
	if e := r.end(); !e.Success() || !strings.HasSuffix(r.stdout.String(), "done\n") {
		t.Fatalf("it ended with %v and said %q, %q", e, r.stdout, r.stderr)
	}
	for line := range strings.Lines(r.stdout.String()) {
		if line = strings.TrimSpace(line); line != "done" && !harmless(line) {
			t.Errorf("root %s", line)
		}
	}
}

func TestWhatIsNotKnownOfProcIsHidden(t *testing.T) {
	got := notShown([]string{"1", "cpuinfo", "dynamic_debug", "kcore", "self", "4711", "sys", "a-new-one"})[len(maskedPaths):]
	if want := []string{"/proc/dynamic_debug", "/proc/a-new-one"}; !slices.Equal(got, want) {
		t.Errorf("%q are hidden, want %q", got, want)
	}
	f := newFixture(t)
	f.hidden = append(f.hidden, "/proc/version") // as if it were new
	guid, _ := f.create()
	if e := f.as("root", guid, "grep -q . /proc/version").end(); e.Success() {
		t.Error("what is hidden was read")
	}
}

func TestAContainerDoesNotReadTheListOfLocks(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for _, user := range []string{"root", "nobody"} {
		r := f.as(user, guid, "exec 9>/tmp/$(id -u) && flock 9 && cat /proc/locks")
		if e := r.end(); !e.Success() || r.stdout.String() != "" {
			t.Errorf("%s reads %q of a list during whose reading nobody on the host gets a lock; %v, %s", user, r.stdout, e, r.stderr)
		}
	}
}

// The kernel goes on showing what a container has seen of the host's files, and must
// not go on allowing it.
func TestWhatTheHostClosesLaterIsClosedInAContainerThatHasReadIt(t *testing.T) {
	newFixture(t).create() // unpacks the image that all tests share
	before := rootfs.HostPrograms
	t.Cleanup(func() { rootfs.HostPrograms = before })
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			shown := t.TempDir()
			file, dir := filepath.Join(shown, "file"), filepath.Join(shown, "dir")
			inside := filepath.Join(dir, "file")
			program, unreadable := filepath.Join(shown, "program"), filepath.Join(shown, "unreadable")
			err := errors.Join(os.WriteFile(program, hello(), 0o755), os.Chmod(program, 0o755), os.WriteFile(unreadable, hello(), 0o711), os.Chmod(unreadable, 0o711))
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(os.Chmod(shown, 0o755), os.WriteFile(file, []byte("public"), 0o644), os.Mkdir(dir, 0o755), os.WriteFile(inside, []byte("public"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			rootfs.HostPrograms = append(before[:len(before):len(before)], shown)
			f := newFixture(t, func(o *Options) { o.SharedIDs = shared })
			guid, _ := f.create()
			users := []string{"root", "nobody"}
			for _, user := range users {
				if e := f.as(user, guid, "ls "+dir+" && grep public "+file+" && grep public "+inside).end(); !e.Success() {
					t.Fatalf("%s does not read what is public: %v", user, e)
				}
				// docs/cells.md: a program that others may execute but not read
				if e := f.as(user, guid, program+" && ! "+unreadable).end(); !e.Success() {
					t.Errorf("%s runs a program that it may not read, or not one that it may: %v", user, e)
				}
			}
			if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("secret"), 0), os.Chmod(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			for _, user := range users {
				for _, command := range []string{"cat " + file, "cat " + inside, "ls " + dir} {
					if r := f.as(user, guid, command); r.end().Success() {
						t.Errorf("%s: %q still works, and says %q", user, command, r.stdout)
					}
				}
			}
		})
	}
}

func TestALockOfAFileOfTheHostHoldsInItsContainerOnly(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.SharedIDs = shared })
			guid, _ := f.create()
			neighbour, _ := f.create()
			f.as("nobody", guid, "exec 9</usr/bin/id && flock 9 && echo locked && exec sleep 600").says("locked\n")
			if e := f.as("nobody", neighbour, "flock -n /usr/bin/id true").end(); !e.Success() {
				t.Error("a container's lock of a file of the host keeps its neighbour from it")
			}
			program, err := os.Open("/usr/bin/id")
			if err != nil {
				t.Fatal(err)
			}
			defer program.Close()
			if err := unix.Flock(int(program.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				t.Errorf("a container's lock of a file of the host keeps the host from it: %v", err)
			}
			if e := f.as("nobody", guid, "flock -n /usr/bin/id true").end(); e.Success() {
				t.Error("a lock does not hold in its own container")
			}
		})
	}
}

func TestTheHostsDirectoriesAreListedInAContainerAsOnTheHost(t *testing.T) {
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		guid, _ := f.create()
		want, err := exec.Command("ls", "-A", "/usr").Output()
		if err != nil {
			t.Fatal(err)
		}
		if r := f.as("nobody", guid, "ls -A /usr"); !r.end().Success() || r.stdout.String() != string(want) {
			t.Errorf("/usr holds %q, want %q", r.stdout, want)
		}
	})
}

func TestWhatProgramsAskTheKernelIsThere(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for _, path := range sysShown {
		if _, err := os.Stat(path); err != nil {
			t.Logf("this host has no %s", path)
			continue
		}
		if e := f.as("nobody", guid, "ls "+path+"/* && ! touch "+path+"/x").end(); !e.Success() {
			t.Errorf("%s is not shown: %v", path, e)
		}
	}
	if r := f.as("nobody", guid, "ls /sys"); !r.end().Success() || r.stdout.String() != "devices\nkernel\n" {
		t.Errorf("/sys holds %q", r.stdout)
	}
}

func TestAProcessHasNoDescriptorOfTheDaemon(t *testing.T) {
	f := newFixture(t)
	secret, err := os.Open(f.hostFile("secret", "the host's own", 0o600))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	leaked, err := unix.Dup(int(secret.Fd())) // one that execve does not close
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	guid, _ := f.create()
	for _, user := range []string{"root", "nobody"} {
		r := f.as(user, guid, `sh -c 'cd /proc/$PPID/fd && echo *'; true`)
		if r.end(); r.stdout.String() != "0 1 2\n" {
			t.Errorf("a process of %s has the descriptors %q; %s", user, r.stdout, r.stderr)
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd/", f.containers[guid].initPID)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); to != os.DevNull && !strings.HasPrefix(to, "socket:") && !strings.HasPrefix(to, "anon_inode:[signalfd]") {
			t.Errorf("the first process has %s: %s, %v", e.Name(), to, err)
		}
	}
}

func TestOneUserDoesNotLookIntoAnothersProcess(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	other := f.as("root", guid, "echo $$; exec sleep 1000")
	f.eventually("it says its number", func() bool { return strings.HasSuffix(other.stdout.String(), "\n") })
	pid := strings.TrimSpace(other.stdout.String())
	for _, script := range []string{"ls /proc/%s/root/", "ls /proc/%s/cwd/", "ls /proc/%s/fd/", "cat /proc/%s/environ", "head -c 1 /proc/%s/mem", "kill %s"} {
		if e := f.as("nobody", guid, fmt.Sprintf(script, pid)).end(); e.Success() {
			t.Errorf(script+" was done", pid)
		}
	}
}

func TestASetuidProgramGivesNoRightsUnlessItsContainerIsPrivileged(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.AllowPrivileged = true })
	for _, privileged := range []bool{false, true} {
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.Privileged = privileged })
		if e := f.as("root", guid, "cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id").end(); !e.Success() {
			t.Fatalf("it was not made: %v", e)
		}
		r := f.as("nobody", guid, `[ "$(/tmp/id -u)" = 0 ] || [ "$(/tmp/id -g)" = 0 ]`)
		if got := r.end().Success(); got != privileged {
			t.Errorf("in a container that is privileged (%v), nobody became root: %v", privileged, got)
		}
	}
}

// An abstract socket belongs to a network, and so do devices.
func TestOnlyTheHostsNetworkHasTheHostsAbstractSockets(t *testing.T) {
	l, err := net.Listen("unix", fmt.Sprintf("@diego-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, hostNetwork := range []bool{false, true} {
		f := newFixture(t, func(o *Options) { o.HostNetwork = hostNetwork })
		guid, _ := f.create()
		connect := fmt.Sprintf(`perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or exit 2; connect(S, pack("S a*", AF_UNIX, "\0%s")) or exit 1'`, l.Addr().String()[1:])
		if e := f.as("nobody", guid, connect).end(); e.Success() != hostNetwork {
			t.Errorf("host network %v: it ended with %v", hostNetwork, e)
		}
		devices := f.as("nobody", guid, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort")
		if devices.end(); (devices.stdout.String() == "eth0\nlo\n") == hostNetwork {
			t.Errorf("host network %v: its devices are %q", hostNetwork, devices.stdout)
		}
	}
}

func TestTheHostsSecretsAreNotInAContainer(t *testing.T) {
	f := newFixture(t)
	secret := f.hostFile("secret", "the host's own", 0o644)
	t.Setenv("DIEGO_TEST_SECRET", "the host's own")
	guid, _ := f.create()
	r := f.as("root", guid, fmt.Sprintf("cat %s /proc/1/root%s /proc/self/cwd/../../../../..%s /host%s; env; tr '\\0' '\\n' < /proc/self/environ; find / -xdev -name secret", secret, secret, secret, secret))
	r.end()
	if out := r.stdout.String(); strings.Contains(out, "the host's own") || strings.Contains(out, "DIEGO_TEST_SECRET") {
		t.Errorf("it has found it: %s", out)
	}
}

func TestAReadOnlyMountCannotBeWrittenNorRemounted(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o777); err != nil {
		t.Fatal(err)
	}
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Mounts = []executor.Mount{{Source: dir, Target: "/mnt/read"}, {Source: dir, Target: "/mnt/write", Writable: true}}
	})
	if e := f.as("root", guid, "touch /mnt/read/x || mount -o remount,rw /mnt/read").end(); e.Success() {
		t.Error("a read-only mount was written")
	}
	if e := f.as("root", guid, "touch /mnt/write/x && test -e /mnt/read/x").end(); !e.Success() {
		t.Errorf("a writable mount cannot be written: %v", e)
	}
}

func TestAStreamFollowsNoLinkOutOfTheContainer(t *testing.T) {
	f := newFixture(t)
	secret := f.hostFile("secret", "the host's own", 0o644)
	guid, _ := f.create()
	for _, link := range []string{secret, "/proc/1/root" + secret, "../../../../../../../.." + secret, "/proc/self/root" + secret} {
		f.as("root", guid, "ln -sfn "+link+" /tmp/l; ln -sfn "+filepath.Dir(link)+" /tmp/d").end()
		for _, path := range []string{"/tmp/l", "/tmp/d/secret", link} {
			if r, err := f.StreamOut(f.ctx, guid, path, "root"); err == nil {
				r.Close()
				t.Errorf("%s was read through %s", link, path)
			}
		}
	}
}

func TestContainersDoNotReachEachOther(t *testing.T) {
	f := newFixture(t)
	if f.network == nil {
		t.Fatalf("this host has no network for containers: %s", f.host.network)
	}
	a, endpoint := f.create(func(c *executor.ContainerSpec) { c.Ports = []uint16{8080} })
	b, _ := f.create()
	server := f.as("nobody", a, `perl -MIO::Socket::INET -e 'my @s = map { IO::Socket::INET->new(Listen => 9, LocalPort => $_) or die } 8080, 9090; $| = 1; print "ready\n"; fork; my $n = fork ? 0 : 1; while (my $c = $s[$n]->accept) { print $c "hello\n"; close $c }'`)
	server.says("ready")
	dial := func(guid, address string) executor.Exit {
		host, port, _ := net.SplitHostPort(address)
		return f.as("nobody", guid, fmt.Sprintf(`perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => "%s", PeerPort => %s, Timeout => 2) or exit 1; exit(<$s> eq "hello\n" ? 0 : 2)'`, host, port)).end()
	}
	own := f.containers[a].link.Own.String()
	gateway := f.containers[b].link.Gateway.String()
	mapped := fmt.Sprint(endpoint.Ports[0].HostPort)
	for _, test := range []struct {
		name, from, to string
		reached        bool
	}{
		{"a neighbour's port by its address", b, own + ":8080", false},
		{"a neighbour's port that is not mapped", b, own + ":9090", false},
		{"a neighbour's mapped port by the host", b, gateway + ":" + mapped, true},
		{"its own mapped port by the host", a, f.containers[a].link.Gateway.String() + ":" + mapped, true},
		{"its own loopback", a, "127.0.0.1:9090", true},
	} {
		if got := dial(test.from, test.to).Success(); got != test.reached {
			t.Errorf("%s was reached: %v, want %v", test.name, got, test.reached)
		}
	}
	// The host's own loopback is not the container's.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dial(b, l.Addr().String()).Success() {
		t.Error("the host's loopback was reached")
	}
	// From the host, the mapping works on every address.
	for _, address := range []string{"127.0.0.1:" + mapped, gateway + ":" + mapped} {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Errorf("the host does not reach %s: %v", address, err)
			continue
		}
		buffer := make([]byte, 6)
		if _, err := conn.Read(buffer); err != nil || string(buffer) != "hello\n" {
			t.Errorf("%s answers %q, %v", address, buffer, err)
		}
		conn.Close()
	}
}

func TestWhatOfTheHostNotEverybodyMayReadIsNotReadInAContainer(t *testing.T) {
	const someone = 1234
	newFixture(t).create() // unpacks the image that all tests share
	shown := t.TempDir()
	if err := os.Chmod(shown, 0o755); err != nil {
		t.Fatal(err)
	}
	files := []struct {
		name     string
		mode     os.FileMode
		uid, gid int
		read     bool
	}{
		{"public", 0o644, 0, 0, true},
		{"someones-public", 0o604, someone, someone, true},
		{"roots", 0o600, 0, 0, false},
		{"of-roots-group", 0o640, someone, 0, false},
		{"someones", 0o600, someone, someone, false},
		{"of-someones-group", 0o640, 0, someone, false},
		{"closed/public", 0o644, 0, 0, false},
		{"closed-to-root/public", 0o644, 0, 0, false},
	}
	for dir, uid := range map[string]int{"closed": 0, "closed-to-root": someone} {
		if err := os.Mkdir(filepath.Join(shown, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(shown, dir), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		path := filepath.Join(shown, file.name)
		if err := os.WriteFile(path, []byte("the host's own"), file.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, file.uid, file.gid); err != nil {
			t.Fatal(err)
		}
	}
	before := rootfs.HostPrograms
	t.Cleanup(func() { rootfs.HostPrograms = before })
	rootfs.HostPrograms = append(before[:len(before):len(before)], shown)
	for _, test := range []struct {
		name           string
		shared, masked bool
	}{{"own ids", false, false}, {"shared ids", true, false}, {"shared ids and masks", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.SharedIDs = test.shared })
			if test.masked { // as where files cannot be without owners
				if err := f.roots.UseMasks(); err != nil {
					t.Fatal(err)
				}
			}
			guid, _ := f.create()
			for _, user := range []string{"root", fmt.Sprint(someone), "nobody"} {
				for _, file := range files {
					e := f.as(user, guid, "grep -q . "+filepath.Join(shown, file.name)).end()
					if e.Success() != file.read {
						t.Errorf("%s is read by %s: %v, want %v", file.name, user, e.Success(), file.read)
					}
					// The daemon reads in the same rights what it uploads, and results.
					stream, err := f.StreamOut(f.ctx, guid, filepath.Join(shown, file.name), user)
					if (err == nil) != file.read {
						t.Errorf("%s is uploaded as %s: %v, want %v", file.name, user, err, file.read)
					}
					if err == nil {
						stream.Close()
					}
				}
				if e := f.as(user, guid, "touch "+shown+"/new || chmod 777 "+shown).end(); e.Success() {
					t.Errorf("%s has changed it", user)
				}
			}
		})
	}
}

// With shared ids, root in a container owns what root of the host owns.
func TestTheNullDeviceOfTheHostIsNotThatOfAProcess(t *testing.T) {
	mode := func() fs.FileMode {
		info, err := os.Stat(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	before := mode()
	t.Cleanup(func() { os.Chmod(os.DevNull, before) })
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		guid, _ := f.create()
		discarded := func(s *executor.ProcessSpec) { s.Stdout, s.Stderr = nil, nil }
		r := f.as("root", guid, "", perl(`for (0..2) { open(my $f, "+<&=", $_) or die; chmod(01666, $f) }`), discarded)
		r.end()
		if now := mode(); now != before {
			t.Errorf("a container has made it %v, which was %v", now, before)
		}
		// What is discarded and what is not there is as before.
		if e := f.as("nobody", guid, "read line && exit 1; echo discarded && echo too >&2", discarded).end(); !e.Success() {
			t.Errorf("without input and output it ends with %v", e)
		}
	})
}

// Files of a container are uploaded in the rights of the user who is named, or of root.
func TestAContainersOwnFilesAreUploadedAsTheirUser(t *testing.T) {
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		guid, _ := f.create()
		for _, user := range []string{"root", "nobody"} {
			if e := f.as(user, guid, "umask 077; mkdir /tmp/"+user+" && echo own >/tmp/"+user+"/file").end(); !e.Success() {
				t.Fatalf("%s: %v", user, e)
			}
		}
		for _, test := range []struct {
			path, user string
			read       bool
		}{
			{"/tmp/root", "root", true}, {"/tmp/root/file", "", true}, {"/tmp/root/file", "nobody", true}, {"/tmp/root/file", "unheard-of", true},
			{"/tmp/nobody/file", "nobody", true}, {"/tmp/nobody", "nobody", true}, {"/tmp/nobody/file", "root", false},
			{"/proc/1/mounts", "root", false}, {"/sys/devices/system/cpu/online", "root", false}, // the kernel's files have no size, and would be empty
		} {
			stream, err := f.StreamOut(f.ctx, guid, test.path, test.user)
			if err == nil {
				_, err = io.Copy(io.Discard, stream)
				stream.Close()
			}
			if (err == nil) != test.read {
				t.Errorf("%s as %q: %v, want %v", test.path, test.user, err, test.read)
			}
		}
	})
}
