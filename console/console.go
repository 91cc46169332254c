package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
)

// Options say what the console shows. Zero values mean the defaults.
type Options struct {
	// Calls are those of the API beside the console. BBS is required. Without an
	// Auctioneer nobody can ask for a plan. AllowPlain and the limits hold for the
	// console, too.
	Calls httpapi.HandlerOptions
	// Cell reaches a cell that is present, to ask for its state, to drain it and to
	// read its logs. It is required. The console asks for the state with the rights
	// that this gives; all else is for callers who may make the call at the cell.
	Cell func(bbs.CellPresence) (rep.API, error)
	// Figures writes the metrics of the process in Prometheus' text format.
	// Without it, the console has none to show.
	Figures http.Handler
	// Caller, unless nil, is the identity of every caller. It is for a console
	// behind a [Door].
	Caller *httpapi.Identity
	// Hosts are the names, besides its addresses and localhost, by which this
	// server may be called without TLS. Other names are refused, so that no page
	// of another server can use a name of its own that leads here.
	Hosts []string
}

// policy is the content security policy: everything comes from this server, no
// script or style stands in the page itself, no text becomes HTML, and no other
// page may frame it.
const policy = "require-trusted-types-for 'script'; trusted-types 'none'; default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type console struct {
	Options
	assets map[string]asset
	states states
	dialed dialed
	logs   logs
}

// New serves the console at /console/ and everything else by api, usually
// httpapi.NewHandler(o.Calls). Requests that a page of another site makes are
// refused for both, because a browser adds its certificate to them, too.
//
// New fails with an *executor.ValidationError.
func New(api http.Handler, o Options) (http.Handler, error) {
	var v executor.Validator
	v.Check(o.Calls.BBS != nil, "calls.bbs", "", "not nil")
	v.Check(o.Cell != nil, "cell", "", "not nil")
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.Calls.Logger = cmp.Or(o.Calls.Logger, slog.New(slog.DiscardHandler))
	c := &console{Options: o, logs: logs{each: map[string]int{}}}
	var err error
	if c.assets, err = readAssets(); err != nil {
		return nil, fmt.Errorf("the pages of the console cannot be read: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /{$}", toPages)
	mux.HandleFunc("GET /console", toPages)
	mux.HandleFunc("GET /console/{path...}", c.page)
	mux.HandleFunc("GET /console/api/whoami", c.whoami)
	mux.HandleFunc("GET /console/api/cells", c.reading(c.cells))
	mux.HandleFunc("GET /console/api/health", c.reading(c.health))
	mux.HandleFunc("GET /console/api/restarts", c.reading(c.restarts))
	mux.HandleFunc("POST /console/api/plan", c.plan)
	mux.HandleFunc("POST /console/api/cell/{call}", c.atCell)
	return c.guard(mux), nil
}

// toPages leads to the pages. http.Redirect would make the address absolute, and
// lose the path of a [Door].
func toPages(w http.ResponseWriter, _ *http.Request) {
	protect(w.Header())
	w.Header().Set("Location", "console/")
	w.WriteHeader(http.StatusSeeOther)
}

// guard refuses what pages of other sites ask for.
func (c *console) guard(h http.Handler) http.Handler {
	other := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Links to the pages may stand anywhere.
		from := r.Header.Get("Sec-Fetch-Site")
		if other.Check(r) != nil || from != "" && from != "same-origin" && from != "none" && !isPage(r) {
			refuse(w, r, "a page of another site asked for it; open the console itself")
			return
		}
		if r.TLS == nil && c.Calls.AllowPlain && !c.hosts(r.Host) {
			refuse(w, r, fmt.Sprintf("%q is not a name of this server; use its address", r.Host))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func isPage(r *http.Request) bool {
	return r.URL.Path == "/" || r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") && !strings.HasPrefix(r.URL.Path, "/console/api/")
}

// hosts reports whether the Host of a request is this server: an address, which
// no other site has, localhost, or one of Hosts.
func (c *console) hosts(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || slices.Contains(c.Hosts, host)
}

func refuse(w http.ResponseWriter, r *http.Request, why string) {
	httpapi.WriteProblem(w, &httpapi.ForbiddenError{Call: r.URL.Path, Why: why})
}

// protect sets the headers of every answer of the console.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// page answers with a file. Anyone may read it; the calls that it makes need
// rights.
func (c *console) page(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	a, ok := c.assets[cmp.Or(r.PathValue("path"), "index.html")]
	if !ok {
		http.Error(w, "the console has no such page; it begins at console/", http.StatusNotFound)
		return
	}
	a.serve(w, r)
}

// answer writes a value.
func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		httpapi.WriteProblem(w, err)
		return
	}
	answerAs(w, "application/json", append(body, '\n'))
}

func answerAs(w http.ResponseWriter, kind string, body []byte) {
	protect(w.Header())
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body)
}
