package examples_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A fleet is a control plane, an auctioneer and cells, each a process of its
// own with a certificate of its own.
type fleet struct {
	t        *testing.T
	c        *certificates
	bbs      *process
	consumer *httpapi.RemoteBBS
	cells    map[string]*process
	dirs     map[string]string
}

func newFleet(t *testing.T, cells ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, c: newCertificates(t), cells: map[string]*process{}, dirs: map[string]string{}}
	store := []string{"--store", "sqlite:" + filepath.Join(t.TempDir(), "diego.db"), "--leader-ttl", "2s"}
	// The auctioneer's address is known before it is there: it says so itself,
	// in the store.
	f.bbs = start(t, "bbs", append(append(f.c.issue("bbs", httpapi.BBSRole), store...),
		"--auctioneers", "https://127.0.0.1:1", "--loss-grace", "1ms", "--max-loss", "1", "--convergence-interval", "1s", "--callback-allow", "127.0.0.0/8")...)
	f.bbs.await("leading")
	start(t, "auctioneer", append(append(f.c.issue("auctioneer", httpapi.AuctioneerRole), store...), "--bbs", f.bbs.URL)...).await("leading")
	f.consumer = f.c.bbs(httpapi.ConsumerRole, f.bbs.URL)
	for _, id := range cells {
		f.add(id)
	}
	return f
}

// add starts a cell of plain processes, in the directory that it had before.
func (f *fleet) add(id string, more ...string) {
	f.t.Helper()
	dir, known := f.dirs[id]
	if !known {
		dir = f.t.TempDir()
		f.dirs[id] = dir
		f.t.Cleanup(func() { empty(f.t, daemon.ProcessBackend, dir) }) // once the cell has been killed
	}
	f.cells[id] = start(f.t, "rep", slices.Concat(f.c.issue(id, httpapi.CellRole), []string{"--cell-id", id, "--dir", dir, "--bbs", f.bbs.URL,
		"--backend", "process", "--presence-ttl", "2s", "--sync-interval", "1s", "--memory-mb", "4096", "--disk-mb", "4096", "--transfer-allow", "127.0.0.0/8"}, more)...)
}

// empty does what the next cell in the same directory would do.
func empty(t *testing.T, backend, dir string) {
	b, err := daemon.OpenBackend(context.Background(), daemon.BackendOptions{Kind: backend, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	guids, err := b.List(context.Background())
	for _, guid := range guids {
		err = errors.Join(err, b.Delete(context.Background(), guid))
	}
	if err != nil {
		t.Error(err)
	}
}

// running are the cells of the instances that run, by index.
func (f *fleet) running(guid string) (map[int]string, error) {
	all, err := list(f.consumer.ResolvedLRPs(within(f.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
	cells := map[int]string{}
	for _, r := range all {
		if r.State == lrp.Running {
			cells[r.Index] = r.CellID
		}
	}
	return cells, err
}

func (f *fleet) awaitRunning(guid string, n int, on ...string) {
	f.t.Helper()
	eventually(f.t, "instances run", func() (bool, error) {
		cells, err := f.running(guid)
		for _, cell := range cells {
			if len(on) > 0 && !strings.Contains(strings.Join(on, " "), cell) {
				return false, err
			}
		}
		return len(cells) == n, err
	})
}

func TestACellWhoseDirectoryIsRemovedEndsAndItsNextStartTakesWork(t *testing.T) {
	f := newFleet(t, "cell-1")
	if err := f.consumer.Desire(within(t), sleeper("web", 1)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 1)
	if err := os.RemoveAll(f.dirs["cell-1"]); err != nil {
		t.Fatal(err)
	}
	if status := f.cells["cell-1"].status(); status != daemon.ExitFailed {
		t.Errorf("exit status %d", status)
	}
	if text := f.cells["cell-1"].await("failed").text; !strings.Contains(text, "was removed, emptied, replaced or unmounted") || strings.Contains(text, "containers are left") {
		t.Errorf("it says %s", text)
	}
	f.add("cell-1")
	f.awaitRunning("web", 1)
}

func TestInstancesRunOnCellsAndLeaveTheOneThatIsDrained(t *testing.T) {
	f := newFleet(t, "cell-1", "cell-2")
	eventually(t, "two cells", func() (bool, error) {
		cells, err := f.consumer.Cells(within(t))
		return len(cells) == 2, err
	})
	if err := f.consumer.Desire(within(t), sleeper("web", 3)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 3)
	if !strings.Contains(f.cells["cell-1"].text(), "NOTHING is isolated") {
		t.Error("the cell does not say that nothing is isolated")
	}

	// SIGTERM drains: all instances run throughout, at last on the other cell.
	if status := f.cells["cell-1"].terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	f.awaitRunning("web", 3, "cell-2")

	// An operator drains the other one, once there is a third.
	f.add("cell-3")
	o := f.c.client("operator", httpapi.OperatorRole)
	o.Addresses, o.CellID = []string{f.cells["cell-2"].URL}, "cell-2"
	cell, err := httpapi.NewRemoteCell(o)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, o, f.cells["cell-2"].URL+"/readyz"); status != 200 || !strings.Contains(body, `"cell"`) {
		t.Errorf("before it is drained: %d %s", status, body)
	}
	if err := cell.Evacuate(within(t)); err != nil {
		t.Fatal(err)
	}
	if status := f.cells["cell-2"].status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	f.awaitRunning("web", 3, "cell-3")
}

func TestACellThatIsKilledIsReplaced(t *testing.T) {
	f := newFleet(t, "cell-1")
	if err := f.consumer.Desire(within(t), sleeper("web", 2)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 2, "cell-1")
	f.add("cell-2")
	f.cells["cell-1"].kill()
	f.awaitRunning("web", 2, "cell-2")
}

// Nobody waits for the presence of the killed daemon, which lasts ten minutes.
func TestACellThatIsKilledAndIsBackSaysAtOnceWhatItHasLost(t *testing.T) {
	f := newFleet(t)
	long := []string{"--presence-ttl", "10m", "--sync-interval", "1h"}
	f.add("cell-1", long...)
	if err := f.consumer.Desire(within(t), sleeper("web", 2)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 2)
	instances := func() (guids []string) {
		all, err := list(f.consumer.ResolvedLRPs(within(t), storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}}))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			guids = append(guids, r.InstanceGUID)
		}
		return guids
	}
	before := instances()
	f.cells["cell-1"].kill()
	f.add("cell-1", long...)
	eventually(t, "other instances run", func() (bool, error) {
		cells, err := f.running("web")
		return len(cells) == 2 && !slices.ContainsFunc(instances(), func(guid string) bool { return slices.Contains(before, guid) }), err
	})
}

func TestASecondSignalEndsACellThatIsBeingDrained(t *testing.T) {
	f := newFleet(t, "cell-1")
	if err := f.consumer.Desire(within(t), sleeper("web", 1)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 1)
	p := f.cells["cell-1"]
	// There is no other cell, so the drain would last for ten minutes.
	if err := p.cmd.Process.Signal(terminate); err != nil {
		t.Fatal(err)
	}
	p.await("the cell evacuates")
	began := time.Now()
	if status := p.terminate(); status != 128+int(terminate) {
		t.Errorf("exit status %d after %v", status, time.Since(began))
	}
}

func TestACellOfRealContainersRunsThemAndTestsItself(t *testing.T) {
	b, err := daemon.OpenBackend(t.Context(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: t.TempDir()})
	if err != nil {
		testenv.Missing(t, "a host for real containers", err.Error())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	f, dir := newFleet(t), t.TempDir()
	t.Cleanup(func() { empty(t, daemon.RealBackend, dir) }) // once the cell has ended, however it did
	p := start(t, "rep", append(f.c.issue("cell-1", httpapi.CellRole), "--cell-id", "cell-1", "--dir", dir, "--bbs", f.bbs.URL,
		"--metrics-listen", "127.0.0.1:0", "--presence-ttl", "2s", "--drain=false")...)
	if line := p.await("backend").text; !strings.Contains(line, `"name":"libcontainer"`) || !strings.Contains(line, `"why":"one was made and started on this host"`) {
		t.Errorf("it says %s", line)
	}
	if err := f.consumer.Desire(within(t), sleeper("web", 2)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 2, "cell-1")
	eventually(t, "a self-test succeeds", func() (bool, error) {
		_, body := get(t, httpapi.ClientOptions{}, p.await("figures").URL)
		return strings.Contains(body, `diego_rep_self_tests_total{outcome="succeeded"} 1`), nil
	})
	if status := p.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
