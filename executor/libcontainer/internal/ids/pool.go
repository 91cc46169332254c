//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"encoding/hex"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// A Pool gives ranges of ids to containers. Its methods may be called
// concurrently. Pools of one host see each other by locks on bytes of one file,
// each of which stands for the id with its number. A lock is gone with its
// process, and only root can take one.
type Pool struct {
	first  uint32 // of all ids
	size   uint32 // of a range
	ranges uint32
	start  uint32 // the block to begin with

	mu     sync.Mutex
	locks  *os.File
	claims map[uint32]bool // the blocks that are ours
	taken  map[string]uint32
	used   map[uint32]bool
	spaces map[uint32]*os.File // user namespaces that were made, by range
}

// Locks is the file with the locks. Others in the network of the host, or this
// host's users, could take names of sockets.
const Locks = "/run/diego-ids"

// RangesPerBlock is how many ranges a pool claims at once.
const RangesPerBlock = 32

// maxIdle bounds how many user namespaces wait for the next container.
const maxIdle = 32

// NewPool returns a Pool that gives out ranges of size ids between first and
// last, both included. id is that of the Backend, in hexadecimal: pools of
// different backends begin with different ranges.
func NewPool(id string, first, last, size uint32) (*Pool, error) {
	seed, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		first: first, size: size, ranges: uint32((uint64(last) - uint64(first) + 1) / uint64(size)),
		claims: make(map[uint32]bool), taken: make(map[string]uint32), used: make(map[uint32]bool), spaces: make(map[uint32]*os.File),
	}
	p.start = uint32(seed[0]) % p.blocks()
	p.locks, err = os.OpenFile(Locks, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	return p, err
}

func (p *Pool) blocks() uint32 { return (p.ranges + RangesPerBlock - 1) / RangesPerBlock }

// Take gives a range to a container: the first free one, whose user namespace
// is often there already.
func (p *Pool) Take(guid string) (Range, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.blocks() {
		block := (p.start + i) % p.blocks()
		if !p.claim(block) {
			continue
		}
		for n := block * RangesPerBlock; n < min((block+1)*RangesPerBlock, p.ranges); n++ {
			if !p.used[n] {
				return p.give(guid, n)
			}
		}
	}
	return Range{}, &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid, Detail: fmt.Sprintf(
		"all %d ranges of %d uids from %d on are in use, by this cell or others of this host; set Options.FirstID and LastID farther apart, or Options.SharedIDs",
		p.ranges, p.size, p.first)}
}

func (p *Pool) give(guid string, n uint32) (Range, error) {
	r := Range{First: p.first + n*p.size, Size: p.size, Space: p.spaces[n]}
	if r.Space == nil {
		var err error
		if r.Space, err = newNamespace(r.First, p.size); err != nil {
			return Range{}, fmt.Errorf("container %q: a user namespace: %w", guid, err)
		}
		p.spaces[n] = r.Space
	}
	p.taken[guid], p.used[n] = n, true
	return r, nil
}

// claim makes a block ours if no one else has it.
func (p *Pool) claim(block uint32) bool {
	if p.claims[block] {
		return true
	}
	size := RangesPerBlock * int64(p.size)
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(p.first) + int64(block)*size, Len: size}
	if unix.FcntlFlock(p.locks.Fd(), unix.F_OFD_SETLK, &lock) != nil {
		return false
	}
	p.claims[block] = true
	return true
}

// Keep leaves a range with a container of an earlier daemon until that is
// deleted. Another cell may have the range by now; then it is not ours to keep.
func (p *Pool) Keep(guid string, first uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := (first - p.first) / p.size
	if first < p.first || (first-p.first)%p.size != 0 || n >= p.ranges || p.used[n] || !p.claim(n/RangesPerBlock) {
		return
	}
	p.taken[guid], p.used[n] = n, true
}

// Release takes back the range of a container of which nothing is left.
func (p *Pool) Release(guid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.taken[guid]
	if !ok {
		return
	}
	delete(p.taken, guid)
	delete(p.used, n)
	// To make a namespace copies this process's page tables: some wait for the
	// next container.
	if space := p.spaces[n]; space != nil && len(p.spaces)-len(p.taken) > maxIdle {
		space.Close()
		delete(p.spaces, n)
	}
}

// Close gives up the locks. The namespaces of containers that are left live on
// with them.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, space := range p.spaces {
		space.Close()
	}
	p.locks.Close()
	p.spaces, p.claims = map[uint32]*os.File{}, map[uint32]bool{}
}
