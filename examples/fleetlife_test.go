package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func TestAFleetOnPostgreSQLLosesOnePartAfterTheOther(t *testing.T) {
	c := newCluster(t, testdb.Postgres(t), 2, 2)
	c.startCell("cell-1", "--zone", "z1")
	c.startCell("cell-2", "--zone", "z2")
	c.desire(c.app("web", 1, "serve"))
	c.running("web", 1)
	log := c.follow("web")

	c.on(t, "scale from 1 to 10 to 2", func(t *testing.T) {
		c.scale("web", 10)
		on := map[string]int{}
		for _, r := range c.running("web", 10) {
			on[r.CellID]++
		}
		if on["cell-1"] != 5 || on["cell-2"] != 5 {
			t.Errorf("the instances are on %v, want five on each cell", on)
		}
		c.scale("web", 2)
		c.running("web", 2)
	})

	c.on(t, "the process of an instance is killed", func(t *testing.T) {
		before := c.running("web", 2)
		killProcess(t, before[1].InstanceGUID)
		c.eventually("instance 1 runs again", func() (bool, error) {
			all, err := c.resolved("web")
			return err == nil && len(all) == 2 && all[1].State == lrp.Running && all[1].InstanceGUID != before[1].InstanceGUID, err
		})
		after := c.running("web", 2)
		if after[1].CrashCount != 1 || after[0].CrashCount != 0 || after[0].InstanceGUID != before[0].InstanceGUID {
			t.Errorf("instance 1 has crashed %d times and instance 0 %d times, which was %v and is %v",
				after[1].CrashCount, after[0].CrashCount, before[0].InstanceGUID, after[0].InstanceGUID)
		}
		if reason := after[1].CrashReason; !strings.Contains(reason, "signal 9") && !strings.Contains(reason, "137") && !strings.Contains(reason, "killed") {
			t.Errorf("the reason is %q, want the signal", reason)
		}
	})

	c.on(t, "an app crashes forever", func(t *testing.T) {
		c.desire(c.app("broken", 1, "exit", "3"))
		var r lrp.ActualLRP
		c.eventually("it has crashed too often to be started at once", func() (bool, error) {
			all, err := c.resolved("broken")
			if len(all) != 1 {
				return false, err
			}
			r = all[0]
			return r.State == lrp.Crashed, err
		})
		if r.CrashCount != 4 || !strings.Contains(r.CrashReason, "status 3") {
			t.Errorf("it waits after %d crashes for %q, want three restarts at once and a wait after the fourth crash, with exit status 3", r.CrashCount, r.CrashReason)
		}
		entries, err := c.client.Timeline(within(t), "broken", 0)
		if err != nil {
			t.Fatal(err)
		}
		var crashes []string
		for _, e := range entries {
			if strings.HasPrefix(e.Text, "crashed: ") {
				crashes = append(crashes, e.Text)
			}
		}
		if len(crashes) != 4 || !strings.Contains(crashes[2], "at once") || strings.Contains(crashes[3], "at once") {
			t.Errorf("the timeline tells of these crashes: %q", crashes)
		}
		if err := c.client.DeleteDeployment(within(t), "broken"); err != nil {
			t.Fatal(err)
		}
	})

	c.on(t, "a task has a result and a callback", func(t *testing.T) {
		called := make(chan task.CallbackResponse, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var response task.CallbackResponse
			if err := json.NewDecoder(r.Body).Decode(&response); err != nil {
				t.Error(err)
			}
			called <- response
		}))
		defer receiver.Close()
		ctx := within(t)
		run := c.run("write", "/tmp/result", "forty-two")
		if err := c.client.DesireTask(ctx, task.Desire{GUID: "answer", Domain: domain, Definition: task.Definition{
			Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, RunInfo: run,
			ResultFile: "/tmp/result", CompletionCallbackURL: receiver.URL, Annotation: "to whom it may concern",
		}}); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-called:
			if r.TaskGUID != "answer" || r.Failed || r.Result != "forty-two" || r.Annotation != "to whom it may concern" {
				t.Errorf("the callback tells %+v", r)
			}
		case <-ctx.Done():
			got, err := c.client.Task(context.Background(), "answer")
			t.Fatalf("nobody has called back: %+v, %v", got, err)
		}
		c.eventually("the task is gone", func() (bool, error) {
			_, err := c.client.Task(within(t), "answer")
			return errors.Is(err, storage.ErrNotFound), nil
		})
	})

	c.on(t, "a task that ignores SIGTERM is cancelled", func(t *testing.T) {
		if err := c.client.DesireTask(within(t), task.Desire{GUID: "endless", Domain: domain, Definition: task.Definition{
			Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, RunInfo: c.run("wait"),
		}}); err != nil {
			t.Fatal(err)
		}
		var before *task.Task
		c.eventually("the task runs", func() (bool, error) {
			var err error
			before, err = c.client.Task(within(t), "endless")
			return err == nil && before.State == task.Running, err
		})
		if err := c.client.CancelTask(within(t), "endless"); err != nil {
			t.Fatal(err)
		}
		got, err := c.client.Task(within(t), "endless")
		if err != nil || got.State != task.Completed || !got.Failed || !strings.Contains(got.FailureReason, "cancelled") {
			t.Fatalf("it is %+v, %v", got, err)
		}
		c.eventually("its container is gone", func() (bool, error) {
			for _, container := range c.containers(before.CellID) {
				if container.GUID == before.InstanceGUID {
					return false, fmt.Errorf("it is %v", container.State)
				}
			}
			return true, nil
		})
	})

	c.on(t, "the leading BBS is killed while instances start", func(t *testing.T) {
		c.scale("web", 8)
		host := c.leader(t, c.bbsHosts, bbsPort)
		c.bbs[host].kill()
		c.running("web", 8)
		c.scale("web", 2)
		c.running("web", 2)
		c.startBBS(host)
	})

	c.on(t, "the leading auctioneer is killed while instances start", func(t *testing.T) {
		host := c.leader(t, c.auctioneerHosts, auctioneerPort)
		c.scale("web", 6)
		c.auctioneers[host].kill()
		c.running("web", 6)
		c.startAuctioneer(host)
	})

	c.on(t, "a cell is killed and comes back", func(t *testing.T) {
		before := c.running("web", 6)
		lost := before[0].CellID
		left := map[string]string{"cell-1": "cell-2", "cell-2": "cell-1"}[lost]
		c.cells[lost].kill()
		c.eventually("all instances run on "+left, func() (bool, error) {
			all, err := c.resolved("web")
			if err != nil || len(all) != 6 {
				return false, err
			}
			for _, r := range all {
				if r.CellID != left || r.State != lrp.Running {
					return false, fmt.Errorf("%d is %v on %s", r.Index, r.State, r.CellID)
				}
			}
			return true, nil
		})
		for i, r := range c.running("web", 6) {
			if was := before[i]; was.CellID == left && r.InstanceGUID != was.InstanceGUID {
				t.Errorf("instance %d was not on the lost cell, and was replaced", i)
			}
		}
		c.startCell(lost, "--zone", "z"+lost[len(lost)-1:])
		c.scale("web", 8)
		on := map[string]int{}
		for _, r := range c.running("web", 8) {
			on[r.CellID]++
		}
		if on[lost] == 0 {
			t.Errorf("the instances are on %v: nothing is placed on the cell that came back", on)
		}
	})

	c.on(t, "nothing was lost and nothing came twice", func(t *testing.T) {
		c.agree(log, "web")
	})
}

// leader is the host whose process says that it leads.
func (c *cluster) leader(t *testing.T, hosts []string, port string) (leader string) {
	t.Helper()
	o := c.clientOptions(httpapi.OperatorRole)
	c.eventually("somebody leads", func() (bool, error) {
		for _, host := range hosts {
			status, body := get(t, o, "https://"+host+":"+port+"/readyz")
			if status == http.StatusOK && strings.Contains(body, `"role":"leader"`) {
				leader = host
				return true, nil
			}
		}
		return false, nil
	})
	return leader
}

// containers are those of a cell, as it tells an operator.
func (c *cluster) containers(id string) []executor.Container {
	c.t.Helper()
	o := c.clientOptions(httpapi.OperatorRole)
	cells, err := c.client.Cells(within(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cell := range cells {
		if cell.CellID != id {
			continue
		}
		o.Addresses, o.CellID = []string{cell.Address}, id
		client, err := httpapi.NewRemoteCell(o)
		var all []executor.Container
		if err == nil {
			all, err = client.Containers(within(c.t))
		}
		if err != nil {
			c.t.Fatal(err)
		}
		return all
	}
	c.t.Fatalf("there is no cell %q", id)
	return nil
}

// A history is what a subscriber has seen of one process: the instances that
// its events add up to.
type history struct {
	mu      sync.Mutex
	last    storage.Cursor
	records map[string]lrp.ActualLRP
	changed chan struct{} // closed by the next event
	looks   func()        // after each event, with mu held
	err     error
}

// follow subscribes to a process that runs already.
func (c *cluster) follow(guid string) *history {
	c.t.Helper()
	h := &history{records: map[string]lrp.ActualLRP{}, changed: make(chan struct{})}
	newest := c.newest()
	all, err := list(c.client.ActualLRPs(within(c.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range all {
		h.records[place(&r)] = r
	}
	c.hearFrom(newest, storage.EventFilter{ProcessGUIDs: []string{guid}}, h.hear)
	return h
}

// newest is the log's end, from which events follow what is listed afterwards.
func (c *cluster) newest() storage.Cursor {
	c.t.Helper()
	extent, err := c.client.Log(within(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	return extent.Newest
}

// hearFrom calls hear for each event from the cursor until the test ends.
func (c *cluster) hearFrom(from storage.Cursor, f storage.EventFilter, hear func(storage.Event, error)) {
	c.t.Helper()
	events, err := c.client.Subscribe(c.t.Context(), from, f)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range events {
			hear(e, err)
		}
	}()
	c.t.Cleanup(func() { <-done }) // the test's context has ended by then
}

// place is what is unique among the records of a process.
func place(r *lrp.ActualLRP) string { return fmt.Sprint(r.Index, r.DefinitionID, r.Presence) }

func (h *history) hear(e storage.Event, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() {
		close(h.changed)
		h.changed = make(chan struct{})
	}()
	if err != nil {
		h.err = err
		return
	}
	if e.Sequence <= h.last {
		h.err = fmt.Errorf("event %d came after %d", e.Sequence, h.last)
	}
	h.last = e.Sequence
	if e.LRP == nil {
		return
	}
	before, after := e.LRP.Before, e.LRP.After
	switch e.LRP.Kind {
	case lrp.InstanceCreated, lrp.InstanceChanged, lrp.InstanceRemoved:
	default:
		return
	}
	if before != nil {
		was, ok := h.records[place(before)]
		if !ok || was.ModificationTag != before.ModificationTag {
			h.err = fmt.Errorf("event %d begins with %v at %v, and what was seen before ended with %v", e.Sequence, before.ModificationTag, place(before), was.ModificationTag)
		}
		delete(h.records, place(before))
	}
	if after != nil {
		h.records[place(after)] = *after
	}
	if h.looks != nil {
		h.looks()
	}
}

// agree waits until the events that were followed add up to what is recorded.
func (c *cluster) agree(h *history, guid string) {
	c.t.Helper()
	c.eventually("the events add up to the records", func() (bool, error) {
		all, err := list(c.client.ActualLRPs(within(c.t), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
		if err != nil {
			return false, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err != nil {
			c.t.Fatal(h.err)
		}
		if len(all) != len(h.records) {
			return false, fmt.Errorf("%d records and %d by the events", len(all), len(h.records))
		}
		for _, r := range all {
			if h.records[place(&r)].ModificationTag != r.ModificationTag {
				return false, fmt.Errorf("%v is another", place(&r))
			}
		}
		return true, nil
	})
}

// route is an address of the instance at an index, as the events tell it, and
// false if it has none.
func (h *history) route(index int) (address string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var slot lrp.Slot
	for _, r := range h.records {
		if r.Index == index {
			slot.Records = append(slot.Records, r)
		}
	}
	r, ok := lrp.Resolve(slot)
	if !ok || r.State != lrp.Running || !r.Routable || len(r.Ports) == 0 {
		return "", false
	}
	return fmt.Sprintf("http://%s:%d/", r.Address, r.Ports[0].HostPort), true
}

func TestACellOnMySQLIsDrainedUnderTrafficWithoutAFailedRequest(t *testing.T) {
	c := newCluster(t, "mysql:"+testdb.MySQL(t), 1, 1)
	c.startCell("cell-1")
	c.startCell("cell-2")
	const instances = 4
	c.desire(c.app("web", instances, "serve"))
	c.running("web", instances)
	h := c.follow("web")

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var answered [instances]int
	for i := range instances {
		clients.Go(func() {
			client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond): // some 400 requests a second in all
				}
				url, ok := h.route(i)
				if !ok {
					t.Errorf("instance %d has no route", i)
					return
				}
				response, err := client.Get(url)
				if err != nil {
					t.Errorf("a request of instance %d failed: %v", i, err)
					return
				}
				response.Body.Close()
				answered[i]++
			}
		})
	}
	if status := c.cells["cell-1"].terminate(); status != 0 {
		t.Errorf("the drained cell ended with status %d", status)
	}
	close(stop)
	clients.Wait()
	for i, r := range c.running("web", instances) {
		if r.CellID != "cell-2" || answered[i] == 0 {
			t.Errorf("instance %d is on %s and answered %d times", i, r.CellID, answered[i])
		}
	}
	t.Logf("answers: %v", answered)
	if cells, err := c.client.Cells(within(t)); err != nil || len(cells) != 1 {
		t.Errorf("the cells are %v, %v", cells, err)
	}
}

func TestAFleetOutlivesItsDatabaseFor30Seconds(t *testing.T) {
	server := testdb.StartPostgres(t)
	c := newCluster(t, server.Database(t), 2, 1)
	c.startCell("cell-1")
	c.desire(c.app("web", 3, "serve"))
	before := c.running("web", 3)

	server.Stop(t)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		for i, r := range before {
			if answer, err := ask(r); err != nil || answer != fmt.Sprintf("%d %s", i, r.InstanceGUID) {
				t.Fatalf("instance %d answers %q, %v", i, answer, err)
			}
		}
	}
	server.Start(t)

	for i, r := range c.running("web", 3) {
		if r.InstanceGUID != before[i].InstanceGUID || r.CrashCount != 0 {
			t.Errorf("instance %d was restarted", i)
		}
	}
	c.scale("web", 5)
	for i, r := range c.running("web", 5)[:3] {
		if r.InstanceGUID != before[i].InstanceGUID {
			t.Errorf("instance %d was restarted", i)
		}
	}
}

func TestAnInstanceWithoutRoomSaysSoAndIsPlacedOnceThereIsRoom(t *testing.T) {
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)
	c.startCell("cell-1", "--memory-mb", "256")
	big := c.app("big", 1, "serve")
	big.MemoryMB = 512
	c.desire(big)
	c.eventually("the shortfall is named", func() (bool, error) {
		all, err := c.resolved("big")
		if err != nil || len(all) != 1 {
			return false, err
		}
		why := all[0].PlacementError.String()
		if all[0].State != lrp.Unclaimed || !strings.Contains(why, "cell-1, lacks 256 MiB of memory") {
			return false, fmt.Errorf("%v %q", all[0].State, why)
		}
		return true, nil
	})
	c.startCell("cell-2")
	if r := c.running("big", 1); r[0].CellID != "cell-2" || r[0].PlacementError != (lrp.PlacementError{}) {
		t.Errorf("it is on %s with %v", r[0].CellID, r[0].PlacementError)
	}
}

func TestWhoHasAWrongCertificateGetsNowhere(t *testing.T) {
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)
	stranger := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)

	o := stranger.clientOptions(httpapi.OperatorRole)
	o.Addresses, o.Attempts = []string{"https://" + c.bbsHosts[0] + ":" + bbsPort}, 1
	client, err := httpapi.NewRemoteBBS(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Cells(within(t)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client of another authority: %v", err)
	}

	consumer := c.newClient(httpapi.ConsumerRole)
	var forbidden *httpapi.ForbiddenError
	err = consumer.ClaimLRP(within(t), "web", 0, lrp.Claim{DefinitionID: "d", Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}})
	if !errors.As(err, &forbidden) {
		t.Errorf("a consumer claims an instance: %v", err)
	}

	// A cell whose certificate is another cell's does not start, and a caller
	// that speaks for another cell is refused.
	host := newHost()
	rep := launch(t, "rep", append(c.certificate(host, "cell-2", httpapi.CellRole),
		"--listen", host+":"+cellPort, "--cell-id", "cell-1", "--dir", t.TempDir(), "--bbs", urls(c.bbsHosts, bbsPort))...)
	if status := rep.status(); status != daemon.ExitFailed || !strings.Contains(rep.text(), "scripts/certs cell:cell-1") {
		t.Errorf("the cell ends with %d", status)
	}
	err = c.newClient(httpapi.CellRole).Announce(within(t), bbs.CellPresence{CellID: "cell-1"}, "somebody", time.Minute)
	if !errors.As(err, &forbidden) {
		t.Errorf("a cell announces another: %v", err)
	}
	if cells, err := c.client.Cells(within(t)); err != nil || len(cells) != 0 {
		t.Errorf("the cells are %v, %v", cells, err)
	}
}
