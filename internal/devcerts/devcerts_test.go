package devcerts_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/devcerts"
)

func TestCertificatesComeFromTheAuthorityAndSayWhoItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	var authority []byte
	for round := range 2 { // the second time the authority is there
		a, err := devcerts.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		pem, err := os.ReadFile(a.CA())
		if err != nil {
			t.Fatal(err)
		}
		if round == 1 && string(pem) != string(authority) {
			t.Error("the authority is another one")
		}
		authority = pem
		cert, key, err := a.Issue(devcerts.Request{
			File: "cell-1", Name: "cell-1", Units: []string{"diego-cell"}, Hosts: []string{"cell.example", "10.0.0.1"}, For: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		for _, host := range []string{"cell.example", "10.0.0.1"} {
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
					t.Error(err)
				}
			}
		}
		if s := pair.Leaf.Subject; s.CommonName != "cell-1" || len(s.OrganizationalUnit) != 1 || s.OrganizationalUnit[0] != "diego-cell" {
			t.Errorf("%v", s)
		}
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key is %v, %v", info.Mode(), err)
		}
	}
}

func TestADamagedAuthorityIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := devcerts.Open(dir); err == nil {
		t.Error("no error without a key")
	}
	if err := os.WriteFile(filepath.Join(dir, "ca-key.pem"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := devcerts.Open(dir); err == nil {
		t.Error("nonsense is an authority")
	}
}
