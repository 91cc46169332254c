//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketsThatAreInNoListAreThoseThatAreUsedAndNotListed(t *testing.T) {
	const protocols = "protocol  size sockets  memory press\nMPTCP     1936      7       0   no\nUDPv6     1472      1       0   NI\n" +
		"UNIX      1152     12      -1   NI\nTCP       2304     17       0   no\nNETLINK   1096      5      -1   NI\n"
	for sockstat, want := range map[string]int64{
		"sockets: used 38\nTCP: inuse 17 orphan 0 tw 0 alloc 18 mem 1\n": 3,
		"sockets: used 35\n": 0,
		"sockets: used 1\n":  0,
		"":                   0,
	} {
		if got := notListed(sockstat, protocols); got != want {
			t.Errorf("%q: %d, want %d", sockstat, got, want)
		}
	}
}

func TestWhatWaitsInANetlinkSocketIsAddedUp(t *testing.T) {
	const text = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n" +
		"0000000000000000 0   1          00000000 7000     5        0     2        0        1\n0000000000000000 4   0          00000000 30       0        0     2        0        2\nspoilt\n"
	got := Sockets{Listed: map[uint64]bool{}}
	got.addNetlink(text)
	if got.Bytes != 7000+5+30 || !got.Listed[1] || got.Listed[3] {
		t.Errorf("they are %+v", got)
	}
}

// The modules with these lists may be missing on a host, or not be allowed to load.
func TestSocketsAreOnlyKnownAsListedIfTheKernelListsTCPAndUDP(t *testing.T) {
	for missing, known := range map[uint8]bool{0: true, unix.IPPROTO_TCP: false, unix.IPPROTO_UDP: false, unix.IPPROTO_UDPLITE: true} {
		s := Sockets{Listed: map[uint64]bool{}}
		s.addAllInternet(func(_, protocol uint8) error {
			if protocol == missing {
				return unix.ENOENT
			}
			s.Bytes++
			s.Listed[uint64(protocol)] = true
			return nil
		})
		if (s.Listed != nil) != known || s.Bytes < 4 {
			t.Errorf("without protocol %d, they are %+v", missing, s)
		}
	}
}

// A namespace in which nobody has a socket holds nothing, even if others do.
func TestWhatWaitsInSocketsIsThatOfOneNetwork(t *testing.T) {
	w := looseWire(t)
	held := func() int64 {
		t.Helper()
		sockets, err := SocketsIn(w.ns)
		if err != nil {
			t.Fatal(err)
		}
		return sockets.Bytes
	}
	if got := held(); got != 0 {
		t.Errorf("%d bytes wait in no socket", got)
	}
	var sockets [2]int
	if err := InNamespace(w.ns, func() (err error) {
		for i := range sockets {
			if sockets[i], err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return os.NewSyscallError("socket", err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sockets[0])
	defer unix.Close(sockets[1])
	var inode [2]unix.Stat_t
	for i, s := range sockets {
		if err := unix.Fstat(s, &inode[i]); err != nil {
			t.Fatal(err)
		}
	}
	listed := func() (n int) {
		s, _ := SocketsIn(w.ns)
		for _, i := range inode {
			if s.Listed[i.Ino] {
				n++
			}
		}
		return n
	}
	if s, _ := SocketsIn(w.ns); s.Unlisted < 2 || listed() != 0 { // and some that have just been closed
		t.Errorf("%d sockets are in no list, and there are two", s.Unlisted)
	}
	for _, s := range sockets {
		if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(); got != 2 {
		t.Errorf("of two sockets that are bound, %d are listed", got)
	}
	if got := held(); got != 0 {
		t.Errorf("two empty sockets hold %d bytes", got)
	}
	name, err := unix.Getsockname(sockets[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(sockets[0], make([]byte, 10_000), 0, name); err != nil {
		t.Fatal(err)
	}
	if got := held(); got < 10_000 || got > 100_000 {
		t.Errorf("a socket in which 10,000 bytes wait holds %d", got)
	}
}

func TestTheSocketsOfANetworkAreCounted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sockstat":  "sockets: used 7\nTCP: inuse 3 orphan 0 tw 2 alloc 8 mem 1\nUDP: inuse 2 mem 0\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n",
		"sockstat6": "TCP6: inuse 40\nUDP6: inuse 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := InUse(dir); n != 46 {
		t.Errorf("there are %d, want 46", n)
	}
}
