package examples_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/task"
)

// archive is a tar with files that everybody may read.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A task on a preloaded root file system with a layer, which a server hands out
// to clients with a certificate only, finds its identity and the authorities that
// it is to trust.
func TestAContainerHasWhatTheSettingsOfItsCellAndItsDefinitionSay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)
	app, err := appArchive()
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	if _, err := z.Write(archive(t, map[string]string{"layered": "from the layer"})); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	issue := func(a *devcerts.Authority, name string) (cert, key string) {
		t.Helper()
		cert, key, err := a.Issue(devcerts.Request{File: name, Name: name, Hosts: []string{"127.0.0.1"}, For: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	blobs, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(blobs.CA())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(issue(blobs, "server"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(map[string][]byte{"/app.tgz": app, "/layer.tgz": layer.Bytes()}[r.URL.Path])
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	identity, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image, trusted := filepath.Join(t.TempDir(), "image.tar"), t.TempDir()
	if err := os.WriteFile(image, archive(t, map[string]string{"etc/passwd": "root:x:0:0::/:/\n", "etc/group": "root:x:0:\n"}), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(trusted, "ca.pem"), []byte("whom to trust"), 0o644); err != nil {
		t.Fatal(err)
	}
	cert, key := issue(blobs, "cell")
	c.startCell("cell-1", "--drain=false", "--preloaded", "small=tar://"+image, "--trusted-certificates", trusted,
		"--transfer-tls-cert", cert, "--transfer-tls-key", key, "--transfer-tls-ca", blobs.CA(),
		"--identity-ca-cert", identity.CA(), "--identity-ca-key", identity.CAKey(), "--identity-lifetime", "1h")

	sum := sha256.Sum256(layer.Bytes())
	run := executor.RunInfo{
		RootFS: "preloaded+layer:small?" + url.Values{
			"layer": {server.URL + "/layer.tgz"}, "layer_path": {"/"}, "layer_digest": {hex.EncodeToString(sum[:])},
		}.Encode(),
		CachedDependencies:            []executor.CachedDependency{{Name: "app", From: server.URL + "/app.tgz", To: "/app", CacheKey: "app"}},
		CertificateProperties:         &executor.CertificateConfig{OrganizationalUnit: []string{"app:7"}},
		TrustedSystemCertificatesPath: "/etc/trusted",
		Action: executor.Action{Run: &executor.RunAction{
			Path: "/app/app", Args: []string{"join", "/result", "/layered", "$CF_SYSTEM_CERT_PATH/ca.pem", "$CF_INSTANCE_CERT"}, User: "root",
		}},
	}
	if err := c.client.DesireTask(within(t), task.Desire{GUID: "looks", Domain: domain, Definition: task.Definition{
		Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, ResultFile: "/result", RunInfo: run,
	}}); err != nil {
		t.Fatal(err)
	}
	var ended *task.Task
	c.eventually("the task ends", func() (bool, error) {
		ended, err = c.client.Task(within(t), "looks")
		return err == nil && ended.State == task.Completed, err
	})
	found := strings.SplitN(ended.Result, "\n", 3)
	if ended.Failed || len(found) != 3 || found[0] != "from the layer" || found[1] != "whom to trust" {
		t.Fatalf("it found %q, and failed: %q", ended.Result, ended.FailureReason)
	}
	block, _ := pem.Decode([]byte(found[2]))
	if block == nil {
		t.Fatalf("its certificate is %q", found[2])
	}
	own, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if own.Subject.CommonName != ended.InstanceGUID || !slices.Equal(own.Subject.OrganizationalUnit, []string{"app:7"}) {
		t.Errorf("its certificate says %v, want the instance %s", own.Subject, ended.InstanceGUID)
	}
	if text, err := os.ReadFile(identity.CA()); err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	if _, err := own.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Error(err)
	}
}
