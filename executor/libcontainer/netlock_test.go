//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// holding makes the test's own binary hold the lock of all networks in a container.
const holding = "DIEGO_TEST_HOLDING"

// holdNetworkLock asks for the list of addresses on some threads, for memory whose rights
// another thread changes all the time together with those of 12 GB. Of these only the
// tables take memory.
func holdNetworkLock() {
	const threads, page, large = 4, 4096, 12 << 30
	call := func(number, a, b, c, d, e, f uintptr) uintptr {
		r, _, errno := unix.Syscall6(number, a, b, c, d, e, f)
		if errno != 0 {
			fmt.Fprintln(os.Stderr, number, errno)
			os.Exit(2)
		}
		return r
	}
	start := call(unix.SYS_MMAP, 0, large, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, ^uintptr(0), 0)
	call(unix.SYS_MADVISE, start, large, unix.MADV_NOHUGEPAGE, 0, 0, 0)
	call(unix.SYS_MADVISE, start, large, unix.MADV_POPULATE_READ, 0, 0, 0)
	for i := range uintptr(threads) {
		go func() {
			socket := call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0, 0, 0, 0)
			for {
				list := struct {
					length int32
					_      int32
					buffer uintptr
				}{page, 0, start + i*page}
				call(unix.SYS_MADVISE, list.buffer, page, unix.MADV_DONTNEED, 0, 0, 0)
				call(unix.SYS_IOCTL, socket, unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&list)), 0, 0, 0)
			}
		}()
	}
	fmt.Println("holding")
	for rights := uintptr(unix.PROT_READ | unix.PROT_WRITE); ; rights ^= unix.PROT_EXEC {
		call(unix.SYS_MPROTECT, start, large, rights, 0, 0, 0)
	}
}

func TestAContainerThatHoldsTheLockOfAllNetworksIsEnded(t *testing.T) {
	f := newFixture(t)
	neighbour, _ := f.create(size(32))
	n := f.as("nobody", neighbour, "trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done")
	n.says("ready")
	guid, _ := f.create(size(256), withOwnBinary(t))
	r := f.as("nobody", guid, "", func(s *executor.ProcessSpec) {
		s.Path, s.Args, s.Env = ownBinary, nil, []executor.EnvVar{{Name: holding, Value: "1"}}
	})
	if end := r.end(); !strings.Contains(end.String(), "held the kernel's lock of all networks") || end.Signal != int(unix.SIGKILL) {
		t.Errorf("it ended as %+v, and not for what it does: %s", end, r.stderr)
	}
	if err := n.Signal(executor.Terminate); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	n.says("still here")
}

// A container can have the kernel wait before it says where a thread sleeps.
func TestAContainerHidesNoOtherThatHoldsTheLockOfAllNetworks(t *testing.T) {
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
		f.endLockHolders(func(thread int) []byte {
			if hidden[thread] {
				<-shown
				return nil
			}
			return []byte("[<0>] exc_page_fault+0x1d8/0x770\n[<0>] dev_ioctl+0x38e/0x5f0\n")
		})
		select {
		case end := <-ended:
			return strings.Contains(end.String(), "held the kernel's lock of all networks")
		default:
			return false
		}
	})
}

func TestWhoHoldsTheLockOfAllNetworksIsSeenInItsStack(t *testing.T) {
	for _, test := range []struct {
		name, stack string
		holds       bool
	}{
		{"it runs, or the kernel does not say", "", false},
		{"it waits for the lock", "[<0>] dev_ethtool+0xa1/0x2d90\n[<0>] dev_ioctl+0x38e/0x5f0\n[<0>] sock_do_ioctl+0xb7/0x100\n[<0>] __x64_sys_ioctl+0x9b/0x100\n", false},
		{"it waits for its memory", "[<0>] lock_mm_and_find_vma+0x9e/0x580\n[<0>] exc_page_fault+0x1d8/0x770\n[<0>] asm_exc_page_fault+0x22/0x30\n[<0>] inet_gifconf+0x28/0x50\n[<0>] sock_do_ioctl+0xb7/0x100\n", true},
		{"on arm64", "[<0>] mem_cgroup_out_of_memory+0x4c/0xf0\n[<0>] do_page_fault+0x1d8/0x770\n[<0>] do_mem_abort+0x22/0x30\n[<0>] dev_ifconf+0x21f2/0x2d90\n[<0>] sock_ioctl+0xb7/0x100\n", true},
		{"it waits for the socket", "[<0>] __lock_sock+0x9e/0x580\n[<0>] lock_sock_nested+0x1d8/0x770\n[<0>] do_ip_setsockopt+0x22/0x30\n[<0>] __sys_setsockopt+0x28/0x50\n", true},
		{"it reads a file", "[<0>] folio_wait_bit_common+0x9e/0x580\n[<0>] filemap_fault+0x9/0x8\n[<0>] exc_page_fault+0x1d8/0x770\n", false},
	} {
		if got := holdsForMemory.MatchString(test.stack); got != test.holds {
			t.Errorf("%s: it holds the lock: %v", test.name, got)
		}
	}
}

func TestWhoHoldsTheLockOfAllNetworksSeldomGoesOn(t *testing.T) {
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
