package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/testenv"
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
		err := (&TLS{TLSCA: "fleet.pem"}).distrusts(loaded{authorities: tt.fleet}, "containers.pem", parseCertificates(tt.containers))
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

func TestTheFleetDoesNotBeginToTrustTheAuthorityForContainers(t *testing.T) {
	patience := lookEvery
	lookEvery = 0
	defer func() { lookEvery = patience }()
	fleet, containers := t.TempDir(), issue(t, t.TempDir(), "app", time.Hour)
	var log testenv.Output
	e := Endpoint{TLS: issue(t, fleet, "server", time.Hour), Listen: "127.0.0.1:0"}
	server, err := e.Open(httpapi.Identity{}, new(Logging).Logger(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.CheckIdentity(containers.TLSCA); err != nil {
		t.Fatal(err)
	}
	own, ownErr := os.ReadFile(e.TLSCA)
	others, othersErr := os.ReadFile(containers.TLSCA)
	further, furtherErr := os.ReadFile(issue(t, t.TempDir(), "further", time.Hour).TLSCA)
	if err := errors.Join(ownErr, othersErr, furtherErr); err != nil {
		t.Fatal(err)
	}
	accepts := func(tls TLS) bool {
		c, err := tls.Certificates(new(Logging).Logger(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.current().own.Leaf.Verify(x509.VerifyOptions{Roots: server.certificates.current().others, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err == nil
	}
	for _, tt := range []struct {
		added []byte
		used  bool
	}{{others, false}, {further, true}} {
		if err := os.WriteFile(e.TLSCA, append(append([]byte{}, own...), tt.added...), 0o600); err != nil {
			t.Fatal(err)
		}
		if accepts(containers) || !accepts(e.TLS) {
			t.Errorf("containers are accepted: %t; the fleet: %t", accepts(containers), accepts(e.TLS))
		}
		if used := bytes.Contains(server.certificates.current().authorities, tt.added); used != tt.used {
			t.Errorf("the new file is in use: %t, want %t", used, tt.used)
		}
	}
	if text := log.String(); strings.Count(text, "containers could call the fleet") != 1 {
		t.Errorf("the log is:\n%s", text)
	}
}
