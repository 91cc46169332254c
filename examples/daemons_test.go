package examples_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/testdb"
)

// terminate asks a daemon to end.
const terminate = syscall.SIGTERM

// patience bounds what must happen; nothing waits for it to pass.
const patience = 60 * time.Second

var binaries string

func TestMain(m *testing.M) { testdb.Main(built{m}) }

// built runs tests that have the daemons' binaries.
type built struct{ m *testing.M }

func (b built) Run() int {
	dir, err := os.MkdirTemp("", "diego-daemons-")
	if err == nil {
		binaries = dir
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-o", dir, "./bbs", "./auctioneer", "./rep")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return b.m.Run()
}

// builtDiegoctl builds diegoctl for the first test that wants it.
func builtDiegoctl(t *testing.T) string {
	t.Helper()
	path, err := buildDiegoctl()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildDiegoctl = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "diegoctl")
	if out, err := exec.Command("go", "build", "-o", path, "./diegoctl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// A process is a daemon that runs.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	// URL is where it listens.
	URL string
	// ended is closed when the process has ended.
	ended chan struct{}

	mu    sync.Mutex
	lines []logLine
	more  chan struct{} // closed by the next line
}

type logLine struct {
	Message string `json:"msg"`
	URL     string `json:"url"`
	text    string
}

// launch starts a daemon.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, ended: make(chan struct{}), more: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(binaries, name), append([]string{"--log-format", "json", "--log-level", "debug", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.read(stderr)
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, p.text())
		}
	})
	return p
}

// start starts a daemon and waits until it listens.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := launch(t, name, args...)
	p.URL = p.await("listening").URL
	return p
}

func (p *process) read(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		l := logLine{text: s.Text()}
		_ = json.Unmarshal(s.Bytes(), &l)
		p.mu.Lock()
		p.lines = append(p.lines, l)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// await is the first line of the log with a message.
func (p *process) await(message string) logLine {
	p.t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for _, l := range lines {
			if l.Message == message {
				return l
			}
		}
		select {
		case <-more:
		case <-p.ended:
			p.t.Fatalf("%s ended without saying %q:\n%s", p.name, message, p.text())
		case <-late:
			p.t.Fatalf("%s does not say %q:\n%s", p.name, message, p.text())
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// terminate asks the daemon to end and returns its exit status.
func (p *process) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(terminate); err != nil {
		p.t.Fatal(err)
	}
	return p.status()
}

// status waits for the end.
func (p *process) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end:\n%s", p.name, p.text())
	}
	return p.cmd.ProcessState.ExitCode()
}

// certificates are those of one test.
type certificates struct {
	t         *testing.T
	authority *devcerts.Authority
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	a, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &certificates{t, a}
}

// issue makes the certificate of name with the roles, and returns its flags.
func (c *certificates) issue(name string, roles ...httpapi.Role) []string {
	c.t.Helper()
	r := devcerts.Request{File: name, Name: name, Hosts: []string{"127.0.0.1", host(1), host(2), host(3)}, For: time.Hour}
	for _, role := range roles {
		r.Units = append(r.Units, "diego-"+string(role))
	}
	cert, key, err := c.authority.Issue(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return []string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", c.authority.CA()}
}

// client are the options of a client with a certificate of its own.
func (c *certificates) client(name string, roles ...httpapi.Role) httpapi.ClientOptions {
	c.t.Helper()
	flags := c.issue(name, roles...)
	var s struct {
		daemon.Logging
		daemon.TLS
	}
	err := daemon.Load(&s, flags)
	var own *daemon.Certificates
	if err == nil {
		own, err = s.Certificates(s.Logger(io.Discard))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return httpapi.ClientOptions{TLS: own.Client(), Attempts: 1000, Pause: 50 * time.Millisecond, Timeout: 5 * time.Second}
}

func (c *certificates) bbs(role httpapi.Role, urls ...string) *httpapi.RemoteBBS {
	c.t.Helper()
	o := c.client(string(role), role)
	o.Addresses = urls
	client, err := httpapi.NewRemoteBBS(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// get is the status and body of a plain request.
func get(t *testing.T, o httpapi.ClientOptions, url string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}, Timeout: patience}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() (bool, error)) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, err = ask(); ok && err == nil {
			return
		}
	}
	t.Fatalf("not in time: %s (%v)", what, err)
}

func list[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, e := range seq {
		if e != nil {
			return all, errors.Join(err, e)
		}
		all = append(all, v)
	}
	return all, nil
}
