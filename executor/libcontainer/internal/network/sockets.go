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

// HeldBySockets returns how many bytes wait in the sockets of a network namespace, as the
// kernel counts them for the limit of each socket. Some of that it counts for no cgroup:
// answers of netlink that nobody has read, and time stamps and errors that return what
// was sent. Nor does it count a connection that nobody has accepted. unlisted is how many sockets are in no list of the kernel's: they are not
// bound, or have just been closed.
func HeldBySockets(ns *os.File) (bytes, unlisted int64, err error) {
	err = InNamespace(ns, func() error {
		const proc = "/proc/thread-self/net/"
		var texts [3]string
		for i, name := range []string{"sockstat", "protocols", "netlink"} {
			text, err := os.ReadFile(proc + name)
			if err != nil {
				return err
			}
			texts[i] = string(text)
		}
		unlisted, bytes = notListed(texts[0], texts[1]), heldByNetlink(texts[2])
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE} {
				// A kernel without a list of one protocol has the others.
				_ = eachSocket(family, protocol, func(held int64) { bytes += held })
			}
		}
		return nil
	})
	return bytes, unlisted, err
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

// heldByNetlink adds up the text of /proc/net/netlink.
func heldByNetlink(text string) (bytes int64) {
	for line := range strings.Lines(text) {
		// sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
		if fields := strings.Fields(line); len(fields) > 5 {
			received, _ := strconv.ParseInt(fields[4], 10, 64)
			sent, _ := strconv.ParseInt(fields[5], 10, 64)
			bytes += received + sent
		}
	}
	return bytes
}

// eachSocket asks the kernel for the sockets of a protocol and what each holds.
func eachSocket(family, protocol uint8, see func(held int64)) error {
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
			held := heldBySocket(a.Value)
			if binary.NativeEndian.Uint32(message[inode:]) == 0 {
				held += bytesOfConnection
			}
			see(held)
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
