// Package identity says what the certificate of a container contains and when
// it is renewed (certificate_properties of a definition):
//
//   - The subject has the instance guid as its common name, and the
//     organizational units of the definition.
//   - The certificate is valid for the address of the container and for the
//     instance guid as a DNS name, to serve and to ask others.
//   - A unit that begins with "diego-" is refused; see [executor.IsTenantUnit].
//     Definitions and tasks with one are refused before that.
//   - It is valid for the lifetime that the cell sets, and never longer than the
//     authority. The last eighth of that time, but at most 30 minutes, is for its
//     renewal.
//   - Each certificate has a key of its own, on the curve P-256.
//
// The package computes and does nothing else: clock and randomness are
// arguments. Package manager makes a pair for each container, and writes it
// where the container finds it.
//
// # Concurrent use
//
// The methods of [Authority] may be called concurrently. All other types are
// plain values: any number of goroutines may use one while none changes it.
package identity

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

const (
	// DefaultLifetime is how long a certificate is valid unless the cell says
	// otherwise.
	DefaultLifetime = 24 * time.Hour
	// MinLifetime is the shortest lifetime.
	MinLifetime = time.Minute

	// early is how long before its issue a certificate is valid, for hosts whose
	// clocks are late.
	early = 5 * time.Minute
	// maxRenewal is the most that is left of a certificate when it is renewed.
	maxRenewal = 30 * time.Minute
	// maxCheck is the longest time between two looks at certificates.
	maxCheck = time.Minute
)

// An Authority signs the certificates of a cell's containers. It never changes,
// so any number of goroutines may use it.
type Authority struct {
	certificate *x509.Certificate
	chain       []byte // PEM
	key         crypto.Signer
	lifetime    time.Duration
}

// A Holder is the container that a certificate is for.
type Holder struct {
	// InstanceGUID is the guid of the instance, or of a container that is not an
	// instance.
	InstanceGUID string
	// Address is where the container is reached; the zero Addr means nowhere.
	Address netip.Addr
	// OrganizationalUnit are those of the definition.
	OrganizationalUnit []string
}

// A Pair is a certificate and its key. It is a value that goroutines may share
// while none changes it.
type Pair struct {
	// Certificate is in PEM form, followed by those of the authority.
	Certificate []byte
	// Key is the private key as PKCS #8 in PEM form. It is a secret.
	Key []byte
	// NotBefore and NotAfter bound the time in which the certificate is valid.
	NotBefore, NotAfter time.Time

	issued time.Time
}

// Format implements [fmt.Formatter]. No verb shows the key.
func (p Pair) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "certificate and key, valid from %v to %v", p.NotBefore, p.NotAfter)
}

// NewAuthority returns an authority of a certificate and its key, both in PEM
// form, which may be followed by the certificates between it and a root. The
// lifetime is that of the certificates that it signs; 0 means DefaultLifetime. The
// error says what is wrong with which of the three, and never shows the key.
func NewAuthority(certificates, key []byte, lifetime time.Duration, now time.Time) (*Authority, error) {
	lifetime = cmp.Or(lifetime, DefaultLifetime)
	if lifetime < MinLifetime {
		return nil, fmt.Errorf("the lifetime %v: want at least %v", lifetime, MinLifetime)
	}
	a := &Authority{lifetime: lifetime}
	for rest := certificates; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate of the authority cannot be read: %w", err)
		}
		if a.certificate == nil {
			a.certificate = c
		}
		a.chain = append(a.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
	}
	if a.certificate == nil {
		return nil, fmt.Errorf("the certificate of the authority is not there: want PEM with a block CERTIFICATE")
	}
	var err error
	if a.key, err = parseKey(key); err != nil {
		return nil, fmt.Errorf("the key of the authority %w", err)
	}
	return a, a.check(now)
}

// check fails unless others accept what the authority signs now.
func (a *Authority) check(now time.Time) error {
	c, name := a.certificate, a.certificate.Subject.CommonName
	public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	allowed := func(use x509.ExtKeyUsage) bool {
		return len(c.ExtKeyUsage) == 0 || slices.Contains(c.ExtKeyUsage, use) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
	}
	switch {
	case !ok || !public.Equal(c.PublicKey):
		return fmt.Errorf("the key is not that of the certificate of %q; want a pair", name)
	case !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("the certificate of %q may not sign others; want one of an authority (CA:TRUE, keyCertSign)", name)
	case !allowed(x509.ExtKeyUsageServerAuth) || !allowed(x509.ExtKeyUsageClientAuth):
		return fmt.Errorf("the certificate of %q may not sign for servers and clients; want one without extended key usage, or with serverAuth and clientAuth", name)
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate of %q is valid from %v only; is this host's clock right?", name, c.NotBefore)
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate of %q expired at %v; want a new one", name, c.NotAfter)
	case now.Add(a.lifetime).After(c.NotAfter):
		return fmt.Errorf("the lifetime %v is longer than the certificate of %q is valid, which is to %v; want a shorter lifetime or a new authority", a.lifetime, name, c.NotAfter)
	}
	return nil
}

// parseKey reads the first private key of a PEM text. Its error continues a
// sentence.
func parseKey(text []byte) (crypto.Signer, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, fmt.Errorf("is not there: want PEM with a block PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY")
		}
		var key any
		var err error
		switch {
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, fmt.Errorf("is encrypted: want one without a passphrase, in a file that only the cell can read")
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			continue
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok { // the error might show a part of it
			return nil, fmt.Errorf("cannot be read: want a key of RSA, ECDSA or Ed25519")
		}
		return signer, nil
	}
}

// Name returns the common name of the authority.
func (a *Authority) Name() string { return a.certificate.Subject.CommonName }

// NotAfter returns the time at which the authority's own certificate ends.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// CheckInterval returns the time between two looks at whether certificates are
// due, which is also the wait after a renewal that failed.
func (a *Authority) CheckInterval() time.Duration { return min(a.lifetime/64, maxCheck) }

// Issue returns a new key with its certificate. It fails if the authority's own
// certificate is not valid at now, or if one of the organizational units may not
// or cannot be in a certificate.
func (a *Authority) Issue(h Holder, now time.Time, random io.Reader) (Pair, error) {
	if now.Before(a.certificate.NotBefore) || !now.Before(a.certificate.NotAfter) {
		return Pair{}, fmt.Errorf("the authority %q is valid from %v to %v, and it is %v; the cell needs a new one, or its clock is wrong",
			a.Name(), a.certificate.NotBefore, a.certificate.NotAfter, now.UTC())
	}
	for _, unit := range h.OrganizationalUnit {
		if !executor.IsTenantUnit(unit) { // of work that was accepted before validation knew the rule
			return Pair{}, fmt.Errorf("certificate_properties.organizational_unit: %q: want UTF-8 that does not begin with diego-, as the roles of the fleet do", unit)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: h.InstanceGUID, OrganizationalUnit: h.OrganizationalUnit},
		NotBefore: now.Add(-early).UTC().Truncate(time.Second), NotAfter: now.Add(a.lifetime).UTC().Truncate(time.Second),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{h.InstanceGUID},
	}
	if template.NotBefore.Before(a.certificate.NotBefore) {
		template.NotBefore = a.certificate.NotBefore
	}
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	if h.Address.IsValid() {
		template.IPAddresses = append(template.IPAddresses, h.Address.AsSlice())
	}
	der, err := x509.CreateCertificate(random, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %q: %w", h.InstanceGUID, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode a key: %w", err)
	}
	return Pair{
		Certificate: append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), a.chain...),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		NotBefore:   template.NotBefore, NotAfter: template.NotAfter, issued: now,
	}, nil
}

// Due reports whether a pair is to be replaced at now: towards the end of its
// time, or if the clock has gone back to before its beginning. A certificate that
// lasts as long as the authority is replaced only after it has ended, because a new
// one could not last longer. The time on the clock counts, not the time that has
// passed, because hosts sleep.
func (a *Authority) Due(p Pair, now time.Time) bool {
	now = now.Round(0)
	renewal := min(p.NotAfter.Sub(p.issued)/8, maxRenewal)
	switch {
	case now.Before(p.NotBefore) || !now.Before(p.NotAfter):
		return true
	case !p.NotAfter.Before(a.certificate.NotAfter):
		return false
	}
	return !now.Before(p.NotAfter.Add(-renewal))
}
