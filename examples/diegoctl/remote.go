package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
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
