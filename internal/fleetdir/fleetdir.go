// Package fleetdir lets the user that runs examples/allinone into its API, and
// no other user of the host. The API requires certificates of an authority that
// only the data directory has. allinone makes that authority at each start
// ([Make]), and diegoctl finds its own certificate there ([Find]).
package fleetdir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/devcerts"
)

// Default is the data directory of this user's allinone: the usual directory
// for a program's state or, for a user without a home, a temporary one.
func Default() string {
	home, _ := os.UserHomeDir()
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return filepath.Join(os.TempDir(), fmt.Sprintf("diego-allinone-%d", os.Getuid()))
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "diego-allinone")
}

// The API's files in a data directory.
const (
	apiDir   = "api"
	urlFile  = "url"
	operator = "operator"
)

// validFor is longer than any allinone runs.
const validFor = 10 * 365 * 24 * time.Hour

// Files are the paths of a certificate, its key and its authority, in PEM.
type Files struct{ Cert, Key, CA string }

// An API says how to reach an allinone.
type API struct {
	// URL is where it listens, or did when it last ran.
	URL string
	// Operator is the certificate of the user.
	Operator Files
}

// Find finds the allinone of a data directory. The error wraps fs.ErrNotExist
// if none has ever run there, and fs.ErrPermission if it is another user's.
func Find(data string) (API, error) {
	if err := check(data); err != nil {
		return API{}, err
	}
	dir := filepath.Join(data, apiDir)
	url, err := os.ReadFile(filepath.Join(dir, urlFile))
	if err != nil {
		return API{}, err
	}
	file := func(suffix string) string { return filepath.Join(dir, suffix) }
	return API{strings.TrimSpace(string(url)), Files{file(operator + ".pem"), file(operator + "-key.pem"), file("ca.pem")}}, nil
}

// An Issuer makes the certificates of one run.
type Issuer struct {
	dir       string
	authority *devcerts.Authority
	hosts     []string
}

// Make prepares a data directory that belongs to this process alone;
// certificates of an earlier run become invalid. host is where the API listens.
func Make(data, host string) (*Issuer, error) {
	dir := filepath.Join(data, apiDir)
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	authority, err := devcerts.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Issuer{dir, authority, []string{host}}, nil
}

// Server issues the certificate of a server with a name and roles, each an
// organizational unit.
func (i *Issuer) Server(name string, units ...string) (Files, error) {
	return i.issue(devcerts.Request{File: name, Name: name, Units: units, Hosts: i.hosts, For: validFor})
}

// Publish issues the certificate of the user and lets [Find] find it, and the
// address of the API.
func (i *Issuer) Publish(url string) error {
	_, err := i.issue(devcerts.Request{File: operator, Name: operator, Units: []string{"diego-operator"}, For: validFor})
	return errors.Join(err, os.WriteFile(filepath.Join(i.dir, urlFile), []byte(url+"\n"), 0o600))
}

func (i *Issuer) issue(r devcerts.Request) (Files, error) {
	cert, key, err := i.authority.Issue(r)
	return Files{cert, key, i.authority.CA()}, err
}
