package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A signer is an authority.
type signer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// sign returns an authority that another one has signed, or itself if by is nil.
func sign(t *testing.T, name string, key *ecdsa.PrivateKey, by *signer) *signer {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if by == nil {
		by = &signer{key, template}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{key, cert}
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

func TestNoAuthorityForContainersComesFromOneThatTheFleetTrusts(t *testing.T) {
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	root := sign(t, "root", newKey(), nil)
	between := sign(t, "between", newKey(), root)
	containers := sign(t, "containers", newKey(), between)
	again := sign(t, "containers", containers.key, nil)
	other := sign(t, "other", newKey(), nil)
	aKey := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	for name, tt := range map[string]struct {
		fleet, containers []byte
		refused           bool
	}{
		"itself":                             {root.pem(), root.pem(), true},
		"among others":                       {fileOf(other, root), root.pem(), true},
		"after a key in the file":            {root.pem(), append(aKey, root.pem()...), true},
		"through a certificate in the file":  {root.pem(), fileOf(containers, between), true},
		"by another certificate of its key":  {again.pem(), fileOf(containers, between), true},
		"another one":                        {other.pem(), fileOf(containers, between), false},
		"another one that shows the fleet's": {root.pem(), fileOf(other, root), false},
	} {
		dir := t.TempDir()
		fleet, own := filepath.Join(dir, "fleet.pem"), filepath.Join(dir, "containers.pem")
		for path, text := range map[string][]byte{fleet: tt.fleet, own: tt.containers} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := (&TLS{TLSCA: fleet}).CheckIdentity(own)
		if refused := err != nil && strings.Contains(err.Error(), "use an authority for containers alone"); refused != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fileOf is a file of several certificates.
func fileOf(list ...*signer) []byte {
	var all bytes.Buffer
	for _, s := range list {
		all.Write(s.pem())
	}
	return all.Bytes()
}
