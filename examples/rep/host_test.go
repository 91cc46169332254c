//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// What scripts/test-hosts says about the machine that a test runs in. Without
// it the test starts a control plane of its own.
const (
	planeVariable = "DIEGO_TEST_BBS"   // URL of a control plane outside
	certsVariable = "DIEGO_TEST_CERTS" // directory of its authority
	cellVariable  = "DIEGO_TEST_CELL"  // URL at which the control plane reaches the cell
	appsVariable  = "DIEGO_TEST_APPS"  // address at which firstPort of this machine is reached from outside; the next ones are reached at the next
	unitVariable  = "DIEGO_TEST_UNIT"  // unit of systemd that runs the cell with the settings in unitSettings
)

const unitSettings = "/etc/diego/rep.json"

// beRep makes the test's own binary the daemon.
const beRep = "DIEGO_TEST_BE_REP"

func TestMain(m *testing.M) {
	if os.Getenv(beRep) != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience bounds what must happen; nothing waits for it to pass. An emulated
// processor is slow.
const patience = 8 * time.Minute

func eventually(t *testing.T, what string, ask func() (bool, error)) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // between two looks
		var ok bool
		if ok, err = ask(); ok && err == nil {
			return
		}
	}
	t.Fatalf("not in time: %s (%v)", what, err)
}

// A host is this machine as a cell of a control plane.
type host struct {
	t         *testing.T
	authority *devcerts.Authority
	plane     string
	client    *httpapi.RemoteBBS
	settings  map[string]any
	rep       *exec.Cmd // unless systemd runs it
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	b, err := daemon.OpenBackend(t.Context(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: filepath.Join(dir, "try")})
	if err != nil {
		testenv.Missing(t, "a host for real containers", err.Error())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, plane: os.Getenv(planeVariable)}
	certs := os.Getenv(certsVariable)
	if h.plane == "" {
		certs = t.TempDir()
	}
	// The directory may be read-only, and certificates are made in it.
	own := filepath.Join(dir, "certs")
	if err := os.CopyFS(own, os.DirFS(certs)); err != nil {
		t.Fatal(err)
	}
	if h.authority, err = devcerts.Open(own); err != nil {
		t.Fatal(err)
	}
	if h.plane == "" {
		h.plane = h.startPlane(dir)
	}
	h.client = h.newClient()

	cert, key, ca := h.issue("host-1", httpapi.CellRole)
	h.settings = map[string]any{
		"listen": "127.0.0.1:0", "cell_id": "host-1", "dir": filepath.Join(dir, "cell"), "bbs": []string{h.plane},
		"tls_cert": cert, "tls_key": key, "tls_ca": ca, "self_test": false, "memory_mb": 8192, "disk_mb": 8192,
		"external_ip": "127.0.0.1", "first_port": firstPort, "last_port": lastPort, "presence_ttl": "15s", "sync_interval": "1s", "drain": true, "evacuation_timeout": "1m", "backend": "libcontainer",
	}
	if url := os.Getenv(cellVariable); url != "" {
		h.settings["listen"], h.settings["advertise"] = "0.0.0.0:1801", url
	}
	return h
}

// issue makes a certificate and is the paths of its three files.
func (h *host) issue(name string, roles ...httpapi.Role) (cert, key, ca string) {
	h.t.Helper()
	r := devcerts.Request{File: name, Name: name, Hosts: []string{"127.0.0.1"}, For: time.Hour}
	for _, role := range roles {
		r.Units = append(r.Units, "diego-"+string(role))
	}
	cert, key, err := h.authority.Issue(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return cert, key, h.authority.CA()
}

// startPlane starts a control plane on this machine, and is its URL.
func (h *host) startPlane(dir string) string {
	h.t.Helper()
	program := filepath.Join(dir, "bbs")
	if out, err := exec.Command("go", "build", "-o", program, "../bbs").CombinedOutput(); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	cert, key, ca := h.issue("bbs", httpapi.BBSRole, httpapi.AuctioneerRole)
	cmd := exec.Command(program, "--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(dir, "diego.db"),
		"--log-format", "json", "--tls-cert", cert, "--tls-key", key, "--tls-ca", ca)
	log := filepath.Join(dir, "bbs.log")
	h.start(cmd, log)
	var url string
	eventually(h.t, "the control plane leads", func() (bool, error) {
		text, err := os.ReadFile(log)
		for line := range strings.Lines(string(text)) {
			var l struct{ URL string }
			if json.Unmarshal([]byte(line), &l) == nil && l.URL != "" {
				url = l.URL
			}
		}
		return url != "" && strings.Contains(string(text), `"leading"`), err
	})
	return url
}

// start starts a daemon, whose log is shown if the test fails.
func (h *host) start(cmd *exec.Cmd, log string) {
	h.t.Helper()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill() // or it has ended
		_ = cmd.Wait()
		if text, err := os.ReadFile(log); h.t.Failed() {
			h.t.Logf("%s: %v\n%s", log, err, text)
		}
	})
}

func (h *host) newClient() *httpapi.RemoteBBS {
	h.t.Helper()
	var s struct {
		daemon.Logging
		daemon.TLS
	}
	cert, key, ca := h.issue("test", httpapi.ConsumerRole, httpapi.OperatorRole)
	err := daemon.Load(&s, []string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", ca})
	var own *daemon.Certificates
	if err == nil {
		own, err = s.Certificates(s.Logger(io.Discard))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{
		TLS: own.Client(), Addresses: []string{h.plane}, Attempts: 1000, Pause: 100 * time.Millisecond, Timeout: 30 * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

// startCell starts the daemon, as a unit of systemd where there is one.
func (h *host) startCell() {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "rep.json")
	unit := os.Getenv(unitVariable)
	if unit != "" {
		file = unitSettings
	}
	text, err := json.Marshal(h.settings)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if unit != "" {
		h.systemctl("start", unit)
		return
	}
	h.rep = exec.Command("/proc/self/exe", "--config", file)
	h.rep.Env = append(os.Environ(), beRep+"=1")
	h.start(h.rep, filepath.Join(filepath.Dir(h.authority.CA()), "rep.log"))
}

func (h *host) systemctl(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("systemctl %q: %v: %s", args, err, out)
	}
}

// killCell kills the daemon.
func (h *host) killCell() {
	h.t.Helper()
	if unit := os.Getenv(unitVariable); unit != "" {
		h.systemctl("kill", "--kill-who=main", "--signal=KILL", unit)
		return
	}
	if err := h.rep.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	_ = h.rep.Wait()
	eventually(h.t, "what ran has ended with its daemon", func() (bool, error) { return sleepers() == 0, nil })
}

// resumeCell starts the daemon that was killed, as systemd does by itself.
func (h *host) resumeCell() {
	h.t.Helper()
	if os.Getenv(unitVariable) == "" {
		h.startCell()
	}
}

// endCell drains the cell and ends the daemon.
func (h *host) endCell() {
	h.t.Helper()
	if unit := os.Getenv(unitVariable); unit != "" {
		h.systemctl("stop", unit)
		if err := exec.Command("systemctl", "is-failed", unit).Run(); err == nil {
			h.t.Errorf("%s has failed", unit)
		}
		return
	}
	if err := h.rep.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	if err := h.rep.Wait(); err != nil {
		h.t.Errorf("the daemon ended with %v", err)
	}
}

// instances are those of an LRP that run, by index.
func (h *host) instances(guid string) (map[int]string, error) {
	running := map[int]string{}
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for r, err := range h.client.ResolvedLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}) {
		if err != nil {
			return nil, err
		}
		if r.State == lrp.Running {
			running[r.Index] = r.InstanceGUID
		}
	}
	return running, nil
}

// The ports for containers.
const firstPort, lastPort = 61001, 61008

// address is where the only port of an LRP with one instance is reached, once
// it runs.
func (h *host) address(guid string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for r, err := range h.client.ResolvedLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}) {
		switch {
		case err != nil:
			return "", err
		case len(r.Ports) != 1:
			continue
		case os.Getenv(appsVariable) == "":
			return net.JoinHostPort(r.Address, strconv.Itoa(int(r.Ports[0].HostPort))), nil
		}
		outside, first, err := net.SplitHostPort(os.Getenv(appsVariable))
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(first)
		return net.JoinHostPort(outside, strconv.Itoa(n+int(r.Ports[0].HostPort)-firstPort)), err
	}
	return "", nil
}

// nap is how long the instances of the test sleep. No other process of a
// machine sleeps as long.
const nap = "98765.5"

// sleepers is how many processes of instances this machine has.
func sleepers() (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && string(text) == "/bin/sleep\x00"+nap+"\x00" {
			n++
		}
	}
	return n
}

func work(guid string, instances int, action executor.RunAction, ports ...uint16) lrp.DesiredLRP {
	action.User = "nobody"
	return lrp.DesiredLRP{
		ProcessGUID: guid, Domain: "hosts", Settings: lrp.Settings{Instances: instances},
		Definition: lrp.Definition{
			Resources: executor.Resources{MemoryMB: 32},
			RunInfo:   executor.RunInfo{RootFS: "host:", Ports: ports, Action: executor.Action{Run: &action}},
		},
	}
}

func TestFiftyRealContainersRunAtOnceAndWhatIsWantedRunsAgainAfterTheirDaemonWasKilled(t *testing.T) {
	const fifty = 50
	h := newHost(t)
	h.startCell()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()

	if err := h.client.Desire(ctx, work("web", 1, executor.RunAction{Path: "/usr/bin/perl", Args: []string{"-MIO::Socket::INET", "-e",
		`my $l = IO::Socket::INET->new(Listen => 9, LocalPort => 8080) or die; while (my $c = $l->accept) { <$c>; print $c "HTTP/1.0 200 OK\r\n\r\nhello from outside"; close $c }`}}, 8080)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an instance answers through its port", func() (bool, error) {
		address, err := h.address("web")
		if address == "" || err != nil {
			return false, err
		}
		response, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + address + "/")
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body) == "hello from outside", err
	})

	run := func(guid string, instances int) (now map[int]string) {
		if err := h.client.Desire(ctx, work(guid, instances, executor.RunAction{Path: "/bin/sleep", Args: []string{nap}})); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("%d containers run", instances), func() (_ bool, err error) {
			now, err = h.instances(guid)
			return len(now) == instances, err
		})
		return now
	}
	few := run("few", 3)
	run("fifty", fifty)
	if n := sleepers(); n != fifty+len(few) {
		t.Errorf("%d processes run", n)
	}

	h.killCell()
	if err := h.client.DeleteDeployment(ctx, "fifty"); err != nil {
		t.Fatal(err)
	}
	h.resumeCell()
	eventually(t, "what is still wanted runs in other containers, and nothing else does", func() (bool, error) {
		now, err := h.instances("few")
		for index, instance := range now {
			if few[index] == instance {
				return false, fmt.Errorf("index %d is still %s", index, instance)
			}
		}
		return len(now) == len(few) && sleepers() == len(few), err
	})

	if err := errors.Join(h.client.DeleteDeployment(ctx, "few"), h.client.DeleteDeployment(ctx, "web")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing runs", func() (bool, error) {
		few, err := h.instances("few")
		web, err2 := h.instances("web")
		return len(few)+len(web)+sleepers() == 0, errors.Join(err, err2)
	})
	h.endCell()
}
