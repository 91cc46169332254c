package identity_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/httpapi"
)

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign is a certificate that an authority has signed, or the key itself if
// parent is nil.
func sign(t *testing.T, key crypto.Signer, parent *x509.Certificate, by crypto.Signer, edit ...func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cell authority"}, NotBefore: epoch.Add(-time.Hour), NotAfter: epoch.Add(1000 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	for _, e := range edit {
		e(template)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func certPEM(list ...*x509.Certificate) (text []byte) {
	for _, c := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

func keyPEM(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestACertificateSaysWhichInstanceItIsAndWhereAndIsForServersAndClients(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey := newKey(t)
	ecDER, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		key  crypto.Signer
		pem  []byte
	}{
		{"ECDSA", ecKey, append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS"}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER})...)},
		{"RSA", rsaKey, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})},
		{"Ed25519", edKey, keyPEM(t, edKey)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rootKey := newKey(t)
			root := sign(t, rootKey, nil, nil)
			between := sign(t, tt.key, root, rootKey, func(c *x509.Certificate) { c.Subject.CommonName = "between" })
			a, err := identity.NewAuthority(certPEM(between, root), tt.pem, 0, epoch)
			if err != nil {
				t.Fatal(err)
			}
			p, err := a.Issue(identity.Holder{
				InstanceGUID: "instance-1", Address: netip.MustParseAddr("10.255.0.1"), OrganizationalUnit: []string{"app:a1", "space:s1"},
			}, epoch, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(p.Certificate, p.Key)
			if err != nil || len(pair.Certificate) != 3 {
				t.Fatalf("%d certificates, %v", len(pair.Certificate), err)
			}
			roots, others := x509.NewCertPool(), x509.NewCertPool()
			roots.AddCert(root)
			others.AddCert(between)
			for _, name := range []string{"instance-1", "10.255.0.1"} {
				for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
					if _, err := pair.Leaf.Verify(x509.VerifyOptions{
						Roots: roots, Intermediates: others, DNSName: name, CurrentTime: epoch, KeyUsages: []x509.ExtKeyUsage{use},
					}); err != nil {
						t.Error(err)
					}
				}
			}
			s := pair.Leaf.Subject
			if units := slices.Sorted(slices.Values(s.OrganizationalUnit)); s.CommonName != "instance-1" || !slices.Equal(units, []string{"app:a1", "space:s1"}) {
				t.Errorf("the subject is %v", s)
			}
			if pair.Leaf.IsCA || !pair.Leaf.NotAfter.Equal(epoch.Truncate(time.Second).Add(24*time.Hour)) || !pair.Leaf.NotAfter.Equal(p.NotAfter) || !pair.Leaf.NotBefore.Equal(p.NotBefore) || !p.NotBefore.Before(epoch) {
				t.Errorf("an authority: %t, valid from %v to %v; %v", pair.Leaf.IsCA, pair.Leaf.NotBefore, pair.Leaf.NotAfter, p)
			}
			again, err := a.Issue(identity.Holder{InstanceGUID: "instance-1"}, epoch, rand.Reader)
			if err != nil || bytes.Equal(again.Key, p.Key) {
				t.Errorf("another certificate has the same key, %v", err)
			}
		})
	}
}

// A consumer may choose any unit, and must not become an operator by it.
func TestACertificateNeverHasARoleOfTheFleet(t *testing.T) {
	key := newKey(t)
	a, err := identity.NewAuthority(certPEM(sign(t, key, nil, nil)), keyPEM(t, key), 0, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range httpapi.Roles {
		for _, unit := range []string{"diego-" + string(role), "Diego-" + string(role)} {
			_, err := a.Issue(identity.Holder{InstanceGUID: "i", OrganizationalUnit: []string{"app:a1", unit}}, epoch, rand.Reader)
			if err == nil || !strings.Contains(err.Error(), "certificate_properties.organizational_unit: \""+unit+"\"") {
				t.Errorf("%s: %v", unit, err)
			}
		}
	}
}

func TestNoVerbShowsAKey(t *testing.T) {
	key := newKey(t)
	a, err := identity.NewAuthority(certPEM(sign(t, key, nil, nil)), keyPEM(t, key), 0, epoch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Issue(identity.Holder{InstanceGUID: "i"}, epoch, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if text := fmt.Sprintf(verb, p); !strings.HasPrefix(text, "certificate and key, valid from ") || strings.Contains(text, "PRIVATE") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

func TestAnAuthorityThatCannotSignIsRefusedWithTheReason(t *testing.T) {
	key, other := newKey(t), newKey(t)
	with := func(edit func(*x509.Certificate)) []byte { return certPEM(sign(t, key, nil, nil, edit)) }
	good := certPEM(sign(t, key, nil, nil))
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	for _, tt := range []struct {
		name     string
		cert     []byte
		key      []byte
		lifetime time.Duration
		want     string
	}{
		{"no certificate", nil, keyPEM(t, key), 0, "want PEM with a block CERTIFICATE"},
		{"nonsense for a certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), keyPEM(t, key), 0, "certificate of the authority cannot be read"},
		{"nonsense behind it", append(slices.Clone(good), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})...), keyPEM(t, key), 0, "certificate of the authority cannot be read"},
		{"no key", good, nil, 0, "the key of the authority is not there"},
		{"nonsense for a key", good, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}), 0, "the key of the authority cannot be read"},
		{"a key with a passphrase", good, encrypted, 0, "the key of the authority is encrypted"},
		{"another key", good, keyPEM(t, other), 0, "want a pair"},
		{"no authority", with(func(c *x509.Certificate) { c.IsCA = false }), keyPEM(t, key), 0, "may not sign others"},
		{"no signer", with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), keyPEM(t, key), 0, "may not sign others"},
		{"for clients only", with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), keyPEM(t, key), 0, "may not sign for servers and clients"},
		{"one that has ended", with(func(c *x509.Certificate) { c.NotAfter = epoch.Add(-time.Second) }), keyPEM(t, key), 0, "expired at"},
		{"one of the future", with(func(c *x509.Certificate) { c.NotBefore = epoch.Add(time.Second) }), keyPEM(t, key), 0, "valid from"},
		{"a lifetime beyond its own", good, keyPEM(t, key), 1001 * time.Hour, "want a shorter lifetime"},
		{"a lifetime that is too short", good, keyPEM(t, key), time.Second, "want at least 1m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := identity.NewAuthority(tt.cert, tt.key, tt.lifetime, epoch)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestACertificateIsRenewedInItsLastEighthOrHalfHour(t *testing.T) {
	key := newKey(t)
	cert := certPEM(sign(t, key, nil, nil)) // valid for 1000 h
	for _, tt := range []struct {
		lifetime, check time.Duration
		begins, at      time.Duration // since the epoch
		due             bool
	}{
		{24 * time.Hour, time.Minute, 0, 0, false},
		{24 * time.Hour, time.Minute, 0, 23*time.Hour + 29*time.Minute, false},
		{24 * time.Hour, time.Minute, 0, 23*time.Hour + 30*time.Minute, true},
		{24 * time.Hour, time.Minute, 0, 48 * time.Hour, true},    // the host has slept
		{24 * time.Hour, time.Minute, 0, -4 * time.Minute, false}, // the clock has gone back
		{24 * time.Hour, time.Minute, 0, -6 * time.Minute, true},  // to before its beginning
		{8 * time.Minute, 7500 * time.Millisecond, 0, 6*time.Minute + 58*time.Second, false},
		{8 * time.Minute, 7500 * time.Millisecond, 0, 7 * time.Minute, true},
		// The authority ends at 1000 h: there is nothing better until then.
		{24 * time.Hour, time.Minute, 990 * time.Hour, 999*time.Hour + 59*time.Minute, false},
		{24 * time.Hour, time.Minute, 990 * time.Hour, 1000 * time.Hour, true},
	} {
		a, err := identity.NewAuthority(cert, keyPEM(t, key), tt.lifetime, epoch)
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Issue(identity.Holder{InstanceGUID: "i"}, epoch.Add(tt.begins), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if due := a.Due(p, epoch.Add(tt.at)); due != tt.due {
			t.Errorf("one of %v from %v on is due at %v: %t", tt.lifetime, tt.begins, tt.at, due)
		}
		if a.CheckInterval() != tt.check {
			t.Errorf("checked every %v, want %v", a.CheckInterval(), tt.check)
		}
		if _, err := a.Issue(identity.Holder{}, epoch.Add(1000*time.Hour), rand.Reader); err == nil || !strings.Contains(err.Error(), "the cell needs a new one") {
			t.Errorf("an authority that has ended: %v", err)
		}
	}
	if a, _ := identity.NewAuthority(cert, keyPEM(t, key), 0, epoch); !a.Due(identity.Pair{}, epoch) {
		t.Error("no pair is not due")
	}
}

func TestACertificateLiesWithinTheTimeOfItsAuthority(t *testing.T) {
	key := newKey(t)
	began := certPEM(sign(t, key, nil, nil, func(c *x509.Certificate) { c.NotBefore = epoch }))
	// What else the file holds does not matter.
	a, err := identity.NewAuthority(append(keyPEM(t, key), began...), keyPEM(t, key), 0, epoch)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue(identity.Holder{InstanceGUID: "i"}, epoch, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Certificate)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !c.NotBefore.Equal(epoch.Truncate(time.Second)) || c.NotAfter.After(a.NotAfter()) {
		t.Errorf("valid from %v to %v, want it within %v and %v", c.NotBefore, c.NotAfter, epoch.Truncate(time.Second), a.NotAfter())
	}
}
