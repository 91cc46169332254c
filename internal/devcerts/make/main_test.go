package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/httpapi"
)

func TestEveryoneGetsACertificateThatSaysTheirRoles(t *testing.T) {
	dir := t.TempDir()
	if err := issue(dir, []string{"127.0.0.1"}, []string{"apps", "jobs"}, []string{"router", "a/b"}, 1, append(everyone, "log-reader+consumer:reader", "locker:router")); err != nil {
		t.Fatal(err)
	}
	want := map[string]httpapi.Identity{
		"bbs":        {Name: "bbs", Roles: []httpapi.Role{httpapi.BBSRole, httpapi.AuctioneerRole}},
		"auctioneer": {Name: "auctioneer", Roles: []httpapi.Role{httpapi.AuctioneerRole}},
		"cell-1":     {Name: "cell-1", Roles: []httpapi.Role{httpapi.CellRole}},
		"cell-2":     {Name: "cell-2", Roles: []httpapi.Role{httpapi.CellRole}},
		"consumer":   {Name: "consumer", Roles: []httpapi.Role{httpapi.ConsumerRole}},
		"operator":   {Name: "operator", Roles: []httpapi.Role{httpapi.OperatorRole}},
		"reader":     {Name: "reader", Roles: []httpapi.Role{httpapi.ConsumerRole, httpapi.LogReaderRole}, Domains: []string{"apps", "jobs"}},
		"router":     {Name: "router", Roles: []httpapi.Role{httpapi.LockerRole}, Locks: []string{"a/b", "router"}},
	}
	got := map[string]httpapi.Identity{}
	for name := range want {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = httpapi.IdentityOf(pair.Leaf)
		// Who listens nowhere gets nothing that lets it serve.
		serves := name != "consumer" && name != "operator" && name != "reader" && name != "router"
		if listed := slices.Contains(pair.Leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth); listed != serves || (len(pair.Leaf.IPAddresses) > 0) != serves {
			t.Errorf("%s: for %v at %v", name, pair.Leaf.ExtKeyUsage, pair.Leaf.IPAddresses)
		}
		if !slices.Contains(pair.Leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || pair.Leaf.IsCA {
			t.Errorf("%s: for %v, an authority: %t", name, pair.Leaf.ExtKeyUsage, pair.Leaf.IsCA)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeIssuedIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for asked, want := range map[string]string{
		"boss":         `"boss" is not a role`,
		"bbs+boss:x":   `"boss" is not a role`,
		"cell:../x":    "want a name of letters",
		"cell:ca":      "other than ca",
		"bbs+operator": "as in bbs+operator:NAME",
		"log-reader":   "name some with -domains",
		"exec":         "name some with -domains",
		"locker":       "name some with -locks",
	} {
		dir := filepath.Join(t.TempDir(), "certs")
		if err := issue(dir, nil, nil, nil, 1, []string{"bbs", asked}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", asked, err)
		}
		if files, _ := filepath.Glob(dir + "/*"); len(files) > 0 {
			t.Errorf("%s: %q were written", asked, files)
		}
	}
	if err := issue(t.TempDir(), nil, nil, nil, 0, everyone); err == nil {
		t.Error("0 days are accepted")
	}
}

func TestTheAuthorityForContainersIsAnotherOneAndStays(t *testing.T) {
	dir := t.TempDir()
	var first []byte
	for range 2 {
		if err := errors.Join(issue(dir, nil, nil, nil, 1, []string{"operator"}), makeIdentity(dir)); err != nil {
			t.Fatal(err)
		}
		fleet, fleetErr := os.ReadFile(filepath.Join(dir, "ca.pem"))
		own, ownErr := os.ReadFile(filepath.Join(dir, "identity", "ca.pem"))
		if err := errors.Join(fleetErr, ownErr); err != nil || bytes.Equal(fleet, own) || first != nil && !bytes.Equal(first, own) {
			t.Errorf("%v, the same as the fleet's: %t", err, bytes.Equal(fleet, own))
		}
		first = own
	}
}
