//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
)

// holdsDirectories is a program that opens /tmp so often, each time after a change, and
// reads it. Before that it makes so many names of 200 bytes there.
func holdsDirectories(names, times int) string {
	return fmt.Sprintf(`exec perl -e '$| = 1; chdir "/tmp"; open F, ">f";
		for (1..%d) { link "f", sprintf("%%0200d", $_) or die $! }
		for (1..%d) { opendir my $d, "." or die $!; readdir $d; push @all, $d; open G, ">g"; unlink "g" }
		print "ready\n"; sleep 1000'`, names, times)
}

func TestAContainerForWhichTheKernelHoldsMoreThanItsMemoryEnds(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(16))
	neighbour, _ := f.create(size(16))
	large, _ := f.create(size(2048))
	greedy, modest := f.as("nobody", guid, holdsDirectories(2000, 60)), f.as("nobody", neighbour, holdsDirectories(20, 20))
	entitled := f.as("nobody", large, holdsDirectories(2000, 80)) // holds most, and may
	greedy.says("ready")
	modest.says("ready")
	entitled.says("ready")
	f.endGreediest(true)
	if e := greedy.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
		t.Errorf("the greedy process ended with %v", e)
	}
	f.endGreediest(true)
	for name, p := range map[string]*run{"its neighbour": modest, "the largest": entitled} {
		if err := p.Signal(executor.Terminate); err != nil {
			t.Fatal(err)
		}
		if e := p.end(); e != (executor.Exit{Signal: 15}) {
			t.Errorf("%s ended with %v", name, e)
		}
	}
	if e := f.as("nobody", guid, "exit 9").end(); e != (executor.Exit{Status: 9}) {
		t.Errorf("who came later ended with %v", e)
	}
}

func TestDirectoriesThatAContainerHasRemovedAreSeen(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(16))
	// As root it can remove a directory of the image too.
	removes := f.as("root", guid, `exec perl -e '$| = 1; chdir "/tmp" or die $!; mkdir "x" or die $!;
		for (1..20) { opendir my $d, "." or die $!; readdir $d; push @all, $d }
		rmdir "x" or die $!; chdir "/"; rmdir "/tmp" or die $!; print "ready\n"; sleep 1000'`)
	removes.says("ready")
	f.endGreediest(true)
	if e := removes.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
		t.Errorf("it ended with %v", e)
	}
}

// A socket that waits in a socket is seen by nobody, and so is what waits in it.
func TestAContainerWhoseDescriptorsWaitInSocketsIsTheLastSuspect(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(128))
	other, _ := f.create(size(16))
	hides := f.as("nobody", guid, fmt.Sprintf(`exec perl -MSocket -e '$| = 1;
		sub pass {
			my ($to, $what) = @_;
			my ($byte, $rights) = ("x", pack("Q l l i x4", 20, SOL_SOCKET, 1, fileno $what));
			my $parts = pack("P Q", $byte, 1);
			my $message = pack("Q Q P Q P Q Q", 0, 0, $parts, 1, $rights, length $rights, 0);
			syscall(%d, fileno $to, $message, 0) == 1 or die $!;
		}
		socketpair my $a, my $b, AF_UNIX, SOCK_STREAM, 0 or die $!;
		socketpair my $c, my $d, AF_UNIX, SOCK_STREAM, 0 or die $!;
		open my $dir, "<", "/tmp" or die $!;
		pass($a, $dir); pass($c, $b);
		close $_ for $a, $b, $c, $dir;
		print "ready\n"; sleep 1000'`, unix.SYS_SENDMSG))
	hides.says("ready")
	f.endGreediest(true) // it may just be passing one on
	greedy := f.as("nobody", other, holdsDirectories(2000, 60))
	greedy.says("ready")
	killed := executor.Exit{Signal: 9, OutOfMemory: true}
	f.endGreediest(true)
	if e := greedy.end(); e != killed {
		t.Errorf("the one that is seen to be greedy ended with %v", e)
	}
	f.endGreediest(true)
	if e := hides.end(); e != killed {
		t.Errorf("the one that may be ended with %v", e)
	}
}

// waitsInSockets are programs in whose sockets some MiB wait that nobody counts.
var waitsInSockets = map[string]string{
	"answers that nobody has read": `my $ask = pack "L S S L L C x S l L L", 32, 18, 1, 0, 0, 0, 0, 1, 0, 0; # RTM_GETLINK
		for (1..400) { socket my $s, 16, 3, 0 or die $!; push @all, $s; for (1..100) { send $s, $ask, 64 or last } }`,
	"time stamps of what was sent": `for (1..200) { socket my $s, AF_INET, SOCK_DGRAM, 0 or die $!; push @all, $s; fill($s) }`,
	"connections that nobody accepts": `for (1..5) {
		socket my $l, AF_INET, SOCK_STREAM, 0 or die $!; listen $l, 4096 or die $!; push @all, $l;
		for (1..4000) { socket my $s, AF_INET, SOCK_STREAM, 0 or die $!; connect $s, pack_sockaddr_in((unpack_sockaddr_in getsockname $l)[0], INADDR_LOOPBACK) or die $! }
	}`,
	"data that nobody has accepted": `socket my $l, AF_INET, SOCK_STREAM, 0 or die $!; listen $l, 4096 or die $!; push @all, $l;
		for (1..1000) {
			socket my $s, AF_INET, SOCK_STREAM, 0 or die $!; connect $s, pack_sockaddr_in((unpack_sockaddr_in getsockname $l)[0], INADDR_LOOPBACK) or die $!;
			send $s, "x" x 50000, 64;
		}`,
	"time stamps in sockets that are bound no more": `for (1..200) {
		socket my $s, AF_INET, SOCK_DGRAM, 0 or die $!; push @all, $s; fill($s);
		connect $s, $to; connect $s, pack("S x14", 0);
	}`,
}

func TestAContainerInWhoseSocketsMoreWaitsThanItsMemoryEnds(t *testing.T) {
	f := newFixture(t)
	for name, program := range waitsInSockets {
		t.Run(name, func(t *testing.T) {
			guid, _ := f.create(size(32))
			neighbour, _ := f.create(size(32))
			start := func(guid, program string) *run {
				r := f.as("nobody", guid, `exec perl -MSocket -e '$| = 1; our $to = pack_sockaddr_in(9, INADDR_LOOPBACK);
					sub fill { setsockopt $_[0], SOL_SOCKET, 37, pack("I", 2|16) or die $!; for (1..20) { send $_[0], "x" x 20000, 64, $to or last } }
					`+program+`; print "ready\n"; sleep 1000'`)
				r.says("ready")
				return r
			}
			greedy, modest := start(guid, program), start(neighbour, regexp.MustCompile(`1\.\.\d00+`).ReplaceAllString(program, "1..9"))
			f.endGreediest(strings.HasSuffix(name, "no more")) // of these, nobody says what they hold
			if e := greedy.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
				t.Errorf("the greedy process ended with %v", e)
			}
			f.endGreediest(false)
			if err := modest.Signal(executor.Terminate); err != nil {
				t.Fatal(err)
			}
			if e := modest.end(); e != (executor.Exit{Signal: 15}) {
				t.Errorf("its neighbour ended with %v", e)
			}
		})
	}
}

func TestAsManyContainersEndAsHoldWhatIsWanted(t *testing.T) {
	f := newFixture(t)
	start := func(program string) *run {
		guid, _ := f.create(size(100))
		r := f.as("nobody", guid, `exec perl -MSocket -e '$| = 1; `+program+`; print "ready\n"; sleep 1000'`)
		r.says("ready")
		return r
	}
	greedy := []*run{start(waitsInSockets["data that nobody has accepted"])}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", f.made()[0].initPID))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	each := network.Unaccepted(ns)
	if each < 40<<20 {
		t.Fatalf("it holds %d bytes", each)
	}
	greedy = append(greedy, start(waitsInSockets["data that nobody has accepted"]), start(waitsInSockets["data that nobody has accepted"]))
	modest := start(strings.ReplaceAll(waitsInSockets["data that nobody has accepted"], "1..1000", "1..99"))
	wanted := each * 3 / 2
	ended := func(at time.Time) { // all of them, as if that took a while
		for _, c := range f.made() {
			c.mu.Lock()
			c.greedy = at
			c.mu.Unlock()
		}
	}
	ended(time.Now())
	if freed := f.endHolders(wanted); freed < wanted {
		t.Errorf("%d MiB are expected of those that die", freed>>20)
	}
	ended(time.Time{})
	if freed := f.endHolders(wanted); freed < wanted {
		t.Errorf("%d MiB are expected", freed>>20)
	}
	f.eventually("two have ended", func() bool { return len(greedy[0].exit)+len(greedy[1].exit)+len(greedy[2].exit) == 2 })
	f.endHolders(2 * each) // of which each of the four may have half
	for _, r := range greedy {
		if e := r.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
			t.Errorf("one ended with %v", e)
		}
	}
	if err := modest.Signal(executor.Terminate); err != nil {
		t.Fatal(err)
	}
	if e := modest.end(); e != (executor.Exit{Signal: 15}) {
		t.Errorf("the one with little ended with %v", e)
	}
}

func TestTheMemoryOfTCPIsScarceBeyondAThirdOfItsLimit(t *testing.T) {
	for pages, much := range map[int64]bool{0: false, 333: false, 334: true} {
		proc := t.TempDir()
		for file, text := range map[string]string{
			"net/sockstat":         fmt.Sprintf("sockets: used 7\nTCP: inuse 7 orphan 0 tw 2 alloc 8 mem %d\nUDP: inuse 1 mem 900\nFRAG: inuse 0 memory 0\n", pages),
			"sys/net/ipv4/tcp_mem": "10\t20\t1000\n",
		} {
			path := filepath.Join(proc, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if held, got := heldByTCP(proc); held != pages*int64(os.Getpagesize()) || got != much {
			t.Errorf("%d pages: %d bytes, %v", pages, held, got)
		}
	}
	if held, much := heldByTCP(t.TempDir()); held != 0 || much {
		t.Errorf("nothing can be read: %d, %v", held, much)
	}
}

// locksFiles are programs with so many file locks that they may be what fills the memory.
var locksFiles = map[string]string{
	"of a process":                      `my ($file, $call) = ("/tmp/f", 6);`,  // F_SETLK
	"of an open file":                   `my ($file, $call) = ("/tmp/f", 37);`, // F_OFD_SETLK
	"of an open file that is in memory": `my ($file, $call) = ("/dev/shm/f", 37);`,
}

func TestAContainerWithManyFileLocksIsTheLastSuspect(t *testing.T) {
	f := newFixture(t)
	for name, program := range locksFiles {
		t.Run(name, func(t *testing.T) {
			guid, _ := f.create(size(32))
			neighbour, _ := f.create(size(32))
			start := func(guid string, locks int) *run {
				r := f.as("nobody", guid, fmt.Sprintf(`exec perl -e '$| = 1; %s open my $f, "+>", $file or die $!;
					for (1..%d) { fcntl $f, $call, pack("s s x4 q q i x4", 1, 0, 2*$_, 1, 0) or die $! }
					print "ready\n"; sleep 1000'`, program, locks))
				r.says("ready")
				return r
			}
			modest, greedy := start(neighbour, manyLocks/2), start(guid, 2*sampledLocks)
			f.endGreediest(false)
			f.endGreediest(true)
			if e := greedy.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
				t.Errorf("the greedy process ended with %v", e)
			}
			f.endGreediest(true)
			if err := modest.Signal(executor.Terminate); err != nil {
				t.Fatal(err)
			}
			if e := modest.end(); e != (executor.Exit{Signal: 15}) {
				t.Errorf("its neighbour ended with %v", e)
			}
		})
	}
}

func TestLocksAreCountedByProcessAndByFileIfThereAreMany(t *testing.T) {
	text := "1: POSIX  ADVISORY  WRITE 2634 00:5d:1162 88 88\n2: OFDLCK ADVISORY  READ -1 08:1f:77 0 EOF\nspoilt\n" +
		strings.Repeat("3: -> FLOCK  ADVISORY  WRITE 7\n", sampledLocks)
	got := locksIn(strings.NewReader(text))
	if got.processes[2634] != 1 || got.files["8:31:77"] != 1 || got.on(map[string]bool{"8:31": true}) != 1 || got.on(map[string]bool{"8:3": true}) != 0 {
		t.Errorf("the sample is %v", got)
	}
	if got := locksIn(strings.NewReader(text[:1000])); got.processes != nil || got.files != nil {
		t.Errorf("the sample of a few locks is %v", got)
	}
}

// A container may use up its own memory, and no other may end for it.
func TestTheKernelsMemoryIsScarceBeyondItsShareOfWhatNobodyCounts(t *testing.T) {
	// In all, 4000 KiB, of which 500 are the kernel's in lines of their own.
	for name, test := range map[string]struct {
		own, unlisted, available, counted, zfs int64
		held                                   int64
		much, worst                            bool
	}{
		"little":                                {own: 900, unlisted: 100, available: 100, held: 1000},
		"much":                                  {own: 1001, available: 2000, held: 1001, much: true, worst: true},
		"much of containers":                    {own: 2000, available: 100, counted: 1600, held: 900},
		"much beside that of containers":        {own: 3000, available: 600, counted: 1600, held: 1900, much: true, worst: true},
		"much, and other lines are containers'": {own: 1400, available: 2000, counted: 500, held: 1400, much: true, worst: true},
		"much in no line":                       {own: 10, unlisted: 1500, available: 500, held: 1510, much: true},
		"much in no line, and too little left":  {own: 10, unlisted: 1500, available: 499, held: 1510, much: true, worst: true},
		"much in no line, of ZFS":               {own: 10, unlisted: 1500, available: 100, zfs: 1400, held: 110},
		"much beside ZFS":                       {own: 10, unlisted: 2500, available: 100, zfs: 400, held: 2110, much: true},
		"much in no line, of containers":        {own: 10, unlisted: 1500, available: 100, counted: 1500, held: 510},
	} {
		text := fmt.Sprintf("MemTotal:       4000 kB\nMemFree: %d kB\nMemAvailable: %d kB\nAnonPages: 100 kB\nSlab:   9999 kB\nSReclaimable: 300 kB\nPageTables: 200 kB\nSUnreclaim:   %d kB\n",
			3400-test.own-test.unlisted, test.available, test.own)
		held, much, worst := scarce(text, test.zfs<<10, func() int64 { return test.counted << 10 })
		if held != test.held<<10 || much != test.much || worst != test.worst {
			t.Errorf("%s: %d KiB are held, much: %v, worst: %v", name, held>>10, much, worst)
		}
	}
	if _, much, _ := scarce("", 0, nil); much {
		t.Error("it is so on a host that does not say")
	}
}

func TestTheSizeOfTheCacheOfZFSIsRead(t *testing.T) {
	const arcstats = "13 1 0x01 123 33456 6513113 4135\nname                            type data\nhits                            4    100\nsize                            4    123456789\ncompressed_size                 4    5\n"
	if got := sizeOfARC(arcstats); got != 123456789 {
		t.Errorf("it is %d", got)
	}
	if got := sizeOfARC(""); got != 0 {
		t.Errorf("without ZFS it is %d", got)
	}
}

// What does not come back is held for something else than containers.
func TestContainersAreEndedMoreSeldomWhileThatFreesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		falls bool
		want  []int
	}{
		"it falls":         {true, []int{0, 5, 10, 15, 20, 25, 30, 35}},
		"it does not fall": {false, []int{0, 5, 15, 35}},
	} {
		var r restraint
		var ends []int
		held := int64(4000)
		for second := range 40 {
			r.look(time.Unix(int64(second), 0), held, true, func() int64 {
				if ends = append(ends, second); c.falls {
					held -= 100
				}
				return 200
			})
		}
		if !slices.Equal(ends, c.want) {
			t.Errorf("if %s, it ends containers at %v, want %v", name, ends, c.want)
		}
		r.look(time.Unix(40, 0), 0, false, nil)
		if r != (restraint{}) {
			t.Errorf("once there is enough, it is still %+v", r)
		}
	}
}

func TestOnlyOverlaysKeepTheNamesOfDirectories(t *testing.T) {
	got := overlaysIn("36 35 0:53 / / rw,relatime - overlay overlay rw,lowerdir=/a\n" +
		"37 36 8:1 /v /volume rw master:1 - ext4 /dev/sda1 rw\n40 36 0:60 / /usr ro - overlay x ro\nspoilt\n")
	if !maps.Equal(got, map[string]bool{"0:53": true, "0:60": true}) {
		t.Errorf("overlays are %v", got)
	}
}

func TestDirectoriesAreSeenHoweverTheyAreHeld(t *testing.T) {
	dir, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{dir, pair[0], pair[1]} {
		defer unix.Close(fd)
	}
	type found struct {
		shares                  bool
		bytes, elsewhere, large int64 // on an overlay, and not
	}
	many := t.TempDir()
	manyNames(t, many)
	var root unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_TYPE, &root); err != nil {
		t.Fatal(err)
	}
	all := sight{overlays: map[string]bool{fmt.Sprintf("%d:%d", root.Dev_major, root.Dev_minor): true}}
	seen := make(chan found)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		var f found
		err := unix.Unshare(unix.CLONE_FILES)
		if err == nil {
			me := fmt.Sprintf("/proc/self/task/%d", unix.Gettid())
			f.shares = sharesFiles(os.Getpid(), unix.Gettid())
			f.bytes, f.elsewhere = -all.uncountedOf(me), -new(sight).uncountedOf(me)
			_, err = unix.Open("/", unix.O_RDONLY, 0)
			f.bytes += all.uncountedOf(me)
			f.elsewhere += new(sight).uncountedOf(me)
			f.large = -new(sight).uncountedOf(me)
			if err == nil {
				_, err = unix.Open(many, unix.O_RDONLY, 0)
			}
			f.large += new(sight).uncountedOf(me)
		}
		if err != nil {
			t.Error(err)
		}
		seen <- f
	}()
	if f := <-seen; f.shares || f.bytes < bytesOfByte*leastDirectory || f.elsewhere != 0 || f.large != bytesOfPart {
		t.Errorf("with descriptors of its own, a thread shares them: %v, and holds %d bytes, or where there is no overlay %d, and %d for a large directory", f.shares, f.bytes, f.elsewhere, f.large)
	}
	if !sharesFiles(os.Getpid(), unix.Gettid()) {
		t.Error("a thread with the descriptors of its process has others")
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(dir, dir, dir), nil, 0); err != nil {
		t.Fatal(err)
	}
	x := sight{sockets: map[uint64]bool{}, strange: map[uint64]bool{}} // as if all sockets were of another network
	if x.uncountedOf("/proc/self"); x.waiting != 3 {
		t.Errorf("%d descriptors wait in a socket that has 3", x.waiting)
	}
	var s unix.Stat_t
	if err := unix.Fstat(pair[0], &s); err != nil || !x.strange[s.Ino] {
		t.Errorf("a socket that its network does not list is not seen: %v", err)
	}
	y := sight{sockets: x.strange, strange: map[uint64]bool{}}
	if y.uncountedOf("/proc/self"); y.strange[s.Ino] {
		t.Error("a socket that its network lists is strange")
	}
}

func TestALookAtDescriptorsEndsWhenTheBackendCloses(t *testing.T) {
	closing := make(chan struct{})
	x := sight{closing: closing, sockets: map[uint64]bool{}, strange: map[uint64]bool{}}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range pair {
		defer unix.Close(fd)
	}
	close(closing)
	if x.uncountedOf("/proc/self"); len(x.strange) > 0 {
		t.Errorf("it has looked at %d sockets", len(x.strange))
	}
}

func TestNamesOfTheImageCountInADirectoryThatAContainerHasChanged(t *testing.T) {
	top, image := t.TempDir(), t.TempDir()
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	same := filepath.Join(image, top)
	if err := os.MkdirAll(same, 0o755); err != nil {
		t.Fatal(err)
	}
	manyNames(t, same)
	info, err := os.Stat(same)
	if err != nil {
		t.Fatal(err)
	}
	below, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	open := fmt.Sprintf("/proc/self/fd/%d", fd)
	x := sight{below: []*os.File{below}}
	if got := x.directory(open, 0); got != bytesOfByte*info.Size() || info.Size() <= leastDirectory {
		t.Errorf("it holds %d bytes, and those below it are %d", got, info.Size())
	}
	if err := os.Remove(top); err != nil {
		t.Fatal(err)
	}
	if got := x.directory(open, 0); got != max(bytesOfUnseen, bytesOfByte*info.Size()) {
		t.Errorf("once it is removed, it holds %d bytes", got)
	}
}

// manyNames makes many names in a directory.
func manyNames(t *testing.T, dir string) {
	t.Helper()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%0200d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A container can have the kernel wait before it says what a thread has. It counts as a
// suspect then, and is looked at again only when that look is over.
func TestAContainerThatKeepsTheDaemonFromALookAtItHides(t *testing.T) {
	// A thread that moves what comes from a socket into a pipe keeps the pipe locked.
	var sockets, pipe [2]int
	if fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
		sockets = fds
	} else {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Pipe2(pipe[:], unix.O_CLOEXEC), unix.SetNonblock(pipe[0], true)); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = unix.Splice(sockets[1], nil, pipe[1], nil, 1<<16, 0) })
	defer func() {
		for _, fd := range append(sockets[1:], pipe[:]...) {
			unix.Close(fd)
		}
	}()
	var looks atomic.Int32
	look := func() (_, _, _ int64) {
		looks.Add(1)
		_, _ = unix.Read(pipe[0], make([]byte, 1))
		return 1, 2, 3
	}
	c := &container{}
	for began := time.Now(); ; time.Sleep(time.Millisecond) { // until the pipe is locked
		if bytes, waiting, unknown, hides := c.inSight(look); !hides {
			if time.Since(began) > patience {
				t.Fatal("a container whose look waits does not hide")
			}
		} else if bytes != 0 || waiting != 0 || unknown != 0 {
			t.Errorf("of one that hides it says %d bytes, %d descriptors, %d unknown", bytes, waiting, unknown)
		} else {
			break
		}
	}
	before := looks.Load()
	if _, _, _, hides := c.inSight(look); !hides || looks.Load() != before {
		t.Errorf("hides: %v; there were %d looks more while the first went on", hides, looks.Load()-before)
	}
	unix.Close(sockets[0])
	ended.Wait()
	for began := time.Now(); ; time.Sleep(time.Millisecond) { // until the look is over
		if bytes, waiting, unknown, hides := c.inSight(look); !hides {
			if bytes != 1 || waiting != 2 || unknown != 3 {
				t.Errorf("it says %d bytes, %d descriptors, %d unknown", bytes, waiting, unknown)
			}
			break
		}
		if time.Since(began) > patience {
			t.Fatal("it hides when the look is over")
		}
	}
}
