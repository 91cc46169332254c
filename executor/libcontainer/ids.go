//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
)

// ids are the uids and gids of a container. They are a range of the host's,
// which no other container has, and a user namespace that maps them. So
// whatever the kernel counts by uid, it counts for each container. The zero
// value stands for the host's own ids, which containers then share.
type ids struct {
	first uint32   // the host's number of the container's 0
	space *os.File // the user namespace; it belongs to the idPool
}

// own reports whether the ids are a range of their own.
func (i ids) own() bool { return i.space != nil }

// has reports whether a number is one of a container's ids.
func (i ids) has(id uint32) bool { return !i.own() || id < IDsPerContainer }

// host is what the host calls an id of the container.
func (i ids) host(id uint32) int { return int(i.first + id) }

// path is where other processes find the user namespace.
func (i ids) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), i.space.Fd()) }

// mapping tells libcontainer what the user namespace maps.
func (i ids) mapping() []configs.IDMap {
	return []configs.IDMap{{ContainerID: 0, HostID: int64(i.first), Size: IDsPerContainer}}
}

// as calls f so that what it makes belongs to a user of the container. Root of
// the host can make no file in a mount that maps the container's ids alone.
// Only what f does in its own goroutine counts.
func (i ids) as(uid, gid uint32, f func() error) error {
	if !i.own() {
		return f()
	}
	return onOwnThread(func() error {
		for _, set := range []struct{ call, id uintptr }{
			{unix.SYS_SETFSGID, uintptr(i.host(gid))}, {unix.SYS_SETFSUID, uintptr(i.host(uid))},
		} {
			unix.RawSyscall(set.call, set.id, 0, 0)
			if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); now != set.id {
				return fmt.Errorf("make files as user %d of a container: %w", uid, unix.EPERM)
			}
		}
		if err := keepCapabilities(); err != nil {
			return err
		}
		return f()
	})
}

// An idPool gives ranges of ids to containers. Pools of one host see each other
// by locks on bytes of one file, each of which stands for the id with its
// number, and which are gone with their process. Only root can take them.
type idPool struct {
	first  uint32 // of all ids
	ranges uint32
	start  uint32 // the block to begin with

	mu     sync.Mutex
	locks  *os.File
	claims map[uint32]bool // the blocks that are ours
	taken  map[string]uint32
	used   map[uint32]bool
	spaces map[uint32]*os.File // user namespaces that were made, by range
}

// idLocks is the file with the locks. Others in the network of the host, or this
// host's users, could take names of sockets.
const idLocks = "/run/diego-ids"

// rangesPerBlock is how many ranges a pool claims at once.
const rangesPerBlock = 32

func newIDPool(id string, o Options) (*idPool, error) {
	seed, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	p := &idPool{
		first: o.FirstID, ranges: uint32((uint64(o.LastID) - uint64(o.FirstID) + 1) / IDsPerContainer),
		claims: make(map[uint32]bool), taken: make(map[string]uint32), used: make(map[uint32]bool), spaces: make(map[uint32]*os.File),
	}
	p.start = uint32(seed[0]) % p.blocks()
	p.locks, err = os.OpenFile(idLocks, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	return p, err
}

func (p *idPool) blocks() uint32 { return (p.ranges + rangesPerBlock - 1) / rangesPerBlock }

// take gives a range to a container: the first free one, whose user namespace
// is often there already.
func (p *idPool) take(guid string) (ids, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.blocks() {
		block := (p.start + i) % p.blocks()
		if !p.claim(block) {
			continue
		}
		for n := block * rangesPerBlock; n < min((block+1)*rangesPerBlock, p.ranges); n++ {
			if !p.used[n] {
				return p.give(guid, n)
			}
		}
	}
	return ids{}, &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid, Detail: fmt.Sprintf(
		"all %d ranges of %d uids from %d on are in use, by this cell or others of this host; set Options.FirstID and LastID farther apart, or Options.SharedIDs",
		p.ranges, IDsPerContainer, p.first)}
}

func (p *idPool) give(guid string, n uint32) (ids, error) {
	i := ids{first: p.first + n*IDsPerContainer, space: p.spaces[n]}
	if i.space == nil {
		var err error
		if i.space, err = newUserNamespace(i.first, IDsPerContainer); err != nil {
			return ids{}, fmt.Errorf("container %q: a user namespace: %w", guid, err)
		}
		p.spaces[n] = i.space
	}
	p.taken[guid], p.used[n] = n, true
	return i, nil
}

// claim makes a block ours if it is nobody's.
func (p *idPool) claim(block uint32) bool {
	if p.claims[block] {
		return true
	}
	const size = rangesPerBlock * IDsPerContainer
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(p.first) + int64(block)*size, Len: size}
	if unix.FcntlFlock(p.locks.Fd(), unix.F_OFD_SETLK, &lock) != nil {
		return false
	}
	p.claims[block] = true
	return true
}

// keep leaves a range with a container of an earlier daemon until that is
// deleted. Another cell may have the range by now; then it is not ours to keep.
func (p *idPool) keep(guid string, first uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := (first - p.first) / IDsPerContainer
	if first < p.first || (first-p.first)%IDsPerContainer != 0 || n >= p.ranges || p.used[n] || !p.claim(n/rangesPerBlock) {
		return
	}
	p.taken[guid], p.used[n] = n, true
}

// release takes back the range of a container of which nothing is left.
func (p *idPool) release(guid string) {
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

func (p *idPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, space := range p.spaces {
		space.Close()
	}
	p.locks.Close()
	p.spaces, p.claims = map[uint32]*os.File{}, map[uint32]bool{}
}

// idsFile, in the directory of a container, holds the first of its ids.
const idsFile = "ids"

// makeIDs gives a container its ids. One that may take over the host shares the
// host's.
func (b *Backend) makeIDs(c *container) error {
	if b.ids == nil || c.spec.Privileged {
		return nil
	}
	var err error
	if c.ids, err = b.ids.take(c.guid); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, idsFile), []byte(strconv.FormatUint(uint64(c.ids.first), 10)), 0o600)
}

// openIDs makes the pool. The containers of an earlier daemon keep their ranges
// in it.
func (b *Backend) openIDs() (err error) {
	if b.ids, err = newIDPool(b.id, b.options); err != nil {
		return err
	}
	left, err := guids.Dirs(filepath.Join(b.options.Dir, containersDir))
	if err != nil {
		return err
	}
	for _, guid := range left {
		text, err := os.ReadFile(filepath.Join(b.dir(guid), idsFile))
		if err != nil {
			continue // it shared the host's ids, or was not made that far
		}
		if first, err := strconv.ParseUint(string(text), 10, 32); err == nil {
			b.ids.keep(guid, uint32(first))
		}
	}
	return nil
}

// ownIDsMissing says why containers cannot have ids of their own here. It tries
// below dir, on whose file system images and layers lie.
func ownIDsMissing(dir string, first uint32) string {
	if info, err := os.Stat("/run"); err != nil || info.Mode()&0o001 == 0 {
		return "others may not enter /run, where root file systems are mounted; allow it by chmod o+x"
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err.Error()
	}
	if at := onProc(string(mounts)); at != "" {
		return "something is mounted at " + at + ", so that the kernel lets no user namespace have a /proc; unmount it"
	}
	space, err := newUserNamespace(first, IDsPerContainer)
	if err != nil {
		return "a user namespace cannot be made (" + err.Error() + "); raise user.max_user_namespaces, and see that no security module forbids them"
	}
	defer space.Close()
	return overlayMissing(dir, ids{first, space})
}

// onProc is where something hides a part of /proc, by the text of mountinfo.
// Nobody who does not see all of it may mount another one in a user namespace.
// An empty directory hides nothing.
func onProc(mounts string) string {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], "/proc/") && f[4] != "/proc/sys/fs/binfmt_misc" {
			return f[4]
		}
	}
	return ""
}

// errNoMapping names a path whose file system cannot show files with other
// owners, which the kernel says by EINVAL, or a cause that is another one.
func errNoMapping(guid, path string, err error) error {
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid, Cause: err, Detail: fmt.Sprintf(
		"%s cannot be mounted with the container's own ids: its file system, or one mounted below it, has no idmapped mounts; use one that has, such as ext4, xfs, btrfs or, since Linux 6.3, tmpfs, or set Options.SharedIDs", path)}
}
