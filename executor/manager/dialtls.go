package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// dialTLS connects as transport does, with a configuration for each connection.
func dialTLS(transport *http.Transport, config func(host string) *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		plain, err := transport.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := cmp.Or(config(host).Clone(), new(tls.Config))
		c.ServerName = cmp.Or(c.ServerName, host)
		c.NextProtos = []string{"http/1.1"}
		if limit := transport.TLSHandshakeTimeout; limit > 0 { // 0 means none
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		secured := tls.Client(plain, c)
		if err := secured.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, err
		}
		return secured, nil
	}
}
