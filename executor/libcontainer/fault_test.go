//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
	plain "github.com/diegosdk/diego/executor/process"
)

func size(mb int64) func(*executor.ContainerSpec) {
	return func(c *executor.ContainerSpec) { c.Resources.MemoryMB = mb }
}

func TestAProcessThatUsesUpTheMemoryIsNamedSo(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32))
	hog := f.as("nobody", guid, `exec perl -e '$x .= "x" x 1_000_000 while 1'`)
	if e := hog.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
		t.Errorf("it ended with %+v", e)
	}
	// The others live, and their end has its own reason.
	quiet := f.as("nobody", guid, "echo ready; exec sleep 1000")
	quiet.says("ready")
	if err := quiet.Signal(executor.Kill); err != nil {
		t.Error(err)
	}
	if e := quiet.end(); e != (executor.Exit{Signal: 9}) {
		t.Errorf("the other ended with %+v", e)
	}
}

func TestALimitBelowWhatStartingTakesIsKept(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources = executor.Resources{MemoryMB: 4, MaxPIDs: 3} })
	if got := f.cgroupFile(guid, "memory/memory.limit_in_bytes", "memory.max"); got != "4194304\n" {
		t.Errorf("the memory limit is %s", got)
	}
	if got := f.cgroupFile(guid, "pids/pids.max", "pids.max"); got != "4\n" {
		t.Errorf("the process limit is %s, want 3 and the first one", got)
	}
	if e := f.as("nobody", guid, "true").end(); !e.Success() {
		t.Errorf("a small process ended with %v", e)
	}
	if e := f.as("nobody", guid, `exec perl -e '$x = "x" x 8_000_000'`).end(); !e.OutOfMemory {
		t.Errorf("a large process ended with %v", e)
	}
}

func TestAProcessBeyondTheLimitIsRefusedWithTheLimit(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.MaxPIDs = 2 })
	for name, own := range map[string]int64{"the container's own": 2, "the default": 0} {
		t.Run(name, func(t *testing.T) {
			guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.MaxPIDs = own })
			full := f.as("nobody", guid, "sleep 1000 & wait")
			f.eventually("its child runs, too", func() bool {
				return f.cgroupFile(guid, "pids/pids.current", "pids.current") == "3\n" // with the first one
			})
			_, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: "true", User: "nobody"})
			if !errors.Is(err, executor.ErrProcesses) || !strings.Contains(err.Error(), "2 processes and threads may run") {
				t.Errorf("a third process: %v", err)
			}
			if err := full.Signal(executor.Kill); err != nil {
				t.Error(err)
			}
			full.end()
			if e := f.as("nobody", guid, "true").end(); !e.Success() {
				t.Errorf("after the end of the others: %v", e)
			}
		})
	}
}

func TestALimitOfTheHostIsNotBlamedOnTheContainer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	dirs := f.containers[guid].cgroup.Dirs()
	limit := filepath.Join(filepath.Dir(cmp.Or(dirs["pids"], dirs[""])), "pids.max") // of all containers
	if err := os.WriteFile(limit, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: "true", User: "nobody"})
	if !errors.Is(err, unix.EAGAIN) || errors.Is(err, executor.ErrProcesses) || !strings.Contains(err.Error(), "0 of its 128 processes and threads run, so a limit of the host is reached") {
		t.Errorf("the error is %v", err)
	}
}

func TestAForkBombStaysInItsContainer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.MaxPIDs = 32 })
	other, _ := f.create()
	f.as("nobody", guid, `exec perl -e 'fork while 1'`)
	f.eventually("it has filled its container", func() bool {
		m, err := f.Usage(f.ctx, guid)
		return err == nil && m.PIDs >= 30
	})
	if m, err := f.Usage(f.ctx, guid); err != nil || m.PIDs > 32 {
		t.Errorf("it has %d processes, %v", m.PIDs, err)
	}
	if e := f.as("nobody", other, "true").end(); !e.Success() {
		t.Errorf("its neighbour ended with %v", e)
	}
	start := time.Now()
	f.delete(guid)
	if d := time.Since(start); d > patience/2 {
		t.Errorf("it took %v to delete it", d)
	}
}

func TestADiskLimitHoldsAndIsFilledAlone(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 })
	filler := f.as("root", guid, "dd if=/dev/zero of=/filler bs=1M count=100; stat -c %s /filler")
	filler.end()
	if !strings.Contains(filler.stderr.String(), "No space left") {
		t.Errorf("it said %q, %q", filler.stdout, filler.stderr)
	}
	m, err := f.Usage(f.ctx, guid)
	if err != nil || m.DiskBytes < 10<<20 || m.DiskBytes > 16<<20 {
		t.Errorf("it uses %d bytes of disk, %v", m.DiskBytes, err)
	}
	if e := f.as("nobody", guid, "true").end(); !e.Success() {
		t.Errorf("afterwards a process ended with %v", e)
	}
	for name, dir := range map[string]string{"shared memory": "/dev/shm", "devices": "/dev"} {
		hole := f.as("root", guid, "dd if=/dev/zero of="+dir+"/filler bs=1M count=100; rm "+dir+"/filler")
		hole.end()
		if !strings.Contains(hole.stderr.String(), "No space left") {
			t.Errorf("%s has no limit: %q", name, hole.stderr)
		}
	}
}

// The number of a descriptor that Delete closes may be another file's by then.
func TestTheDiskIsMeasuredWhileDeleteWaits(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 })
	// All that needs a descriptor is in what holds the container.
	if held, err := f.containers[guid].usage(); err != nil || held.DiskBytes <= 0 {
		t.Errorf("while Delete waits %d bytes of the disk are found, %v", held.DiskBytes, err)
	}
	if m, err := f.Usage(f.ctx, guid); err != nil || m.DiskBytes <= 0 {
		t.Errorf("it takes %d bytes of its disk, %v", m.DiskBytes, err)
	}
}

func TestAStreamIsHeldToTheDiskLimit(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = 8 })
	reader, writer := io.Pipe()
	go func() {
		out := tar.NewWriter(writer)
		out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bomb", Mode: 0o644, Size: 1 << 40})
		_, err := io.CopyN(out, zeros{}, 1<<40)
		writer.CloseWithError(err)
	}()
	err := f.StreamIn(f.ctx, guid, "/tmp", "nobody", reader)
	reader.Close()
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestWhatCannotBeStartedSaysWhy(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Files = []executor.File{{Path: "/job/plain", Content: "no program"}, {Path: "/job/passwd", Content: "x"}}
	})
	f.as("root", guid, "printf '#!/no/such/interpreter\n' > /job/lost; chmod 755 /job/lost; printf '\\177ELF' > /job/broken; chmod 755 /job/broken").end()
	for _, test := range []struct {
		name, path, user, dir string
		kind                  error
	}{
		{"no such program", "/no/such", "nobody", "", executor.ErrNoCommand},
		{"no such program in PATH", "no-such", "nobody", "", executor.ErrNoCommand},
		{"no program at all", "", "nobody", "", executor.ErrNoCommand},
		{"not executable", "/job/plain", "nobody", "", executor.ErrNoCommand},
		{"a directory", "/job", "nobody", "", executor.ErrNoCommand},
		{"a script without its interpreter", "/job/lost", "nobody", "", executor.ErrNoCommand},
		{"a broken program", "/job/broken", "nobody", "", executor.ErrNoCommand},
		{"an unknown user", "/bin/true", "no-such-user", "", executor.ErrNoUser},
		{"an unknown group", "/bin/true", "nobody:no-such-group", "", executor.ErrNoUser},
		{"a user that is too large", "/bin/true", "4294967296", "", executor.ErrNoUser},
		{"a directory that is not there", "/bin/true", "nobody", "/no/such", executor.ErrNoFile},
		{"a directory that is closed", "/bin/true", "nobody", "/root", executor.ErrNoFile},
	} {
		_, err := f.Start(f.ctx, guid, executor.ProcessSpec{Path: test.path, User: test.user, Dir: test.dir,
			Exited: func(executor.Exit) { t.Errorf("%s: an end was reported", test.name) }})
		var typed *executor.BackendError
		if !errors.Is(err, test.kind) || !errors.As(err, &typed) || typed.GUID != guid || typed.Detail == "" {
			t.Errorf("%s: %v, want %v with the container and a detail", test.name, err, test.kind)
		}
	}
	if left := len(f.containers[guid].processes); left > 1 {
		t.Errorf("%d processes are remembered", left)
	}
}

func TestUsersAreThoseOfTheContainer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Files = []executor.File{
			{Path: "/etc/passwd", Content: "app:x:1234:1235::/job:/bin/sh\n"},
			{Path: "/etc/group", Content: "app:x:1235:\nextra:x:77:other,app\nmore:x:78:\n"},
			{Path: "/job/file", Content: "x"},
		}
	})
	for user, want := range map[string]string{
		"app":      "1234:1235:1235 77:/job:/job",
		"app:more": "1234:78:78 77:/job:/job",
		"app:99":   "1234:99:99 77:/job:/job",
		"1234":     "1234:1235:1235 77:/job:/job",
		"4321":     "4321:4321:4321:/:/",
		"root":     "0:0:0:/:/",
		"":         "0:0:0:/:/",
	} {
		r := f.as(user, guid, `echo "$(id -u):$(id -g):$(id -G):$HOME:$PWD"`)
		r.end()
		if got := strings.TrimSpace(r.stdout.String()); got != want {
			t.Errorf("user %q is %s, want %s", user, got, want)
		}
	}
}

func TestLimitsOfAProcessAreCutToWhatTheHostAllows(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	small, large, procs := uint64(19), uint64(1)<<62, uint64(4000)
	for _, test := range []struct {
		limits executor.ResourceLimits
		want   string
	}{
		{executor.ResourceLimits{Nofile: &small, Nproc: &procs}, "19 4000 0"},
		{executor.ResourceLimits{Nofile: &large}, fmt.Sprint(own.Max) + " "},
		{executor.ResourceLimits{}, fmt.Sprint(min(uint64(executor.DefaultNofile), own.Max)) + " "},
	} {
		r := f.as("nobody", guid, `echo "$(ulimit -n) $(ulimit -p) $(ulimit -c)"`, func(s *executor.ProcessSpec) { s.Limits = test.limits })
		r.end()
		if got := r.stdout.String(); !strings.HasPrefix(got, test.want) {
			t.Errorf("the limits are %q, want %q", got, test.want)
		}
	}
}

func TestOutputIsBoundedByItsReaderAndNotLost(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	const bytes = 200 << 20
	start := time.Now()
	flood := f.as("nobody", guid, fmt.Sprintf("head -c %d /dev/zero", bytes))
	if e := flood.end(); !e.Success() {
		t.Errorf("it ended with %v", e)
	}
	if flood.stdout.count != bytes {
		t.Errorf("%d bytes arrived, want %d", flood.stdout.count, bytes)
	}
	t.Logf("%.0f MB/s", bytes/1e6/time.Since(start).Seconds())
	// A file is written by the process itself.
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f.as("nobody", guid, "echo direct", func(s *executor.ProcessSpec) { s.Stdout = file }).end()
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != "direct\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestOrphansAreReapedAndOutputThatTheyHoldDelaysNothing(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("nobody", guid, "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05' &); done; (setsid sleep 1000 &); echo out")
	if e := r.end(); !e.Success() || r.stdout.String() != "out\n" {
		t.Errorf("it ended with %v and said %q", e, r.stdout)
	}
	f.eventually("only the sleeping one is left", func() bool {
		m, err := f.Usage(f.ctx, guid)
		return err == nil && m.PIDs == 1
	})
	zombies := f.as("nobody", guid, "cat /proc/[0-9]*/stat | grep -c ') Z '")
	zombies.end()
	if got := strings.TrimSpace(zombies.stdout.String()); got != "0" {
		t.Errorf("%s zombies are left", got)
	}
}

func TestNothingStartsInOrBesideAContainerThatIsGone(t *testing.T) {
	f := newFixture(t)
	marker := filepath.Join(t.TempDir(), "marker")
	guid, _ := f.create()
	c := f.containers[guid]
	f.delete(guid)
	if _, err := f.try("root", guid, "echo > "+marker); !errors.Is(err, executor.ErrNoContainer) {
		t.Errorf("Start: %v", err)
	}
	// Even what lies below all checks reaches nobody.
	request, err := c.request(executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", "echo > " + marker}, User: "0"})
	if err == nil {
		answer, err := pid1.NewAnswer()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		if err := c.conn.Start(answer, request, f.program, f.program, f.program); err == nil {
			t.Error("a start was sent to nobody")
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it ran on the host")
	}
}

func TestAUserIsLookedForAgainWhenTheFilesOfTheContainerChange(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Files = []executor.File{
			{Path: "/etc/passwd", Content: "app:x:1234:1235::/:/bin/sh\n"},
			{Path: "/etc/group", Content: "extra:x:1500:abc\n"},
		}
	})
	id := func(want string) {
		t.Helper()
		r := f.as("app", guid, "id -u; id -G")
		if r.end(); r.stdout.String() != want {
			t.Errorf("it is %q, want %q", r.stdout, want)
		}
	}
	c := f.containers[guid]
	// Once the files have not changed for a while, they are not read again.
	f.eventually("the user is kept", func() bool {
		id("1234\n1235\n")
		return c.lastUser != nil
	})
	// The same file has the same size and time of its content.
	f.as("root", guid, "touch -r /etc/passwd /tmp/t; sed s/1234/4321/ /etc/passwd > /tmp/p; cat /tmp/p > /etc/passwd; touch -r /tmp/t /etc/passwd").end()
	id("4321\n1235\n")
	f.as("root", guid, "touch -r /etc/group /tmp/t; sed s/abc/app/ /etc/group > /tmp/g; cat /tmp/g > /etc/group; touch -r /tmp/t /etc/group").end()
	id("4321\n1235 1500\n")
	f.as("root", guid, "rm /etc/passwd").end()
	if _, err := f.try("app", guid, "true"); !errors.Is(err, executor.ErrNoUser) {
		t.Errorf("without a file: %v", err)
	}
}

// The news of the end of a process, and of the first process, is held up until
// after it has come about.
func TestAProcessThatEndsWhileItsStartGoesOnIsReported(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		name, script string
		end          func(c *container)
		want         executor.Exit
	}{
		{"by itself", "echo ready; exit 3", func(c *container) {
			f.eventually("it has been reaped", func() bool { return c.cgroup.PIDs() == 1 })
		}, executor.Exit{Status: 3}},
		{"with the first process", "echo ready; exec sleep 1000", func(c *container) {
			kill(t, c.initPID)
			f.eventually("no other is left", func() bool { return c.cgroup.PIDs() <= 1 })
		}, executor.Exit{Signal: 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			guid, _ := f.create()
			c := f.containers[guid]
			stdout := &output{}
			exited := make(chan executor.Exit, 1)
			result := make(chan error, 1)
			c.receiving.Lock()
			go func() {
				_, err := f.try("nobody", guid, test.script, func(s *executor.ProcessSpec) {
					s.Stdout, s.Exited = stdout, func(e executor.Exit) { exited <- e }
				})
				result <- err
			}()
			f.eventually("it runs", func() bool { return strings.Contains(stdout.String(), "ready") })
			test.end(c)
			c.receiving.Unlock()
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-exited:
				if e != test.want {
					t.Errorf("it ended with %v, want %v", e, test.want)
				}
			case <-f.ctx.Done():
				t.Error("its end is not reported")
			}
		})
	}
}

func TestADeadFirstProcessIsNoticed(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("nobody", guid, "echo ready; exec sleep 1000")
	r.says("ready")
	kill(t, f.containers[guid].initPID)
	if e := r.end(); e.Signal != 9 {
		t.Errorf("what ran ended with %v", e)
	}
	if _, err := f.try("nobody", guid, "true"); !errors.Is(err, executor.ErrNoContainer) {
		t.Errorf("Start: %v", err)
	}
	if err := r.Signal(executor.Terminate); err != nil {
		t.Errorf("Signal: %v", err)
	}
	f.delete(guid)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestASignalReachesTheProgramAtOnce(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for range 50 {
		r := f.as("nobody", guid, "exec sleep 1000")
		if err := r.Signal(executor.Terminate); err != nil {
			t.Fatal(err)
		}
		if e := r.end(); e != (executor.Exit{Signal: 15}) {
			t.Fatalf("it ended with %v", e)
		}
	}
}

func TestAContainerThatWasJustMadeIsDeletedWhole(t *testing.T) {
	f := newFixture(t)
	for range 10 {
		guid, _ := f.create()
		f.as("nobody", guid, "exec sleep 1000")
		f.delete(guid)
	}
	if got := traces(t, f.Backend); len(got) != 1 { // the table
		t.Errorf("left behind: %q", got)
	}
}

func TestAProcessMayListenOnAnyPortOfItsContainer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("nobody", guid, `perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Listen => 1, LocalPort => 80) or die $!'`)
	if e := r.end(); !e.Success() {
		t.Errorf("port 80: %v: %s", e, r.stderr)
	}
}

func TestAPortThatIsTakenIsNotGivenAway(t *testing.T) {
	for _, hostNetwork := range []bool{false, true} {
		t.Run(fmt.Sprintf("host network %v", hostNetwork), func(t *testing.T) {
			l, err := net.Listen("tcp", ":0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			port := uint16(l.Addr().(*net.TCPAddr).Port)
			f := newFixture(t, func(o *Options) { o.FirstPort, o.LastPort, o.HostNetwork = port, port, hostNetwork })
			one := func(c *executor.ContainerSpec) { c.Ports = []uint16{80} }
			refused := func(when string, b executor.ContainerBackend) {
				if _, err := b.Create(f.ctx, f.spec(one)); !errors.Is(err, executor.ErrNoPort) {
					t.Errorf("%s: %v", when, err)
				}
			}
			refused("while a program listens", f)
			l.Close()
			guid, _ := f.create(one)
			refused("while another container has it", f)
			other, err := plain.New(plain.Options{Dir: t.TempDir(), FirstPort: port, LastPort: port})
			if err != nil {
				t.Fatal(err)
			}
			refused("while a container of another backend has it", other)
			if l, err := net.Listen("tcp", l.Addr().String()); (err == nil) != hostNetwork {
				t.Errorf("who listens on the host: %v", err)
			} else if err == nil {
				l.Close()
			}
			f.delete(guid)
			refused("while it rests", other)
			guid, _ = f.create(one) // the backend has no other
			f.delete(guid)
		})
	}
}

func TestACreateThatFailsOrIsCancelledLeavesNothing(t *testing.T) {
	f := newFixture(t)
	missing := f.spec(func(c *executor.ContainerSpec) { c.Mounts = []executor.Mount{{Source: "/no/such", Target: "/mnt"}} })
	if _, err := f.Create(f.ctx, missing); err == nil {
		t.Error("a mount of nothing was made")
	}
	defer func() { stage.Reached = func() {} }()
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(f.ctx)
		i := 0
		stage.Reached = func() {
			if i++; i == n {
				cancel()
			}
		}
		spec := full("x")
		_, err := f.Create(ctx, spec)
		cancel()
		stage.Reached = func() {}
		if got := traces(t, f.Backend); err != nil && len(got) != 1 { // the table
			t.Fatalf("cancelled at stage %d it left %q", n, got)
		}
		if err == nil && i < n {
			f.delete("x")
			return
		}
	}
}

func TestAFirstProcessThatDiesBeforeItRunsIsReaped(t *testing.T) {
	f := newFixture(t)
	spec := f.spec()
	g, err := f.cgroups.Child(spec.GUID)
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	defer func() { stage.Reached = func() {} }()
	stage.Reached = func() {
		if g.PIDs() < 1 { // libcontainer has not started anything
			return
		}
		stage.Reached = func() {}
		pids = strings.Fields(f.cgroupFile(spec.GUID, "pids/cgroup.procs", "cgroup.procs"))
		if err := g.Kill(f.ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Create(f.ctx, spec); err == nil || len(pids) == 0 {
		t.Errorf("it is made although %q were killed: %v", pids, err)
	}
	for _, pid := range pids {
		f.eventually("it is reaped", func() bool { return !exists("/proc/" + pid) })
	}
}

func TestMemoryOfTheFirstProcessIsSmall(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	m, err := f.Usage(f.ctx, guid)
	if err != nil || m.PIDs != 0 || m.MemoryBytes > 2<<20 {
		t.Errorf("an idle container uses %+v, %v", m, err)
	}
}

func TestWhatTheHostCannotEnforceIsRefused(t *testing.T) {
	f := newFixture(t)
	rules := []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.1"}}}
	for _, test := range []struct {
		name  string
		lacks func(*facts)
		asks  func(*executor.ContainerSpec)
	}{
		{"without overlayfs, anything", func(h *facts) { h.overlay = "none" }, func(*executor.ContainerSpec) {}},
		{"without the memory controller, a memory limit", func(h *facts) { h.Memory = "none" }, func(*executor.ContainerSpec) {}},
		{"without the pids controller, anything", func(h *facts) { h.PIDs = "none" }, func(*executor.ContainerSpec) {}},
		{"without the cpu controller, a weight", func(h *facts) { h.CPU = "none" }, func(c *executor.ContainerSpec) { c.CPUWeight = 3 }},
		{"without loop devices, a disk limit", func(h *facts) { h.disk = "none" }, func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 }},
		{"a disk too small for a file system", func(*facts) {}, func(c *executor.ContainerSpec) { c.Resources.DiskMB = 1 }},
		{"without nftables, a network", func(h *facts) { h.network = "none" }, func(*executor.ContainerSpec) {}},
		{"without nftables, egress rules", func(h *facts) { h.network = "none" }, func(c *executor.ContainerSpec) { c.EgressRules = rules }},
		{"unless allowed, privileges", func(*facts) {}, func(c *executor.ContainerSpec) { c.Privileged = true }},
		{"without a network plug-in, its properties", func(*facts) {}, func(c *executor.ContainerSpec) { c.NetworkProperties = map[string]string{"app": "a1"} }},
		{"without an authority, a certificate", func(*facts) {}, func(c *executor.ContainerSpec) { c.CertificateProperties = &executor.CertificateConfig{} }},
		{"without a registry, a login", func(*facts) {}, func(c *executor.ContainerSpec) { c.ImageUsername = "u" }},
		{"an unknown kind of root file system", func(*facts) {}, func(c *executor.ContainerSpec) { c.RootFS = "docker:///x" }},
	} {
		before := f.host
		test.lacks(&f.host)
		_, err := f.Create(f.ctx, f.spec(test.asks))
		f.host = before
		var typed *executor.BackendError
		if !errors.Is(err, executor.ErrUnsupported) || !errors.As(err, &typed) || typed.Detail == "" {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if got := traces(t, f.Backend); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

func TestTheHostNetworkRefusesEgressRulesAndSaysSo(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.HostNetwork = true })
	spec := f.spec(func(c *executor.ContainerSpec) {
		c.EgressRules = []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.1"}}}
	})
	if _, err := f.Create(f.ctx, spec); !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "HostNetwork") {
		t.Errorf("the error is %v", err)
	}
	guid, endpoint := f.create(func(c *executor.ContainerSpec) { c.Ports = []uint16{8080} })
	if !endpoint.SharesHostNetwork || len(endpoint.Ports) != 1 || endpoint.Ports[0].HostPort == 0 {
		t.Errorf("the endpoint is %+v", endpoint)
	}
	if e := f.as("nobody", guid, "true").end(); !e.Success() {
		t.Errorf("a process ended with %v", e)
	}
}

func TestAPrivilegedContainerHasMoreRightsIfAllowed(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.AllowPrivileged = true })
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Privileged = true })
	r := f.as("root", guid, "mount -t tmpfs none /mnt && hostname other && hostname")
	if e := r.end(); !e.Success() || r.stdout.String() != "other\n" {
		t.Errorf("root ended with %v: %s", e, r.stderr)
	}
	if e := f.as("nobody", guid, "mount -t tmpfs none /mnt").end(); e.Success() {
		t.Error("nobody could mount")
	}
}

func TestOptionsAreCheckedAndContainersTakeRoot(t *testing.T) {
	if _, err := (Options{}).orDefault(); err == nil {
		t.Error("an empty Dir was taken")
	}
	if _, err := (Options{Dir: t.TempDir(), FirstPort: 2, LastPort: 1}).orDefault(); err == nil {
		t.Error("an empty port range was taken")
	}
	if err := (facts{}).allowed(1000); !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "root") {
		t.Errorf("without root: %v", err)
	}
	if err := (facts{Features: cgroup.Features{Fatal: "no cgroups"}}).allowed(0); !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "no cgroups") {
		t.Errorf("without cgroups: %v", err)
	}
	if err := (facts{}).allowed(0); err != nil {
		t.Errorf("with all: %v", err)
	}
}

func TestAStartWhoseTimeIsOverLeavesNothingRunning(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for i := range 40 {
		ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i)*100*time.Microsecond)
		ended := make(chan executor.Exit, 1)
		p, err := f.Start(ctx, guid, executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", idle}, User: "nobody",
			Exited: func(e executor.Exit) { ended <- e }})
		cancel()
		if err == nil { // it outlives the context
			if err := p.Signal(executor.Kill); err != nil {
				t.Error(err)
			}
			<-ended
		}
	}
	f.eventually("only the first process is left", func() bool { return f.containers[guid].cgroup.PIDs() == 1 })
}
