package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/rep"
)

// HandlerOptions say what to serve over HTTP. Zero values mean the defaults.
type HandlerOptions struct {
	// BBS, Convergence, Auctioneer and Cell are served if they are not nil. At
	// least one is required.
	BBS         bbs.API
	Convergence bbs.ConvergenceAPI
	// Locks are for callers of which only one may act; see bbs.Lock.
	Locks      bbs.LocksAPI
	Auctioneer auction.API
	Cell       rep.API
	// Ready reports whether this process can do its work. Nil means always.
	Ready func(context.Context) bbs.Readiness

	// AllowPlain serves requests without TLS, and lets all who make them do
	// everything in any name. It is for tests, and for listeners that only the
	// owner can reach.
	AllowPlain bool
	// MaxBodyBytes limits the arguments of a call (default 4 MiB, at most 1 GiB). One
	// caller's calls together may have 64 times as much, or 16 MiB if that is more.
	MaxBodyBytes int64
	// Timeout limits a call, including the arrival of its arguments (default 30
	// s). Lists take as long as their readers keep reading; for them it limits
	// each piece, so that a store that hangs does not keep a reader waiting. A list
	// whose reader has kept it waiting for 1 s in all is slow. Of the slow ones four
	// may go on at a time: if there is one more, the one that has been slow longest is
	// cut off.
	Timeout time.Duration
	// WriteTimeout is how long a reader may take to accept what was sent to it
	// before it is cut off (default 30 s).
	WriteTimeout time.Duration
	// Heartbeat is how often a subscription without events says that it is alive
	// (default 5 s). Clients learn the interval from the answer, and go elsewhere
	// after three missing heartbeats.
	Heartbeat time.Duration
	// MaxSubscriptions is how many subscriptions to events may be open at a time;
	// at a cell, how many logs may be read or followed at a time (default 1,000;
	// negative means any number). One more is refused with a
	// *problem.TooManyError; its client tries other processes until its patience
	// ends.
	MaxSubscriptions int
	// MaxSubscriptionsEach is how many of them one caller may have, by the common
	// name of its certificate, so that nobody takes all of them (default a quarter
	// of MaxSubscriptions, at least 1; negative means any number). Callers without
	// a certificate, with AllowPlain, share MaxSubscriptions.
	MaxSubscriptionsEach int
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// NewHandler serves calls over HTTP; docs/api.md lists them. A caller is known
// by its client certificate, and [IdentityOf] reads it. The server's tls.Config
// needs ClientAuth tls.VerifyClientCertIfGiven (or
// tls.RequireAndVerifyClientCert, to hide even /healthz from others), and as
// ClientCAs the authorities of the callers.
//
// GET /healthz answers while the process lives. GET /readyz says whether it can
// do its work, with the status 503 if not. Both are open to all who can
// connect. Subscriptions last until the context of their request ends, so end
// the server's base context before you shut it down.
//
// NewHandler fails with an *executor.ValidationError.
func NewHandler(o HandlerOptions) (http.Handler, error) {
	var v executor.Validator
	v.Check(o.BBS != nil || o.Convergence != nil || o.Locks != nil || o.Auctioneer != nil || o.Cell != nil, "bbs", "", "at least one service")
	v.Check(o.MaxBodyBytes >= 0 && o.MaxBodyBytes <= 1<<30, "max_body_bytes", o.MaxBodyBytes, "0 to 1,073,741,824, which is 1 GiB")
	executor.NotNegative(&v, "timeout", o.Timeout)
	executor.NotNegative(&v, "write_timeout", o.WriteTimeout)
	executor.NotNegative(&v, "heartbeat", o.Heartbeat)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	if o.Ready == nil {
		o.Ready = func(context.Context) bbs.Readiness { return bbs.Readiness{Ready: true} }
	}
	most := max(cmp.Or(o.MaxSubscriptions, 1000), 0)
	s := &wire.Server{
		Answered: func(info *wire.Info, status int, took time.Duration) {
			call := auction.Label{Name: "call", Value: info.Name}
			o.Metrics.Count("requests_total", 1, call, auction.Label{Name: "status", Value: strconv.Itoa(status)})
			if !info.Long {
				o.Metrics.Observe("request_duration_seconds", took.Seconds(), call)
			}
		},
		Authorize: authorize(o.AllowPlain), Problems: problems,
		MaxBodyBytes: cmp.Or(o.MaxBodyBytes, 4<<20),
		Timeout:      cmp.Or(o.Timeout, 30*time.Second), WriteTimeout: cmp.Or(o.WriteTimeout, 30*time.Second),
		Heartbeat: cmp.Or(o.Heartbeat, defaultHeartbeat), Logger: o.Logger,
		MaxFeeds: most, MaxFeedsEach: max(cmp.Or(o.MaxSubscriptionsEach, (most+3)/4), 0), Feeds: func(open int, refused bool) {
			if refused {
				o.Metrics.Count("subscriptions_refused_total", 1)
			}
			o.Metrics.Gauge("subscriptions_open", float64(open))
		},
		Refused: func() { o.Metrics.Count("calls_refused_total", 1) },
		ListCut: func() { o.Metrics.Count("lists_cut_total", 1) },
	}
	mux := http.NewServeMux()
	if o.BBS != nil {
		wire.Register(s, mux, takeTurns(o.BBS), bbsCalls)
	}
	if o.Convergence != nil {
		wire.Register(s, mux, o.Convergence, convergenceCalls)
	}
	if o.Locks != nil {
		wire.Register(s, mux, o.Locks, lockCalls)
	}
	if o.Auctioneer != nil {
		wire.Register(s, mux, o.Auctioneer, auctioneerCalls)
	}
	if o.Cell != nil {
		wire.Register(s, mux, o.Cell, cellCalls)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s.WriteJSON(w, http.StatusOK, struct {
			Status string `json:"status"`
		}{"ok"})
	})
	all := readiness{ready: o.Ready, limit: s.Timeout}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, ready := http.StatusOK, all.ask(r.Context())
		if !ready.Ready {
			status = http.StatusServiceUnavailable
		}
		s.WriteJSON(w, status, ready)
	})
	mux.HandleFunc("/", s.NotFound)
	return mux, nil
}

// A readiness answers all who ask at the same time with one look. Anyone may ask, and
// a look may ask the store.
type readiness struct {
	ready func(context.Context) bbs.Readiness
	limit time.Duration // of a look

	mu      sync.Mutex
	present *look // nil while there is none
}

type look struct {
	over chan struct{}
	told bbs.Readiness // once it is over
}

// ask takes part in the present look, or begins one. Who begins one carries it out,
// even if its client has gone: the others wait for it.
func (r *readiness) ask(ctx context.Context) bbs.Readiness {
	r.mu.Lock()
	l := r.present
	mine := l == nil
	if mine {
		l = &look{over: make(chan struct{})}
		r.present = l
	}
	r.mu.Unlock()
	if mine {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.present = nil
			close(l.over)
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limit)
		defer cancel()
		l.told = r.ready(ctx)
		return l.told
	}
	select {
	case <-l.over:
		return l.told
	case <-ctx.Done():
		return bbs.Readiness{Why: context.Cause(ctx).Error()}
	}
}
