//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// holding makes the test's own binary hold a lock of the kernel in a container, in most cases
// as long as some threads change the rights of 12 GB of memory all the time. Of these only the
// tables take memory.
const (
	holding          = "DIEGO_TEST_HOLDING"
	holdingNetworks  = "networks"  // the lock of all networks, by asking for the list of addresses
	holdingEpolls    = "epolls"    // the lock of nested epolls, by adding one in which a thread waits
	holdingDirectory = "directory" // that of a directory of the host, by reading its names
	floodingMounts   = "mounts"    // the lock of all mounts, by hundreds of threads that ask for them
)

// floodMounts takes the lock of all mounts in many threads at once, each of which waits for a
// processor before it gives the lock back.
func floodMounts() {
	const threads = 200
	runtime.GOMAXPROCS(threads)
	var ready, started sync.WaitGroup
	started.Add(1)
	for range threads {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			ready.Done()
			started.Wait()
			buffer := make([]byte, 1<<14)
			for {
				file, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					panic(err)
				}
				_, _ = unix.Read(file, buffer)
				unix.Close(file)
			}
		}()
	}
	ready.Wait()
	fmt.Println("flooding")
	started.Done()
	select {}
}

func holdLock(which string) {
	if which == floodingMounts {
		floodMounts()
	}
	const page, large = 4096, 12 << 30
	churning := 60
	if which == holdingNetworks {
		churning = 1 // it is ended even if it holds the lock for moments
	}
	call := func(number, a, b, c, d uintptr) uintptr {
		r, _, errno := unix.Syscall6(number, a, b, c, d, ^uintptr(0), 0)
		if errno != 0 {
			fmt.Fprintln(os.Stderr, number, errno)
			os.Exit(2)
		}
		return r
	}
	start := call(unix.SYS_MMAP, 0, large, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	call(unix.SYS_MADVISE, start, large, unix.MADV_NOHUGEPAGE, 0)
	call(unix.SYS_MADVISE, start, large, unix.MADV_POPULATE_READ, 0)
	outer, inner := call(unix.SYS_EPOLL_CREATE1, 0, 0, 0, 0), call(unix.SYS_EPOLL_CREATE1, 0, 0, 0, 0)
	news := call(unix.SYS_EVENTFD2, 1, 0, 0, 0)
	event := &unix.EpollEvent{Events: unix.EPOLLIN}
	call(unix.SYS_EPOLL_CTL, inner, unix.EPOLL_CTL_ADD, news, uintptr(unsafe.Pointer(event)))
	// Of these pages, each is a mapping of its own, and is used once.
	const pages = 20_000
	small := call(unix.SYS_MMAP, 0, 2*pages*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	for i := range uintptr(pages) {
		call(unix.SYS_MPROTECT, small+2*i*page, page, unix.PROT_READ|unix.PROT_WRITE, 0)
	}
	var used atomic.Uintptr
	fresh := func() uintptr {
		i := used.Add(1) - 1
		if i >= pages {
			select {}
		}
		return small + 2*i*page
	}
	var ready, started sync.WaitGroup // more threads would have to wait for memory themselves
	started.Add(1)
	thread := func(f func()) {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			ready.Done()
			started.Wait()
			f()
		}()
	}
	for i := range 4 {
		thread(func() {
			switch which {
			case holdingNetworks:
				socket := call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0, 0)
				for buffer := start + uintptr(i)*page; ; {
					list := struct {
						length int32
						_      int32
						buffer uintptr
					}{page, 0, buffer}
					call(unix.SYS_MADVISE, buffer, page, unix.MADV_DONTNEED, 0)
					call(unix.SYS_IOCTL, socket, unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&list)), 0)
				}
			case holdingEpolls:
				for i%2 == 0 {
					_, _, _ = unix.Syscall6(unix.SYS_EPOLL_PWAIT, inner, fresh(), 1, ^uintptr(0), 0, 0)
				}
				for {
					_, _, _ = unix.Syscall6(unix.SYS_EPOLL_CTL, outer, unix.EPOLL_CTL_ADD, inner, uintptr(unsafe.Pointer(event)), 0, 0)
					_, _, _ = unix.Syscall6(unix.SYS_EPOLL_CTL, outer, unix.EPOLL_CTL_DEL, inner, 0, 0, 0)
				}
			case holdingDirectory:
				for {
					dir, err := unix.Open("/usr/bin", unix.O_RDONLY|unix.O_CLOEXEC, 0)
					if err != nil {
						panic(err)
					}
					call(unix.SYS_GETDENTS64, uintptr(dir), fresh(), page, 0)
					unix.Close(dir)
				}
			}
		})
	}
	for range churning {
		thread(func() {
			for rights := uintptr(unix.PROT_READ | unix.PROT_WRITE); ; rights ^= unix.PROT_EXEC {
				call(unix.SYS_MPROTECT, start, large, rights, 0)
			}
		})
	}
	ready.Wait()
	fmt.Println("holding")
	started.Done()
	select {}
}

func TestAContainerThatHoldsALockOfTheHostIsEnded(t *testing.T) {
	for _, which := range []string{holdingNetworks, holdingEpolls, holdingDirectory, floodingMounts} {
		t.Run(which, func(t *testing.T) {
			f := newFixture(t)
			neighbour, _ := f.create(size(32))
			n := f.as("nobody", neighbour, "trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done")
			n.says("ready")
			always := func() {}
			switch which {
			case holdingDirectory: // a program that changes the directory, but for the change
				always = func() { _ = unix.Unlink("/usr/bin/none that is there") }
			case floodingMounts: // starts of containers, but for the containers
				always = takeMountLock
			}
			over := make(chan struct{})
			defer close(over)
			go func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Millisecond):
						always()
					}
				}
			}()
			guid, _ := f.create(size(256), withOwnBinary(t), func(c *executor.ContainerSpec) { c.Resources.MaxPIDs = 512 })
			r := f.as("nobody", guid, "", func(s *executor.ProcessSpec) {
				s.Path, s.Args, s.Env = ownBinary, nil, []executor.EnvVar{{Name: holding, Value: which}}
			})
			if which == floodingMounts { // beside one that uses all processors
				r.says("flooding")
				if err := f.containers[guid].cgroup.SetCPUWeight(1); err != nil {
					t.Fatal(err)
				}
				busy, _ := f.create(size(32))
				f.as("nobody", busy, "for i in 1 2 3 4 5 6 7; do while :; do :; done & done; wait")
			}
			if end := r.end(); !strings.Contains(end.String(), "the whole host") || end.Signal != int(unix.SIGKILL) {
				t.Errorf("it ended as %+v, and not for what it does: %s", end, r.stderr)
			}
			if err := n.Signal(executor.Terminate); err != nil {
				t.Errorf("its neighbour: %v", err)
			}
			n.says("still here")
		})
	}
}

// A container can have the kernel wait before it says where a thread sleeps.
func TestAContainerHidesNoOtherThatHoldsALockOfTheHost(t *testing.T) {
	f := newFixture(t)
	hiding, _ := f.create(size(32))
	f.as("nobody", hiding, idle)
	holds, _ := f.create(size(32))
	r := f.as("nobody", holds, idle)
	hidden := make(map[int]bool)
	for _, thread := range f.containers[hiding].cgroup.Threads() {
		hidden[thread] = true
	}
	shown := make(chan struct{})
	defer close(shown)
	ended := make(chan executor.Exit, 1)
	go func() { ended <- r.end() }()
	f.eventually("the one that holds the lock is ended", func() bool {
		f.endLockHolders(hostLocks()[networks], lookedAtEach, false, false, func(thread int) []byte {
			if hidden[thread] {
				<-shown
				return nil
			}
			return []byte("[<0>] exc_page_fault+0x1d8/0x770\n[<0>] dev_ioctl+0x38e/0x5f0\n")
		})
		select {
		case end := <-ended:
			return strings.Contains(end.String(), "held a lock that the kernel has for the whole host")
		default:
			return false
		}
	})
}

// The order of hostLocks.
const (
	networks = iota
	nests
	directories
	mountings
	sysfs
)

func TestWhoHoldsALockOfTheHostIsSeenInItsStack(t *testing.T) {
	for _, test := range []struct {
		name  string
		lock  int
		stack string
		holds bool
	}{
		{"it runs, or the kernel does not say", networks, "", false},
		{"it waits for the lock", networks, "[<0>] dev_ethtool+0xa1/0x2d90\n[<0>] dev_ioctl+0x38e/0x5f0\n[<0>] sock_do_ioctl+0xb7/0x100\n[<0>] __x64_sys_ioctl+0x9b/0x100\n", false},
		{"it waits for its memory", networks, "[<0>] lock_mm_and_find_vma+0x9e/0x580\n[<0>] exc_page_fault+0x1d8/0x770\n[<0>] asm_exc_page_fault+0x22/0x30\n[<0>] inet_gifconf+0x28/0x50\n[<0>] sock_do_ioctl+0xb7/0x100\n", true},
		{"on arm64", networks, "[<0>] mem_cgroup_out_of_memory+0x4c/0xf0\n[<0>] do_page_fault+0x1d8/0x770\n[<0>] do_mem_abort+0x22/0x30\n[<0>] dev_ifconf+0x21f2/0x2d90\n[<0>] sock_ioctl+0xb7/0x100\n", true},
		{"it waits for the socket", networks, "[<0>] __lock_sock+0x9e/0x580\n[<0>] lock_sock_nested+0x1d8/0x770\n[<0>] do_ip_setsockopt+0x22/0x30\n[<0>] __sys_setsockopt+0x28/0x50\n", true},
		{"it waits for the lock of nested epolls", nests, "[<0>] do_epoll_ctl+0x1a8/0xe10\n[<0>] __x64_sys_epoll_ctl+0x5d/0x90\n[<0>] do_syscall_64+0x5d/0x90\n", false},
		{"it has that lock, and waits for a nested one", nests, "[<0>] ep_loop_check_proc+0x6c/0x100\n[<0>] do_epoll_ctl+0x1a8/0xe10\n[<0>] __x64_sys_epoll_ctl+0x5d/0x90\n", true},
		{"it reads a directory", directories, "[<0>] lock_mm_and_find_vma+0x9e/0x580\n[<0>] exc_page_fault+0x1d8/0x770\n[<0>] asm_exc_page_fault+0x22/0x30\n[<0>] filldir64+0xb1/0x190\n[<0>] call_filldir+0x7d/0x140\n[<0>] ext4_readdir+0x6f5/0xa10\n[<0>] iterate_dir+0x9/0x8\n", true},
		{"it waits for a directory", directories, "[<0>] iterate_dir+0x9/0x8\n[<0>] __x64_sys_getdents64+0x5d/0x90\n", false},
		{"it asks for the state of a connection", networks, "[<0>] lock_mm_and_find_vma+0x9e/0x580\n[<0>] exc_page_fault+0x1d8/0x770\n[<0>] _copy_to_user+0x22/0x30\n[<0>] do_tcp_getsockopt+0x28/0x50\n[<0>] __sys_getsockopt+0x28/0x50\n", false},
		{"it sets the members of a group", networks, "[<0>] lock_mm_and_find_vma+0x9e/0x580\n[<0>] exc_page_fault+0x1d8/0x770\n[<0>] _copy_from_user+0x22/0x30\n[<0>] do_ip_setsockopt+0x28/0x50\n[<0>] __sys_setsockopt+0x28/0x50\n", true},
		{"it runs out of memory in a change of nested epolls", nests, "[<0>] try_to_free_mem_cgroup_pages+0x6c/0x100\n[<0>] ep_insert+0x6c/0x100\n[<0>] do_epoll_ctl+0x1a8/0xe10\n", false},
		{"it sets the members of a group of IPv6", networks, "[<0>] exc_page_fault+0x1d8/0x770\n[<0>] asm_exc_page_fault+0x22/0x30\n[<0>] _copy_from_user+0x22/0x30\n[<0>] do_ipv6_setsockopt+0x28/0x50\n", true},
		{"it reads a file", networks, "[<0>] folio_wait_bit_common+0x9e/0x580\n[<0>] filemap_fault+0x9/0x8\n[<0>] exc_page_fault+0x1d8/0x770\n", false},
	} {
		if got := hostLocks()[test.lock].holds.MatchString(test.stack); got != test.holds {
			t.Errorf("%s: it holds the lock: %v", test.name, got)
		}
	}
}

func TestManyThreadsThatTakeALockOfTheHostAreSeenInTheirStacks(t *testing.T) {
	for _, test := range []struct {
		name  string
		lock  int
		stack string
		takes bool
	}{
		{"it reads which mounts there are", mountings, "[<0>] m_start+0x1a/0x80\n[<0>] seq_read_iter+0x108/0x490\n[<0>] vfs_read+0x23a/0x360\n[<0>] ksys_read+0x66/0xe0\n", true},
		{"it waits for that, on Linux 6.1", mountings, "[<0>] rwsem_down_read_slowpath+0x2c5/0x4e0\n[<0>] m_start+0x2c/0x90\n[<0>] seq_read_iter+0x11e/0x4b0\n[<0>] vfs_read+0x1fa/0x310\n", true},
		{"it reads them in parts", mountings, "[<0>] m_start+0x1a/0x80\n[<0>] seq_read_iter+0x108/0x490\n[<0>] do_iter_readv_writev+0x1/0x2\n[<0>] vfs_readv+0x23a/0x360\n", true},
		{"it writes one down", mountings, "[<0>] seq_path+0x1a/0x80\n[<0>] show_mountinfo+0x108/0x490\n[<0>] seq_read_iter+0x1/0x2\n", true},
		{"it reads which memory it has", mountings, "[<0>] m_start+0x1a/0x80\n[<0>] seq_read_iter+0x108/0x490\n[<0>] seq_read+0x1/0x2\n[<0>] vfs_read+0x23a/0x360\n", false},
		{"it looks at a file of /sys", sysfs, "[<0>] kernfs_dop_revalidate+0x39/0x110\n[<0>] lookup_fast+0x70/0x100\n[<0>] walk_component+0x1f/0x150\n", true},
		{"it reads one", sysfs, "[<0>] kernfs_fop_read_iter+0x39/0x110\n[<0>] vfs_read+0x70/0x100\n", false},
		{"it joins a group", networks, "[<0>] do_ip_setsockopt+0x70/0x1680\n[<0>] ip_setsockopt+0x2f/0xb0\n", true},
		{"it asks for the addresses", networks, "[<0>] dev_ifconf+0x70/0x1680\n[<0>] sock_ioctl+0x2f/0xb0\n", true},
		{"it looks up a name", networks, "[<0>] rtnetlink_rcv_msg+0x70/0x1680\n[<0>] netlink_rcv_skb+0x2f/0xb0\n", false},
		{"it waits for nothing", networks, "[<0>] exit_to_user_mode_loop+0x70/0x1680\n[<0>] do_syscall_64+0x2f/0xb0\n", false},
	} {
		if got := hostLocks()[test.lock].takes.MatchString(test.stack); got != test.takes {
			t.Errorf("%s: it takes the lock: %v", test.name, got)
		}
	}
}

// A program may have some threads that take a lock at the same time, or many that wait for
// another container to give it back.
func TestAFloodOfALockOfTheHostIsManyThreads(t *testing.T) {
	const holds, takes = "[<0>] exc_page_fault+0x1d8/0x770\n[<0>] dev_ioctl+0x38e/0x5f0\n", "[<0>] dev_ioctl+0x38e/0x5f0\n"
	type group struct {
		threads int
		stack   string
		ended   bool
	}
	for _, test := range []struct {
		name            string
		groups          []group
		outage, alarmed bool
	}{
		{"few threads", []group{{flood - 1, takes, false}}, true, true},
		{"many threads after an end", []group{{flood, takes, true}}, false, true},
		{"many threads for the first time", []group{{flood, takes, false}}, true, false},
		{"many that wait for one that holds it", []group{{2 * flood, takes, false}, {1, holds, true}}, true, true},
		{"many beside far more", []group{{flood, takes, false}, {3 * flood, takes, true}}, true, true},
		{"two alike", []group{{flood, takes, true}, {flood + 1, takes, true}}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			stacks := map[int]string{}
			var runs []*run
			for _, g := range test.groups {
				guid, _ := f.create(size(64))
				r := f.as("nobody", guid, fmt.Sprintf("trap 'echo still here; exit' TERM; for i in $(seq %d); do sleep 1000 & done; echo ready; while :; do wait; done", g.threads))
				r.says("ready")
				runs = append(runs, r)
				for i, thread := range f.containers[guid].cgroup.Threads() {
					if i < g.threads {
						stacks[thread] = g.stack
					}
				}
			}
			f.endLockHolders(hostLocks()[networks], lookedAtEach, test.outage, test.alarmed, func(thread int) []byte { return []byte(stacks[thread]) })
			for i, g := range test.groups {
				if g.ended {
					if end := runs[i].end(); !strings.Contains(end.String(), "the whole host") {
						t.Errorf("with %d threads, it ended as %+v", g.threads, end)
					}
					continue
				}
				if err := runs[i].Signal(executor.Terminate); err != nil {
					t.Fatal(err)
				}
				runs[i].says("still here")
			}
		})
	}
}

// Others may be waiting for the lock, to hold it next.
func TestDuringAnOutageWhoHoldsTheLockIsEndedAtOnce(t *testing.T) {
	f := newFixture(t)
	const holds, other = "[<0>] exc_page_fault+0x1d8/0x770\n[<0>] dev_ioctl+0x38e/0x5f0\n", "[<0>] dev_ioctl+0x38e/0x5f0\n"
	stacks := map[int]string{}
	var runs []*run
	for _, stack := range []string{holds, holds, other} {
		guid, _ := f.create(size(32))
		runs = append(runs, f.as("nobody", guid, "trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done"))
		runs[len(runs)-1].says("ready")
		for _, thread := range f.containers[guid].cgroup.Threads() {
			stacks[thread] = stack
		}
	}
	stackOf := func(thread int) []byte { return []byte(stacks[thread]) }
	f.endLockHolders(hostLocks()[networks], lookedAtEach, false, false, stackOf)
	f.endLockHolders(hostLocks()[networks], lookedAtEach, true, false, stackOf)
	for _, r := range runs[:2] {
		if end := r.end(); !strings.Contains(end.String(), "held a lock that the kernel has for the whole host") {
			t.Errorf("one that holds the lock ended as %+v", end)
		}
	}
	if err := runs[2].Signal(executor.Terminate); err != nil {
		t.Fatal(err)
	}
	runs[2].says("still here")
}

func TestWhoHoldsALockOfTheHostSeldomGoesOn(t *testing.T) {
	for _, test := range []struct {
		name   string
		number int
		pause  time.Duration
		often  bool
	}{
		{"once", 1, 0, false},
		{"for a moment", 9, 100 * time.Millisecond, false},
		{"for seconds", 3, time.Second, true},
		{"now and then", 100, 25 * time.Second, true},
		{"seldom", 100, 40 * time.Second, false},
	} {
		var h holds
		now, often := time.Unix(1_700_000_000, 0), false
		for range test.number {
			often = often || h.often(now)
			now = now.Add(test.pause)
		}
		if often != test.often {
			t.Errorf("%s: too often: %v", test.name, often)
		}
	}
}

// The kernel walks through all locks of a file whenever somebody closes it, and some files
// are one for the whole host.
func TestAContainerWithManyLocksOnFilesOfTheHostIsEnded(t *testing.T) {
	eventfd := fmt.Sprintf(`my $fd = syscall %d, 0, 0; open my $f, "+<&=", $fd or die $!;`, unix.SYS_EVENTFD2)
	for _, test := range []struct {
		name              string
		open              string
		processes, files  int
		call, locksOfEach int
	}{
		{"of a process", eventfd, 1, 1, unix.F_SETLK, 30_000},
		{"of many processes", eventfd, 50, 1, unix.F_SETLK, 600},
		{"of an open file", eventfd, 1, 1, unix.F_OFD_SETLK, 30_000},
		{"of many open files", eventfd, 1, 200, unix.F_OFD_SETLK, 150},
		{"on a file of /sys", `open my $f, "<", "/sys/devices/system/cpu/online" or die $!;`, 1, 1, unix.F_SETLK, 30_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			neighbour, _ := f.create(size(32))
			hostile, _ := f.create(size(128))
			locks := func(guid string, processes, files, number int) *run {
				return f.as("nobody", guid, fmt.Sprintf(`exec perl -e '$| = 1; for (2..%d) { last unless fork }
					my @f; for (1..%d) { %s; push @f, $f }
					for my $n (reverse 1..%d) { for my $f (@f) { fcntl $f, %d, pack("s s x4 q q i x4", 0, 0, 2*$n, 1, 0) or die $! } }
					print "ready\n"; sleep 1000'`, processes, files, test.open, number, test.call))
			}
			modest := locks(neighbour, 1, 1, manyLocks/2)
			modest.says("ready")
			greedy := locks(hostile, test.processes, test.files, test.locksOfEach)
			if end := greedy.end(); !strings.Contains(end.String(), "too many file locks") {
				t.Errorf("it ended as %+v, and not for what it does: %s", end, greedy.stderr)
			}
			if err := modest.Signal(executor.Terminate); err != nil {
				t.Fatal(err)
			}
			if end := modest.end(); end != (executor.Exit{Signal: 15}) {
				t.Errorf("its neighbour ended with %v", end)
			}
		})
	}
}

func TestOnlyFilesThatWereNotAskedAreTakenToHaveLocksLikeTheOthers(t *testing.T) {
	const locks = 10
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for i := range int64(locks) {
		if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: 2 * i, Len: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * triedFiles { // which no lock of the host concerns
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if n := locksOfFiles("/proc/self/"); n != locks {
		t.Errorf("a process with %d locks is taken to have %d", locks, n)
	}
}
