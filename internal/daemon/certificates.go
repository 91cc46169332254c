package daemon

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/httpapi"
)

// TLS are the settings of mutual TLS, for embedding. Either all three are set
// or none.
type TLS struct {
	TLSCert string `name:"tls_cert" help:"PEM file with the certificate of this process, and those between it and the authority"`
	TLSKey  string `name:"tls_key" help:"PEM file with the private key of tls_cert"`
	TLSCA   string `name:"tls_ca" help:"PEM file with the authorities that others' certificates must come from"`
}

// CheckTLS is for the Check method of settings that embed TLS.
func (s *TLS) CheckTLS(report func(name, want string)) {
	for _, f := range []struct{ name, value string }{{"tls_cert", s.TLSCert}, {"tls_key", s.TLSKey}, {"tls_ca", s.TLSCA}} {
		if f.value == "" && *s != (TLS{}) {
			report(f.name, "missing: tls_cert, tls_key and tls_ca are set together or not at all")
		}
	}
}

// CheckIdentity fails if this process accepts certificates of the authority that
// signs those of containers. With one, a container could call the fleet. From then
// on, new files with which it would accept them are not used. The file of
// identity_ca_cert is read once, as the cell does.
func (s *Server) CheckIdentity(certFile string) error {
	if certFile == "" || s.certificates == nil {
		return nil
	}
	text, err := os.ReadFile(certFile)
	if err != nil {
		return named("identity_ca_cert", err)
	}
	list := parseCertificates(text)
	if len(list) == 0 {
		return nil // Identity says so
	}
	return s.certificates.require(func(l loaded) error { return s.settings.distrusts(l, certFile, list) })
}

// distrusts fails if the authority of containers, the first of list, is or comes
// from one that the fleet trusts. Containers show the other certificates of the
// list, too.
func (s *TLS) distrusts(l loaded, certFile string, list []*x509.Certificate) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	trusted := false
	for _, c := range parseCertificates(l.authorities) {
		roots.AddCert(c)
		// It may be trusted by another certificate of the same key.
		trusted = trusted || bytes.Equal(c.RawSubjectPublicKeyInfo, list[0].RawSubjectPublicKeyInfo)
	}
	for _, c := range list[1:] {
		between.AddCert(c)
	}
	_, err := list[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if trusted || err == nil {
		return fmt.Errorf("identity_ca_cert %s: the fleet accepts the certificates of this authority, because it is or comes from one in tls_ca %s, so that containers could call the fleet; use an authority for containers alone (scripts/certs -identity makes one for development)", certFile, s.TLSCA)
	}
	return nil
}

// parseCertificates returns the certificates of a PEM text that can be read.
func parseCertificates(text []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, c)
		}
	}
	return list
}

// Certificates are those of the settings, or nil if none are set. The error
// names the file that is wrong.
func (s *TLS) Certificates(log *slog.Logger) (*Certificates, error) {
	if *s == (TLS{}) {
		return nil, nil
	}
	c := &Certificates{files: *s, log: log}
	loaded, err := s.load(time.Now())
	if err != nil {
		return nil, err
	}
	c.now = loaded
	c.tell()
	return c, nil
}

// Certificates are the certificate of a process and the authorities that it
// trusts. The files are read again when they change, so new ones take effect
// without a restart. While the new ones cannot be used, the old ones stay in
// use.
type Certificates struct {
	files TLS
	log   *slog.Logger

	mu     sync.Mutex
	now    loaded
	looked time.Time            // when the files were last looked at
	failed stamps               // the state of the files that could not be used
	checks []func(loaded) error // which new files must pass
}

// loaded is the content of the files.
type loaded struct {
	own         tls.Certificate
	authorities []byte // the text of tls_ca
	others      *x509.CertPool
	stamps      stamps
}

// stamps show whether one of the three files has changed.
type stamps [3]struct {
	at   time.Time
	size int64
}

func (s *TLS) stamps() (all stamps) {
	for i, name := range []string{s.TLSCert, s.TLSKey, s.TLSCA} {
		if info, err := os.Stat(name); err == nil {
			all[i].at, all[i].size = info.ModTime(), info.Size()
		}
	}
	return all
}

// load reads the files and checks that they can be used now.
func (s *TLS) load(now time.Time) (l loaded, err error) {
	l.stamps = s.stamps()
	const remedy = "scripts/certs makes such files for development"
	cert, certErr := os.ReadFile(s.TLSCert)
	key, keyErr := os.ReadFile(s.TLSKey)
	ca, caErr := os.ReadFile(s.TLSCA)
	if err := errors.Join(named("tls_cert", certErr), named("tls_key", keyErr), named("tls_ca", caErr)); err != nil {
		return l, fmt.Errorf("%w; %s", err, remedy)
	}
	if l.own, err = tls.X509KeyPair(cert, key); err != nil {
		return l, fmt.Errorf("tls_cert %s and tls_key %s do not make a pair: %w", s.TLSCert, s.TLSKey, err)
	}
	l.authorities, l.others = ca, x509.NewCertPool()
	if !l.others.AppendCertsFromPEM(ca) {
		return l, fmt.Errorf("tls_ca %s: there is no certificate in it; want PEM", s.TLSCA)
	}
	leaf := l.own.Leaf
	if now.After(leaf.NotAfter) {
		return l, fmt.Errorf("tls_cert %s: the certificate of %q expired at %v; make a new one (%s)", s.TLSCert, leaf.Subject.CommonName, leaf.NotAfter, remedy)
	}
	if now.Before(leaf.NotBefore) {
		return l, fmt.Errorf("tls_cert %s: the certificate of %q is valid from %v only; is this host's clock right?", s.TLSCert, leaf.Subject.CommonName, leaf.NotBefore)
	}
	between := x509.NewCertPool()
	for _, der := range l.own.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: l.others, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return l, fmt.Errorf("tls_cert %s does not come from an authority in tls_ca %s, so others with the same tls_ca do not accept it: %w", s.TLSCert, s.TLSCA, err)
	}
	return l, nil
}

func named(setting string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", setting, err)
}

// lookEvery is the least time between two looks at the files.
var lookEvery = time.Second // a test is less patient

// current returns the content of the files, or of their last version that could
// be used.
func (c *Certificates) current() loaded {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.looked) < lookEvery {
		return c.now
	}
	c.looked = now
	changed := c.files.stamps()
	if changed == c.now.stamps || changed == c.failed {
		return c.now
	}
	loaded, err := c.files.load(now)
	for _, check := range c.checks {
		if err == nil {
			err = check(loaded)
		}
	}
	if err != nil {
		// The file may be half written. The next change is read again.
		c.failed = changed
		c.log.Warn("the certificates have changed and cannot be used; the old ones stay", "err", err)
		return c.now
	}
	c.now = loaded
	c.tell()
	return c.now
}

// tell logs the owner of the certificate and how long it is valid.
func (c *Certificates) tell() {
	leaf := c.now.own.Leaf
	c.log.Info("certificate", "name", leaf.Subject.CommonName, "roles", leaf.Subject.OrganizationalUnit, "expires", leaf.NotAfter)
}

// require fails unless what is in use passes a check. From then on, new files that
// do not pass it are not used.
func (c *Certificates) require(check func(loaded) error) error {
	if err := check(c.current()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, check)
	return nil
}

// check fails unless others will let the holder do its work: the certificate
// needs the roles of who, its name if it has one, and must be valid for the
// host of url.
func (s *TLS) check(leaf *x509.Certificate, who httpapi.Identity, url *url.URL) error {
	id := httpapi.IdentityOf(leaf)
	name := cmp.Or(who.Name, id.Name)
	roles := make([]string, len(who.Roles))
	for i, role := range who.Roles {
		roles[i] = string(role)
	}
	remedy := fmt.Sprintf("scripts/certs %s:%s makes one for development", strings.Join(roles, "+"), name)
	if id.Name != name {
		return fmt.Errorf("tls_cert %s is of %q, and others let only the holder of one of %q do what this process does; %s", s.TLSCert, id.Name, name, remedy)
	}
	for _, role := range who.Roles {
		if !slices.Contains(id.Roles, role) {
			return fmt.Errorf("tls_cert %s of %q lacks the role %s, so its calls would be refused; %s", s.TLSCert, id.Name, role, remedy)
		}
	}
	for _, use := range []struct {
		is   x509.ExtKeyUsage
		name string
	}{{x509.ExtKeyUsageServerAuth, "to serve (serverAuth)"}, {x509.ExtKeyUsageClientAuth, "to ask others (clientAuth)"}} {
		if len(leaf.ExtKeyUsage) > 0 && !slices.Contains(leaf.ExtKeyUsage, use.is) && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny) {
			return fmt.Errorf("tls_cert %s of %q may not be used %s, which this process does; %s", s.TLSCert, id.Name, use.name, remedy)
		}
	}
	if err := leaf.VerifyHostname(url.Hostname()); err != nil {
		return fmt.Errorf("tls_cert %s is not good for %s, at which others reach this process: %w; make one that is (scripts/certs -hosts), or name another address with --advertise", s.TLSCert, url.Hostname(), err)
	}
	return nil
}

// Server is the configuration of a server that knows each client by its
// certificate. A client without one can call only what is open to everybody.
func (c *Certificates) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.current()
			return &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, VerifyConnection: identifying(hello.Conn),
				Certificates: []tls.Certificate{now.own}, ClientCAs: now.others, ClientAuth: tls.VerifyClientCertIfGiven,
			}, nil
		},
	}
}

// Client is the configuration of a client that shows this certificate, as the
// files are now. It is for httpapi.ClientOptions.NewTLS, which is called for
// each connection. It is nil for nil Certificates.
func (c *Certificates) Client() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: c.current().others,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own := c.current().own
			return &own, nil
		},
	}
}
