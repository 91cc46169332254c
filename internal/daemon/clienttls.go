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
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s_ca: %w", prefix, err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s_ca: %s has no certificate in PEM form", prefix, ca)
		}
	}
	return config, nil
}
