package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A modelCell is a model cell that can be served.
type modelCell struct {
	idle
	cell *memcell.Cell
}

func (c modelCell) State(ctx context.Context) (auction.CellState, error) { return c.cell.State(ctx) }

func (c modelCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	return c.cell.Perform(ctx, w)
}

func (c modelCell) StopLRP(ctx context.Context, key lrp.Key, i lrp.InstanceKey) error {
	return c.cell.StopLRP(ctx, key, i)
}

func (c modelCell) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	return c.cell.CancelTask(ctx, taskGUID, instanceGUID)
}

// A process is one whose address is known before what it serves.
type process struct {
	*httptest.Server
	handler http.Handler
}

func newProcess(t *testing.T) *process {
	p := new(process)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }))
	t.Cleanup(p.Close)
	return p
}

func (p *process) serve(t *testing.T, o httpapi.HandlerOptions) {
	t.Helper()
	o.AllowPlain = true
	handler, err := httpapi.NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	p.handler = handler
}

// ready is what the process says of itself.
func (p *process) ready(t *testing.T) (status int, r bbs.Readiness) {
	t.Helper()
	answer, err := http.Get(p.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, r
}

// A distributed system has two control planes, two auctioneers and its cells,
// each a process of its own. They know of each other what HTTP tells.
type distributed struct {
	t           *testing.T
	ctx         context.Context
	clock       *memcell.Clock
	store       *memstore.Store
	cells       memcell.Fleet
	planes      []*diego.ControlPlane
	auctioneers []*auctioneer.Auctioneer
	bbs, auct   []*process
	client      *httpapi.RemoteBBS
	plans       *httpapi.RemoteAuctioneer
}

func addresses(list []*process) (urls []string) {
	for _, p := range list {
		urls = append(urls, p.URL)
	}
	return urls
}

func newDistributed(t *testing.T) *distributed {
	t.Helper()
	d := &distributed{t: t, ctx: t.Context(), clock: memcell.NewClock()}
	d.store = memstore.New(&memstore.Options{Now: d.clock.Now})
	for range 2 {
		d.bbs, d.auct = append(d.bbs, newProcess(t)), append(d.auct, newProcess(t))
	}
	// The caller knows the standby first.
	options := func(list []*process) httpapi.ClientOptions {
		urls := addresses(list)
		slices.Reverse(urls)
		return httpapi.ClientOptions{Addresses: urls, AllowPlain: true, Attempts: 2, Pause: time.Millisecond}
	}
	var err error
	d.client, err = httpapi.NewRemoteBBS(options(d.bbs))
	d.must(err)
	d.plans, err = httpapi.NewRemoteAuctioneer(options(d.auct))
	d.must(err)
	d.cells = memcell.NewFleet(3, d.clock)
	for _, c := range d.cells {
		p := newProcess(t)
		p.serve(t, httpapi.HandlerOptions{Cell: modelCell{cell: c}})
		c.Presence.Address = p.URL
	}
	d.cells.ReportTo(d.client)
	dial := httpapi.Dial(httpapi.ClientOptions{AllowPlain: true})
	for i := range 2 {
		plane, err := diego.New(diego.Options{
			Store: d.store, Dial: dial, Owner: fmt.Sprintf("bbs-%d", i+1), Address: d.bbs[i].URL,
			Auctioneer: d.plans, Now: d.clock.Now, Concurrency: 1, Guard: converge.Guard{Grace: -1},
		})
		d.must(err)
		d.bbs[i].serve(t, httpapi.HandlerOptions{BBS: plane.BBS, Convergence: plane, Ready: plane.Ready})
		auctioneer, err := auctioneer.New(auctioneer.Options{
			Store: d.store, Owner: fmt.Sprintf("auctioneer-%d", i+1), Address: d.auct[i].URL,
			BBS: d.client, Dial: dial, Auction: auction.RunnerOptions{Concurrency: 1}, Now: d.clock.Now,
		})
		d.must(err)
		d.auct[i].serve(t, httpapi.HandlerOptions{Auctioneer: auctioneer, Ready: auctioneer.Ready})
		d.planes, d.auctioneers = append(d.planes, plane), append(d.auctioneers, auctioneer)
	}
	return d
}

func (d *distributed) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// step lets everybody do once what is due. Cells announce themselves through
// the BBS.
func (d *distributed) step() {
	d.t.Helper()
	for _, p := range d.planes {
		d.must(p.Leadership.Tick(d.ctx))
	}
	for _, c := range d.cells {
		a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{BBS: d.client, Presence: c.Presence, Owner: c.Presence.CellID})
		d.must(err)
		d.must(a.Tick(d.ctx))
	}
	for _, a := range d.auctioneers {
		d.must(a.Leadership.Tick(d.ctx))
	}
	for _, p := range d.planes {
		d.must(p.Tick(d.ctx))
	}
	for _, a := range d.auctioneers {
		d.must(a.Tick(d.ctx))
	}
	d.cells.Step(d.ctx)
}

// running counts the RUNNING instances of a process.
func (d *distributed) running(guid string) (n int) {
	d.t.Helper()
	for r, err := range d.client.ResolvedLRPs(d.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}, States: []lrp.State{lrp.Running}}) {
		d.must(err)
		n += min(1, len(r.CellID))
	}
	return n
}

func TestControlPlanesAuctioneersAndCellsMayBeProcessesOfTheirOwn(t *testing.T) {
	d := newDistributed(t)
	d.step()
	d.must(d.client.Desire(d.ctx, desired("web", 3)))
	d.must(d.client.DesireTask(d.ctx, desiredTask("job", "")))
	d.step()
	d.step()
	if n := d.running("web"); n != 3 {
		t.Fatalf("%d instances run, want 3", n)
	}
	if job, err := d.client.Task(d.ctx, "job"); err != nil || job.State != task.Completed {
		t.Errorf("got task %+v, %v", job, err)
	}

	// The standbys take over, and everybody finds them.
	d.must(d.auctioneers[0].Leadership.Resign(d.ctx))
	d.must(d.auctioneers[1].Leadership.Tick(d.ctx))
	five, seven := 5, 7
	d.must(d.client.UpdateDeployment(d.ctx, "web", lrp.Update{Instances: &five}))
	d.step()
	d.step()
	if n := d.running("web"); n != 5 {
		t.Errorf("with the other auctioneer %d instances run, want 5", n)
	}
	d.must(d.planes[0].Leadership.Resign(d.ctx))
	d.must(d.planes[1].Leadership.Tick(d.ctx))
	d.must(d.client.UpdateDeployment(d.ctx, "web", lrp.Update{Instances: &seven}))
	d.step()
	d.step()
	if n := d.running("web"); n != 7 {
		t.Errorf("with the other BBS %d instances run, want 7", n)
	}
	d.must(d.client.Converge(d.ctx))
	d.must(d.client.DeleteDeployment(d.ctx, "web"))
	d.step()
	d.step()
	for _, c := range d.cells {
		if list, err := c.Containers(d.ctx); len(list) > 0 {
			t.Errorf("%s has %d containers, %v", c.Presence.CellID, len(list), err)
		}
	}
	plan, err := d.plans.Plan(d.ctx, auction.Item{Key: auction.Key{GUID: "more", DefinitionID: "v1"}, RootFS: "preloaded:linux"})
	if d.must(err); len(plan.Placements) != 1 {
		t.Errorf("got plan %+v", plan)
	}
}

func TestWorkThatDoesNotReachTheAuctioneerIsRequestedAgain(t *testing.T) {
	d := newDistributed(t)
	d.step()
	for _, a := range d.auctioneers {
		d.must(a.Leadership.Resign(d.ctx))
	}
	d.must(d.client.Desire(d.ctx, desired("web", 2)))
	d.must(d.planes[0].Tick(d.ctx)) // nobody takes the work
	for range 40 {
		d.clock.Advance(time.Second)
		d.step()
	}
	if n := d.running("web"); n != 2 {
		t.Errorf("%d instances run, want 2", n)
	}
}

func TestReadinessTellsLeadersFromStandbysAndWhatIsMissing(t *testing.T) {
	d := newDistributed(t)
	if status, r := d.bbs[0].ready(t); status != http.StatusServiceUnavailable || r.Ready || r.Why == "" {
		t.Errorf("before anybody leads: got %d %+v", status, r)
	}
	d.step()
	for _, list := range [][]*process{d.bbs, d.auct} {
		status, leader := list[0].ready(t)
		if status != http.StatusOK || leader.Role != "leader" || leader.Address != list[0].URL {
			t.Errorf("the leader says %d %+v", status, leader)
		}
		status, standby := list[1].ready(t)
		if status != http.StatusOK || standby.Role != "standby" || standby.Leader != leader.Leader || standby.Address != list[0].URL {
			t.Errorf("the standby says %d %+v", status, standby)
		}
		answer, err := http.Get(list[1].URL + "/healthz")
		if d.must(err); answer.StatusCode != http.StatusOK {
			t.Errorf("got %d", answer.StatusCode)
		}
		answer.Body.Close()
	}
	d.must(d.store.Close())
	if status, r := d.bbs[1].ready(t); status != http.StatusServiceUnavailable || r.Ready || r.Why == "" {
		t.Errorf("without a store: got %d %+v", status, r)
	}
}

func TestALeaderIsFoundInTheStore(t *testing.T) {
	d := newDistributed(t)
	find := bbs.FindLeader(d.store, "auctioneer")
	if address, err := find(d.ctx); address != "" || err != nil {
		t.Errorf("before anybody leads: got %q, %v", address, err)
	}
	d.step()
	c, err := httpapi.NewRemoteAuctioneer(httpapi.ClientOptions{Find: find, AllowPlain: true, Attempts: 1})
	d.must(err)
	if _, err := c.Plan(d.ctx); err != nil {
		t.Error(err)
	}
}

func TestAStandbyNamesTheLeader(t *testing.T) {
	d := newDistributed(t)
	d.step()
	var not *bbs.NotLeaderError
	if err := d.planes[1].BBS.Desire(d.ctx, desired("web", 1)); !errors.As(err, &not) || not.Address != d.bbs[0].URL {
		t.Errorf("got %v, want the leader's address", err)
	}
	for _, err := range []error{d.planes[1].Converge(d.ctx), d.auctioneers[1].Request(d.ctx)} {
		if !errors.Is(err, bbs.ErrNotLeader) {
			t.Errorf("got %v, want ErrNotLeader", err)
		}
	}
}

func TestACellThatLeavesIsGoneAtOnce(t *testing.T) {
	d := newDistributed(t)
	d.step()
	a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{BBS: d.client, Presence: d.cells[0].Presence, Owner: d.cells[0].Presence.CellID})
	d.must(err)
	if err := d.client.Leave(d.ctx, "cell-1", "another run"); !errors.Is(err, storage.ErrHeld) {
		t.Errorf("another run ended the presence: %v", err)
	}
	d.must(a.Leave(d.ctx))
	present, err := d.client.Cells(d.ctx)
	if d.must(err); len(present) != 2 {
		t.Errorf("got cells %v", present)
	}
	d.must(a.Leave(d.ctx)) // twice is once
}

func TestASubscriberFollowsFromOneControlPlaneToTheNext(t *testing.T) {
	d := newDistributed(t)
	d.step()
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	d.must(d.client.UpsertDomain(d.ctx, "domain", 0))
	events, err := d.client.Subscribe(ctx, bbs.FromStart, storage.EventFilter{})
	d.must(err)
	log, err := d.store.Log(d.ctx)
	d.must(err)
	next := log.Oldest
	for e, err := range events {
		if d.must(err); e.Sequence != next {
			t.Fatalf("got event %d, want %d", e.Sequence, next)
		}
		if next++; next%20 == 0 {
			// The server of the subscription cuts it; the other goes on.
			d.bbs[next/20%2].CloseClientConnections()
		}
		if next == 100 {
			return
		}
		log, err := d.store.Log(d.ctx)
		if d.must(err); next > log.Newest {
			d.must(d.client.UpsertDomain(d.ctx, fmt.Sprint("domain-", next), 0))
		}
	}
	t.Error("the subscription ended")
}

func TestAControlPlaneMayHandAPlanOnToAnAuctioneerThatWantsCertificates(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	auctioneer, err := httpapi.NewRemoteAuctioneer(httpapi.ClientOptions{
		Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "bbs", "diego-bbs"), Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSystem(t, 1, func(o *diego.Options) { o.Auctioneer = auctioneer })
	if _, err := s.ControlPlane.Plan(t.Context()); err != nil {
		t.Error("what an operator asks of a control plane is refused by its auctioneer: ", err)
	}
}
