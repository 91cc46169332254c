package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// A killed process has its port until all of it is gone, which takes longer on a busy host.
const formerPort = 2 * time.Second

// Listen listens at a TCP address such as "127.0.0.1:8889"; port 0 is any free
// port. It waits up to 2 s for an address that is taken. The error says what to do about
// it. setting is the name of the setting that the address comes from.
func Listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	for end := time.Now().Add(formerPort); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		l, err = net.Listen("tcp", address)
	}
	flag := (&field{name: setting}).flag()
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w; another process listens there (ss -ltnp tells which): stop it, or choose another address with %s", err, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%w; no interface of this host has that address: choose another with %s", err, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%w; ports below 1024 take root: choose another with %s", err, flag)
	}
	return nil, fmt.Errorf("%w; %s wants an address such as 127.0.0.1:8889", err, flag)
}

// How long a server waits. Calls have deadlines of their own. Answers have
// none, because some of them are streams.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// finishTime is how long calls that are being answered may take when the
	// server stops. Streams never finish, so their contexts end after it.
	finishTime = 2 * time.Second
	closeTime  = 10 * time.Second
)

// stuckTime is how long a client of HTTP/2 may take no byte at all. The deadline of an
// answer does not end it there: it ends the stream, for which a frame has to be written.
var stuckTime = time.Minute // a test is less patient

var errStops = errors.New("the server stops")

// timeNow is the time for what handshakes do not judge; a test's may be later.
var timeNow = time.Now

// outlivedTime is how long a request may last after the certificate of its client has
// expired: long enough for a call, and for the first one of a client that has not
// noticed yet.
var outlivedTime = time.Minute // a test is less patient

// longestRequest is for certificates that are valid for centuries: a request does not
// last as long, and a duration cannot.
const longestRequest = 10 * 365 * 24 * time.Hour

var errOutlived = errors.New("the client's certificate has expired")

// bounded returns a context for a request that ends with the certificate with which
// its client began the connection, and reports whether that has expired. Certificates
// are verified at the beginning only, and a connection lasts as long as it is used:
// somebody with a stolen certificate could otherwise use it for ever. A client with a
// newer one connects again.
func bounded(r *http.Request) (ctx context.Context, outlived bool, end context.CancelFunc) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return r.Context(), false, func() {}
	}
	left := min(r.TLS.PeerCertificates[0].NotAfter.Sub(timeNow()), longestRequest)
	ctx, end = context.WithTimeoutCause(r.Context(), max(left, 0)+outlivedTime, errOutlived)
	return ctx, left < 0, end
}

// Serve serves h at l until ctx ends. Then calls that are being answered, sessions
// among them, have two seconds to finish; after that their contexts end, and they
// have ten more. certificates are nil for plain HTTP.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certificates *Certificates, log *slog.Logger) error {
	requests, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	var answering sync.WaitGroup // a server does not wait for connections that sessions have taken over
	server := &http.Server{
		Handler: boundRequests(func(w http.ResponseWriter, r *http.Request) {
			answering.Add(1)
			defer answering.Done()
			ctx, outlived, end := bounded(r)
			defer end()
			if outlived {
				w.Header().Set("Connection", "close") // after this answer; HTTP/2 then sends GOAWAY
			}
			h.ServeHTTP(w, r.WithContext(ctx))
		}),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
		ConnContext: countRequests,
		HTTP2:       &http.HTTP2Config{WriteByteTimeout: stuckTime},
		ErrorLog:    newComplaints(log),
		ConnState:   noteIdle,
	}
	if certificates != nil {
		if _, bounded := l.(*door); !bounded {
			l = newDoor(l)
		}
		l = tls.NewListener(l, certificates.Server())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	defer time.AfterFunc(finishTime, func() { end(errStops) }).Stop()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime+closeTime)
	defer cancel()
	if err := server.Shutdown(late); err != nil {
		return errors.Join(fmt.Errorf("requests were cut off: %w", err), server.Close())
	}
	answered := make(chan struct{})
	go func() {
		answering.Wait()
		close(answered)
	}()
	select {
	case <-answered:
		return nil
	case <-late.Done():
		return fmt.Errorf("sessions were cut off: %w", late.Err())
	}
}
