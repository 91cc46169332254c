//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Sockets are those of a network namespace.
type Sockets struct {
	// Bytes wait in them, as the kernel counts it for the limit of each. Some of that it
	// counts for no cgroup: answers of netlink that nobody has read, and time stamps and
	// errors that return what was sent. Nor does it count a connection that nobody has
	// accepted.
	Bytes int64
	// Unlisted is how many are in no list of the kernel's: they are not bound, or have
	// just been closed.
	Unlisted int64
	Listed   map[uint64]bool // the inodes of the others; nil if the kernel has no list of TCP or UDP
}

// SocketsIn looks at the sockets of a network namespace.
func SocketsIn(ns *os.File) (s Sockets, err error) {
	s.Listed = map[uint64]bool{}
	err = InNamespace(ns, func() error {
		const proc = "/proc/thread-self/net/"
		var texts [4]string
		for i, name := range []string{"sockstat", "protocols", "netlink", "unix"} {
			text, err := os.ReadFile(proc + name)
			if err != nil {
				return err
			}
			texts[i] = string(text)
		}
		s.Unlisted = notListed(texts[0], texts[1])
		s.addNetlink(texts[2])
		s.addUnix(texts[3])
		s.addAllInternet(s.addInternet)
		return nil
	})
	return s, err
}

// InternetBytes is how much waits in the TCP and UDP sockets of a network namespace.
func InternetBytes(ns *os.File) int64 {
	var s Sockets
	s.Listed = map[uint64]bool{}
	_ = InNamespace(ns, func() error {
		s.addAllInternet(s.addInternet)
		return nil
	}) // if it cannot be asked, it is not known to hold anything
	return s.Bytes
}

// InUse is how many TCP and UDP sockets a network namespace has. dir is /proc/PID/net of
// a process in it.
func InUse(dir string) (sockets int64) {
	for _, name := range []string{"sockstat", "sockstat6"} {
		text, _ := os.ReadFile(dir + "/" + name) // no file, no IPv6
		for line := range strings.Lines(string(text)) {
			// As in "TCP: inuse 7 orphan 0 tw 2 alloc 8 mem 1".
			if f := strings.Fields(line); len(f) > 2 && f[1] == "inuse" {
				n, _ := strconv.ParseInt(f[2], 10, 64)
				sockets += n
			}
		}
	}
	return sockets
}

// notListed is how many sockets are in none of the kernel's lists, by the texts of
// /proc/net/sockstat and protocols. The first counts all, the second those in lists.
func notListed(sockstat, protocols string) int64 {
	var n int64
	for line := range strings.Lines(sockstat) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "sockets:" { // as in "sockets: used 7"
			n, _ = strconv.ParseInt(fields[2], 10, 64)
		}
	}
	for line := range strings.Lines(protocols) {
		// As in "UDP 1344 12 0 NI …". Those of MPTCP stand beside their TCP sockets.
		if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(fields[0], "MPTCP") {
			listed, _ := strconv.ParseInt(fields[2], 10, 64)
			n -= listed
		}
	}
	return max(0, n)
}

// addNetlink reads the text of /proc/net/netlink.
func (s *Sockets) addNetlink(text string) {
	for line := range strings.Lines(text) {
		// sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
		if fields := strings.Fields(line); len(fields) > 9 {
			received, _ := strconv.ParseInt(fields[4], 10, 64)
			sent, _ := strconv.ParseInt(fields[5], 10, 64)
			inode, _ := strconv.ParseUint(fields[9], 10, 64)
			s.Bytes += received + sent
			s.Listed[inode] = true
		}
	}
}

// addUnix reads the text of /proc/net/unix. What waits in these sockets counts.
func (s *Sockets) addUnix(text string) {
	for line := range strings.Lines(text) {
		// Num RefCount Protocol Flags Type St Inode Path
		if fields := strings.Fields(line); len(fields) > 6 {
			inode, _ := strconv.ParseUint(fields[6], 10, 64)
			s.Listed[inode] = true
		}
	}
}

// addAllInternet calls add for each protocol. A kernel without a list of one has the
// others. Without that of TCP or UDP, the connections of a server would look like sockets
// of another container's network. Hardly any program uses UDP-Lite.
func (s *Sockets) addAllInternet(add func(family, protocol uint8) error) {
	complete := true
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE} {
			if add(family, protocol) != nil && protocol != unix.IPPROTO_UDPLITE {
				complete = false
			}
		}
	}
	if !complete {
		s.Listed = nil
	}
}

// addInternet asks the kernel for the sockets of a protocol and what each holds.
func (s *Sockets) addInternet(family, protocol uint8) error {
	const (
		memory      = 7 // INET_DIAG_SKMEMINFO
		requestSize = 56
		inode       = 68 // of the socket, 0 if no process has it
		messageSize = 72 // of what comes before the attributes

		bytesOfConnection = 4096 // with the packet that has ended it
	)
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	body := make([]byte, requestSize)
	body[0], body[1], body[2] = family, protocol, 1<<(memory-1)
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in every state
	request.AddRawData(body)
	return request.ExecuteIter(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(message []byte) bool {
		if len(message) < messageSize {
			return true
		}
		attributes, _ := nl.ParseRouteAttr(message[messageSize:])
		for _, a := range attributes {
			if a.Attr.Type != memory {
				continue
			}
			s.Bytes += heldBySocket(a.Value)
			if n := binary.NativeEndian.Uint32(message[inode:]); n != 0 {
				s.Listed[uint64(n)] = true
			} else {
				s.Bytes += bytesOfConnection
			}
		}
		return true
	})
}

// heldBySocket adds up what the kernel says of one socket.
func heldBySocket(info []byte) int64 {
	const received, onTheWay, toSend, options, toSort = 0, 2, 5, 6, 7 // of struct sk_meminfo
	at := func(i int) int64 {
		if len(info) < 4*i+4 {
			return 0
		}
		return int64(binary.NativeEndian.Uint32(info[4*i:]))
	}
	return at(received) + max(at(onTheWay), at(toSend)) + at(options) + at(toSort)
}
