//go:build unix

package manager_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

func download(from string) executor.Action {
	return executor.Action{Download: &executor.DownloadAction{From: from, To: "/app", User: "app"}}
}

func zipOf(name, content string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err == nil {
		io.WriteString(f, content)
	}
	w.Close()
	return b.Bytes()
}

func TestAHostileOrBrokenDownloadFailsTheSetupWithItsReason(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Write(zipOf("bomb", strings.Repeat("\x00", 2<<20)))
		case "/traversal":
			tgz(w, "../../evil", "x")
		case "/text":
			io.WriteString(w, "not an archive")
		case "/endless":
			for range 1 << 12 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	h := newHost(t, func(o *manager.Options) { o.MaxContentBytes, o.MaxDownloadBytes = 1<<20, 1<<20 })
	for path, want := range map[string]string{
		"/bomb":      "archive too large: it holds more bytes than MaxContentBytes, which is 1048576",
		"/traversal": `unsafe archive: the entry "../../evil" leads out of the archive`,
		"/text":      "neither a tar, nor a gzipped tar, nor a zip",
		"/endless":   "has more bytes than MaxDownloadBytes, which is 1048576",
		"/missing":   "answers 404 Not Found",
	} {
		t.Run(path, func(t *testing.T) {
			guid := strings.TrimPrefix(path, "/")
			h.launch(guid, with(work(sh("sleep 1000")), func(w *manager.Work) { w.Setup = ptr(download(server.URL + path + "?token=hush")) }))
			c := h.await(guid, executor.Completed)
			reason := c.RunResult.FailureReason
			if !strings.HasPrefix(reason, "setup failed: download of the archive to /app: ") || !strings.Contains(reason, want) || strings.Contains(reason, "hush") {
				t.Errorf("the reason is %q", reason)
			}
			h.remove(guid)
		})
	}
}

func TestEachConnectionOfATransferAsksHowToMeetItsServer(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		tgz(w, "f", "x")
	}))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	var trusted atomic.Pointer[x509.CertPool]
	var asked atomic.Int32
	h := newHost(t, func(o *manager.Options) {
		o.TransferTLS = func(host string) *tls.Config {
			if asked.Add(1); host != "127.0.0.1" {
				t.Errorf("asked about %q", host)
			}
			if trusted.Load() == nil {
				return nil
			}
			return &tls.Config{RootCAs: trusted.Load()}
		}
	})
	get := func(guid string) string {
		h.launch(guid, with(work(sh("true")), func(w *manager.Work) { w.Setup = ptr(download(server.URL)) }))
		defer h.remove(guid)
		return h.await(guid, executor.Completed).RunResult.FailureReason
	}
	if reason := get("distrusted"); !strings.Contains(reason, "unknown authority") {
		t.Errorf("a server that nobody trusts: %q", reason)
	}
	everybody := x509.NewCertPool()
	everybody.AddCert(server.Certificate())
	trusted.Store(everybody)
	for _, guid := range []string{"trusted", "again"} {
		before := asked.Load()
		if reason := get(guid); reason != "" {
			t.Errorf("%s: %q", guid, reason)
		}
		if n := asked.Load() - before; n != 1 {
			t.Errorf("%s: asked %d times for one connection", guid, n)
		}
	}
}

func TestAHandshakeWithoutALimitMayTakeAsLongAsItLikes(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	transport := &http.Transport{DialContext: new(net.Dialer).DialContext}
	dial := manager.DialTLS(transport, func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} })
	c, err := dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestATransferReachesThisHostOnlyIfItIsAllowed(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		tgz(w, "f", "x")
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// This one may be reached, and leads to the other.
	redirect := httptest.NewServer(http.RedirectHandler("http://0.0.0.0:"+port+"/", http.StatusTemporaryRedirect))
	defer redirect.Close()
	dependency := func(from string) manager.Work {
		return with(work(sh("true")), func(w *manager.Work) { w.CachedDependencies = []executor.CachedDependency{{From: from, To: "/tools"}} })
	}
	setup := func(from string) manager.Work {
		return with(work(sh("true")), func(w *manager.Work) { w.Setup = ptr(download(from)) })
	}
	upload := func(to string) manager.Work {
		return work(serial(sh("echo x > file"), executor.Action{Upload: &executor.UploadAction{From: "/file", To: to, User: "app"}}))
	}
	denied := newHost(t, func(o *manager.Options) { o.TransferAllow = nil })
	redirected := newHost(t)
	for name, c := range map[string]struct {
		host *host
		work manager.Work
	}{
		"a-download": {denied, setup(server.URL)}, "a-name": {denied, setup("http://localhost:" + port)},
		"a-mapped-address": {denied, setup("http://[::ffff:127.0.0.1]:" + port)},
		"a-dependency":     {denied, dependency(server.URL)}, "an-upload": {denied, upload(server.URL)},
		"a-redirect": {redirected, setup(redirect.URL)},
	} {
		t.Run(name, func(t *testing.T) {
			c.host.launch(name, c.work)
			reason := c.host.await(name, executor.Completed).RunResult.FailureReason
			if !strings.Contains(reason, "the address may not be reached") || asked.Load() > 0 {
				t.Errorf("the reason is %q, and it was reached %d times", reason, asked.Load())
			}
		})
	}
}

func TestAStopCancelsATransfer(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or the server would not notice that its client goes
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	h := newHost(t)
	for guid, w := range map[string]manager.Work{
		"setup": with(work(sh("sleep 1000")), func(w *manager.Work) { w.Setup = ptr(download(server.URL)) }),
		"action": work(serial(sh("echo x > file"), executor.Action{Upload: &executor.UploadAction{
			From: "/file", To: server.URL, User: "app"}})),
		"creation": with(work(sh("sleep 1000")), func(w *manager.Work) {
			w.CachedDependencies = []executor.CachedDependency{{From: server.URL, To: "/tools"}}
		}),
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted %v", guid, deleted), func(t *testing.T) {
				h.launch(guid, w)
				<-asked
				begin := time.Now()
				if !deleted {
					if err := h.Stop(guid); err != nil {
						t.Fatal(err)
					}
					if c := h.await(guid, executor.Completed); c.RunResult != executor.Stopped() {
						t.Errorf("the container is %s", describe(c))
					}
				}
				h.remove(guid)
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// Two domains whose servers send little take all places of the downloads. Containers that
// need nothing from a server, or only what the cell has, are made at once.
func TestContainersThatWaitForServersHoldUpNoCreation(t *testing.T) {
	var content bytes.Buffer
	tgz(&content, "run", "#!/bin/sh\n")
	sum := sha256.Sum256(content.Bytes())
	slow := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			slow <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Write(content.Bytes())
	}))
	defer server.Close()
	needs := func(path string) func(*manager.Work) {
		return func(w *manager.Work) {
			w.ImageLayers = []executor.ImageLayer{{
				URL: server.URL + path, DestinationPath: "/layer", MediaType: executor.MediaTypeTGZ, LayerType: executor.LayerShared,
				DigestAlgorithm: executor.DigestSHA256, DigestValue: hex.EncodeToString(sum[:]),
			}}
		}
	}
	const places = 3
	h := newHost(t, func(o *manager.Options) { o.CreateWorkers, o.Downloads = 2, places })
	launch := func(domain, guid string, w manager.Work) {
		w.Tags = map[string]string{executor.TagDomain: domain}
		h.launch(guid, w)
	}
	launch("good", "first", with(work(sh("layer/run")), needs("/quick")))
	h.await("first", executor.Completed)
	const hostile = 12
	for i := range hostile {
		launch(fmt.Sprint("hostile-", i%2), fmt.Sprint("hostile-", i), with(work(sh("exit 0")), func(w *manager.Work) {
			needs("/slow")(w)
			w.ImageLayers[0].URL += fmt.Sprint("?", i)
		}))
	}
	for range places {
		<-slow
	}
	begin := time.Now()
	launch("good", "nothing", work(sh("exit 0")))
	launch("good", "cached", with(work(sh("layer/run")), needs("/quick")))
	for _, guid := range []string{"nothing", "cached"} {
		if c := h.await(guid, executor.Completed); c.RunResult != executor.Succeeded() {
			t.Errorf("%s is %s", guid, describe(c))
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("they waited for %v", took)
	}
	for i := range hostile { // some of them wait for a place
		if err := h.Stop(fmt.Sprint("hostile-", i)); err != nil {
			t.Error(err)
		}
	}
	for i := range hostile {
		if c := h.await(fmt.Sprint("hostile-", i), executor.Completed); c.RunResult != executor.Stopped() {
			t.Errorf("the container is %s", describe(c))
		}
	}
	if took := time.Since(begin); took > 25*time.Second {
		t.Errorf("their stop took until %v", took)
	}
	for _, c := range h.List() {
		h.remove(c.GUID)
	}
	if !h.Remaining().Equal(h.Total()) {
		t.Errorf("%+v remains of %+v", h.Remaining(), h.Total())
	}
}

func TestImageLayersAreMountedOrExtracted(t *testing.T) {
	var content bytes.Buffer
	tgz(&content, "run", "#!/bin/sh\necho layer\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(content.Bytes()) }))
	defer server.Close()
	sum := sha256.Sum256(content.Bytes())
	layers := func(value string) func(*manager.Work) {
		return func(w *manager.Work) {
			w.LegacyDownloadUser = "app"
			w.ImageLayers = []executor.ImageLayer{
				{URL: server.URL, DestinationPath: "/shared", MediaType: executor.MediaTypeTGZ, LayerType: executor.LayerShared},
				{URL: server.URL, DestinationPath: "/own", MediaType: executor.MediaTypeTGZ, LayerType: executor.LayerExclusive,
					DigestAlgorithm: executor.DigestSHA256, DigestValue: value},
			}
		}
	}
	h := newHost(t)
	h.launch("good", with(work(sh("shared/run && own/run && [ ! -L own ] && [ -L shared ] && echo fine")), layers(hex.EncodeToString(sum[:]))))
	if c := h.await("good", executor.Completed); c.RunResult != executor.Succeeded() {
		t.Errorf("the container is %s", describe(c))
	}
	if got := h.log("good", manager.Stdout); got != "layer\nlayer\nfine\n" {
		t.Errorf("it says %q", got)
	}
	h.launch("bad", with(work(sh("exit 0")), layers(strings.Repeat("0", 64))))
	if c := h.await("bad", executor.Completed); !c.RunResult.Retryable || !strings.Contains(c.RunResult.FailureReason, "checksum does not match") {
		t.Errorf("the container is %s", describe(c))
	}
}

func TestTenThousandVariablesReachTheProcess(t *testing.T) {
	h := newHost(t)
	h.launch("c", with(work(sh("env | grep -c ^V; echo $V9999")), func(w *manager.Work) {
		for i := range executor.MaxListLength {
			w.Env = append(w.Env, executor.EnvVar{Name: fmt.Sprint("V", i), Value: fmt.Sprint(i)})
		}
	}))
	h.await("c", executor.Completed)
	if got := h.log("c", manager.Stdout); got != "10000\n9999\n" {
		t.Errorf("it says %q", got)
	}
}

func TestCachedDependenciesTakeAtMostTheDiskOfTheirContainer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tgz(w, "content", strings.Repeat("x", 700<<10))
	}))
	defer server.Close()
	h := newHost(t)
	needs := func(names ...string) manager.Work {
		return with(work(sh("exit 0")), func(w *manager.Work) {
			for _, name := range names {
				w.CachedDependencies = append(w.CachedDependencies, executor.CachedDependency{Name: name, From: server.URL + "/" + name, To: "/" + name})
			}
		})
	}
	for _, test := range []struct {
		guid   string
		diskMB int64
		work   manager.Work
		want   string // in the reason
	}{
		{"one", 1, needs("a"), ""},
		{"two", 1, needs("a", "b"), "cached dependency b: archive too large: it takes more disk than the 331776 bytes that there are for it (what the container's cached dependencies take together is at most its DiskMB)"},
		{"kept", 1, needs("b", "a"), "cached dependency a: archive too large: it takes more disk than the 331776 bytes"},
		{"larger", 2, needs("a", "b"), ""},
		{"without", 0, needs("a", "b", "c"), ""},
	} {
		t.Run(test.guid, func(t *testing.T) {
			for _, r := range h.Reserve(reservation(test.guid, 1, test.diskMB, 0)) {
				t.Fatal(r.Err)
			}
			if err := h.Initialize(test.guid, test.work); err != nil {
				t.Fatal(err)
			}
			c := h.await(test.guid, executor.Completed)
			if c.RunResult.Failed != (test.want != "") || !strings.Contains(c.RunResult.FailureReason, test.want) {
				t.Errorf("it is %s", describe(c))
			}
			h.remove(test.guid)
		})
	}
}

func TestTheLinesAboutADependencyHaveItsSource(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tgz(w, "run", "text") }))
	defer server.Close()
	h := newHost(t)
	h.launch("c", with(work(sh("echo one")), func(w *manager.Work) {
		w.LogSource = "APP"
		w.CachedDependencies = []executor.CachedDependency{{Name: "tools", LogSource: "DEPENDENCY", From: server.URL, To: "/tools"}}
		w.ImageLayers = []executor.ImageLayer{{
			Name: "layer", URL: server.URL, DestinationPath: "/layer", MediaType: executor.MediaTypeTGZ, LayerType: executor.LayerShared,
		}}
	}))
	h.await("c", executor.Completed)
	want := []string{"DEPENDENCY: Downloading tools\nDownloaded tools\n", "APP: Downloading layer\nDownloaded layer\none\n"}
	if got := said(t, h.Manager, "c", manager.Stdout); !slices.Equal(got, want) {
		t.Errorf("stdout says %q, want %q", got, want)
	}
}
