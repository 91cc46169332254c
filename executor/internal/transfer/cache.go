package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor/internal/archive"
)

// A cache holds what was fetched, by key. Of one key there may be several
// versions at a time: the latest, and older ones that are still in use.
type cache struct {
	limit int64
	most  int

	mu    sync.Mutex
	keys  map[string]*slot
	bytes int64 // of all versions on disk
	count int   // of them
	inUse int64 // of those that are leased
	// packed is what of inUse is archives. Who leases a directory has disk for it.
	packed int64
	uses   int64 // counts leases, so that the least recently used is known
	// dropping has one while dropUnused works, and drops counts when it has removed
	// anything.
	dropping chan struct{}
	drops    atomic.Int64
	// doomed are to be removed from the disk once mu is free: it may take long.
	doomed    []string
	removals  []<-chan struct{} // those that go on, and some that are over
	removeAll func(context.Context, string) error
}

// patience is how long a caller waits for the removal of evicted files. Another tenant
// decides how many there are. Files are removed several times faster than they are
// unpacked, so few of them wait.
const patience = time.Second

// unlock frees mu and removes what is doomed. What takes longer goes on by itself.
func (c *cache) unlock() {
	removed := c.unlockAndRemove()
	if over(removed) { // as most often, since there was nothing
		return
	}
	select {
	case <-removed:
	case <-time.After(patience):
	}
}

func over(removed <-chan struct{}) bool {
	select {
	case <-removed:
		return true
	default:
		return false
	}
}

// goOn are the removals that go on. The caller holds mu.
func (c *cache) goOn() []<-chan struct{} {
	c.removals = slices.DeleteFunc(c.removals, over)
	return c.removals
}

// unlockAndRemove frees mu. The channel is closed when all that is doomed is removed.
func (c *cache) unlockAndRemove() <-chan struct{} {
	doomed := c.doomed
	c.doomed = nil
	removed := make(chan struct{})
	if len(doomed) == 0 {
		c.mu.Unlock()
		close(removed)
		return removed
	}
	c.removals = append(c.goOn(), removed)
	c.mu.Unlock()
	go func() {
		defer close(removed)
		for _, path := range doomed {
			c.removeAll(context.Background(), path)
		}
	}()
	return removed
}

// A slot is one key. Each domain has one fetch at a time. Nobody waits for another domain's
// fetch, which may itself wait for a place.
type slot struct {
	turns  map[string]*turn // by domain
	latest *version         // nil if there is none
}

type turn struct {
	free    chan struct{} // of capacity 1
	waiting int           // who have it or want it
}

// A version is one file or directory on disk.
type version struct {
	path           string
	size           int64
	etag, modified string
	query          string // of the URL, as queryOf returns it
	moved          bool   // another host has sent it than the one that was asked
	fixed          bool   // by a checksum, so that there is no other version of its key
	packed         bool   // an archive as it came, and no directory
	leases         int
	used           int64
	stale          bool // no longer the latest of its key
}

// A Lease keeps a file or directory in place.
type Lease struct {
	// Path is read-only for the holder.
	Path string
	// Size is the disk that it takes, in bytes.
	Size int64
	// Context ends if what is leased has to give way to other transfers, and with that
	// of the call that returned the lease.
	Context context.Context
	release func()
	once    sync.Once
}

// Release gives the lease back. It may be called more than once.
func (l *Lease) Release() { l.once.Do(l.release) }

// Outcome is the error of a use of the lease that ended with its Context.
func (l *Lease) Outcome(err error) error { return outcome(l.Context, err) }

// get returns a lease on what r asks for, as kind: the version that is kept if
// it is still right, or one that is fetched and prepared now. It may take most
// bytes of disk; see Directory for 0.
func (f *Fetcher) get(ctx context.Context, r Request, kind string, most int64, prepare func(context.Context, *os.File) (string, int64, error)) (lease *Lease, err error) {
	caller := ctx
	ctx, disk := f.progress.begin(ctx)
	defer func() { err = outcome(ctx, err) }()
	c := &f.cache
	var s *slot
	var known *held // what the cache has, if it is right
	once := func() (*version, error) {
		leave, err := f.downloads.enter(ctx, r.Domain, f.options.Turn)
		if err != nil {
			return nil, err
		}
		defer leave()
		var confirmable *version
		if s != nil { // somebody of another domain may have fetched it meanwhile
			if known != nil {
				known.Release()
			}
			// Held while the server is asked, so that nobody evicts what it confirms.
			if known = c.lease(s); known != nil {
				if r.Value != "" {
					return nil, nil
				}
				if etag, modified := known.v.validators(r.URL); etag != "" || modified != "" {
					confirmable = known.v
				}
			}
		}
		file, answer, err := f.download(ctx, r, confirmable, disk)
		if err != nil || file == nil {
			return nil, err
		}
		defer file.Close()
		path, size, err := prepare(ctx, file)
		if err != nil {
			os.Remove(file.Name())
			return nil, err
		}
		return &version{path: path, size: size, packed: most == packed, etag: validator(answer.Header, "ETag"), modified: validator(answer.Header, "Last-Modified"),
			query: queryOf(r.URL), moved: answer.Request.URL.Host != hostOf(r.URL), fixed: r.Value != ""}, nil
	}
	fetch := func() (v *version, err error) {
		err = f.MakingRoom(ctx, full, func() (err error) {
			v, err = once()
			return err
		})
		return v, err
	}
	end := disk.end // unless the lease does it
	defer func() { end() }()
	alone := func(v *version) *Lease { // one that the cache does not keep; only archives are not kept, and they are files
		end = func() {}
		return &Lease{Path: v.path, Size: v.size, Context: ctx, release: func() {
			os.Remove(v.path)
			disk.end()
		}}
	}
	if r.CacheKey == "" {
		v, err := fetch()
		if err != nil {
			return nil, err
		}
		return alone(v), nil
	}

	key := keyOf(kind, string(r.Format), origin(r.URL), r.CacheKey, r.Algorithm, r.Value)
	s, err = c.enter(ctx, key, r.Domain)
	if err != nil {
		return nil, err
	}
	defer c.leave(key, s, r.Domain)
	if r.Value != "" {
		if known = c.lease(s); known != nil {
			return c.admit(caller, known, most)
		}
	}
	next, err := fetch()
	if err == nil && next == nil {
		return c.admit(caller, known, most)
	}
	if known != nil {
		known.Release()
	}
	if err != nil {
		return nil, err
	}
	h := c.put(s, next)
	if h == nil {
		return alone(next), nil
	}
	return c.admit(caller, h, most)
}

// maxValidator bounds what a server says of a version and what is kept in memory with
// it. Tenants choose the servers, and thousands of versions are kept.
const maxValidator = 1 << 10

// validator is a header that tells the version of an archive, or "" if it is too long:
// then the archive is downloaded again each time.
func validator(h http.Header, name string) string {
	if text := h.Get(name); len(text) <= maxValidator {
		return text
	}
	return ""
}

// validators are what a server is asked by whether a version is what a URL names now. With
// another query it may be another archive, by another tenant: a server compares its date
// with the date of any, and a host to which it was moved may have chosen its tag to match.
func (v *version) validators(url string) (etag, modified string) {
	switch {
	case v.query == queryOf(url):
		return v.etag, v.modified
	case v.moved || strings.HasPrefix(v.etag, "W/"):
		return "", ""
	}
	return v.etag, ""
}

// keyOf is a key of the cache for what tells two archives apart. It has a fixed length,
// because tenants choose how long the parts are.
func keyOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return string(sum[:])
}

// admit is the lease on a version if it fits; else it is given back. What the cache
// counts does not give way to transfers, so the lease lasts as long as its caller.
func (c *cache) admit(caller context.Context, h *held, most int64) (*Lease, error) {
	h.Context = caller
	c.mu.Lock()
	inUse := c.inUse
	c.mu.Unlock()
	var err error
	switch {
	case most > 0 && h.v.size > most:
		err = fmt.Errorf("%w: it takes %d bytes of disk, and there are %d for it", archive.ErrTooLarge, h.v.size, most)
	case most == 0 && inUse > c.limit:
		err = fmt.Errorf("%w: with it %d bytes of the cache would be in use, and CacheBytes is %d", archive.ErrTooLarge, inUse, c.limit)
	default:
		return h.Lease, nil
	}
	h.Release()
	return nil, err
}

// room is what is not in use, and at least 1.
func (c *cache) room() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.limit-c.inUse, 1)
}

// origin is the part of a URL that says what it names. It belongs to the key:
// a tenant that knows another's key and has a server that says "not modified"
// does not get what the other's server sent. Queries are often signatures,
// which differ each time; see validators.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// queryOf is what origin leaves out of a URL, in a fixed length.
func queryOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return keyOf(u.User.String(), u.RawQuery)
}

// hostOf is the host of a URL, with its port.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// enter waits for a domain's turn at a key.
func (c *cache) enter(ctx context.Context, key, of string) (*slot, error) {
	c.mu.Lock()
	s := c.keys[key]
	if s == nil {
		s = &slot{turns: make(map[string]*turn)}
		c.keys[key] = s
	}
	t := s.turns[of]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		s.turns[of] = t
	}
	t.waiting++
	c.mu.Unlock()
	select {
	case t.free <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forget(key, s, of)
		return nil, ctx.Err()
	}
}

func (c *cache) leave(key string, s *slot, of string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	<-s.turns[of].free
	c.forget(key, s, of)
}

// forget drops a turn that nobody wants, and a slot that nobody wants and that holds nothing.
func (c *cache) forget(key string, s *slot, of string) {
	if s.turns[of].waiting--; s.turns[of].waiting == 0 {
		delete(s.turns, of)
	}
	if len(s.turns) == 0 && s.latest == nil && c.keys[key] == s {
		delete(c.keys, key)
	}
}

type held struct {
	*Lease
	v *version
}

// lease returns a lease on what a slot holds, or nil if that is nothing.
func (c *cache) lease(s *slot) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.latest == nil {
		return nil
	}
	return c.take(s.latest)
}

func (c *cache) take(v *version) *held {
	if v.leases == 0 {
		c.using(v, v.size)
	}
	v.leases++
	c.uses++
	v.used = c.uses
	return &held{&Lease{Path: v.path, Size: v.size, release: func() {
		c.mu.Lock()
		defer c.unlock()
		if v.leases--; v.leases == 0 {
			c.using(v, -v.size)
		}
		if v.stale && v.leases == 0 {
			c.remove(v)
		}
		c.evict()
	}}, v}
}

// using counts bytes of a version that is leased now, or no longer.
func (c *cache) using(v *version, bytes int64) {
	c.inUse += bytes
	if v.packed {
		c.packed += bytes
	}
}

// put makes v the latest version of a slot and returns a lease on it. It is nil for an
// archive beyond what CacheBytes leaves beside the archives in use: nobody has reserved
// disk for that one, so it counts as a transfer until it is unpacked.
func (c *cache) put(s *slot, v *version) *held {
	c.mu.Lock()
	defer c.unlock()
	old := s.latest
	if old != nil && v.fixed { // somebody of another domain has fetched it too
		c.doomed = append(c.doomed, v.path)
		return c.take(old)
	}
	if v.packed && c.packed+v.size > c.limit {
		return nil
	}
	if old != nil {
		old.stale = true
		if old.leases == 0 {
			c.remove(old)
		}
	}
	s.latest = v
	c.bytes += v.size
	c.count++
	h := c.take(v)
	c.evict()
	return h
}

// evict removes what was used longest ago until the rest fits. What is in use
// stays, even if that is more than the limit: its users have room for it.
func (c *cache) evict() {
	for c.bytes > c.limit || c.count > c.most {
		var oldest *version
		var key string
		for k, s := range c.keys { // the smallest of all, in any order
			if v := s.latest; v != nil && v.leases == 0 && (oldest == nil || v.used < oldest.used) {
				oldest, key = v, k
			}
		}
		if oldest == nil {
			return
		}
		c.drop(key, c.keys[key])
	}
}

// MakingRoom calls try. If its error is full, MakingRoom removes all that is kept and
// not in use, and waits for that until ctx ends. It calls try once more if that, or
// another call since it began, has removed anything.
func (f *Fetcher) MakingRoom(ctx context.Context, full func(error) bool, try func() error) error {
	before := f.cache.drops.Load()
	err := try()
	if !full(err) || !f.cache.dropUnused(ctx, before) {
		return err
	}
	again := try()
	if again == nil || full(again) {
		return again
	}
	return errors.Join(err, again)
}

// dropUnused removes all that is kept and not in use. It reports whether this or
// another call has removed anything since there were that many drops.
func (c *cache) dropUnused(ctx context.Context, before int64) bool {
	select {
	case c.dropping <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-c.dropping }()
	c.mu.Lock()
	kept := c.count
	earlier := slices.Clone(c.goOn())
	for key, s := range c.keys {
		if s.latest != nil && s.latest.leases == 0 {
			c.drop(key, s)
		}
	}
	some := c.count < kept || len(earlier) > 0
	earlier = append(earlier, c.unlockAndRemove())
	for _, removed := range earlier { // from the disk
		select {
		case <-removed:
		case <-ctx.Done():
			return false
		}
	}
	if some {
		c.drops.Add(1)
	}
	return c.drops.Load() > before
}

// full reports whether err says that a disk, or what a user may have of it, is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// drop removes the latest version of a slot, which is not in use.
func (c *cache) drop(key string, s *slot) {
	v := s.latest
	s.latest = nil
	if len(s.turns) == 0 {
		delete(c.keys, key)
	}
	v.stale = true
	c.remove(v)
}

func (c *cache) remove(v *version) {
	c.bytes -= v.size
	c.count--
	c.doomed = append(c.doomed, v.path)
}
