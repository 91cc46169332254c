package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/diegosdk/diego"
)

// A remote is a Diego, in this process or over HTTP.
type remote struct {
	bbs         diego.BBSAPI
	auctioneer  diego.AuctioneerAPI
	convergence diego.ConvergenceAPI
	// cell reaches a cell that is present.
	cell func(diego.CellPresence) (diego.Cell, error)
}

// A connection says how to reach a Diego over HTTP.
type connection struct {
	// bbs and auctioneer are base URLs.
	bbs, auctioneer []string
	// cert, key and ca are files, or empty.
	cert, key, ca string
	timeout       time.Duration
}

// dialHTTP connects to nothing yet, but reads the files.
func dialHTTP(c connection) (*remote, error) {
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	o := diego.ClientOptions{TLS: config, Timeout: c.timeout, Addresses: c.bbs, AllowPlain: c.plain()}
	b, err := diego.NewBBSClient(o)
	if err != nil {
		return nil, err
	}
	o.Addresses = c.auctioneer
	a, err := diego.NewAuctioneerClient(o)
	if err != nil {
		return nil, err
	}
	return &remote{bbs: b, auctioneer: a, convergence: b, cell: func(p diego.CellPresence) (diego.Cell, error) {
		o := o
		o.Addresses, o.CellID, o.Attempts = []string{p.Address}, p.CellID, 1
		return diego.NewCellClient(o)
	}}, nil
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
			return nil, fmt.Errorf("the certificates of -ca cannot be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s, which -ca names, holds no certificate in PEM", c.ca)
		}
	}
	return config, nil
}
