package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
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

// strangers is a listener that keeps at most maxStrangers connections until their
// clients have shown a certificate. For each further one it closes the oldest of the
// address that has most, so that those of other addresses get through. The only
// connection of an address stays, up to maxAddresses.
type strangers struct {
	net.Listener

	mu    sync.Mutex
	count int
	from  map[string][]*unknown // by address, the oldest first
}

func boundStrangers(l net.Listener) *strangers {
	return &strangers{Listener: l, from: map[string][]*unknown{}}
}

// An unknown is a connection whose client is not known yet.
type unknown struct {
	net.Conn
	among   *strangers
	address string
	counted bool // guarded by strangers.mu
}

// Accept implements [net.Listener].
func (l *strangers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &unknown{Conn: c, among: l}
	if s.address, _, err = net.SplitHostPort(c.RemoteAddr().String()); err != nil {
		s.address = c.RemoteAddr().String()
	}
	if surplus := l.add(s); surplus != nil {
		_ = surplus.Close()
	}
	return s, nil
}

// add counts a connection, and returns the one to be closed for it, if any.
func (l *strangers) add(s *unknown) (surplus *unknown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= maxStrangers {
		for _, list := range l.from {
			if (len(list) > 1 || l.count >= maxAddresses) && (surplus == nil || len(list) > len(l.from[surplus.address])) {
				surplus = list[0]
			}
		}
		if surplus != nil {
			l.forget(surplus)
		}
	}
	s.counted = true
	l.count++
	l.from[s.address] = append(l.from[s.address], s)
	return surplus
}

// forget is called with the lock.
func (l *strangers) forget(s *unknown) {
	if !s.counted {
		return
	}
	s.counted = false
	l.count--
	list := l.from[s.address]
	for i := range list {
		if list[i] == s {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if l.from[s.address] = list; len(list) == 0 {
		delete(l.from, s.address)
	}
}

// known stops counting a connection.
func (s *unknown) known() {
	s.among.mu.Lock()
	defer s.among.mu.Unlock()
	s.among.forget(s)
}

// Close implements [net.Conn].
func (s *unknown) Close() error {
	s.known()
	return s.Conn.Close()
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

// knowing returns a function for tls.Config.VerifyConnection of a connection that
// was accepted.
func knowing(c net.Conn) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if s, is := c.(*unknown); is && len(state.VerifiedChains) > 0 {
			s.known()
		}
		return nil
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
