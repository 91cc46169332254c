package fleetdir_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/fleetdir"
)

func TestTheDataIsWhereProgramsKeepTheirs(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct{ home, state, want string }{
		{home, "", filepath.Join(home, ".local", "state", "diego-allinone")},
		{home, "/var/state", "/var/state/diego-allinone"},
		{filepath.Join(home, "nowhere"), "", filepath.Join(os.TempDir(), "diego-allinone-")},
		{"", "", filepath.Join(os.TempDir(), "diego-allinone-")},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_STATE_HOME", c.state)
		if got := fleetdir.Default(); !strings.HasPrefix(got, c.want) {
			t.Errorf("home %q, state %q: %q, want %q", c.home, c.state, got, c.want)
		}
	}
}

func TestEachRunIsFoundWithCertificatesOfItsOwn(t *testing.T) {
	data := t.TempDir()
	if _, err := fleetdir.Find(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first run: %v", err)
	}
	var before fleetdir.Files
	var beforePool *x509.CertPool
	for _, url := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} {
		issuer, err := fleetdir.Make(data, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		server, err := issuer.Server("cell-1", "diego-cell")
		if err == nil {
			err = issuer.Publish(url)
		}
		if err != nil {
			t.Fatal(err)
		}
		api, err := fleetdir.Find(data)
		if err != nil || api.URL != url {
			t.Fatalf("found %q, %v", api.URL, err)
		}
		pool := x509.NewCertPool()
		text, err := os.ReadFile(api.Operator.CA)
		if err != nil || !pool.AppendCertsFromPEM(text) {
			t.Fatal(err)
		}
		for files, want := range map[fleetdir.Files]httpapi.Identity{
			server:       {Name: "cell-1", Roles: []httpapi.Role{httpapi.CellRole}},
			api.Operator: {Name: "operator", Roles: []httpapi.Role{httpapi.OperatorRole}},
		} {
			pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, httpapi.IdentityOf(pair.Leaf)); diff != "" {
				t.Error(diff)
			}
			if serves := pair.Leaf.VerifyHostname("127.0.0.1") == nil; serves != (files == server) {
				t.Errorf("%s serves: %t", want.Name, serves)
			}
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Error(err)
			}
			if beforePool != nil {
				if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: beforePool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
					t.Error("the authority is that of the run before")
				}
			}
		}
		before, beforePool = api.Operator, pool
	}
	// What lets somebody in can be read by the user alone.
	for path, want := range map[string]fs.FileMode{filepath.Dir(before.Key): 0o700, before.Key: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
	}
}
