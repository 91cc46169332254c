// Package reach says which addresses a daemon may connect to on behalf of
// others, who choose the URLs: downloads, uploads and callbacks.
//
// It judges the address that is about to be dialled, after names were resolved,
// on each connection and so also after a redirect. A name proves nothing: it
// may lead anywhere, and elsewhere the next time.
package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// ErrRefused is wrapped by every [RefusedError].
var ErrRefused = errors.New("the address may not be reached")

// A RefusedError says that a policy does not let an address be reached.
type RefusedError struct {
	Addr netip.Addr
	// Network is the denied network that Addr is in, or leads into.
	Network netip.Prefix
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %v is in %v, which is denied here unless the operator allows it", ErrRefused, e.Addr, e.Network)
}

// Unwrap makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// A Policy allows and denies networks. Addresses in one of Allow may be
// reached. Of the others, those in one of Deny may not, nor those that every
// policy denies: the host itself, its link, its containers, and metadata
// services. An IPv6 address that stands for an IPv4 address (mapped, NAT64, 6to4 and the like)
// may be reached if both may.
type Policy struct {
	Allow, Deny []netip.Prefix
}

// denied are the networks that every policy denies. Servers there assume that
// only the host or its link can reach them.
var denied = parse(
	"0.0.0.0/8", "::/128", // unspecified: mostly the host
	"127.0.0.0/8", "::1/128", // loopback
	"169.254.0.0/16", "fe80::/10", // link-local, with the metadata of clouds
	"fd00:ec2::254/128", "fd20:ce::254/128", "fd00:42::42/128", // the same over IPv6
	"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", // those of Azure, Alibaba and Oracle elsewhere
	"224.0.0.0/4", "ff00::/8", "255.255.255.255/32", // multicast and broadcast
	"64:ff9b:1::/48", // NAT64 of the local network: nobody knows where it leads
)

func parse(list ...string) (networks []netip.Prefix) {
	for _, text := range list {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

// Check fails with a *RefusedError if addr may not be reached.
func (p *Policy) Check(addr netip.Addr) error {
	for _, form := range forms(addr) {
		if _, allowed := find(p.Allow, form); allowed {
			continue
		}
		for _, list := range [][]netip.Prefix{p.Deny, denied} {
			if network, is := find(list, form); is {
				return &RefusedError{addr, network}
			}
		}
		if !form.Is4() {
			continue
		}
		devices, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("nobody can tell whether %v is the address of a container: %w", addr, err)
		}
		if network, is := find(wires(devices), form); is {
			return &RefusedError{addr, network}
		}
	}
	return nil
}

// wires are the networks with two addresses among those of the host's devices. Package
// libcontainer makes one for each container, and the host reaches all ports at the other
// end. Others reach only the ports that are mapped.
func wires(devices []net.Addr) (networks []netip.Prefix) {
	const pair = 31
	for _, device := range devices {
		if prefix, err := netip.ParsePrefix(device.String()); err == nil && prefix.Addr().Is4() && prefix.Bits() == pair {
			networks = append(networks, prefix.Masked())
		}
	}
	return networks
}

func find(list []netip.Prefix, addr netip.Addr) (netip.Prefix, bool) {
	for _, network := range list {
		if plain(network).Contains(addr) {
			return network, true
		}
	}
	return netip.Prefix{}, false
}

// plain turns a network of IPv4-mapped addresses into one of IPv4.
func plain(network netip.Prefix) netip.Prefix {
	const mapped = 96
	if network.Addr().Is4In6() && network.Bits() >= mapped {
		return netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network
}

var (
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // by SIIT
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// forms lists the addresses that a dialled address stands for: itself, and an
// IPv4 address inside it.
func forms(addr netip.Addr) []netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return []netip.Addr{addr}
	}
	b := addr.As16()
	ipv4 := func(from int) netip.Addr { return netip.AddrFrom4([4]byte(b[from : from+4])) }
	list := []netip.Addr{addr}
	switch {
	case addr.IsLoopback(), addr.IsUnspecified(): // not IPv4-compatible
	case compatible.Contains(addr), translated.Contains(addr), nat64.Contains(addr):
		list = append(list, ipv4(12))
	case sixToFour.Contains(addr):
		list = append(list, ipv4(2))
	case teredo.Contains(addr): // the client's address, inverted
		for i := 12; i < 16; i++ {
			b[i] ^= 0xff
		}
		list = append(list, ipv4(12))
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		list = append(list, ipv4(12))
	}
	return list
}

// Client makes requests to addresses that p allows, and waits at most answer
// for an answer to begin. It uses no proxy, even if the environment names one:
// a proxy would dial addresses that were not judged. Nor does it use HTTP/2: a server
// may flood such a connection as long as it is kept, and be read all the time. An
// answer whose headers have more than maxHeaderBytes is an error. Answers are taken as
// they come: one that package http unpacks on the way may be a thousand times longer than
// what was sent, or be sent without end and have no byte.
func (p Policy) Client(answer time.Duration) *http.Client {
	dialer := &net.Dialer{
		Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return p.Check(to.Addr())
		},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	// http.DefaultTransport belongs to the program, which may have put anything there.
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, Protocols: protocols, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: answer, ExpectContinueTimeout: time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true,
	}}
}

// maxHeaderBytes bounds the headers of an answer. The default of package http is 10 MiB,
// which take up to 200 MiB of memory if they are very many.
const maxHeaderBytes = 64 << 10

// Parse reads networks, for example 10.0.0.0/8, and addresses, which are
// networks of one. The error names an element that is neither.
func Parse(list []string) (networks []netip.Prefix, err error) {
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || network != network.Masked() {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or an address", strings.TrimSpace(text))
		}
		networks = append(networks, network)
	}
	return networks, nil
}
