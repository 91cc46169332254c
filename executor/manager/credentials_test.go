package manager_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/devcerts"
)

// newAuthority is one for a lifetime. It is valid since an hour ago, for ten
// years.
func newAuthority(t *testing.T, lifetime time.Duration) *identity.Authority {
	t.Helper()
	made, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := made.PEM()
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.NewAuthority(cert, key, lifetime, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A credentialsCell is a cell with an authority.
type credentialsCell struct {
	*cell
	dir string // of the credentials of container c
	log *bytes.Buffer
}

func newCredentialsCell(t *testing.T) *credentialsCell {
	t.Helper()
	dir, log := t.TempDir(), &bytes.Buffer{}
	c := newCell(t, func(o *manager.Options) {
		o.Dir, o.Identity, o.Logger = dir, newAuthority(t, 24*time.Hour), slog.New(slog.NewTextHandler(log, nil))
	})
	return &credentialsCell{c, filepath.Join(dir, "credentials", "c"), log}
}

// pair reads the pair as a process does, by the paths that it is told.
func (c *credentialsCell) pair() tls.Certificate {
	c.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "instance.crt"), filepath.Join(c.dir, "instance.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	return pair
}

func (c *credentialsCell) stderr() string {
	c.t.Helper()
	r, err := c.Log(context.Background(), "c", manager.Stderr, 0, false)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func TestACertificateIsRenewedBeforeItEndsWhetherTheClockRunsOrJumps(t *testing.T) {
	c := newCredentialsCell(t)
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		w.Tags = map[string]string{executor.TagInstanceGUID: "instance-1"}
		w.CertificateProperties = &executor.CertificateConfig{OrganizationalUnit: []string{"app:a1"}}
	}))
	c.advance(time.Second)
	first := c.pair()
	if s := first.Leaf.Subject; s.CommonName != "instance-1" || !slices.Equal(s.OrganizationalUnit, []string{"app:a1"}) {
		t.Errorf("the subject is %v", s)
	}
	if err := first.Leaf.VerifyHostname("10.255.0.1"); err != nil {
		t.Error(err)
	}
	// What is open, or was looked up once, stays as it was over a renewal.
	pinned, err := filepath.EvalSymlinks(filepath.Join(c.dir, "current"))
	if err != nil {
		t.Fatal(err)
	}
	before := first
	for _, tt := range []struct {
		name    string
		pass    func()
		renewed bool
	}{
		{"half its time", func() { c.advance(12 * time.Hour) }, false},
		{"all but the last half hour and a minute", func() { c.advance(11*time.Hour + 28*time.Minute) }, false},
		{"the rest", func() { c.advance(3 * time.Minute) }, true},
		{"days of sleep", func() { c.now = c.now.Add(72 * time.Hour); c.advance(time.Minute) }, true},
		{"a clock that goes back by minutes", func() { c.now = c.now.Add(-2 * time.Minute); c.advance(5 * time.Minute) }, false},
	} {
		tt.pass()
		now := c.pair()
		if renewed := !bytes.Equal(now.Certificate[0], before.Certificate[0]); renewed != tt.renewed {
			t.Fatalf("after %s: renewed: %t, valid to %v, now %v", tt.name, renewed, now.Leaf.NotAfter, c.now)
		}
		if tt.renewed && now.PrivateKey.(*ecdsa.PrivateKey).Equal(before.PrivateKey) {
			t.Errorf("after %s the key is the same", tt.name)
		}
		if c.now.After(now.Leaf.NotAfter) {
			t.Errorf("after %s it has ended", tt.name)
		}
		if tt.renewed && now.Leaf.Subject.String() != first.Leaf.Subject.String() {
			t.Errorf("the new one is of %v", now.Leaf.Subject)
		}
		if tt.name == "the rest" {
			if old, err := tls.LoadX509KeyPair(filepath.Join(pinned, "instance.crt"), filepath.Join(pinned, "instance.key")); err != nil || !old.Leaf.Equal(first.Leaf) {
				t.Errorf("the pair that was looked up before: %v", err)
			}
		}
		before = now
	}
	if _, err := os.Stat(pinned); err == nil {
		t.Error("a key of two renewals ago is still there")
	}
	c.Delete("c")
	c.advance(time.Minute)
	if _, err := os.Stat(c.dir); err == nil {
		t.Error("the key is there after the container")
	}
	c.mustBeClean()
}

func TestARenewalThatFailsIsToldAndTriedAgainWhileTheInstanceGoesOn(t *testing.T) {
	c := newCredentialsCell(t)
	c.launch("c", work(do("wait forever")))
	c.advance(time.Second)
	first := c.pair()
	aside := c.dir + ".aside"
	if err := os.Rename(c.dir, aside); err != nil {
		t.Fatal(err)
	}
	c.advance(24 * time.Hour)
	if got, _ := c.Get("c"); got.State != executor.Running {
		t.Errorf("the container is %s", describe(got))
	}
	for name, text := range map[string]string{"the container's log": c.stderr(), "the cell's log": c.log.String()} {
		if strings.Count(text, "not renew the certificate of this instance")+strings.Count(text, "could not be renewed") != 1 || !strings.Contains(text, "no such file or directory") {
			t.Errorf("%s says %q", name, text)
		}
	}
	if err := os.Rename(aside, c.dir); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute)
	if now := c.pair(); !c.now.Before(now.Leaf.NotAfter) || now.Leaf.Equal(first.Leaf) {
		t.Errorf("valid to %v, now %v", now.Leaf.NotAfter, c.now)
	}
	if text := c.stderr(); !strings.Contains(text, "was renewed after all") {
		t.Errorf("the container's log says %q", text)
	}
	if all := c.log.String() + c.stderr(); strings.Contains(all, "PRIVATE KEY") {
		t.Error("a key was logged")
	}
}

func TestAContainerWhoseCredentialsCannotBeMadeNeverBegins(t *testing.T) {
	c := newCredentialsCell(t)
	c.now = c.now.AddDate(20, 0, 0) // the authority has ended
	c.launch("c", work(do("wait forever")))
	c.advance(time.Second)
	got, _ := c.Get("c")
	if !got.RunResult.Retryable || !strings.Contains(got.RunResult.FailureReason, "credentials: the authority \"Diego development authority\" is valid from") {
		t.Errorf("the container is %s", describe(got))
	}
	c.Delete("c")
	c.advance(time.Second)
	c.mustBeClean()
	if left, err := os.ReadDir(filepath.Dir(c.dir)); len(left) > 0 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestWhatAKilledManagerLeftOfKeysIsRemoved(t *testing.T) {
	for name, a := range map[string]*identity.Authority{"with an authority": newAuthority(t, 0), "without one": nil} {
		dir := t.TempDir()
		left := filepath.Join(dir, "credentials", "old", "1", "instance.key")
		if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left, []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
		newCell(t, func(o *manager.Options) { o.Dir, o.Identity = dir, a })
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s: it is still there", name)
		}
	}
}

func TestCredentialsNeedADirectory(t *testing.T) {
	c := newCell(t)
	_, err := manager.New(context.Background(), manager.Options{Backend: c.backend, Identity: newAuthority(t, 0), Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
	if err == nil || !strings.Contains(err.Error(), "set Options.Dir") {
		t.Errorf("got %v", err)
	}
}

// A reader looks up "current" once, and both files match, though a renewal comes
// at any time in between.
func TestAReaderThatLooksOnceNeverSeesHalfAPair(t *testing.T) {
	c := newCredentialsCell(t)
	c.launch("c", work(do("wait forever")))
	c.advance(time.Second)
	const rounds = 50
	read := make(chan error)
	go func() {
		for range rounds { // each meets one renewal at most
			dir, err := filepath.EvalSymlinks(filepath.Join(c.dir, "current"))
			if err == nil {
				_, err = tls.LoadX509KeyPair(filepath.Join(dir, "instance.crt"), filepath.Join(dir, "instance.key"))
			}
			read <- err
		}
	}()
	for range rounds {
		c.now = c.now.Add(24 * time.Hour)
		c.advance(time.Minute)
		if err := <-read; err != nil {
			t.Error(err)
		}
	}
	if pair := c.pair(); pair.Leaf.NotAfter.Before(c.now) {
		t.Error("it was not renewed")
	}
}

func TestAKeyOnTheHostIsForTheDaemonAlone(t *testing.T) {
	c := newCredentialsCell(t)
	c.launch("c", work(do("wait forever")))
	c.advance(time.Second)
	for path, want := range map[string]fs.FileMode{
		filepath.Dir(c.dir):                  0o700, // nobody else comes in from outside
		c.dir:                                0o755, // inside it is the container's
		filepath.Join(c.dir, "1"):            0o755,
		filepath.Join(c.dir, "instance.key"): 0o444,
		filepath.Join(c.dir, "instance.crt"): 0o444,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}
