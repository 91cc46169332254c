//go:build unix

// Package hostport gives ports of the host to containers, so that no two
// backends of one host give out the same one.
//
// A port that a container is to listen on is free until it does, and nobody
// can see from outside that it is promised. So a backend claims a port before
// it looks whether the port is free, and keeps the claim as long as the
// container has the port. A claim is visible to all backends of the host,
// whatever they are, in whichever process and of whichever user, and the
// kernel drops it when its process dies.
//
// On Linux a claim is an abstract socket whose name holds the number of the
// port: such names belong to a network namespace, exactly as ports do, and
// need no directory. On macOS and the BSDs it is a lock on a file below the
// system's directory for temporary files, which backends share that share
// that directory. On other systems nobody sees a claim, and backends of one
// host need ranges of their own.
package hostport

import (
	"fmt"
	"io"
	"sync"

	"github.com/diegosdk/diego/executor"
)

// Range is the ports of one backend. Its methods may be called at once from
// many goroutines.
type Range struct {
	first, last uint16

	mu     sync.Mutex
	held   map[string][]io.Closer // by guid
	next   uint16                 // where the search goes on, so that ports rest before they come again
	closed bool
}

// NewRange returns the ports from first to last, both included. It claims
// none yet.
func NewRange(first, last uint16) *Range {
	return &Range{first: first, last: last, next: first, held: make(map[string][]io.Closer)}
}

// Map gives a port of the host to each of a container's ports. With occupy
// nobody else can listen on them either, as their packets go elsewhere;
// without, the container is to listen on them. The ports are the container's
// until Release. An error is executor.ErrNoPort; Release is called also then.
func (r *Range) Map(guid string, ports []uint16, occupy bool) ([]executor.PortMapping, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var mappings []executor.PortMapping
	for _, port := range ports {
		host, ok := r.take(guid, occupy)
		if !ok {
			return nil, &executor.BackendError{Kind: executor.ErrNoPort, GUID: guid,
				Detail: fmt.Sprintf("all ports from %d to %d are in use", r.first, r.last)}
		}
		mappings = append(mappings, executor.PortMapping{ContainerPort: port, HostPort: host})
	}
	return mappings, nil
}

func (r *Range) take(guid string, occupy bool) (uint16, bool) {
	for range int(r.last) - int(r.first) + 1 {
		port := r.next
		if r.next++; r.next > r.last || r.next < r.first {
			r.next = r.first
		}
		if r.closed {
			return 0, false
		}
		// A port of this Range is claimed, too, and so left out.
		if c := claim(port, occupy); c != nil {
			r.held[guid] = append(r.held[guid], c)
			return port, true
		}
	}
	return 0, false
}

// Release gives back the ports of a container, if it has any.
func (r *Range) Release(guid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(guid)
}

func (r *Range) release(guid string) {
	for _, c := range r.held[guid] {
		c.Close()
	}
	delete(r.held, guid)
}

// Close gives back all ports. Map fails from then on.
func (r *Range) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for guid := range r.held {
		r.release(guid)
	}
}

// Held is the number of ports that containers have.
func (r *Range) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, claims := range r.held {
		n += len(claims)
	}
	return n
}
