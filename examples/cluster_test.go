package examples_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// presence is how long a cell is present that is not heard of, and leading how
// long a leader leads.
const (
	presence = 5 * time.Second
	leading  = 2 * time.Second
)

// A cluster is a whole system of real daemons, each at a loopback address of
// its own, as on a host of its own.
type cluster struct {
	t         *testing.T
	authority *devcerts.Authority
	dsn       string
	apps      string // where the app can be downloaded

	bbsHosts, auctioneerHosts []string
	bbs, auctioneers          map[string]*process
	cells                     map[string]*process
	client                    *httpapi.RemoteBBS
}

// hosts counts the addresses that were given out.
var hosts atomic.Uint32

// newHost is an address of this host that nobody else uses, in this process or
// in another that tests at the same time.
func newHost() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>8%128, pid%256, hosts.Add(1))
}

// newCluster starts a BBS and an auctioneer for each host, over one database.
// Without auctioneers the BBS places the work.
func newCluster(t *testing.T, dsn string, bbs, auctioneers int) *cluster {
	t.Helper()
	needRealContainers(t)
	authority, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		t: t, authority: authority, dsn: dsn, apps: serveApp(t),
		bbs: map[string]*process{}, auctioneers: map[string]*process{}, cells: map[string]*process{},
	}
	for range bbs {
		c.bbsHosts = append(c.bbsHosts, newHost())
	}
	for range auctioneers {
		c.auctioneerHosts = append(c.auctioneerHosts, newHost())
	}
	for _, host := range c.bbsHosts {
		c.startBBS(host)
	}
	for _, host := range c.auctioneerHosts {
		c.startAuctioneer(host)
	}
	c.client = c.newClient(httpapi.ConsumerRole, httpapi.OperatorRole)
	ctx := within(t)
	if err := c.client.UpsertDomain(ctx, domain, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

const domain = "tests"

func urls(hosts []string, port string) string {
	var list []string
	for _, h := range hosts {
		list = append(list, "https://"+h+":"+port)
	}
	return strings.Join(list, ",")
}

// The ports at which the daemons listen, each on its own host.
const (
	bbsPort        = "8889"
	auctioneerPort = "9016"
	cellPort       = "1801"
)

func (c *cluster) startBBS(host string) {
	c.t.Helper()
	args := append(c.certificate(host, "bbs", httpapi.BBSRole, httpapi.AuctioneerRole),
		"--listen", host+":"+bbsPort, "--store", c.dsn, "--leader-ttl", leading.String(),
		"--convergence-interval", "2s", "--state-timeout", "20s", "--loss-grace", "1ms", "--max-loss", "0.5", "--callback-allow", "127.0.0.0/8")
	if len(c.auctioneerHosts) > 0 {
		args = append(args, "--auctioneers", urls(c.auctioneerHosts, auctioneerPort))
	}
	c.bbs[host] = start(c.t, "bbs", args...)
}

func (c *cluster) startAuctioneer(host string) {
	c.t.Helper()
	c.auctioneers[host] = start(c.t, "auctioneer", append(c.certificate(host, "auctioneer", httpapi.AuctioneerRole),
		"--listen", host+":"+auctioneerPort, "--store", c.dsn, "--leader-ttl", leading.String(), "--state-timeout", "20s",
		"--bbs", urls(c.bbsHosts, bbsPort))...)
}

// startCell starts a cell with real containers and waits until it is present.
func (c *cluster) startCell(id string, args ...string) {
	c.t.Helper()
	dir := c.t.TempDir()
	c.t.Cleanup(func() { endContainers(c.t, dir) }) // once the cell has been killed
	c.startCellIn(dir, id, args...)
}

// startCellIn starts a cell that finds what an earlier one has left in dir.
func (c *cluster) startCellIn(dir, id string, args ...string) {
	c.t.Helper()
	host := newHost()
	args = append(append(c.certificate(host, id, httpapi.CellRole),
		"--listen", host+":"+cellPort, "--cell-id", id, "--dir", dir, "--bbs", urls(c.bbsHosts, bbsPort),
		"--memory-mb", "1024", "--disk-mb", "4096", "--presence-ttl", presence.String(), "--sync-interval", "2s", "--transfer-allow", "127.0.0.0/8"), args...)
	c.cells[id] = start(c.t, "rep", args...)
	c.eventually("cell "+id+" is present", func() (bool, error) {
		cells, err := c.client.Cells(within(c.t))
		for _, cell := range cells {
			if cell.CellID == id {
				return true, nil
			}
		}
		return false, err
	})
}

// certificate makes one for a daemon at host, and returns its flags.
func (c *cluster) certificate(host, name string, roles ...httpapi.Role) []string {
	c.t.Helper()
	r := devcerts.Request{File: name + "-" + host, Name: name, Hosts: []string{host}, For: time.Hour}
	for _, role := range roles {
		r.Units = append(r.Units, "diego-"+string(role))
	}
	cert, key, err := c.authority.Issue(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return []string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", c.authority.CA()}
}

func (c *cluster) clientOptions(roles ...httpapi.Role) httpapi.ClientOptions {
	c.t.Helper()
	var s struct {
		daemon.Logging
		daemon.TLS
	}
	err := daemon.Load(&s, c.certificate("127.0.0.1", "tester", roles...))
	var own *daemon.Certificates
	if err == nil {
		own, err = s.Certificates(s.Logger(io.Discard))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return httpapi.ClientOptions{
		TLS: own.Client(), Addresses: strings.Split(urls(c.bbsHosts, bbsPort), ","),
		Attempts: 1000, Pause: 50 * time.Millisecond, Timeout: 5 * time.Second, Patience: patience,
	}
}

func (c *cluster) newClient(roles ...httpapi.Role) *httpapi.RemoteBBS {
	c.t.Helper()
	client, err := httpapi.NewRemoteBBS(c.clientOptions(roles...))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// endContainers does what the next cell in the same directory would do.
func endContainers(t *testing.T, dir string) {
	ctx := context.Background()
	b, err := daemon.OpenBackend(ctx, daemon.BackendOptions{Kind: daemon.RealBackend, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	guids, err := b.List(ctx)
	for _, guid := range guids {
		err = errors.Join(err, b.Delete(ctx, guid))
	}
	if err := errors.Join(err, b.Close()); err != nil {
		t.Error(err)
	}
}

func (c *cluster) eventually(what string, ask func() (bool, error)) {
	c.t.Helper()
	eventually(c.t, what, ask)
}

// on runs f for a part of a test, to which failures are attributed.
func (c *cluster) on(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		t.FailNow() // what comes next begins where this should have ended
	}
}

// app is an LRP that runs the app.
func (c *cluster) app(guid string, instances int, args ...string) lrp.DesiredLRP {
	l := lrp.DesiredLRP{
		ProcessGUID: guid, Domain: domain, Settings: lrp.Settings{Instances: instances},
		Definition: lrp.Definition{Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, RunInfo: c.run(args...)},
	}
	if args[0] == "serve" {
		l.Ports = []uint16{8080}
		l.Check = &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8080, Path: "/"}}}} // at its usual, long interval: a frequent one may see a process end before the cell hears of it
	}
	return l
}

// run is a container in which the app runs.
func (c *cluster) run(args ...string) executor.RunInfo {
	return executor.RunInfo{
		RootFS:             "host:",
		CachedDependencies: []executor.CachedDependency{{Name: "app", From: c.apps, To: "/app", CacheKey: "app"}},
		Action:             executor.Action{Run: &executor.RunAction{Path: "/app/app", Args: args, User: "nobody"}},
	}
}

func (c *cluster) desire(l lrp.DesiredLRP) {
	c.t.Helper()
	if err := c.client.Desire(within(c.t), l); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) scale(guid string, instances int) {
	c.t.Helper()
	if err := c.client.UpdateDeployment(within(c.t), guid, lrp.Update{Instances: &instances}); err != nil {
		c.t.Fatal(err)
	}
}

// resolved are the instances of a process as consumers see them.
func (c *cluster) resolved(guid string) ([]lrp.ActualLRP, error) {
	return list(c.client.ResolvedLRPs(within(c.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
}

// running waits until n instances run and answer, and nothing else is recorded
// of the process. It returns the records in the order of their indices.
func (c *cluster) running(guid string, n int) (found []lrp.ActualLRP) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			c.explain(guid)
		}
	}()
	c.eventually(fmt.Sprintf("%d instances of %s run", n, guid), func() (bool, error) {
		all, err := list(c.client.ActualLRPs(within(c.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
		if err != nil || len(all) != n {
			return false, fmt.Errorf("%d records, %w", len(all), err)
		}
		for i, r := range all {
			if r.Index != i || r.State != lrp.Running || r.Presence != lrp.Ordinary {
				return false, fmt.Errorf("%d is %v %v: %v", r.Index, r.State, r.Presence, r.PlacementError)
			}
			if answer, err := ask(r); err != nil || answer != fmt.Sprintf("%d %s", i, r.InstanceGUID) {
				return false, fmt.Errorf("%d answers %q, %w", i, answer, err)
			}
		}
		found = all
		return true, nil
	})
	return found
}

// explain logs what happened to the instances of a process.
func (c *cluster) explain(guid string) {
	records, _ := list(c.client.ActualLRPs(within(c.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
	for _, r := range records {
		c.t.Logf("%s/%d: %v %v on %q %v", guid, r.Index, r.State, r.Presence, r.CellID, r.PlacementError)
		entries, _ := c.client.Timeline(within(c.t), guid, r.Index)
		for _, e := range entries {
			c.t.Logf("    %v %s", e.At.Format(time.StampMilli), e.Text)
		}
	}
}

// ask is what an instance answers.
func ask(r lrp.ActualLRP) (string, error) {
	if len(r.Ports) == 0 {
		return "", fmt.Errorf("instance %d has no port", r.Index)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(fmt.Sprintf("http://%s:%d/", r.Address, r.Ports[0].HostPort))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// killProcess kills what runs as an instance, as the kernel or a bug would.
func killProcess(t *testing.T, instanceGUID string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range environments {
		env, err := os.ReadFile(path)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || !strings.Contains(string(env), "INSTANCE_GUID="+instanceGUID+"\x00") || !strings.HasPrefix(string(line), "/app/app\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("%d processes run as instance %s, want 1", killed, instanceGUID)
	}
}

// serveApp serves an archive with the app, and returns its URL.
func serveApp(t *testing.T) string {
	t.Helper()
	archive, err := appArchive()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(s.Close)
	return s.URL + "/app.tgz"
}

// appArchive builds the app, which needs nothing of the host that it runs on.
var appArchive = sync.OnceValues(func() ([]byte, error) {
	binary := filepath.Join(binaries, "app")
	build := exec.Command("go", "build", "-o", binary, "./testdata/app")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "app", Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
})

func needRealContainers(t *testing.T) {
	t.Helper()
	b, err := daemon.OpenBackend(context.Background(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: t.TempDir()})
	if err != nil {
		testenv.Missing(t, "a host for real containers", err.Error())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
