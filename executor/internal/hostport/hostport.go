//go:build unix

// Package hostport gives ports of the host to containers, so that no two
// backends of one host give out the same one.
//
// A port that is promised to a container looks free until the container listens
// on it. So a backend claims a port before it looks whether the port is free, and
// keeps the claim as long as the container has the port. All backends of the host
// see a claim, of any kind, process and user, and the kernel drops it when
// its process dies.
//
// On Linux a claim is an abstract socket whose name holds the number of the
// port: such names belong to a network namespace, exactly as ports do, and
// need no directory. On macOS and the BSDs it is a lock on a file below the
// system's directory for temporary files, so only backends with the same such
// directory see it. On other systems nobody sees a claim, and backends of one
// host need ranges of their own.
package hostport

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Rest is how long a port stays unused after its container has gone, because others
// may still send it what was meant for that container. A backend without any other
// port gives out a resting one sooner.
const Rest = 30 * time.Second

// maxResting bounds how many ports rest; each is a socket or a file.
const maxResting = 1000

// Range is the ports of one backend. Its methods may be called at once from
// many goroutines.
type Range struct {
	first, last uint16
	rest        time.Duration

	mu      sync.Mutex
	held    map[string][]held // by guid
	resting []*resting        // the one that has rested longest first
	next    uint16            // where the search goes on
	closed  bool
}

// A held port is claimed.
type held struct {
	claim io.Closer
	port  uint16
}

// A resting port is still claimed, but no container has it.
type resting struct {
	held
	timer *time.Timer
}

// NewRange returns the ports from first to last, both included. It claims
// none yet.
//
// The search begins at a random port. If a daemon is killed, its ports are free
// at once, while routers still send to them. If every search began with the
// first port, the next daemon would give out the same ones.
func NewRange(first, last uint16) *Range {
	next := first
	if last > first {
		next += uint16(rand.IntN(int(last-first) + 1))
	}
	return &Range{first: first, last: last, rest: Rest, next: next, held: make(map[string][]held)}
}

// Map gives a port of the host to each of a container's ports. With occupy, nobody
// can listen on them, because their packets go to the container's own address;
// otherwise the container listens on them. The container keeps the ports until
// Release, which the caller must also call after an error. The error is
// executor.ErrNoPort.
func (r *Range) Map(guid string, ports []uint16, occupy bool) ([]executor.PortMapping, error) {
	if len(ports) == 0 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	noPort := &executor.BackendError{Kind: executor.ErrNoPort, GUID: guid,
		Detail: fmt.Sprintf("all ports from %d to %d are in use, or were until a moment ago; widen the range", r.first, r.last)}
	if len(ports) > r.size() {
		return nil, noPort
	}
	var mappings []executor.PortMapping
	take := r.search
	for _, port := range ports {
		host, ok := take(guid, occupy)
		if !ok { // and so for the rest of them
			take = r.wakeOne
			host, ok = take(guid, occupy)
		}
		if !ok {
			return nil, noPort
		}
		mappings = append(mappings, executor.PortMapping{ContainerPort: port, HostPort: host})
	}
	return mappings, nil
}

func (r *Range) size() int { return int(r.last) - int(r.first) + 1 }

// wakeOne takes the port that has rested longest, if nobody else listens on it.
func (r *Range) wakeOne(guid string, occupy bool) (uint16, bool) {
	for !r.closed && len(r.resting) > 0 {
		p := r.resting[0]
		r.wake(p)
		if c := claim(p.port, occupy); c != nil {
			r.held[guid] = append(r.held[guid], held{c, p.port})
			return p.port, true
		}
	}
	return 0, false
}

// search takes the next port that nobody has.
func (r *Range) search(guid string, occupy bool) (uint16, bool) {
	for range r.size() {
		port := r.next
		if r.next++; r.next > r.last || r.next < r.first {
			r.next = r.first
		}
		if r.closed {
			return 0, false
		}
		// A port of this Range is claimed, too, and so left out.
		if c := claim(port, occupy); c != nil {
			r.held[guid] = append(r.held[guid], held{c, port})
			return port, true
		}
	}
	return 0, false
}

// Release gives back the ports of a container, if it has any. They rest before
// they come again.
func (r *Range) Release(guid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.held[guid] {
		if len(r.resting) >= maxResting {
			r.wake(r.resting[0])
		}
		p := &resting{held: h}
		p.timer = time.AfterFunc(r.rest, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.wake(p)
		})
		r.resting = append(r.resting, p)
	}
	delete(r.held, guid)
}

// wake ends the rest of a port, unless that has ended.
func (r *Range) wake(p *resting) {
	i := slices.Index(r.resting, p)
	if i < 0 {
		return
	}
	r.resting = slices.Delete(r.resting, i, i+1)
	p.timer.Stop()
	p.claim.Close()
}

// Close gives back all ports at once. Map fails from then on.
func (r *Range) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for len(r.resting) > 0 {
		r.wake(r.resting[0])
	}
	for guid, all := range r.held {
		for _, h := range all {
			h.claim.Close()
		}
		delete(r.held, guid)
	}
}

// Held is the number of ports that containers have.
func (r *Range) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, all := range r.held {
		n += len(all)
	}
	return n
}
