package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/chromium"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/memstore"
)

// A model is a fleet whose instances are records only: 40 on each cell, 50 of
// each process.
type model struct {
	t     testing.TB
	api   *bbs.BBS
	cells int
	runs  []int // how often an instance has crashed
}

const perCell, perProcess = 40, 50

func newModel(t testing.TB, cells int) *model {
	t.Helper()
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: ignored{}, LRPs: lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, api: api, cells: cells, runs: make([]int, cells*perCell)}
	ctx := t.Context()
	for i := range cells {
		p := bbs.CellPresence{
			CellID: fmt.Sprintf("cell-%04d", i), Address: "https://127.0.0.1:1", Zone: fmt.Sprintf("z%d", i%3+1),
			Capacity: executor.Capacity{MemoryMB: 32768 << (i % 2), DiskMB: 262144, Containers: 250}, RootFSProviders: []string{"preloaded:linux"},
		}
		m.must(api.Announce(ctx, p, "owner", time.Hour))
	}
	definition := lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}}
	definition.MemoryMB, definition.DiskMB = 480, 256
	parallel.Each(len(m.runs)/perProcess, 4, func(app int) {
		m.must(api.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: process(app * perProcess), Domain: "apps", Settings: lrp.Settings{Instances: perProcess}, DefinitionID: "v1", Definition: definition}))
		for i := range perProcess {
			m.start(app*perProcess + i)
		}
	})
	return m
}

func process(instance int) string { return fmt.Sprintf("app-%d", instance/perProcess) }

func (m *model) must(err error) {
	if err != nil {
		m.t.Error(err)
	}
}

// instance is the n-th instance as it runs now.
func (m *model) instance(n int) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: fmt.Sprintf("i-%d-%d", n, m.runs[n]), CellID: fmt.Sprintf("cell-%04d", (n+m.runs[n])%m.cells)}
}

func (m *model) start(n int) {
	ctx, key := m.t.Context(), m.instance(n)
	m.must(m.api.ClaimLRP(ctx, process(n), n%perProcess, lrp.Claim{DefinitionID: "v1", Instance: key}))
	m.must(m.api.StartLRP(ctx, process(n), n%perProcess, lrp.Start{DefinitionID: "v1", Domain: "apps", Instance: key, NetInfo: lrp.NetInfo{Address: "10.0.0.5"}}))
}

// crash ends an instance, which starts again on the next cell.
func (m *model) crash(n int) {
	m.must(m.api.CrashLRP(m.t.Context(), process(n), n%perProcess, lrp.Crash{DefinitionID: "v1", Domain: "apps", Instance: m.instance(n), Reason: "exit status 1"}))
	m.runs[n]++
	m.start(n)
}

// A modelCell says that its instances use what they ask for.
type modelCell struct {
	rep.API
	p bbs.CellPresence
}

func (c modelCell) State(context.Context) (auction.CellState, error) {
	left := c.p.Capacity
	left.MemoryMB -= perCell * 480
	left.DiskMB -= perCell * 256
	return auction.CellState{ID: c.p.CellID, Zone: c.p.Zone, Total: c.p.Capacity, Remaining: left}, nil
}

// show opens the console of the model as somebody with a role sees it, with all
// instances on the screen.
func (m *model) show(role httpapi.Role) *chromium.Page {
	page := show(m.t, httpapi.HandlerOptions{BBS: m.api}, role, func(p bbs.CellPresence) (rep.API, error) { return modelCell{p: p}, nil })
	page.Await(fmt.Sprintf("diego.stats().status === 'live' && diego.stats().cells === %d && diego.stats().instances === %d && document.getElementById('main').dataset.ready === 'true'", m.cells, len(m.runs)))
	return page
}

// show opens a console in a browser as somebody with a role sees it.
func show(t testing.TB, calls httpapi.HandlerOptions, role httpapi.Role, cell func(bbs.CellPresence) (rep.API, error)) *chromium.Page {
	t.Helper()
	calls.AllowPlain = true
	h, err := httpapi.NewHandler(calls)
	if err == nil {
		h, err = console.New(h, console.Options{Calls: calls, Caller: &httpapi.Identity{Name: "me", Roles: []httpapi.Role{role}}, Cell: cell})
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	page := chromium.Open(t) // ends before the server
	page.Visit(server.URL + "/console/")
	return page
}

func TestTheBrowserShowsAFleetOf1250CellsAndWhatHappensInIt(t *testing.T) {
	chromium.Need(t)
	m := newModel(t, 1250)
	page := m.show(httpapi.ConsumerRole)
	page.Await("document.querySelector('.legend').textContent.includes('50,000')")
	page.Await("document.getElementById('fleet-table').textContent.includes('of 64')")
	page.Eval("(s => { s.value = 'app-7'; s.dispatchEvent(new Event('input', { bubbles: true })) })(document.getElementById('search'))", nil)
	page.Await("document.querySelector('.found').textContent.includes('50 of 50 running')")
	page.Screenshot("fleet")
	m.crash(350)
	page.Await("document.querySelector('.recent').textContent.includes('app-7/0')")
	log, err := m.api.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page.Await(fmt.Sprintf("document.documentElement.dataset.event === '%d'", log.Newest))

	// The rules of the pages have tests of their own.
	rules, err := os.ReadFile("testdata/rules.js")
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	page.Eval(string(rules), &failures)
	for _, failure := range append(failures, page.Faults()...) {
		t.Error(failure)
	}

	// An address that names no page leads to the first.
	page.Eval("location.hash = '#/constructor'", nil)
	page.Await("document.getElementById('main').dataset.page === 'fleet'")

	// A consumer scales processes and drains no cells.
	page.Eval("location.hash = '#/process/app-7'", nil)
	page.Await("document.querySelectorAll('[data-action=scale], [data-action=retire]').length === 2")
	page.Eval("location.hash = '#/cells'", nil)
	page.Await("document.querySelectorAll('#cells-table tbody tr').length > 10")
	page.Await("document.querySelectorAll('[data-action]').length === 0")
	for _, fault := range page.Faults() {
		t.Error(fault)
	}
}

// BenchmarkTheFleetInTheBrowser measures 1,250 cells with 50,000 instances: the
// time to the first picture, and then, at 500 events a second, how long after its
// commit an event is read and on the screen at most, and the frames.
func BenchmarkTheFleetInTheBrowser(b *testing.B) {
	chromium.Need(b)
	m := newModel(b, 1250)
	for b.Loop() {
		page := m.show(httpapi.ConsumerRole)
		page.Eval("diego.resetStats()", nil)
		before, err := m.api.Log(b.Context())
		m.must(err)
		began := time.Now()
		tick := time.NewTicker(16 * time.Millisecond) // 8 events each
		for n := 0; time.Since(began) < 10*time.Second; n++ {
			<-tick.C
			m.crash(n * 7919 % len(m.runs))
		}
		tick.Stop()
		took := time.Since(began)
		after, err := m.api.Log(b.Context())
		m.must(err)
		page.Await(fmt.Sprintf("document.documentElement.dataset.event === '%d'", after.Newest))
		page.Eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))", nil)
		var stats struct {
			FirstPictureMs, LongestFrameMs, LongestReadMs, LongestShownMs float64
			Frames, FramesOver100                                         int
		}
		page.Eval("diego.stats()", &stats)
		b.ReportMetric(stats.FirstPictureMs, "ms-to-the-first-picture")
		b.ReportMetric(float64(after.Newest-before.Newest)/took.Seconds(), "events/s")
		b.ReportMetric(stats.LongestReadMs, "ms-until-read-at-most")
		b.ReportMetric(stats.LongestShownMs, "ms-until-shown-at-most")
		b.ReportMetric(stats.LongestFrameMs, "ms-longest-frame")
		b.ReportMetric(float64(stats.FramesOver100), "frames>100ms")
		if faults := page.Faults(); len(faults) > 0 {
			b.Error(strings.Join(faults, "\n"))
		}
	}
}

// No event says that an instance has run for long enough.
func TestARolloutThatProvesHealthyIsShownWithoutAnEvent(t *testing.T) {
	chromium.Need(t)
	began, late := time.Now(), new(atomic.Int64)
	clock := func() time.Time { return began.Add(time.Duration(late.Load())) }
	api, err := bbs.New(bbs.Options{Store: memstore.New(&memstore.Options{Now: clock}), Now: clock, Effects: ignored{}})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, api: api, cells: 1, runs: make([]int, 1)}
	policies := lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: time.Minute}}
	definition := lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}}
	m.must(api.CreateDeployment(t.Context(), lrp.DeploymentDefinition{ProcessGUID: process(0), Domain: "apps", Settings: lrp.Settings{Instances: 1, Policies: policies}, DefinitionID: "v1", Definition: definition}))
	m.start(0)
	late.Store(int64(time.Hour))
	m.must(api.ContinueRollout(t.Context(), process(0)))
	m.crash(0)
	page := show(t, httpapi.HandlerOptions{BBS: api}, httpapi.ConsumerRole, func(bbs.CellPresence) (rep.API, error) { return nil, errors.New("no cell") })
	page.Await("diego.stats().status === 'live' && diego.stats().instances === 1")
	page.Eval("location.hash = '#/process/app-0'", nil)
	done := "document.querySelector('[aria-label=Rollout]').textContent.includes('%d of 1')"
	page.Await(fmt.Sprintf(done, 0))
	late.Store(int64(2 * time.Hour))
	page.Await(fmt.Sprintf(done, 1))
}

// A forgetful control plane does not know its cells for a while.
type forgetful struct {
	*bbs.BBS
	forgets *atomic.Bool
}

func (f forgetful) Cells(ctx context.Context) ([]bbs.CellPresence, error) {
	if f.forgets.Load() {
		return nil, fmt.Errorf("cells: %w", context.DeadlineExceeded)
	}
	return f.BBS.Cells(ctx)
}

// The feed of events does not say how cells are.
func TestThePageSaysThatItCannotAskTheCells(t *testing.T) {
	chromium.Need(t)
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: ignored{}})
	if err != nil {
		t.Fatal(err)
	}
	forgets := new(atomic.Bool)
	page := show(t, httpapi.HandlerOptions{BBS: forgetful{api, forgets}}, httpapi.ConsumerRole, func(bbs.CellPresence) (rep.API, error) { return nil, errors.New("no cell") })
	page.Await("diego.stats().status === 'live'")
	ask := "(await import(new URL('store.js', document.baseURI))).refreshCells()"
	says := "(async () => { %s; return Boolean(document.querySelector('.lost')?.textContent.includes('may be out of date')) === %t && diego.stats().status === 'live' })()"
	forgets.Store(true)
	page.Await(fmt.Sprintf(says, ask, true))
	forgets.Store(false)
	page.Await(fmt.Sprintf(says, ask, false))
}
