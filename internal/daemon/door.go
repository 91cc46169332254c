package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/httpapi"
)

// maxStrangers is how many connections of clients without a verified certificate a
// server keeps. Everybody who reaches its address can connect, containers among
// them, and each connection takes a descriptor.
const maxStrangers = 256

// maxAddresses is how many it keeps if each comes from another address, as those of
// a large fleet do after a pause.
const maxAddresses = 16 * maxStrangers

// maxOfCaller is how many connections a server keeps of each caller with a
// certificate. A caller needs far fewer, because one connection carries many calls
// and streams. The bound keeps a caller from using up the descriptors of a daemon,
// which would keep cells out.
const maxOfCaller = 4 * maxStrangers

// bounds are how many connections a door keeps of strangers, of strangers that each
// have an address of their own, and of one caller.
type bounds struct{ strangers, addresses, ofCaller int }

// boundsFor returns the bounds of a process that may have so many descriptors: each
// takes at most a quarter of them.
func boundsFor(descriptors uint64) bounds {
	share := int(max(1, min(descriptors/4, maxAddresses)))
	return bounds{strangers: min(maxStrangers, share), addresses: min(maxAddresses, share), ofCaller: min(maxOfCaller, share)}
}

// A door is a listener that bounds connections, to maxStrangers and so on or fewer if
// the process may have few descriptors.
//
// It keeps at most maxStrangers connections until their clients have shown a
// certificate. For each further one it closes the oldest of the address that has
// most, so that those of other addresses get through. The only connection of an
// address stays, up to maxAddresses.
//
// It keeps at most maxOfCaller connections of each caller with a certificate. For a
// further one it closes the one that has been idle longest. If all are in use, it
// refuses the new one, because the others may be streams that have lasted for days.
type door struct {
	net.Listener
	most bounds

	mu        sync.Mutex
	strangers crowd // by address
	callers   crowd // by the common name of the certificate

	idled atomic.Int64 // how often a connection has become idle
}

// A crowd is connections by something that they have in common, the oldest first.
type crowd struct {
	by    map[string][]*visitor
	count int
}

func newDoor(l net.Listener) *door {
	return &door{
		Listener: l, most: boundsFor(maxDescriptors()),
		strangers: crowd{by: map[string][]*visitor{}}, callers: crowd{by: map[string][]*visitor{}},
	}
}

// A visitor is a connection.
type visitor struct {
	net.Conn
	door *door
	// in is the crowd that counts it, or nil, and key its key there. Both are guarded
	// by door.mu.
	in  *crowd
	key string
	// idle is door.idled of when it became idle, and 0 while it is not.
	idle atomic.Int64
}

// Accept implements [net.Listener].
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		address = c.RemoteAddr().String()
	}
	v := &visitor{Conn: c, door: d}
	if surplus := d.add(v, address); surplus != nil {
		_ = surplus.Close()
	}
	return v, nil
}

// add counts the connection of a stranger, and returns the one to be closed for it,
// if any.
func (d *door) add(v *visitor, address string) (surplus *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strangers.count >= d.most.strangers {
		for _, list := range d.strangers.by {
			if (len(list) > 1 || d.strangers.count >= d.most.addresses) && (surplus == nil || len(list) > len(d.strangers.by[surplus.key])) {
				surplus = list[0]
			}
		}
		if surplus != nil {
			surplus.leave()
		}
	}
	v.join(&d.strangers, address)
	return surplus
}

// identify counts the connection of a stranger as one of a caller, and returns the
// one to be closed for it, if any. It fails if the caller has too many.
func (d *door) identify(v *visitor, caller string) (surplus *visitor, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.in != &d.strangers {
		return nil, nil // it was closed meanwhile
	}
	if list := d.callers.by[caller]; len(list) >= d.most.ofCaller {
		var longest int64
		for _, other := range list {
			if since := other.idle.Load(); since > 0 && (surplus == nil || since < longest) {
				surplus, longest = other, since
			}
		}
		if surplus == nil {
			return nil, fmt.Errorf("all %d connections of %q are in use, and a server keeps no more of one caller", len(list), caller)
		}
		surplus.leave()
	}
	v.leave()
	v.join(&d.callers, caller)
	v.idle.Store(d.idled.Add(1)) // until it asks for something
	return surplus, nil
}

// join is called with the lock.
func (v *visitor) join(c *crowd, key string) {
	v.in, v.key = c, key
	c.by[key] = append(c.by[key], v)
	c.count++
}

// leave is called with the lock.
func (v *visitor) leave() {
	c := v.in
	if c == nil {
		return
	}
	v.in = nil
	c.count--
	rest := slices.DeleteFunc(c.by[v.key], func(other *visitor) bool { return other == v })
	if c.by[v.key] = rest; len(rest) == 0 {
		delete(c.by, v.key)
	}
}

// Close implements [net.Conn].
func (v *visitor) Close() error {
	v.door.mu.Lock()
	v.leave()
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// HTTP/2 allows 250 requests of a connection at a time, each with its headers and an
// answer that the client need not take. While a client has shown no certificate, a
// connection has at most strangerRequestsEach, which are enough for a page with all
// that belongs to it. One is always carried out; beside those, there are at most
// strangerRequests of all connections.
const (
	strangerRequestsEach = 32
	strangerRequests     = 1024
)

type requestsKey struct{}

// countRequests is for http.Server.ConnContext.
func countRequests(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, requestsKey{}, new(atomic.Int32))
}

// boundRequests resets the requests beyond these bounds. To refuse them in words would
// be another answer that the client need not take.
func boundRequests(h http.HandlerFunc) http.Handler {
	var all atomic.Int32
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known := httpapi.CallerOf(r); r.TLS != nil && !known {
			own := r.Context().Value(requestsKey{}).(*atomic.Int32)
			defer own.Add(-1)
			defer all.Add(-1)
			if n, total := own.Add(1), all.Add(1); n > strangerRequestsEach || n > 1 && total > strangerRequests {
				panic(http.ErrAbortHandler)
			}
		}
		h(w, r)
	})
}

// identifying returns a function for tls.Config.VerifyConnection of a connection
// that was accepted.
func identifying(c net.Conn) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		v, is := c.(*visitor)
		if !is || len(state.VerifiedChains) == 0 {
			return nil
		}
		surplus, err := v.door.identify(v, state.PeerCertificates[0].Subject.CommonName)
		if surplus != nil {
			_ = surplus.Close()
		}
		return err
	}
}

// noteIdle is for http.Server.ConnState.
func noteIdle(c net.Conn, s http.ConnState) {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	v, is := c.(*visitor)
	switch {
	case !is:
	case s == http.StateIdle:
		v.idle.Store(v.door.idled.Add(1))
	default:
		v.idle.Store(0)
	}
}

// complaints is the log of a server about its connections, such as one without a
// handshake. Strangers decide how many there are.
type complaints struct {
	log *slog.Logger

	mu      sync.Mutex
	began   time.Time // this minute
	written int
	dropped int
}

// complaintsEach is how many lines about connections the log gets in a minute.
const complaintsEach = 30

func newComplaints(to *slog.Logger) *log.Logger { return log.New(&complaints{log: to}, "", 0) }

// Write implements [io.Writer] for one line.
func (c *complaints) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.began) >= time.Minute {
		if c.dropped > 0 {
			c.log.Warn("more was wrong with connections than the log has lines for", "lines_dropped", c.dropped)
		}
		c.began, c.written, c.dropped = now, 0, 0
	}
	if c.written >= complaintsEach && !bytes.Contains(line, []byte("panic serving")) { // a fault of ours is always told
		c.dropped++
		return len(line), nil
	}
	c.written++
	end := len(line)
	for end > 0 && line[end-1] == '\n' {
		end--
	}
	c.log.Warn(string(line[:end]))
	return len(line), nil
}
