package modelcheck

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// Two states that differ only in how instances and cells are called are the same
// one. canonical renames both; encode and decode are the bytes of a state, some
// forty in all.

// canonical appends the bytes of the state to buf, under the names that make
// them smallest.
func (s *state) canonical(buf []byte) []byte {
	one, other := *s, *s
	other.swapCells()
	one.rename()
	other.rename()
	n := len(buf)
	buf = one.encode(buf)
	var second [256]byte
	if b := other.encode(second[:0]); bytes.Compare(b, buf[n:]) < 0 {
		buf = append(buf[:n], b...)
	}
	return buf
}

func (s *state) swapCells() {
	swap := func(c *uint8) { *c = 1 - *c }
	s.cells[0], s.cells[1] = s.cells[1], s.cells[0]
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			if r := &s.slots[i].records[j]; r.holder != 0 {
				swap(&r.cell)
			}
		}
	}
	for i := range s.boxes {
		if s.boxes[i].phase != noBox {
			swap(&s.boxes[i].cell)
		}
	}
	for i := range s.mail {
		if c := &s.mail[i]; c.kind.ofCells() {
			c.cell = c.cell>>1&1 | c.cell&1<<1
		} else if c.holder != 0 && c.kind != planned {
			swap(&c.cell)
		}
	}
}

// rename numbers the instances in the order in which records name them, then late
// calls, then by what their containers are.
func (s *state) rename() {
	var to [maxBoxes + 1]uint8
	next := uint8(1)
	name := func(holder *uint8) {
		if *holder == 0 {
			return
		}
		if to[*holder] == 0 {
			to[*holder] = next
			next++
		}
		*holder = to[*holder]
	}
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			name(&s.slots[i].records[j].holder)
		}
	}
	slices.SortFunc(s.mail[:], func(a, b call) int {
		return cmp.Or(-cmp.Compare(a.kind, b.kind), cmp.Compare(a.pack(), b.pack()))
	})
	for i := range s.mail {
		if s.mail[i].kind != planned {
			name(&s.mail[i].holder)
		}
	}
	var rest [maxBoxes]uint8
	n := 0
	for i := range s.boxes {
		if s.boxes[i].phase != noBox && to[i+1] == 0 {
			rest[n] = uint8(i + 1)
			n++
		}
	}
	slices.SortFunc(rest[:n], func(a, b uint8) int {
		return cmp.Compare(s.boxes[a-1].pack(), s.boxes[b-1].pack())
	})
	for _, holder := range rest[:n] {
		name(&holder)
	}
	old := s.boxes
	s.boxes = [maxBoxes]box{}
	for i := range old {
		if to[i+1] != 0 {
			s.boxes[to[i+1]-1] = old[i]
		}
	}
}

func bit(b bool, n int) uint32 {
	if b {
		return 1 << n
	}
	return 0
}

func (r *record) pack() uint32 {
	return uint32(r.definition) | uint32(r.presence)<<2 | uint32(r.state)<<4 | uint32(r.holder)<<7 | uint32(r.cell)<<11 |
		uint32(r.crashes)<<12 | uint32(r.waited)<<13 | uint32(r.ran)<<14 | uint32(r.age)<<15 | uint32(r.left)<<17 |
		bit(r.routable, 19) | bit(r.unplaced, 20) | bit(r.counts, 21) | bit(r.stopping, 22)
}

func unpackRecord(p uint32) record {
	get := func(shift, bits int) uint8 { return uint8(p >> shift & (1<<bits - 1)) }
	return record{
		definition: get(0, 2), presence: lrp.Presence(get(2, 2)), state: lrp.State(get(4, 3)), holder: get(7, 4), cell: get(11, 1),
		crashes: get(12, 1), waited: get(13, 1), ran: get(14, 1), age: get(15, 2), left: get(17, 2),
		routable: get(19, 1) == 1, unplaced: get(20, 1) == 1, counts: get(21, 1) == 1, stopping: get(22, 1) == 1,
	}
}

func (b *box) pack() uint32 {
	return uint32(b.phase) | uint32(b.index)<<3 | uint32(b.definition)<<5 | uint32(b.cell)<<7 | bit(b.ready, 8) | bit(b.stopping, 9)
}

func unpackBox(p uint32) box {
	return box{phase: phase(p & 7), index: uint8(p >> 3 & 3), definition: uint8(p >> 5 & 3), cell: uint8(p >> 7 & 1), ready: p>>8&1 == 1, stopping: p>>9&1 == 1}
}

func (c *call) pack() uint32 {
	return uint32(c.kind) | uint32(c.index)<<5 | uint32(c.definition)<<7 | uint32(c.holder)<<9 | uint32(c.cell)<<17 | bit(c.flag, 19)
}

func unpackCall(p uint32) call {
	return call{kind: callKind(p & 31), index: uint8(p >> 5 & 3), definition: uint8(p >> 7 & 3), holder: uint8(p >> 9), cell: uint8(p >> 17 & 3), flag: p>>19&1 == 1}
}

func (d deployment) pack() uint32 {
	return uint32(d.instances) | uint32(d.definitions)<<2 | uint32(d.active)<<6 | uint32(d.healthy)<<8 | uint32(d.from)<<10 |
		uint32(d.paused)<<12 | uint32(d.resumed)<<14 | bit(d.proved, 16) | bit(d.confirmed, 17) | bit(d.failed, 18)
}

func unpackDeployment(p uint32) deployment {
	get := func(shift, bits int) uint8 { return uint8(p >> shift & (1<<bits - 1)) }
	return deployment{
		instances: get(0, 2), definitions: get(2, 4), active: get(6, 2), healthy: get(8, 2), from: get(10, 2),
		paused: lrp.PausedBy(get(12, 2)), resumed: get(14, 2), proved: get(16, 1) == 1, confirmed: get(17, 1) == 1, failed: get(18, 1) == 1,
	}
}

func put(buf []byte, p uint32, n int) []byte {
	for range n {
		buf = append(buf, byte(p))
		p >>= 8
	}
	return buf
}

func take(buf *[]byte, n int) (p uint32) {
	for i := range n {
		p |= uint32((*buf)[i]) << (8 * i)
	}
	*buf = (*buf)[n:]
	return p
}

// encode appends the bytes of the state as it is named.
func (s *state) encode(buf []byte) []byte {
	buf = put(buf, s.deployment.pack(), 3)
	var counts, requested, cells uint32
	boxes, mail := 0, 0
	for i := range s.slots {
		counts |= uint32(s.slots[i].n) << (4 * i)
		requested |= uint32(s.requested[i]) << (4 * i)
	}
	for i, c := range s.cells {
		cells |= (uint32(c.life) | bit(c.absent, 2)) << (3 * i)
	}
	for i := range s.boxes {
		if s.boxes[i].phase != noBox {
			boxes = i + 1
		}
	}
	for mail < maxMail && s.mail[mail].kind != noCall {
		mail++
	}
	buf = put(buf, counts|requested<<12, 3)
	buf = put(buf, cells|uint32(s.passed)<<6|uint32(boxes)<<9|uint32(mail)<<13, 2)
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			buf = put(buf, s.slots[i].records[j].pack(), 3)
		}
	}
	for i := range boxes {
		buf = put(buf, s.boxes[i].pack(), 2)
	}
	for i := range mail {
		buf = put(buf, s.mail[i].pack(), 3)
	}
	return buf
}

// decode reads what encode has written.
func decode(buf []byte) (s state) {
	s.deployment = unpackDeployment(take(&buf, 3))
	counts := take(&buf, 3)
	rest := take(&buf, 2)
	for i := range s.slots {
		s.slots[i].n = uint8(counts >> (4 * i) & 15)
		s.requested[i] = uint8(counts >> (12 + 4*i) & 15)
	}
	for i := range s.cells {
		s.cells[i] = cell{life(rest >> (3 * i) & 3), rest>>(3*i+2)&1 == 1}
	}
	s.passed = uint8(rest >> 6 & 7)
	boxes, mail := int(rest>>9&15), int(rest>>13&7)
	for i := range s.slots {
		for j := range s.slots[i].records[:s.slots[i].n] {
			s.slots[i].records[j] = unpackRecord(take(&buf, 3))
		}
	}
	for i := range boxes {
		s.boxes[i] = unpackBox(take(&buf, 2))
	}
	for i := range mail {
		s.mail[i] = unpackCall(take(&buf, 3))
	}
	return s
}
