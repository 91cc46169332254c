package modelcheck

import "hash/maphash"

// A table holds states in few bytes, some fifty each, and numbers them from 0. It
// compares whole states, not only their hashes.
type table struct {
	seed  maphash.Seed
	bytes []byte
	ends  []uint64 // of each state's bytes
	// heads are numbers of states and 1, by hash; 0 is free.
	heads []uint32
	buf   []byte
}

func newTable() *table { return &table{seed: maphash.MakeSeed(), heads: make([]uint32, 1<<12)} }

func (t *table) len() int { return len(t.ends) }

func (t *table) key(id uint32) []byte {
	begin := uint64(0)
	if id > 0 {
		begin = t.ends[id-1]
	}
	return t.bytes[begin:t.ends[id]]
}

// add returns the number of a state, and whether it is new.
func (t *table) add(s *state) (id uint32, isNew bool) {
	t.buf = s.canonical(t.buf[:0])
	if 2*t.len() >= len(t.heads) {
		t.heads = make([]uint32, 2*len(t.heads))
		for i := range t.ends {
			t.heads[t.find(t.key(uint32(i)))] = uint32(i + 1)
		}
	}
	at := t.find(t.buf)
	if t.heads[at] != 0 {
		return t.heads[at] - 1, false
	}
	t.bytes = append(t.bytes, t.buf...)
	t.ends = append(t.ends, uint64(len(t.bytes)))
	t.heads[at] = uint32(t.len())
	return uint32(t.len() - 1), true
}

// find is where the state with these bytes is, or belongs.
func (t *table) find(key []byte) uint64 {
	mask := uint64(len(t.heads) - 1)
	for at := maphash.Bytes(t.seed, key) & mask; ; at = (at + 1) & mask {
		if id := t.heads[at]; id == 0 || string(t.key(id-1)) == string(key) {
			return at
		}
	}
}
