package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/rep"
)

// ClientOptions say how to reach a service. Zero values mean the defaults.
type ClientOptions struct {
	// Addresses are the base URLs of all processes of the service, for example
	// "https://bbs-1.example:8889"; the client finds the leader among them. At
	// least one is required, unless Find is set. A client of a cell has one.
	Addresses []string
	// CellID is the cell to call; a client of a cell requires it. Over TLS, the
	// server's certificate must have it as its common name. Other clients ignore
	// it.
	CellID string
	// Find, unless nil, returns the leader's address, "" if it is not known; see
	// [bbs.FindLeader].
	Find func(context.Context) (address string, err error)
	// TLS is the client's certificate and the authorities that it trusts. Nil
	// means no client certificate, and the system's authorities. A server's
	// certificate must also have the role for the call; see [ImpostorError].
	TLS *tls.Config
	// NewTLS, unless nil, replaces TLS: it is called for each new connection, so
	// certificates and authorities may change.
	NewTLS func() *tls.Config
	// AllowPlain accepts addresses that begin with "http:", of servers that have
	// the same option. Such a server does not know its callers.
	AllowPlain bool
	// Timeout is how long a process may take to begin its answer, and to go on
	// with it, before another is asked (default 15 s). If the call's context has a
	// deadline, one process gets at most half of the time that is left, as long as
	// another attempt may follow.
	Timeout time.Duration
	// Attempts is how often all processes are asked until one carries the call out
	// (default 3), and Pause the time between (default 500 ms). A call that is not
	// idempotent is not repeated after its answer was lost, unless it has a
	// request id.
	Attempts int
	Pause    time.Duration
	// Patience is how long a subscription that was cut off tries to go on (default
	// 1 min).
	Patience time.Duration
	// MaxAnswerBytes limits an answer, an item of a list, and an event (default 64
	// MiB).
	MaxAnswerBytes int64
}

// newClient fails with an *executor.ValidationError.
func newClient(o ClientOptions, asked service) (*wire.Client, error) {
	var v executor.Validator
	v.Check(len(o.Addresses) > 0 || o.Find != nil, "addresses", "", "at least one")
	executor.NotNegative(&v, "timeout", o.Timeout)
	executor.NotNegative(&v, "attempts", o.Attempts)
	executor.NotNegative(&v, "pause", o.Pause)
	executor.NotNegative(&v, "patience", o.Patience)
	executor.NotNegative(&v, "max_answer_bytes", o.MaxAnswerBytes)
	addresses := make([]string, len(o.Addresses))
	for i, address := range o.Addresses {
		checkAddress(&v, fmt.Sprintf("addresses[%d]", i), address, o.AllowPlain)
		addresses[i] = strings.TrimRight(address, "/")
	}
	v.Check(o.CellID != "" || asked.several, "cell_id", "", "not empty")
	if err := v.Err(); err != nil {
		return nil, err
	}
	config := func() *tls.Config { return o.TLS }
	if o.NewTLS != nil {
		config = o.NewTLS
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		ReadBufferSize: 16 << 10, // most answers whole
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			// It checks the certificate against the host of the address.
			return (&tls.Dialer{Config: asked.trusted(config(), o.CellID)}).DialContext(ctx, network, address)
		},
	}
	return wire.NewClient(wire.ClientOptions{
		Addresses: addresses, Find: o.Find,
		HTTP: &http.Client{
			Transport: transport,
			// A call is answered by the server that gets it, or not at all.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Accept:  func(address string) bool { return asked.several && acceptable(address, o.AllowPlain) },
		Timeout: cmp.Or(o.Timeout, 15*time.Second), Rounds: cmp.Or(o.Attempts, 3),
		Pause: cmp.Or(o.Pause, 500*time.Millisecond), Patience: cmp.Or(o.Patience, time.Minute),
		MaxAnswerBytes: cmp.Or(o.MaxAnswerBytes, 64<<20), Problems: problems,
	}), nil
}

func checkAddress(v *executor.Validator, field, address string, allowPlain bool) {
	limit := "an https URL with a host and nothing after it"
	if allowPlain {
		limit = "an http or https URL with a host and nothing after it"
	}
	v.Check(acceptable(address, allowPlain), field, address, limit)
}

// checkReachable refuses an address at which no cell can be reached over HTTP.
func checkReachable(address string) error {
	var v executor.Validator
	if address != "" {
		checkAddress(&v, "address", address, true)
	}
	return v.Err()
}

// acceptable reports whether calls may be sent to an address.
func acceptable(address string, allowPlain bool) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil &&
		(u.Scheme == "https" || allowPlain && u.Scheme == "http")
}

// Dial reaches cells as [DialCell] does, for the control plane.
func Dial(o ClientOptions) bbs.Dial {
	dial := DialCell(o)
	return func(p bbs.CellPresence) (auction.CellClient, error) { return dial(p) }
}

// DialCell reaches cells over HTTP at the address of their presence. All cells
// share the options, whose Addresses, CellID and Find are ignored. No call is
// repeated, because the caller of a cell knows best when to call again.
func DialCell(o ClientOptions) func(bbs.CellPresence) (rep.API, error) {
	return func(p bbs.CellPresence) (rep.API, error) {
		o := o
		o.Addresses, o.CellID, o.Find, o.Attempts = []string{p.Address}, p.CellID, nil, 1
		return NewRemoteCell(o)
	}
}
