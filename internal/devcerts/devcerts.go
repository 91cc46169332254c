// Package devcerts makes certificates for development and tests: an authority,
// and certificates whose common name identifies the holder and whose
// organizational units say what the holder may do. With the authority's key
// anybody can impersonate anybody, and here it lies beside the others. For a
// real installation use an authority that is kept apart.
package devcerts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An Authority signs certificates. Its files are ca.pem and ca-key.pem in a
// directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// The files of a certificate are NAME.pem and NAME-key.pem.
const (
	certSuffix    = ".pem"
	keySuffix     = "-key.pem"
	authorityName = "ca"
)

// Open returns the authority of a directory. If there is none, it makes one
// that is valid for ten years.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	certPEM, err := os.ReadFile(filepath.Join(dir, authorityName+certSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create()
	}
	keyPEM, keyErr := os.ReadFile(filepath.Join(dir, authorityName+keySuffix))
	if err := errors.Join(err, keyErr); err != nil {
		return nil, fmt.Errorf("the authority in %s: %w; remove the directory to begin anew", dir, err)
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("the authority in %s is not PEM; remove the directory to begin again", dir)
	}
	if a.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return nil, err
	}
	a.key, err = x509.ParseECPrivateKey(keyBlock.Bytes)
	return a, err
}

func (a *Authority) create() error {
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Diego development authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, // nothing that it signs can sign
	}
	var err error
	a.cert, a.key, err = a.sign(template, authorityName)
	return err
}

// A Request describes a certificate.
type Request struct {
	// File begins the names of the two files.
	File string
	// Name is the common name, which identifies the holder: a cell's id.
	Name string
	// Units are the organizational units: the holder's roles.
	Units []string
	// Hosts are the names and addresses at which the holder listens. Without any,
	// the certificate is valid for clients only: no client accepts it from a
	// server.
	Hosts []string
	// For is how long it is valid; it may be negative in tests.
	For time.Duration
}

// Issue writes a certificate and its key, and replaces earlier ones.
func (a *Authority) Issue(r Request) (certFile, keyFile string, err error) {
	now := time.Now()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: r.Name, OrganizationalUnit: r.Units},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(r.For),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	_, _, err = a.sign(template, r.File)
	return a.File(r.File + certSuffix), a.File(r.File + keySuffix), err
}

// File is the path of a file of the authority's directory.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name) }

// CA is the path of the authority's certificate.
func (a *Authority) CA() string { return a.File(authorityName + certSuffix) }

// CAKey is the path of the authority's key.
func (a *Authority) CAKey() string { return a.File(authorityName + keySuffix) }

// PEM is what the files of CA and CAKey hold.
func (a *Authority) PEM() (cert, key []byte, err error) {
	cert, err = os.ReadFile(a.CA())
	if err != nil {
		return nil, nil, err
	}
	key, err = os.ReadFile(a.CAKey())
	return cert, key, err
}

// sign makes a key and a certificate of a template, and writes them. An
// authority that has no certificate yet signs its own.
func (a *Authority) sign(template *x509.Certificate, file string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(
		write(a.File(file+keySuffix), "EC PRIVATE KEY", keyDER, 0o600),
		write(a.File(file+certSuffix), "CERTIFICATE", der, 0o644),
	); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// write replaces a file in one step, so that nobody reads half of it, not even after
// a power cut.
func write(path, kind string, der []byte, mode os.FileMode) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}
