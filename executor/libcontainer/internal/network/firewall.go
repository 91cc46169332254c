//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// A firewall is one table of nftables, which maps ports, lets containers reach
// the outside, and holds their egress rules:
//
//	raw      a container may not use an address that is not its own, nor one
//	         of the host's loopback
//	mapped   the ports map, by host port, says where a connection goes
//	post     what leaves the host has the host's address
//	forward  nobody reaches a container past the mapping; then come containers
//	         that may not begin connections for now, the pace at which the others
//	         begin them, their shares of connections and their egress rules
//	input    the last four, for what goes to the host itself
//
// Egress rules come after the mapping, which has changed where a packet goes.
// They judge where the container has sent it, which the connection remembers.
//
// Every change is one transaction of the kernel.
type firewall struct {
	*table
	prefix  string // of the devices of containers
	ports   *nftables.Set
	egress  *nftables.Set
	paces   *nftables.Set // at which connections are begun, by the container's address
	shares  *nftables.Set // of the connections that the kernel tracks, by the container's address
	refused *nftables.Set // addresses of containers that may not begin connections for now
	logs    *nftables.Set // the lines of the log, by the container's address
}

// The registers of an expression. A value in a fills four of those of 32 bits,
// of which second is the next one.
const (
	a      = unix.NFT_REG_1
	second = unix.NFT_REG32_01
)

// newFirewall makes the table of a Backend, by its id.
func newFirewall(id, prefix string, subnet netip.Prefix, bounds bounds) (*firewall, error) {
	f := &firewall{prefix: prefix}
	var err error
	if f.table, err = newTable(id, true); err != nil {
		return nil, err
	}
	if err := f.change(func(c *nftables.Conn) error { return f.fill(c, subnet, bounds) }); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// fill adds what does not depend on containers.
func (f *firewall) fill(c *nftables.Conn, subnet netip.Prefix, bounds bounds) error {
	target, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	if err != nil {
		return err
	}
	// Numbers tell sets of one transaction apart. The library would count them
	// for the whole process, and not expect two backends that begin at once.
	f.ports = &nftables.Set{Table: &f.Table, ID: 1, Name: "ports", IsMap: true, KeyType: nftables.TypeInetService, DataType: target}
	f.egress = &nftables.Set{Table: &f.Table, ID: 2, Name: "egress", IsMap: true, KeyType: nftables.TypeIFName, DataType: nftables.TypeVerdict}
	f.paces = &nftables.Set{Table: &f.Table, ID: 3, Name: "paces", Dynamic: true, KeyType: nftables.TypeIPAddr, Size: 1 << (32 - subnet.Bits())}
	f.shares = &nftables.Set{Table: &f.Table, ID: 4, Name: "shares", Dynamic: true, KeyType: nftables.TypeIPAddr, Size: 1 << (32 - subnet.Bits())}
	f.refused = &nftables.Set{Table: &f.Table, ID: 5, Name: "refused", KeyType: nftables.TypeIPAddr}
	f.logs = &nftables.Set{Table: &f.Table, ID: 6, Name: "logs", Dynamic: true, KeyType: nftables.TypeIPAddr, Size: 1 << (32 - subnet.Bits())}
	for _, s := range []*nftables.Set{f.ports, f.egress, f.paces, f.shares, f.refused, f.logs} {
		if err := c.AddSet(s, nil); err != nil {
			return err
		}
	}
	from, to := f.device(expr.MetaKeyIIFNAME, expr.CmpOpEq), f.device(expr.MetaKeyOIFNAME, expr.CmpOpEq)
	inside, loopback := prefixMatch(offsetSource, subnet), netip.MustParsePrefix("127.0.0.0/8")
	mapped := rule(localDestination(), protocol(unix.IPPROTO_TCP), load(expr.PayloadBaseTransportHeader, offsetPort, 2), exprs{
		&expr.Lookup{SourceRegister: a, DestRegister: a, IsDestRegSet: true, SetName: f.ports.Name, SetID: f.ports.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: a, RegProtoMin: second, Specified: true},
	})
	egress := rule(exprs{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: a},
		&expr.Lookup{SourceRegister: a, DestRegister: 0, IsDestRegSet: true, SetName: f.egress.Name, SetID: f.egress.ID},
	})
	begins := rule(from, inside, begun())
	refused := rule(begins, exprs{&expr.Lookup{SourceRegister: a, SetName: f.refused.Name, SetID: f.refused.ID}}, reject)
	var paced, shared exprs
	if bounds.pace > 0 {
		paced = rule(begins, bounded(f.paces, &expr.Limit{
			Type: expr.LimitTypePkts, Unit: expr.LimitTimeSecond, Rate: uint64(bounds.pace), Burst: bounds.pace, Over: true,
		}), drop)
	}
	if bounds.share > 0 {
		shared = rule(begins, bounded(f.shares, &expr.Connlimit{Count: bounds.share, Flags: expr.NFT_CONNLIMIT_F_INV}), reject)
	}
	for _, chain := range []struct {
		name     string
		kind     nftables.ChainType
		hook     *nftables.ChainHook
		priority *nftables.ChainPriority
		rules    []exprs
	}{
		{"raw", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw, []exprs{
			rule(from, prefixMatch(offsetDestination, loopback), drop),
			rule(from, exprs{
				&expr.Fib{Register: a, ResultOIF: true, FlagSADDR: true, FlagIIF: true},
				&expr.Cmp{Op: expr.CmpOpEq, Register: a, Data: make([]byte, 4)},
			}, drop),
		}},
		{"mapped", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, []exprs{mapped}},
		{"mapped-host", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest, []exprs{mapped}},
		{"post", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, []exprs{
			rule(to, prefixMatch(offsetSource, loopback), masquerade),
			rule(to, inside, ctStatus(redirected, expr.CmpOpNeq), masquerade), // also back to where it came from
			rule(f.device(expr.MetaKeyOIFNAME, expr.CmpOpNeq), inside, masquerade),
		}},
		{"forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter, []exprs{
			rule(to, ctState(expr.CtStateBitNEW), ctStatus(redirected, expr.CmpOpEq), drop), refused, paced, shared, egress,
		}},
		{"input", nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter, []exprs{refused, paced, shared, egress}},
	} {
		ch := c.AddChain(&nftables.Chain{Name: chain.name, Table: &f.Table, Type: chain.kind, Hooknum: chain.hook, Priority: chain.priority})
		for _, r := range chain.rules {
			if r == nil { // without a bound
				continue
			}
			c.AddRule(&nftables.Rule{Table: &f.Table, Chain: ch, Exprs: r})
		}
	}
	return nil
}

// begun matches the first packet of a connection, whose source is loaded.
func begun() exprs {
	return rule(ctStatus(confirmed, expr.CmpOpEq), load(expr.PayloadBaseNetworkHeader, offsetSource, 4))
}

// bounded counts for each container by itself.
func bounded(by *nftables.Set, count expr.Any) exprs {
	return exprs{&expr.Dynset{SrcRegKey: a, SetName: by.Name, SetID: by.ID, Operation: unix.NFT_DYNSET_OP_UPDATE, Exprs: []expr.Any{count}}}
}

// refuse refuses connections that these containers begin, and no others.
func (f *firewall) refuse(containers []netip.Addr) error {
	var all []nftables.SetElement
	for _, c := range containers {
		all = append(all, nftables.SetElement{Key: c.AsSlice()})
	}
	return f.change(func(c *nftables.Conn) error {
		c.FlushSet(f.refused)
		return c.SetAddElements(f.refused, all)
	})
}

// publish maps the ports of a link.
func (f *firewall) publish(l *Link) error {
	return f.change(func(c *nftables.Conn) error { return c.SetAddElements(f.ports, l.elements()) })
}

func (l *Link) elements() []nftables.SetElement {
	var all []nftables.SetElement
	for _, m := range l.mappings {
		target := l.Own.AsSlice()
		target = append(binary.BigEndian.AppendUint16(target, m.ContainerPort), 0, 0) // each part of four bytes
		all = append(all, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(m.HostPort), Val: target})
	}
	return all
}

// restrict lets a link reach only what rules allow.
func (f *firewall) restrict(l *Link, rules []executor.EgressRule) error {
	var allowed [][]exprs // by rule
	for _, r := range rules {
		matches, err := egressMatches(r)
		if err != nil {
			return err
		}
		allowed = append(allowed, matches)
	}
	return f.change(func(c *nftables.Conn) error {
		chain := c.AddChain(&nftables.Chain{Name: l.wire.name, Table: &f.Table})
		add := func(r exprs) { c.AddRule(&nftables.Rule{Table: &f.Table, Chain: chain, Exprs: r}) }
		add(rule(ctState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept))
		for i, r := range rules {
			for _, m := range allowed[i] {
				if r.Log {
					add(rule(m, begun(), bounded(f.logs, &expr.Limit{
						Type: expr.LimitTypePkts, Unit: expr.LimitTimeSecond, Rate: logPace, Burst: logBurst,
					}), exprs{&expr.Log{Key: 1 << unix.NFTA_LOG_PREFIX, Data: []byte("egress " + l.GUID[:min(len(l.GUID), longestPrefix)] + " ")}}))
				}
				add(rule(m, accept))
			}
		}
		add(reject)
		return c.SetAddElements(f.egress, []nftables.SetElement{{
			Key: ifname(l.wire.name), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: l.wire.name},
		}})
	})
}

const (
	icmpProhibited = 13
	longestPrefix  = 100 // bytes of a guid in the log; the kernel takes 127 in all
	// A container writes at most logPace lines per second to the kernel's log, beside
	// logBurst at once.
	logPace, logBurst = 10, 50
)

// forget removes all about a link.
func (f *firewall) forget(l *Link) error {
	if len(l.mappings) == 0 && !l.egress {
		return nil
	}
	err := f.change(func(c *nftables.Conn) error {
		if len(l.mappings) > 0 {
			if err := c.SetDeleteElements(f.ports, l.elements()); err != nil {
				return err
			}
		}
		if l.egress {
			if err := c.SetDeleteElements(f.egress, []nftables.SetElement{{Key: ifname(l.wire.name)}}); err != nil {
				return err
			}
			chain := &nftables.Chain{Name: l.wire.name, Table: &f.Table}
			c.FlushChain(chain)
			c.DelChain(chain)
		}
		return nil
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, os.ErrClosed) { // it had not come so far, or the table is gone
		return nil
	}
	return err
}

// egressMatches are the expressions of which one must match. What IPv6 needs
// is left out: containers have none, and so it is never sent.
func egressMatches(r executor.EgressRule) ([]exprs, error) {
	var protocols exprs
	switch r.Protocol {
	case executor.ProtocolTCP:
		protocols = protocol(unix.IPPROTO_TCP)
	case executor.ProtocolUDP:
		protocols = protocol(unix.IPPROTO_UDP)
	case executor.ProtocolICMP:
		protocols = protocol(unix.IPPROTO_ICMP)
	case executor.ProtocolICMPv6:
		return nil, nil
	}
	details := []exprs{nil}
	if len(r.Ports) > 0 {
		details = nil
		for _, p := range r.Ports {
			details = append(details, portMatch(p, p))
		}
	}
	if r.PortRange != nil {
		details = []exprs{portMatch(r.PortRange.Start, r.PortRange.End)}
	}
	if r.ICMP != nil {
		details = []exprs{rule(icmpMatch(0, r.ICMP.Type), icmpMatch(1, r.ICMP.Code))}
	}
	var all []exprs
	for _, entry := range r.Destinations {
		ranges, err := executor.ParseDestinations(entry)
		if err != nil {
			return nil, err
		}
		for _, to := range ranges {
			if !to.From.Is4() {
				continue
			}
			destination := rule(dialled(expr.CtKeyDST), between(to.From.AsSlice(), to.To.AsSlice()))
			for _, d := range details {
				all = append(all, rule(destination, protocols, d))
			}
		}
	}
	return all, nil
}

// Expressions, named after what they match.
type exprs = []expr.Any

// Offsets in the headers of IPv4 and of TCP or UDP.
const (
	offsetSource      = 12
	offsetDestination = 16
	offsetPort        = 2
)

var (
	accept     = exprs{&expr.Verdict{Kind: expr.VerdictAccept}}
	drop       = exprs{&expr.Verdict{Kind: expr.VerdictDrop}}
	masquerade = exprs{&expr.Masq{}}
	reject     = exprs{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: icmpProhibited}}
)

func rule(parts ...exprs) exprs {
	var all exprs
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (f *firewall) device(key expr.MetaKey, op expr.CmpOp) exprs {
	return exprs{&expr.Meta{Key: key, Register: a}, &expr.Cmp{Op: op, Register: a, Data: []byte(f.prefix)}}
}

func ifname(name string) []byte {
	var b [unix.IFNAMSIZ]byte
	copy(b[:], name)
	return b[:]
}

func load(base expr.PayloadBase, offset, length uint32) exprs {
	return exprs{&expr.Payload{DestRegister: a, Base: base, Offset: offset, Len: length}}
}

// dialled loads a field of the packet that began the connection, as its sender
// made it.
func dialled(key expr.CtKey) exprs {
	const original = 0 // IP_CT_DIR_ORIGINAL
	return exprs{&expr.Ct{Key: key, Direction: original, Register: a}}
}

func between(from, to []byte) exprs {
	return exprs{&expr.Range{Op: expr.CmpOpEq, Register: a, FromData: from, ToData: to}}
}

func prefixMatch(offset uint32, p netip.Prefix) exprs {
	mask := binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-p.Bits()))
	return rule(load(expr.PayloadBaseNetworkHeader, offset, 4), exprs{
		&expr.Bitwise{SourceRegister: a, DestRegister: a, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: a, Data: p.Masked().Addr().AsSlice()},
	})
}

func protocol(number byte) exprs {
	return exprs{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: a}, &expr.Cmp{Op: expr.CmpOpEq, Register: a, Data: []byte{number}}}
}

func portMatch(from, to uint16) exprs {
	return rule(dialled(expr.CtKeyPROTODST),
		between(binary.BigEndian.AppendUint16(nil, from), binary.BigEndian.AppendUint16(nil, to)))
}

func icmpMatch(offset uint32, value int32) exprs {
	if value < 0 { // any
		return nil
	}
	return rule(load(expr.PayloadBaseTransportHeader, offset, 1), exprs{&expr.Cmp{Op: expr.CmpOpEq, Register: a, Data: []byte{byte(value)}}})
}

// localDestination matches what is addressed to this host.
func localDestination() exprs {
	return exprs{
		&expr.Fib{Register: a, ResultADDRTYPE: true, FlagDADDR: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: a, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

func ctState(bits uint32) exprs { return ctBits(expr.CtKeySTATE, bits, expr.CmpOpNeq) }

// Bits of a connection's status.
const (
	confirmed  = 1 << 3 // IPS_CONFIRMED: its first packet has come through
	redirected = 1 << 5 // IPS_DST_NAT: by the mapping
)

// ctStatus matches a connection that has a bit (CmpOpNeq), or that has not
// (CmpOpEq).
func ctStatus(bit uint32, op expr.CmpOp) exprs { return ctBits(expr.CtKeySTATUS, bit, op) }

func ctBits(key expr.CtKey, bits uint32, op expr.CmpOp) exprs {
	return exprs{
		&expr.Ct{Key: key, Register: a},
		&expr.Bitwise{SourceRegister: a, DestRegister: a, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: a, Data: make([]byte, 4)},
	}
}
