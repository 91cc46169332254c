package examples_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// sleeper is an LRP whose instances wait until they are stopped.
func sleeper(guid string, instances int) lrp.DesiredLRP {
	return lrp.DesiredLRP{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances},
		Definition: lrp.Definition{
			Resources: executor.Resources{MemoryMB: 32},
			RunInfo: executor.RunInfo{
				RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sleep", Args: []string{"3600"}, User: "nobody"}},
			},
		},
	}
}

func TestWrongSettingsAreRefusedAtTheStartAllAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"bbs", []string{"--leader-ttl", "1h", "-colour", "red", "--max-backoff", "1s"}, []string{
			"command line: -colour: no such setting", "command line: --leader-ttl: 1h: want a duration such as 30s or 5m from 1s to 10m",
			"store: missing", "tls_cert: missing: set tls_cert, tls_key and tls_ca (scripts/certs makes such files), or plain", "min_backoff: 30s: want at most max_backoff",
		}},
		{"auctioneer", []string{"--plain", "--advertise", "nonsense"}, []string{"store: missing", "bbs: missing", "advertise: nonsense: want a base URL such as http://"}},
		{"rep", []string{"--plain", "--backend", "docker", "--first-port", "70000"}, []string{
			"--backend: docker: want one of auto, libcontainer, process", "--first-port: 70000: want a whole number from 1024 to 65535", "cell_id: missing", "dir: missing",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := launch(t, tt.name, tt.args...)
			if status := p.status(); status != 2 {
				t.Errorf("exit status %d", status)
			}
			for _, want := range tt.want {
				if !strings.Contains(p.text(), want) {
					t.Errorf("lacks %q:\n%s", want, p.text())
				}
			}
		})
	}
}

func TestEveryDaemonExplainsItsSettings(t *testing.T) {
	for _, name := range []string{"bbs", "auctioneer", "rep"} {
		out, err := exec.Command(filepath.Join(binaries, name), "-h").Output()
		if err != nil || !strings.HasPrefix(string(out), name+": ") || !strings.Contains(string(out), "--tls-cert TEXT") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestAnAddressInUseIsToldWithTheSetting(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "diego.db")
	first := start(t, "bbs", "--plain", "--store", dsn)
	second := launch(t, "bbs", "--plain", "--store", dsn, "--listen", strings.TrimPrefix(first.URL, "http://"))
	if status := second.status(); status != 1 || !strings.Contains(second.text(), "choose another address with --listen") {
		t.Errorf("exit status %d:\n%s", status, second.text())
	}
}

func TestOnlyWhoHasTheRightCertificateIsLetIn(t *testing.T) {
	c := newCertificates(t)
	p := start(t, "bbs", append(c.issue("bbs", httpapi.BBSRole, httpapi.AuctioneerRole),
		"--store", "sqlite:"+filepath.Join(t.TempDir(), "diego.db"), "--metrics-listen", "127.0.0.1:0")...)
	p.await("leading")
	ctx := within(t)
	consumer := c.bbs(httpapi.ConsumerRole, p.URL)
	if err := consumer.Desire(ctx, sleeper("web", 1)); err != nil {
		t.Fatal(err)
	}
	l, err := consumer.DesiredLRP(ctx, "web")
	if err != nil || l.ProcessGUID != "web" {
		t.Errorf("%+v, %v", l, err)
	}

	// A cell may not desire, a consumer may not report as a cell, and no cell may
	// report as another.
	cell := c.bbs(httpapi.CellRole, p.URL)
	if err := cell.Desire(ctx, sleeper("other", 1)); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("a cell desires: %v", err)
	}
	claim := lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-9"}}
	if err := consumer.ClaimLRP(ctx, "web", 0, claim); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("a consumer claims: %v", err)
	}
	if err := cell.ClaimLRP(ctx, "web", 0, claim); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("a cell claims for another: %v", err)
	}

	// What is open to everybody, and what is not.
	known := c.client("me", httpapi.ConsumerRole)
	stranger := httpapi.ClientOptions{TLS: known.TLS.Clone()}
	stranger.TLS.GetClientCertificate = nil
	for _, tt := range []struct {
		who    string
		o      httpapi.ClientOptions
		path   string
		status int
		body   string
	}{
		{"a stranger", stranger, "/healthz", 200, `"ok"`},
		{"a stranger", stranger, "/readyz", 200, `"leader"`},
		{"a stranger", stranger, "/metrics", 403, "metrics_listen"},
		{"a consumer", known, "/metrics", 200, "diego_leader 1\n"},
	} {
		if status, body := get(t, tt.o, p.URL+tt.path); status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%s gets %s: %d %s", tt.who, tt.path, status, body)
		}
	}
	other := newCertificates(t).client("me", httpapi.ConsumerRole)
	other.TLS.RootCAs = known.TLS.RootCAs
	if r, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: other.TLS}}).Get(p.URL + "/healthz"); err == nil {
		r.Body.Close()
		t.Error("a certificate of another authority is accepted")
	}

	// The open listener has the figures for everybody.
	if _, figures := get(t, httpapi.ClientOptions{}, p.await("figures").URL); !strings.Contains(figures, "# TYPE diego_commit_seconds histogram\n") {
		t.Errorf("the figures are %s", figures)
	}
	if status := p.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	c := newCertificates(t)
	p := start(t, "bbs", append(c.issue("bbs", httpapi.BBSRole, httpapi.AuctioneerRole), "--store", "sqlite:"+filepath.Join(t.TempDir(), "diego.db"))...)
	serial := func() string {
		o := c.client("me", httpapi.ConsumerRole)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}}
		r, err := client.Get(p.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.TLS.PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	c.issue("bbs", httpapi.BBSRole, httpapi.AuctioneerRole)
	eventually(t, "the new certificate is shown", func() (bool, error) { return serial() != before, nil })
}

func TestAStandbyTakesOverAndNothingIsLost(t *testing.T) {
	c := newCertificates(t)
	args := append(c.issue("bbs", httpapi.BBSRole, httpapi.AuctioneerRole), "--leader-ttl", "1500ms",
		"--store", "sqlite:"+filepath.Join(t.TempDir(), "diego.db"))
	first := start(t, "bbs", args...)
	first.await("leading")
	second := start(t, "bbs", args...)
	consumer := c.bbs(httpapi.ConsumerRole, second.URL, first.URL) // the standby says who leads
	ctx := within(t)
	for i, guid := range []string{"a", "b", "c", "d", "e", "f"} {
		if i == 3 {
			first.kill()
		}
		if err := consumer.Desire(bbs.WithRequestID(ctx, "desire "+guid), sleeper(guid, 1)); err != nil {
			t.Fatal(err)
		}
	}
	second.await("leading")
	all, err := list(consumer.DesiredLRPs(ctx, storage.DeploymentFilter{}))
	if err != nil || len(all) != 6 {
		t.Errorf("%d LRPs, %v", len(all), err)
	}
	// A leader that is asked to end makes way at once.
	third := start(t, "bbs", args...)
	if status := second.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	third.await("leading")
}

func TestABBSEncryptsItsRecordsAndTurnsKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "diego.db")
	args := []string{"--plain", "--store", "sqlite:" + path, "--store-keys"}
	key := func(label string) string {
		file := filepath.Join(dir, label+".key")
		text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(label), 32))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return label + "=" + file
	}
	a, b := key("a"), key("b")
	session := func(says string, do func(context.Context, *httpapi.RemoteBBS) error, keys ...string) {
		t.Helper()
		p := start(t, "bbs", append(args, keys...)...)
		p.await(says)
		client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{p.URL}, AllowPlain: true})
		if err == nil {
			err = do(within(t), client)
		}
		if err != nil {
			t.Fatal(err)
		}
		if status := p.terminate(); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
	web := sleeper("web", 0)
	web.Annotation = "correct horse battery staple"
	session("leading", func(ctx context.Context, c *httpapi.RemoteBBS) error { return c.Desire(ctx, web) }, a, "--store-key", "a")
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte(web.Annotation)) {
		t.Errorf("the annotation can be read in the file: %v", err)
	}
	session("store_rotate is done; if every process has this store_key, no record needs another key",
		func(context.Context, *httpapi.RemoteBBS) error { return nil }, a+","+b, "--store-key", "b", "--store-rotate")
	session("leading", func(ctx context.Context, c *httpapi.RemoteBBS) error {
		d, err := c.DesiredLRP(ctx, "web")
		if d.Annotation != web.Annotation {
			t.Errorf("with the new key alone the annotation is %q", d.Annotation)
		}
		return err
	}, b, "--store-key", "b")
}

func TestABBSWorksOnEveryDatabase(t *testing.T) {
	for _, tt := range []struct {
		name string
		dsn  func(testing.TB) string
	}{{"PostgreSQL", testdb.Postgres}, {"MySQL", testdb.MySQL}} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := tt.dsn(t)
			if !strings.Contains(dsn, "://") {
				dsn = "mysql:" + dsn
			}
			p := start(t, "bbs", "--plain", "--store", dsn)
			p.await("leading")
			client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{p.URL}, AllowPlain: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx := within(t)
			if err := client.Desire(ctx, sleeper("web", 2)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "two records", func() (bool, error) {
				all, err := list(client.ActualLRPs(ctx, storage.ActualLRPFilter{}))
				return len(all) == 2, err
			})
			if status := p.terminate(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if strings.Contains(p.text(), dsn) {
				t.Error("the data source name is in the log")
			}
		})
	}
}

func TestASubscriberGoesOnWithTheStandby(t *testing.T) {
	args := []string{"--plain", "--leader-ttl", "1s", "--store", "sqlite:" + filepath.Join(t.TempDir(), "diego.db")}
	first := start(t, "bbs", args...)
	first.await("leading")
	second := start(t, "bbs", args...)
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{
		Addresses: []string{first.URL, second.URL}, AllowPlain: true, Attempts: 1000, Pause: 20 * time.Millisecond, Patience: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	events, err := client.Subscribe(ctx, bbs.FromStart, storage.EventFilter{Kinds: []string{storage.KindDomainUpserted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.UpsertDomain(ctx, "domain-0", 0); err != nil {
		t.Fatal(err)
	}
	n := 0
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if want := "domain-" + string(rune('0'+n)); e.Domain.Domain != want {
			t.Errorf("%s came, and not %s", e.Domain.Domain, want)
		}
		if n++; n == 4 {
			break
		}
		if n == 2 {
			first.kill()
		}
		if err := client.UpsertDomain(ctx, "domain-"+string(rune('0'+n)), 0); err != nil {
			t.Fatal(err)
		}
	}
}
