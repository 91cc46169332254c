package simulation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
)

// A machine is a cell of any kind, as the world treats it.
type machine interface {
	auction.CellClient
	auction.InventoryClient
	presence() bbs.CellPresence
	// step lets it do what is due; present is false if it cannot reach the
	// store. poll lets it look at everything.
	step(ctx context.Context, present bool)
	poll(ctx context.Context)
	// crash lets a container fail, and vanish lets one disappear behind the
	// machine's back. pick is any number.
	crash(pick int)
	vanish(pick int)
	// fret changes whether an instance is ready for traffic. On a real cell that
	// depends on its program alone.
	fret(pick int)
	// lose switches it off; it is on again once it is mended.
	lose()
	mend()
	// move gives it another address; it is off.
	move(address string)
	drain()
	evacuates() bool
	// stay gives a drain up, if there is one and it is not too late. cordon keeps work
	// away, or no longer, and reports whether the machine has heard of it.
	stay()
	cordon(cordoned bool) bool
	// hush makes it keep the end of containers to itself, or no longer; a real
	// cell never does. It outlasts heal.
	hush()
	heal()
	// holds are the containers it has, in no order.
	holds() []executor.Container
	// lists are those that it knows of, without a question to its backend; nil for a
	// cell that somebody has brought.
	lists() []executor.Container
	// begun is how often the work of a container has begun.
	begun(guid string) int
}

// isTask reports whether a container is a task's.
func isTask(c *executor.Container) bool {
	return c.Tags[executor.TagLifecycle] == executor.LifecycleTask
}

// workOf names the index that a container is for, as "process/0", or its task.
func workOf(c *executor.Container) string {
	if isTask(c) {
		return c.Tags[executor.TagTaskGUID]
	}
	return c.Tags[executor.TagProcessGUID] + "/" + c.Tags[executor.TagProcessIndex]
}

// A model is a Cell in a world.
type model struct {
	*memcell.Cell
	world     *World
	run       int
	announcer *bbs.Announcer // of this run, once there is one
	link      readiness
	// unsaid are the instances whose readiness has changed since the cell spoke.
	unsaid map[string]bool
}

// A readiness passes the calls of a model cell to the leader, and adds whether each
// instance is ready for traffic, which the model does not know.
type readiness struct {
	link
	unready map[string]bool // by instance guid
}

func (r readiness) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	c.Unready = r.unready[c.Instance.InstanceGUID]
	return r.link.StartLRP(ctx, guid, index, c)
}

func (r readiness) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	c.Unready = r.unready[c.Instance.InstanceGUID]
	return r.link.EvacuateRunningLRP(ctx, guid, index, c)
}

// says makes the cell say of its instances that run whether they are ready: of those
// whose readiness has changed or, if all, of each whose record says something else.
func (m *model) says(ctx context.Context, all bool) {
	if !m.world.rolls || m.evacuates() {
		return // an evacuation says it each time
	}
	for _, k := range m.holds() {
		if k.State != executor.Running || isTask(&k) || !all && !m.unsaid[k.GUID] {
			continue
		}
		index, err := strconv.Atoi(k.Tags[executor.TagProcessIndex])
		if err != nil {
			continue
		}
		s, err := m.link.Slot(ctx, k.Tags[executor.TagProcessGUID], index)
		r := find(s.Records, lrp.InstanceKey{InstanceGUID: k.GUID, CellID: m.Presence.CellID})
		if err == nil && r != nil && r.Presence == lrp.Ordinary && r.State == lrp.Running && r.Routable == m.link.unready[k.GUID] {
			err = m.link.StartLRP(ctx, r.ProcessGUID, r.Index, lrp.Start{
				DefinitionID: r.DefinitionID, Domain: r.Domain, Instance: r.InstanceKey, NetInfo: r.NetInfo, Zone: r.Zone,
			})
		}
		if _, told := m.world.ledger.told(err); told {
			delete(m.unsaid, k.GUID)
		}
	}
}

func (m *model) fret(pick int) {
	if list := m.holds(); len(list) > 0 {
		if k := list[pick%len(list)]; k.State == executor.Running && !isTask(&k) {
			m.link.unready[k.GUID] = !m.link.unready[k.GUID]
			m.unsaid[k.GUID] = true
		}
	}
}

func (m *model) presence() bbs.CellPresence { return m.Presence }
func (m *model) poll(ctx context.Context)   { m.Poll(ctx); m.says(ctx, true) }
func (m *model) lose()                      { m.world.loses(m); m.Lose(); m.run++; m.announcer = nil }
func (m *model) mend()                      {}
func (m *model) move(address string)        { m.Presence.Address = address }
func (m *model) evacuates() bool            { s, _ := m.Evacuation(context.Background()); return s.Evacuating }
func (m *model) stay()                      { _ = m.CancelEvacuation(context.Background()) }
func (m *model) cordon(c bool) bool         { return m.Cordon(context.Background(), c) == nil }
func (m *model) hush()                      { m.Silent = !m.Silent }
func (m *model) heal()                      { _ = m.CancelEvacuation(context.Background()); clear(m.link.unready) }
func (m *model) holds() []executor.Container {
	list, _ := m.Containers(context.Background())
	return list
}
func (m *model) lists() []executor.Container { return m.holds() }
func (m *model) begun(guid string) int       { return m.Begun(guid) }
func (m *model) vanish(int)                  {}

func (m *model) drain() {
	if m.evacuates() {
		_ = m.CancelEvacuation(context.Background())
	} else {
		_ = m.Evacuate(context.Background())
	}
}

func (m *model) crash(pick int) {
	if list := m.holds(); len(list) > 0 {
		if k := list[pick%len(list)]; k.State == executor.Running {
			m.world.dooms(k.GUID)
			m.End(k.GUID, executor.Failed("it was told to"))
		}
	}
}

func (m *model) step(ctx context.Context, present bool) {
	if present {
		if m.announcer == nil {
			a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: m.world.Store, Presence: m.Presence, Owner: owner(m.Presence, m.run)})
			if err != nil {
				m.world.object(err)
				return
			}
			m.announcer = a
		}
		_ = m.announcer.Tick(ctx) // a cell that was switched on again waits for its old lease to end
	}
	m.StartsIn = m.world.creation
	m.Step(ctx)
	m.says(ctx, false)
}

func owner(p bbs.CellPresence, run int) string { return fmt.Sprintf("%s run %d", p.CellID, run) }

// A host is a real cell: a rep over a manager over a scripted backend. Its
// daemon ends and begins anew, its backend fails and loses containers.
type host struct {
	world   *World
	p       bbs.CellPresence
	bbs     rep.BBS
	now     func() time.Time
	run     int
	guids   int
	off     bool
	reached bool // the store, at this step
	backend *scripted.Backend
	manager *manager.Manager
	rep     *rep.Rep
	starts  map[string]int // by guid
	drained int            // evacuations that came to their end
	// drains is since when the daemon evacuates; zero if it does not.
	drains time.Time
	// cordoned is what the daemon has written down for the next one.
	cordoned bool
}

// newHost makes a host whose daemon runs.
func newHost(w *World, p bbs.CellPresence, bbs rep.BBS, now func() time.Time) (*host, error) {
	h := &host{world: w, p: p, bbs: bbs, now: now, starts: map[string]int{}}
	h.backend = scripted.New(scripted.Options{
		Now: now, Fault: h.fault,
		Programs: map[string][]string{taskProgram: {fmt.Sprintf("wait %v", 4*pace)}, unsteadyProgram: unsteady},
	})
	return h, h.boot()
}

// taskProgram is what tasks run; everything else runs for ever.
const taskProgram = "/task"

// unsteadyProgram runs for ever, and is ready for traffic while it listens.
const (
	unsteadyProgram = "/unsteady"
	readyPort       = 8080
)

var unsteady = []string{
	"wait 9s", "listen 8080", "wait 2m", "close 8080", "wait 45s", "listen 8080", "wait 3m", "close 8080", "wait 90s", "listen 8080", "wait forever",
}

// fault lets the backend fail as often as the network does, and counts starts.
func (h *host) fault(op scripted.Op, guid string) error {
	if h.world.random.strikes(Backend, h.world.net.faults/2) != nil {
		h.world.harmed("backend", string(op))
		return fmt.Errorf("the host cannot %s", op)
	}
	if op == scripted.Start {
		h.starts[guid]++
	}
	return nil
}

// boot starts the daemon on what it finds.
func (h *host) boot() error {
	h.run++
	h.off, h.drains = false, time.Time{}
	var err error
	h.manager, err = manager.New(context.Background(), manager.Options{
		Backend: h.backend, Now: h.now,
		Capacity: executor.Capacity{MemoryMB: h.p.Capacity.MemoryMB, DiskMB: h.p.Capacity.DiskMB, Containers: h.p.Capacity.Containers},
		Delay: func(j manager.Job) time.Duration {
			if j.Kind == manager.JobCreate {
				return h.world.creation
			}
			return 0
		},
	})
	if err != nil {
		return err
	}
	a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{Store: h.world.Store, Presence: h.p, Owner: owner(h.p, h.run)})
	if err != nil {
		return err
	}
	h.rep, err = rep.New(rep.Options{
		CellID: h.p.CellID, BBS: h.bbs, Executor: h.manager, Announcer: hostAnnouncer{h, a}, Zone: h.p.Zone,
		RootFSProviders: h.p.RootFSProviders, Concurrency: 1, Now: h.now,
		NewGUID:  func() string { h.guids++; return fmt.Sprintf("%s-%d", h.p.CellID, h.guids) },
		Cordoned: h.cordoned, KeepCordon: func(c bool) error { h.cordoned = c; return nil },
	})
	return err
}

// A hostAnnouncer reaches the store when the host does.
type hostAnnouncer struct {
	host *host
	*bbs.Announcer
}

// Tick implements [rep.Announcer].
func (a hostAnnouncer) Tick(ctx context.Context) error {
	if !a.host.reached {
		return errLost
	}
	return a.Announcer.Tick(ctx)
}

// Leave implements [rep.Announcer].
func (a hostAnnouncer) Leave(ctx context.Context) error {
	if !a.host.reached {
		return errLost
	}
	return a.Announcer.Leave(ctx)
}

func (h *host) presence() bbs.CellPresence { return h.p }
func (h *host) begun(guid string) int      { return h.starts[guid] }
func (h *host) evacuates() bool            { began, _, _ := h.rep.Evacuation(); return !began.IsZero() }
func (h *host) cordon(c bool) bool         { return !h.off && h.rep.Cordon(context.Background(), c) == nil }
func (h *host) hush()                      {}
func (h *host) move(address string)        { h.p.Address = address }
func (h *host) heal()                      {}
func (h *host) fret(int)                   {}

// evacuationTimeout is how long a daemon evacuates at most: rep.Options.EvacuationTimeout,
// by default.
const evacuationTimeout = 10 * time.Minute

// overdue reports whether the daemon's time to evacuate has passed, by any clock.
func (h *host) overdue() bool {
	return !h.drains.IsZero() && h.world.Clock.Now().Sub(h.drains) >= evacuationTimeout-2*maxSkew
}

func (h *host) drain() {
	if h.drains.IsZero() {
		h.drains = h.world.Clock.Now()
	}
	_ = h.rep.Evacuate(context.Background())
}

func (h *host) stay() {
	if _ = h.rep.CancelEvacuation(context.Background()); !h.evacuates() {
		h.drains = time.Time{}
	}
}

func (h *host) step(ctx context.Context, present bool) {
	h.reached = present
	if h.off {
		return
	}
	h.manager.Tick(ctx)
	h.rep.Tick(ctx)
	h.manager.Tick(ctx)
	if h.rep.Evacuated() { // the machine is switched off, and comes back as new
		h.drained++
		h.lose()
		h.mend()
	}
}

func (h *host) poll(ctx context.Context) {
	if !h.off {
		_ = h.rep.Sync(ctx)
	}
}

// lose kills the daemon. What is on the host stays there until the next one
// finds it.
func (h *host) lose() {
	h.world.loses(h)
	h.off = true
	h.backend = h.backend.Restart()
}

func (h *host) mend() {
	if h.off {
		if err := h.boot(); err != nil {
			h.world.object(err)
		}
	}
}

func (h *host) crash(pick int) {
	if guid, ok := h.any(pick); ok {
		h.world.dooms(guid)
		_ = h.backend.Signal(context.Background(), guid, executor.Kill)
	}
}

func (h *host) vanish(pick int) {
	if guid, ok := h.any(pick); ok {
		h.world.dooms(guid)
		_ = h.backend.Delete(context.Background(), guid)
	}
}

// any is an instance that runs.
func (h *host) any(pick int) (string, bool) {
	var guids []string
	for _, c := range h.manager.List() {
		if c.State == executor.Running && !isTask(&c) {
			guids = append(guids, c.GUID)
		}
	}
	if h.off || len(guids) == 0 {
		return "", false
	}
	return guids[pick%len(guids)], true
}

func (h *host) lists() []executor.Container {
	if h.off {
		return nil
	}
	return h.manager.List()
}

// holds are also those that the backend has and the manager does not know.
func (h *host) holds() []executor.Container {
	list := h.manager.List()
	known := list // sorted, as guids are
	guids, err := h.backend.List(context.Background())
	if err != nil {
		return list
	}
	for _, guid := range guids {
		for len(known) > 0 && known[0].GUID < guid {
			known = known[1:]
		}
		if len(known) == 0 || known[0].GUID != guid {
			list = append(list, executor.Container{GUID: guid})
		}
	}
	return list
}

// The calls of the auctioneer reach a daemon that runs.

// State implements [auction.CellClient].
func (h *host) State(ctx context.Context) (auction.CellState, error) {
	if h.off {
		return auction.CellState{}, errLost
	}
	return h.rep.State(ctx)
}

// Inventory implements [auction.InventoryClient].
func (h *host) Inventory(ctx context.Context) (auction.Inventory, error) {
	if h.off {
		return auction.Inventory{}, errLost
	}
	return h.rep.Inventory(ctx)
}

// Perform implements [auction.CellClient].
func (h *host) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	if h.off {
		return nil, errLost
	}
	return h.rep.Perform(ctx, w)
}

// StopLRP implements [auction.CellClient].
func (h *host) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	if h.off {
		return errLost
	}
	return h.rep.StopLRP(ctx, key, instance)
}

// CancelTask implements [auction.CellClient].
func (h *host) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	if h.off {
		return errLost
	}
	return h.rep.CancelTask(ctx, taskGUID, instanceGUID)
}
