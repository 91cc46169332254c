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

// Unaccepted is how many bytes the kernel has set aside for the TCP connections of a
// network namespace that no process has: nobody has accepted them, or they were closed and
// the other side has not taken what was sent.
func Unaccepted(ns *os.File) (bytes int64) {
	_ = InNamespace(ns, func() error {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			_ = eachInternet(family, unix.IPPROTO_TCP, func(inode uint32, info []byte) {
				if inode == 0 {
					bytes += heldBySocket(info) + setAside(info)
				}
			})
		}
		return nil
	}) // if it cannot be asked, it is not known to hold anything
	return bytes
}

// InUse is how many sockets of IP a network namespace has. dir is /proc/PID/net of
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

// addInternet adds the sockets of a protocol.
func (s *Sockets) addInternet(family, protocol uint8) error {
	const bytesOfConnection = 4096 // with the packet that has ended it
	return eachInternet(family, protocol, func(inode uint32, info []byte) {
		s.Bytes += heldBySocket(info)
		if inode != 0 {
			s.Listed[uint64(inode)] = true
		} else {
			s.Bytes += bytesOfConnection
		}
	})
}

// eachInternet asks the kernel for the sockets of a protocol and what each holds, a struct
// sk_meminfo. The inode of one that no process has is 0.
func eachInternet(family, protocol uint8, found func(inode uint32, info []byte)) error {
	const (
		memory      = 7 // INET_DIAG_SKMEMINFO
		requestSize = 56
		inode       = 68
		messageSize = 72 // of what comes before the attributes
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
			if a.Attr.Type == memory {
				found(binary.NativeEndian.Uint32(message[inode:]), a.Value)
			}
		}
		return true
	})
}

// heldBySocket adds up what the kernel says of one socket, in a struct sk_meminfo.
func heldBySocket(info []byte) int64 {
	const received, onTheWay, toSend, options, toSort = 0, 2, 5, 6, 7
	return meminfo(info, received) + max(meminfo(info, onTheWay), meminfo(info, toSend)) + meminfo(info, options) + meminfo(info, toSort)
}

// setAside is what the kernel has set aside for one socket, and not used yet.
func setAside(info []byte) int64 { return meminfo(info, 4) }

func meminfo(info []byte, i int) int64 {
	if len(info) < 4*i+4 {
		return 0
	}
	return int64(binary.NativeEndian.Uint32(info[4*i:]))
}
