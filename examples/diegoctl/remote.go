package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/rep"
)

// A remote is a Diego, in this process or over HTTP.
type remote struct {
	bbs         bbs.API
	locks       bbs.LocksAPI
	auctioneer  auction.API
	convergence bbs.ConvergenceAPI
	// cell reaches a cell that is present.
	cell func(bbs.CellPresence) (rep.API, error)
	// ready and figures ask for pages that are not calls.
	ready   func(context.Context) bbs.Readiness
	figures http.Handler
	// caller is who this process is for the others, nil without a certificate.
	caller *httpapi.Identity
}

// A connection says how to reach a Diego over HTTP.
type connection struct {
	// data is the data directory of the allinone that is asked if bbs is empty.
	data string
	// bbs and auctioneer are base URLs.
	bbs, auctioneer []string
	// cert, key and ca are files, or empty.
	cert, key, ca string
	timeout       time.Duration
}

// An absentError says that there is no allinone to ask.
type absentError struct {
	data string
	err  error
}

func (e *absentError) Error() string {
	return fmt.Sprintf("no address is given, and no allinone is found in %s: %v", e.data, e.err)
}

// own turns a connection without addresses into one to the allinone of its data
// directory.
func (c connection) own() (connection, error) {
	if len(c.bbs) > 0 {
		return c, nil
	}
	api, err := fleetdir.Find(c.data)
	if err != nil {
		return c, &absentError{c.data, err}
	}
	c.bbs, c.cert, c.key, c.ca = []string{api.URL}, api.Operator.Cert, api.Operator.Key, api.Operator.CA
	if len(c.auctioneer) == 0 {
		c.auctioneer = c.bbs
	}
	return c, nil
}

// dialHTTP connects to nothing yet, but reads the files.
func dialHTTP(c connection) (*remote, error) {
	c, err := c.own()
	if err != nil {
		return nil, err
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	o := httpapi.ClientOptions{TLS: config, Timeout: c.timeout, Addresses: c.bbs, AllowPlain: c.plain()}
	b, err := httpapi.NewRemoteBBS(o)
	if err != nil {
		return nil, err
	}
	o.Addresses = c.auctioneer
	a, err := httpapi.NewRemoteAuctioneer(o)
	if err != nil {
		return nil, err
	}
	r := &remote{bbs: b, locks: b, auctioneer: a, convergence: b, cell: httpapi.DialCell(o)}
	pages := pages{c.bbs, &http.Client{Transport: &http.Transport{TLSClientConfig: config}}}
	r.ready, r.figures = pages.ready, pages
	if len(config.Certificates) > 0 {
		who := httpapi.IdentityOf(config.Certificates[0].Leaf)
		r.caller = &who
	}
	return r, nil
}

// plain reports whether an address asks for no TLS, in so many words.
func (c *connection) plain() bool {
	for _, address := range append(append([]string{}, c.bbs...), c.auctioneer...) {
		if strings.HasPrefix(address, "http://") {
			return true
		}
	}
	return false
}

func (c *connection) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("the certificate %s with the key %s cannot be used: %w", c.cert, c.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("the certificates of --ca cannot be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s, which --ca names, holds no certificate in PEM", c.ca)
		}
	}
	return config, nil
}

// A pages asks the processes of a BBS for pages that are not calls.
type pages struct {
	addresses []string
	client    *http.Client
}

// maxPage bounds such a page, in bytes.
const maxPage = 16 << 20

// get reads a page of one process.
func (p pages) get(ctx context.Context, address, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(io.LimitReader(answer.Body, maxPage))
}

// leader finds the process that leads, or else one that answers.
func (p pages) leader(ctx context.Context) (address string, ready bbs.Readiness) {
	ready.Why = "no process of the BBS has answered"
	for _, at := range p.addresses {
		var r bbs.Readiness
		body, err := p.get(ctx, at, "/readyz")
		if err == nil && json.Unmarshal(body, &r) == nil {
			address, ready = at, r
		}
		if r.Role == "leader" {
			break
		}
	}
	return address, ready
}

func (p pages) ready(ctx context.Context) bbs.Readiness {
	_, ready := p.leader(ctx)
	return ready
}

// ServeHTTP writes the figures of the process that leads.
func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, _ := p.leader(r.Context())
	if address == "" {
		return // nobody knows them
	}
	if body, err := p.get(r.Context(), address, "/metrics"); err == nil {
		_, _ = w.Write(body)
	}
}

// collect reads a list to its end, or to its first error.
func collect[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// cellPatience is how long a list waits for the answer of a cell.
const cellPatience = 2 * time.Second

// An answer is that of one cell.
type answer[T any] struct {
	value T
	err   error
}

// askCells asks cells at the same time, each for at most cellPatience. The answers
// have the order of the cells.
func askCells[T any](ctx context.Context, r *remote, cells []bbs.CellPresence, ask func(context.Context, rep.API) (T, error)) []answer[T] {
	answers := make([]answer[T], len(cells))
	var asking sync.WaitGroup
	limit := make(chan struct{}, 32)
	for i, p := range cells {
		asking.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			ctx, cancel := context.WithTimeout(ctx, cellPatience)
			defer cancel()
			client, err := r.cell(p)
			if err != nil {
				answers[i].err = err
				return
			}
			answers[i].value, answers[i].err = ask(ctx, client)
		})
	}
	asking.Wait()
	return answers
}
