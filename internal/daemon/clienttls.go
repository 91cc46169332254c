package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// clientTLS is how this process meets servers outside of Diego, by the settings
// whose names begin with prefix: files with a certificate and its key, which are
// read again for each connection, and with authorities besides the host's. It is
// nil if they are all empty. The error names the file that is wrong.
func clientTLS(prefix, cert, key, ca string) (*tls.Config, error) {
	if cert == "" && ca == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cert != "" {
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				return nil, fmt.Errorf("%s_cert and %s_key: %w", prefix, prefix, err)
			}
			return &pair, nil
		}
		if _, err := load(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = load
	}
	if ca != "" {
		var err error
		if config.RootCAs, err = authorities(prefix, ca); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// authorities are those of the file of the setting PREFIX_ca, and the host's.
func authorities(prefix, ca string) (*x509.CertPool, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("%s_ca: %w", prefix, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s_ca: %s has no certificate in PEM form", prefix, ca)
	}
	return pool, nil
}

// rereadCA returns a configuration for connections to one host that reads the
// authorities of PREFIX_ca again for each of them. It verifies as crypto/tls does;
// that package cannot be given other authorities later, and does not tell a
// callback of a host that is an address.
func rereadCA(config *tls.Config, prefix, ca, host string) *tls.Config {
	config = config.Clone()
	config.InsecureSkipVerify = true // VerifyConnection does it, also when a session is resumed
	config.VerifyConnection = func(c tls.ConnectionState) error {
		roots, err := authorities(prefix, ca)
		if err != nil {
			return err
		}
		o := x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: x509.NewCertPool()}
		for _, between := range c.PeerCertificates[1:] {
			o.Intermediates.AddCert(between)
		}
		if _, err := c.PeerCertificates[0].Verify(o); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: c.PeerCertificates, Err: err}
		}
		return nil
	}
	return config
}
