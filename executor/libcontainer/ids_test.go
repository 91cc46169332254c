//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/internal/testenv"
)

// eachIDs runs a test with containers that have ids of their own, and with some
// that share the host's.
func eachIDs(t *testing.T, test func(*testing.T, func(*Options))) {
	for _, shared := range []bool{false, true} {
		name := "own ids"
		if shared {
			name = "shared ids"
		}
		t.Run(name, func(t *testing.T) { test(t, func(o *Options) { o.SharedIDs = shared }) })
	}
}

// counted makes the test's own binary take as much as it gets of what its value
// names, say how much that was, and keep it.
const counted = "DIEGO_TEST_COUNTED"

// countedTakes take one more of what the kernel counts by uid.
var countedTakes = map[string]func() error{
	"inotify instances": func() error {
		_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		return err
	},
	"queued signals": func() error {
		const realTime = 40
		blocked := unix.Sigset_t{}
		blocked.Val[0] = 1 << (realTime - 1)
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, nil); err != nil {
			return err
		}
		info := [128]byte{} // a siginfo_t
		*(*int32)(unsafe.Pointer(&info[0])), *(*int32)(unsafe.Pointer(&info[8])) = realTime, -1
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(unix.Getpid()), uintptr(unix.Gettid()), realTime, uintptr(unsafe.Pointer(&info)), 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	},
	"pipes of a megabyte": func() error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 1<<20)
		return err
	},
}

// takeCounted does not return.
func takeCounted() {
	n := 0
	for countedTakes[os.Getenv(counted)]() == nil {
		n++
	}
	fmt.Printf("%d taken\n", n)
	io.Copy(io.Discard, os.Stdin) // until the container ends
	select {}
}

// takeCounted takes all that a user of a container gets, and keeps it.
func (f *fixture) takeCounted(guid, user, what string) int {
	f.Helper()
	r := f.as(user, guid, "", func(s *executor.ProcessSpec) {
		s.Path, s.Args, s.Env = ownBinary, nil, []executor.EnvVar{{Name: counted, Value: what}, {Name: "GOMAXPROCS", Value: "1"}}
	})
	r.says(" taken\n")
	n, err := strconv.Atoi(strings.TrimSuffix(r.stdout.String(), " taken\n"))
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func TestAContainerTakesNothingFromItsNeighbourOfWhatTheKernelCountsByUser(t *testing.T) {
	for what := range countedTakes {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			for _, user := range []string{"root", "nobody"} {
				one, _ := f.create(withOwnBinary(t))
				other, _ := f.create(withOwnBinary(t))
				took := f.takeCounted(one, user, what)
				if left := f.takeCounted(other, user, what); took == 0 || left != took {
					t.Errorf("%s took %d; its neighbour got %d", user, took, left)
				}
			}
			if what == "inotify instances" { // of which root on the host has its own
				if err := countedTakes[what](); err != nil {
					t.Errorf("the host has none left: %v", err)
				}
			}
		})
	}
}

// idsOf are the first host's id and the number of ids of a container, as its
// processes see them.
func (f *fixture) idsOf(guid string) (first, count uint32) {
	f.Helper()
	var inside uint32
	r := f.as("nobody", guid, "cat /proc/self/uid_map")
	r.end()
	gids := f.as("nobody", guid, "cat /proc/self/gid_map")
	gids.end()
	if r.stdout.String() != gids.stdout.String() {
		f.Errorf("the uids are %q and the gids %q", r.stdout, gids.stdout)
	}
	if _, err := fmt.Sscan(r.stdout.String(), &inside, &first, &count); err != nil || inside != 0 {
		f.Fatalf("%q: %v", r.stdout, err)
	}
	return first, count
}

func TestEachContainerHasIDsOfItsOwnUnlessTheyAreShared(t *testing.T) {
	f := newFixture(t)
	one, _ := f.create()
	two, _ := f.create()
	first, count := f.idsOf(one)
	second, _ := f.idsOf(two)
	if count != IDsPerContainer || first < DefaultFirstID || second < DefaultFirstID || first-second < IDsPerContainer || second-first < IDsPerContainer {
		t.Errorf("one has %d ids from %d on, the other from %d on", count, first, second)
	}
	r := f.as("nobody", one, idle)
	if uid := f.hostUID(one); uid != first+65534 {
		t.Errorf("to the host, nobody in the container is %d, want %d", uid, first+65534)
	}
	if err := r.Signal(executor.Kill); err != nil {
		t.Error(err)
	}
	r.end()
	shared := newFixture(t, func(o *Options) { o.SharedIDs = true })
	guid, _ := shared.create()
	if first, count := shared.idsOf(guid); first != 0 || count != 1<<32-1 {
		t.Errorf("shared ids are %d from %d on", count, first)
	}
}

// hostUID is the uid, as the host sees it, of a process that is not root's.
func (f *fixture) hostUID(guid string) uint32 {
	f.Helper()
	root := f.containers[guid].ids.First
	for pid := range strings.FieldsSeq(f.cgroupFile(guid, "pids/cgroup.procs", "cgroup.procs")) {
		info, err := os.Stat("/proc/" + pid)
		if err != nil {
			f.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != root && uid != 0 {
			return uid
		}
	}
	f.Fatal("there is no such process")
	return 0
}

func TestFilesInAVolumeBelongToWhomTheContainerSaysAndToTheSameInTheNext(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		f := newFixture(t, edit)
		volume := t.TempDir()
		if err := os.Chmod(volume, 0o777); err != nil {
			t.Fatal(err)
		}
		mounted := func(c *executor.ContainerSpec) {
			c.Mounts = []executor.Mount{{Source: volume, Target: "/volume", Writable: true}}
			c.Files = []executor.File{{Path: "/volume/sub/given", Content: "x"}}
		}
		first, _ := f.create(mounted)
		for user, script := range map[string]string{"root": "umask 077; echo 0 > /volume/0", "1000:100": "umask 077; echo 1000 > /volume/1000"} {
			if r := f.as(user, first, script); !r.end().Success() {
				t.Fatalf("%s cannot write: %s", user, r.stderr)
			}
		}
		if err := f.StreamIn(f.ctx, first, "/volume/in", "1000:100", bytes.NewReader(tarOf(entry{name: "streamed", content: "x", mode: 0o600}))); err != nil {
			t.Error(err)
		}
		for name, want := range map[string][2]uint32{
			"0": {0, 0}, "1000": {1000, 100}, "in": {1000, 100}, "in/streamed": {1000, 100}, "sub": {0, 0}, "sub/given": {0, 0},
		} {
			var s unix.Stat_t
			if err := unix.Lstat(filepath.Join(volume, name), &s); err != nil || [2]uint32{s.Uid, s.Gid} != want {
				t.Errorf("on the host, %s belongs to %d:%d, %v; want %d", name, s.Uid, s.Gid, err, want)
			}
		}
		f.delete(first)
		f.create() // which gets the ids of the first
		second, _ := f.create(mounted)
		for user, script := range map[string]string{"root": "cat /volume/0", "1000": "cat /volume/1000 /volume/in/streamed && rm /volume/1000"} {
			if r := f.as(user, second, script); !r.end().Success() {
				t.Errorf("%s of the next container cannot use its files: %s", user, r.stderr)
			}
		}
		if out, err := f.StreamOut(f.ctx, second, "/volume/in/streamed", "1000"); err != nil {
			t.Error(err)
		} else if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsPutIntoAContainerBelongsToItsUsers(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		f := newFixture(t, edit)
		guid, _ := f.create(func(c *executor.ContainerSpec) {
			c.Resources.DiskMB = 16
			c.Files = []executor.File{{Path: "/job/deep/file", Content: "x"}}
		})
		if err := f.StreamIn(f.ctx, guid, "/in/deep", "nobody", bytes.NewReader(tarOf(entry{name: "dir/", mode: 0o755}, entry{name: "dir/file", content: "x", mode: 0o600}))); err != nil {
			t.Fatal(err)
		}
		r := f.as("root", guid, "touch /made && stat -c '%n %u' / /etc /etc/hosts /etc/passwd /tmp /job /job/deep /job/deep/file /in /in/deep/dir /in/deep/dir/file /made")
		if !r.end().Success() {
			t.Fatal(r.stderr)
		}
		want := "/ 0\n/etc 0\n/etc/hosts 0\n/etc/passwd 0\n/tmp 0\n/job 0\n/job/deep 0\n/job/deep/file 0\n/in 65534\n/in/deep/dir 65534\n/in/deep/dir/file 65534\n/made 0\n"
		if f.host.network != "" {
			want = strings.Replace(want, "/etc/hosts 0\n", "", 1)
		}
		if r.stdout.String() != want {
			t.Errorf("the owners are %q, want %q", r.stdout, want)
		}
	})
}

func TestAUserWhomTheIDsDoNotReachIsRefusedWithTheReason(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	if r := f.as("65535:65535", guid, "id -u"); !r.end().Success() || r.stdout.String() != "65535\n" {
		t.Errorf("the last id: %q, %q", r.stdout, r.stderr)
	}
	for _, user := range []string{"65536", "0:65536", "2000000000"} {
		_, err := f.try(user, guid, "true")
		if !errors.Is(err, executor.ErrNoUser) || !strings.Contains(err.Error(), "containers have ids up to 65535") {
			t.Errorf("%s: %v", user, err)
		}
	}
}

func TestARangeIsGivenAgainOnlyAfterItsContainerIsDeletedAlsoByTheNextDaemon(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	first, _ := f.idsOf(guid)
	c := f.containers[guid]
	c.life.Lock()
	err := c.end(f.ctx) // as the kernel does when a daemon dies
	c.life.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.network.Remove(&c.link, false); err != nil {
		t.Fatal(err)
	}
	f.network.Close()
	f.ids.Close()
	next := &fixture{TB: t, Backend: openBackend(t, Options{Dir: f.options.Dir}), ctx: f.ctx, count: 10}
	another, _ := next.create()
	if got, _ := next.idsOf(another); got == first {
		t.Errorf("both have the ids from %d on", got)
	}
	next.delete(guid)
	third, _ := next.create()
	if got, _ := next.idsOf(third); got != first {
		t.Errorf("the ids from %d on are not used again: it has those from %d on", first, got)
	}
}

// withRanges leaves room for a few containers, where no other run of these tests
// looks for any.
func withRanges(count uint32) func(*Options) {
	const most = 2 * ids.RangesPerBlock
	first := uint32(1_000_000_000 + os.Getpid()%200*most*IDsPerContainer)
	return func(o *Options) { o.FirstID, o.LastID = first, first+count*IDsPerContainer-1 }
}

func TestAContainerForWhichThereAreNoIDsLeavesNothing(t *testing.T) {
	f := newFixture(t, withRanges(1))
	guid, _ := f.create()
	spec := f.spec()
	if _, err := f.Create(f.ctx, spec); !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "SharedIDs") {
		t.Errorf("the error is %v", err)
	}
	if left, err := f.List(f.ctx); err != nil || !slices.Equal(left, []string{guid}) {
		t.Errorf("there are %q, %v", left, err)
	}
	f.delete(guid)
	f.create()
}

func TestAFileSystemWithoutIdmappedMountsIsNamedWithWhatHelps(t *testing.T) {
	testenv.Root(t)
	base := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(base, "merged") // overlayfs has none
	if err := unix.Mount("overlay", merged, "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", base)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(merged, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for name, edit := range map[string]func(*executor.ContainerSpec){
		"an image": func(c *executor.ContainerSpec) { c.RootFS = "preloaded:merged" },
		"a volume": func(c *executor.ContainerSpec) {
			c.Mounts = []executor.Mount{{Source: merged, Target: "/volume", Writable: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Preloaded = map[string]string{"merged": "dir://" + merged} })
			_, err := f.Create(f.ctx, f.spec(edit))
			if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), merged+" cannot be mounted with the container's own ids") || !strings.Contains(err.Error(), "set Options.SharedIDs") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestIDsThatNoContainerCouldHaveAreRefused(t *testing.T) {
	for _, o := range []Options{
		{FirstID: 1000}, {FirstID: 100_000, LastID: 100_000}, {FirstID: 200_000, LastID: 100_000}, {LastID: 1 << 31},
		{FirstID: 100_000, LastID: 100_000 + IDsPerContainer - 2},
	} {
		o.Dir = "/nowhere"
		if _, err := o.orDefault(); err == nil || !strings.Contains(err.Error(), "Options.FirstID") {
			t.Errorf("%d to %d: %v", o.FirstID, o.LastID, err)
		}
	}
	o, err := Options{Dir: "/nowhere", FirstID: 100_000, LastID: 100_000 + IDsPerContainer - 1}.orDefault()
	if err != nil {
		t.Errorf("room for one: %v", err)
	}
	if o.FirstID != 100_000 {
		t.Error(o.FirstID)
	}
}

func TestNoTwoCellsHaveAnIDAndNobodyElseTakesOneFromThem(t *testing.T) {
	// No other test has these, because they are below the default.
	const first, last = 0x6f00_0000, 0x6f00_0000 + 2*ids.RangesPerBlock*IDsPerContainer - 1
	f := newFixture(t, func(o *Options) { o.HostNetwork, o.FirstID, o.LastID = true, first, last })
	guid, _ := f.create()
	// It is in the host's network, as is every user of the host.
	r := f.as("nobody", guid, fmt.Sprintf(`exec perl -MSocket -e '$| = 1; `+
		`for (%d, %d) { socket($s, AF_UNIX, SOCK_DGRAM, 0); push @s, $s; bind($s, pack("S", AF_UNIX) . "\0diego-ids-$_") } `+
		`print -e "%s" ? "sees the locks" : "has taken names"; sleep 1000'`, first, first+ids.RangesPerBlock*IDsPerContainer, ids.Locks))
	r.says("has taken names")
	for range ids.RangesPerBlock {
		if _, err := f.ids.Take(fmt.Sprint(f.count)); err != nil {
			t.Fatal(err)
		}
		f.count++
	}
	// Its blocks begin elsewhere.
	other, err := ids.NewPool("00", first+IDsPerContainer, last, IDsPerContainer)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got, err := other.Take("another"); err == nil {
		t.Errorf("another cell has the ids from %d on", got.First)
	}
}
