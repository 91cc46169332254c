package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// pace is how much time a step takes.
const pace = 3 * time.Second

// The planes' guards.
const (
	maxLoss   = 0.5
	lossGrace = 30 * time.Second
	taskGrace = 45 * time.Second
)

// A World is a whole Diego in which things go wrong, all drawn from one seed.
type World struct {
	Clock  *memcell.Clock
	Store  storage.Store
	Planes []*diego.ControlPlane
	// Plans is how many plans of convergence were checked that were not made
	// from everything, and Actions is how many actions were in them.
	Plans, Actions int
	cells          []machine
	medium         *medium

	random   *chance
	tell     func(line string) // gets the story, if it is not nil
	told     int               // the step that the story is at
	net      *network
	cut      []bool // by cell: nothing gets through
	back     []int  // by cell: steps until it is mended
	silence  []spell
	unpolled []int // by cell: steps, of those in which it could be reached, since it polled
	troubles []trouble
	skewed   bool // a control plane's clock was set
	storage  []*flakyStore
	pause    []int // by plane: steps until it goes on
	names    int
	posted   map[string]int

	// What the checkers remember.
	seen    storage.Cursor
	planned storage.Cursor // when checkPlans last looked
	listed  storage.Cursor // when checkRecords last looked
	records map[recordKey]*lrp.ActualLRP
	scratch []lrp.ActualLRP // all records, as they were then
	// presences is room for the cells that are present.
	presences map[string]bool
	crashes   map[string]int       // by instance guid
	epoch     int64                // of the last leader that committed
	gone      map[string]time.Time // by cell: since when it is not present; a return that no leader saw does not count
	goneThen  map[string]time.Time // the same when a plane was paused that has gone on in this step
	looked    bool                 // a leader has looked at the cells in this step
	broken    error
	resting   int                              // the step after which all faults had ended; 0 until then
	numbers   map[storage.Cursor]storage.Event // what was shown under each number
	epochs    map[storage.Fence]bool           // that were granted
	// attempts are the tasks that containers were made for, by guid.
	attempts map[string]attempt
	// met are the rows that were met. If faultless, nothing goes wrong, and none of
	// them may be inconceivable. had is what a cell had at each place last.
	met       Met
	errands   bool // consumers want tasks only
	handles   bool // and resolve them more often than they delete them
	rolls     bool // consumers have every policy of rollouts, and budgets, and steer rollouts
	usurped   bool // a control plane may be paused in the middle of what it does until another leads
	operated  bool // operators empty several cells at once, whose calls interrupt one another
	faultless bool
	had       map[place]executor.Container
	// unwanted are the containers of which a cell has found no record, and since
	// which step.
	unwanted map[string]int
	// resides are the instances that run, by guid, and doomed are those whose cell has
	// a reason to end them.
	resides map[string]residence
	doomed  map[string]bool
	// ranBefore is how often the work of each task had begun when the store
	// fell back.
	ranBefore map[string]int
	// fell is when that was; zero if it never did.
	fell time.Time

	// ledger is what was committed, and speaking is the cell whose call is being
	// carried out, or nil.
	ledger   *ledger
	subject  *Subject // nil: everything is the simulation's own
	speaking *utterance
	// said is what each cell said of itself last, to an auctioneer that asked for it.
	said map[string]auction.CellState
	// restarts and retries are this world's policies, and room the memory of
	// its cells in MiB.
	restarts  restarts
	waits     waits
	lrps      lrp.Policy // the same for the control planes
	tasks     task.Policy
	placement auction.Policy
	retries   int
	room      int64
	// rollCalls is the time between two roll calls.
	rollCalls time.Duration
	// evacuation is how long an EVACUATING record lives.
	evacuation time.Duration
	// calm is true while no message is lost.
	calm bool
	// creation is how long a cell takes to make the container of an instance.
	creation time.Duration
	// recalls is true if the planes' stores remember slots.
	recalls bool
	// healed is when all faults have ended, or zero; employing is true while
	// Employ works.
	healed    time.Time
	employing bool
	// acting is the cell that works, or -1. interrupted is true while another
	// actor has interrupted it, and interrupts counts that.
	acting      int
	interrupted bool
	interrupts  int

	saved       *moment
	subscribers [3]subscriber
	// Fallen is how often the store fell back.
	Fallen int
}

// An attempt is a task, as "GUID@EPOCH", and the cell that got it.
type attempt struct {
	name string
	cell machine
}

// A spell is when a cell's announcements are lost: in how many steps that
// begins, and in how many it ends.
type spell struct{ begins, ends int }

// step reports whether the spell lasts, and lets a step pass.
func (s *spell) step() bool {
	lasts := s.begins == 0 && s.ends > 0
	s.begins, s.ends = max(s.begins-1, 0), max(s.ends-1, 0)
	return lasts
}

// A recordKey names a record for as long as it keeps its epoch.
type recordKey struct {
	guid  string
	index int
	epoch int64
}

// A flakyStore is a plane's way to the store.
type flakyStore struct {
	*access
	world *World
	name  string // the plane's
	// now is the plane's clock, which stands still while it is paused.
	paused *time.Time
	skew   time.Duration // how far the clock is ahead
	// misled is until when the plane may take itself for the leader because its clock
	// was set back. A process measures its lease by a clock that nobody sets; those of
	// a world have none.
	misled time.Time
	frozen bool      // the plane is paused in the middle of what it does, and answers nobody
	leads  bool      // the plane was granted the leadership, and has not learned since that it is lost
	down   int       // steps until it works again
	acted  time.Time // when the plane last had the chance to carry out effects
}

var errDown = errors.New("the store is down")

// fails draws whether a call goes wrong, and whether it was carried out all
// the same.
func (s *flakyStore) fails() (failed, done bool) {
	if s.down > 0 {
		return true, false
	}
	if s.world.net.faults > 0 {
		if how := s.world.random.strikes(Commit, 0.01); how != nil {
			return true, how.IntN(2) == 0
		}
	}
	return false, true
}

// Commit implements [storage.Store]. It takes no deadline from ctx: that would pass
// in real time, and a commit that it cuts off may be done, which the ledger would
// not know.
func (s *flakyStore) Commit(ctx context.Context, b storage.Batch) (c storage.Cursor, err error) {
	ctx = context.WithoutCancel(ctx)
	decided := s.clock() // before others act
	s.world.usurp(s)
	s.world.interrupt()
	failed, done := s.fails()
	if done {
		if c, err = s.Store.Commit(ctx, b); err == nil {
			s.world.tellCommit(s.name, &b)
			s.world.committed(b.Fence.Epoch)
			s.world.object(s.world.ledger.committed(&b, decided))
		}
		if s.world.bringsStore() {
			s.world.object(cmp.Or(unexpected(err), s.world.ledger.kept(ctx, &b, err)))
		}
	}
	if failed {
		s.world.tells("fault: a commit of %s fails, carried out: %t", s.name, done)
		s.world.harmed("commit", commitFails[done])
		return 0, errDown
	}
	return c, err
}

// Recall implements [storage.Recaller].
func (s *flakyStore) Recall(processGUID string, index int) (storage.Recollection, bool) {
	if !s.world.recalls || s.down > 0 {
		return storage.Recollection{}, false
	}
	return storage.Recall(s.Store, processGUID, index)
}

// clock is the plane's.
func (s *flakyStore) clock() time.Time {
	if s.paused != nil {
		return s.paused.Add(s.skew)
	}
	return s.world.Clock.Now().Add(s.skew)
}

// View implements [storage.Store].
func (s *flakyStore) View(ctx context.Context, f func(storage.Reader) error) error {
	if s.down > 0 {
		return errDown
	}
	err := s.Store.View(ctx, f)
	s.world.usurp(s)
	s.world.interrupt()
	return err
}

// Acquire implements [storage.Leaser].
func (s *flakyStore) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.down > 0 {
		return storage.Lease{}, errDown
	}
	leads := l.Kind == storage.LeaderLease
	l, err := s.Store.Acquire(ctx, l, ttl)
	if leads {
		s.leads = err == nil
	}
	if err == nil {
		s.world.granted(l)
		if leads && s.skew.Abs() > leadsUntil {
			s.world.object(checkLeaders.violated("%s begins to lead, and its clock is %s ahead of the store's", s.name, s.skew))
		}
	}
	return l, err
}

// Renew implements [storage.Leaser].
func (s *flakyStore) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if s.down > 0 {
		return storage.Lease{}, errDown
	}
	renewed, err := s.Store.Renew(ctx, l, ttl)
	if errors.Is(err, storage.ErrFenced) && l.Kind == storage.LeaderLease {
		s.leads = false
	}
	return renewed, err
}

// committed makes sure that leaders commit one after another.
func (w *World) committed(epoch int64) {
	if epoch == 0 || epoch < w.epoch {
		w.object(checkLeaders.violated("a leader of epoch %d has committed after one of epoch %d", epoch, w.epoch))
	}
	w.epoch = epoch
}

// object keeps the first violation, which ends the history at the next Check.
func (w *World) object(err error) {
	if w.broken == nil {
		w.broken = err
	}
}

// apart is the time between two actors that interrupt one another. The records that a
// decision makes have epochs from its time on, one nanosecond apart, and no two records
// of a slot may have the same.
const apart = 100 * time.Nanosecond

// partActors lets a moment pass, on the clocks that stand still too.
func (w *World) partActors() {
	w.Clock.Advance(apart)
	for _, s := range w.storage {
		if s.paused != nil {
			*s.paused = s.paused.Add(apart)
		}
	}
}

// interrupt lets somebody else act, now and then, between what an actor has read
// and what it is about to commit.
func (w *World) interrupt() {
	if w.interrupted {
		return
	}
	share, rivals := w.net.faults/2, w.rivals()
	if len(rivals) > 0 {
		share = 0.5
	}
	how := w.random.strikes(Interrupt, share)
	if how == nil {
		return
	}
	defer w.random.as(how)()
	w.tells("fault: another actor interrupts")
	ctx := context.Background() // the actor's own has its request id
	w.interrupted = true
	w.interrupts++
	w.partActors()
	speaking, acting := w.speaking, w.acting
	w.speaking = nil
	defer func() { w.interrupted = false; w.speaking, w.acting = speaking, acting; w.partActors() }()
	if len(rivals) > 0 {
		w.harmed("interrupt", interruptions[2])
		w.acting = rivals[w.random.IntN(len(rivals))]
		w.cells[w.acting].poll(ctx)
		return
	}
	switch i := w.random.IntN(len(w.cells)); w.random.IntN(5) {
	case 0, 1:
		if len(w.net.late) > 0 {
			w.harmed("interrupt", interruptions[0])
		}
		w.net.deliverOne()
	case 2:
		w.harmed("interrupt", interruptions[1])
		w.Consume(ctx)
	default:
		if i == acting || w.cut[i] {
			return
		}
		w.harmed("interrupt", interruptions[2])
		if w.acting = i; w.random.IntN(2) == 0 {
			w.crash(i, w.random.IntN(1000))
		}
		w.cells[i].poll(ctx)
		w.invent(ctx, i)
	}
}

// usurp pauses a control plane that leads, now and then, between what it has read and
// what it is about to commit, until another one has led for a while. The cell that it
// works for waits as long. Nobody can keep the plane from sending what it has decided
// before it finds out, but none of its commits may count.
func (w *World) usurp(s *flakyStore) {
	plane := slices.Index(w.storage, s)
	if !w.usurped || w.interrupted || s.paused != nil || w.net.faults == 0 || !w.leads(plane) {
		return
	}
	how := w.random.strikes(Interrupt, 0.01)
	if how == nil {
		return
	}
	defer w.random.as(how)()
	w.tells("fault: %s is paused in the middle of what it does", s.name)
	w.harmed("interrupt", interruptions[3])
	now, speaking, acting := w.Clock.Now(), w.speaking, w.acting
	w.interrupted, s.paused, w.speaking = true, &now, nil
	w.interrupts++
	ctx := context.Background()
	w.looked = w.looked || speaking == nil && acting == none     // a plane looks before it decides
	w.object(errors.Join(w.watchCells(ctx), w.checkEvents(ctx))) // before time passes
	w.goneThen, s.frozen = maps.Clone(w.gone), true
	for range int(leaderTTL/pace) + 1 + w.random.IntN(10) {
		w.Clock.Advance(pace)
		for i := range w.cells {
			if i != acting {
				w.stepCell(ctx, i)
			}
		}
		w.looked = false
		for i, p := range w.Planes {
			if i != plane {
				w.stepPlane(ctx, i, p)
			}
		}
		w.object(errors.Join(w.watchCells(ctx), w.checkEvents(ctx)))
	}
	w.interrupted, s.paused, w.speaking, w.acting = false, nil, speaking, acting
	s.misled, s.frozen = w.Clock.Now().Add(pace-1), false // in this step
	w.tells("%s goes on", s.name)
}

// rivals are the other cells that evacuate while one does that acts now: they may be
// after the same place of a budget for disruptions.
func (w *World) rivals() (list []int) {
	if !w.operated || w.acting == none || !w.cells[w.acting].evacuates() {
		return nil
	}
	for i, c := range w.cells {
		if i != w.acting && !w.cut[i] && c.evacuates() {
			list = append(list, i)
		}
	}
	return list
}

// leads reports whether a plane holds the leadership by the store's word.
func (w *World) leads(plane int) bool {
	for lease, err := range w.Store.Leases(context.Background(), storage.LeaderLease) {
		if err == nil && lease.Owner == planeName(plane) {
			return true
		}
	}
	return false
}

// NewWorld makes a world of some cells and two control planes. The cells are
// models or, if real, reps over managers over scripted backends. Everything
// works until Faults says otherwise. The caller closes it.
func NewWorld(h History) (*World, error) {
	w := &World{
		Clock: memcell.NewClock(), creation: 2 * pace, random: newChance(h), posted: map[string]int{},
		numbers: map[storage.Cursor]storage.Event{}, attempts: map[string]attempt{}, met: Met{}, had: map[place]executor.Container{}, unwanted: map[string]int{}, resides: map[string]residence{}, doomed: map[string]bool{}, epochs: map[storage.Fence]bool{},
		records: map[recordKey]*lrp.ActualLRP{}, crashes: map[string]int{}, gone: map[string]time.Time{}, presences: map[string]bool{},
	}
	var err error
	if w.medium, err = newMedium(w, h); err != nil {
		return nil, err
	}
	if w.Store, err = w.medium.open(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.net = &network{world: w}
	w.ledger, w.said, w.acting = newLedger(w), map[string]auction.CellState{}, none
	w.draw(rand.New(rand.NewPCG(h.Seed, 2)))
	if w.subject = h.Subject; w.subject != nil {
		w.policies(w.subject)
	}
	cells := h.cells()
	w.cut, w.back, w.silence, w.unpolled = make([]bool, cells), make([]int, cells), make([]spell, cells), make([]int, cells)
	w.troubles = make([]trouble, cells)
	for i, c := range memcell.NewFleet(cells, w.Clock) {
		c.Presence.Capacity.MemoryMB = w.room
		if w.subject != nil && len(w.subject.Cells) > 0 {
			c.Presence = w.subject.Cells[i]
		}
		w.troubles[i].address = c.Presence.Address
		l := link{w.net, c.Presence.CellID, &w.cut[i], &w.troubles[i]}
		if w.subject != nil && w.subject.Cell != nil {
			g, err := newGuest(w, c.Presence, l, w.clockOf(i))
			if err != nil {
				return nil, errors.Join(err, w.Close())
			}
			w.cells = append(w.cells, g)
			continue
		}
		if h.Real {
			h, err := newHost(w, c.Presence, l, w.clockOf(i))
			if err != nil {
				return nil, errors.Join(err, w.Close())
			}
			w.cells = append(w.cells, h)
			continue
		}
		m := &model{Cell: c, world: w, link: readiness{l, map[string]bool{}}, unsaid: map[string]bool{}}
		c.BBS, c.Now, c.TaskTakes = m.link, w.clockOf(i), 4*pace
		w.cells = append(w.cells, m)
	}
	const planes = len(planeNames)
	w.pause = make([]int, planes)
	w.recalls = h.Seed%2 == 0
	for i := range planes {
		a, err := w.medium.open()
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		s := &flakyStore{access: a, world: w, name: planeName(i)}
		w.storage = append(w.storage, s)
		w.Planes = append(w.Planes, nil)
		if err := w.boot(i); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Close ends the world.
func (w *World) Close() error { return w.medium.done() }

// boot starts the process of a control plane, which knows nothing of what the
// one before it knew.
func (w *World) boot(i int) (err error) {
	s := w.storage[i]
	w.Planes[i], err = diego.New(diego.Options{
		Store: s, Owner: planeName(i), Concurrency: 1, Guard: converge.Guard{MaxLoss: maxLoss, Grace: lossGrace, TaskGrace: taskGrace},
		LRPs: w.lrps, Tasks: w.tasks, Auction: auction.RunnerOptions{Policy: w.placement},
		Dial: func(p bbs.CellPresence) (auction.CellClient, error) { return w.dial(i, p) },
		Post: w.post, Now: s.clock, InventoryInterval: w.rollCalls,
	})
	return err
}

func planeName(i int) string { return planeNames[i] }

var planeNames = [...]string{"plane-1", "plane-2"}

// none stands for no cell.
const none = -1

// draw draws the policies of a world. Its checkers go by restarts and retries.
func (w *World) draw(random *rand.Rand) {
	pick := func(of ...int) int { return of[random.IntN(len(of))] }
	seconds := func(of ...int) time.Duration { return time.Duration(pick(of...)) * time.Second }
	w.restarts = restarts{
		immediate: pick(3, 3, 1, -1), most: pick(200, 200, 5),
		shortest: seconds(30, 30, 10), longest: seconds(960, 960, 60), forgiven: seconds(300, 300, 60),
	}
	w.retries = pick(3, 3, 1)
	w.evacuation = seconds(600, 600, 30)
	w.room = int64(pick(64<<10, 64<<10, 1<<10))
	w.rollCalls = seconds(300, 30)
	w.waits = usualWaits
	w.waits.expirePending = seconds(1800, 1800, 60)
	w.tasks = task.Policy{MaxRetries: w.retries, ExpirePending: w.waits.expirePending}
	w.lrps = lrp.Policy{EvacuationTimeout: w.evacuation, Restart: lrp.RestartPolicy{
		ImmediateRestarts: w.restarts.immediate, MaxRestarts: w.restarts.most,
		MinBackoff: w.restarts.shortest, MaxBackoff: w.restarts.longest, ResetAfter: w.restarts.forgiven,
	}}
}

func (w *World) dial(plane int, p bbs.CellPresence) (auction.CellClient, error) {
	return wire{w.net, plane, p.CellID, p.Address}, nil
}

// post is a consumer that does not always answer.
// Now and then its answer is bad though it has the completion, and it deletes the
// task by itself.
func (w *World) post(ctx context.Context, _ string, r task.CallbackResponse) int {
	w.object(w.ledger.posts(&r))
	if how := w.random.strikes(Callback, w.net.faults); how != nil {
		w.tells("fault: the completion of task %s is not accepted", r.TaskGUID)
		deletes := how.IntN(2) == 0
		w.harmed("callback", acceptances[deletes])
		if deletes {
			w.finish(ctx, r.TaskGUID)
		}
		return []int{0, 503, 404}[how.IntN(3)]
	}
	w.effected("callback", map[bool]string{false: "it is told", true: "it is told again"}[w.posted[r.TaskGUID] > 0])
	w.posted[r.TaskGUID]++
	return 200
}

// Faults sets the share of calls that go wrong.
func (w *World) Faults(share float64) { w.net.faults = share }

// Step lets some time pass and everybody do what is due. It returns what must
// never happen.
func (w *World) Step(ctx context.Context) error {
	skipped := w.random.skips()
	if w.random.next(); skipped {
		return nil
	}
	w.Clock.Advance(pace)
	w.goneThen = nil
	w.net.deliverLate(false)
	for i := range w.cells {
		w.stepCell(ctx, i)
	}
	w.looked = false
	for i, p := range w.Planes {
		w.stepPlane(ctx, i, p)
	}
	for i := range w.subscribers {
		if w.random.IntN(3) == 0 {
			if err := w.follow(ctx, &w.subscribers[i]); err != nil {
				return err
			}
		}
	}
	return w.Check(ctx)
}

// longestPoll is for how many steps a cell that can be reached does not look at
// everything at most. A real one does so every 30 s.
const longestPoll = 30

// stepCell lets a cell announce itself and do its work.
func (w *World) stepCell(ctx context.Context, i int) {
	c := w.cells[i]
	if w.back[i] > 0 {
		if w.back[i]--; w.back[i] == 0 {
			w.rejoin(i)
		}
	}
	w.troubles[i].pass(w.Clock.Now())
	w.acting = i
	silent := w.silence[i].step()
	c.step(ctx, !silent)
	w.invent(ctx, i)
	// A cell that is taken for missing and can be reached is refused only for a moment
	// in a rollout, so it looks at everything all the time there.
	if looks := silent && w.rolls || w.unpolled[i] >= longestPoll; !w.cut[i] && (w.random.IntN(5) == 0 || looks) {
		c.poll(ctx)
		w.unpolled[i] = 0
	} else if !w.cut[i] {
		w.unpolled[i]++
	}
	w.acting = none
}

// stepPlane lets a control plane work, unless it is paused. One that wakes
// does not know at first how late it is.
func (w *World) stepPlane(ctx context.Context, i int, p *diego.ControlPlane) {
	s := w.storage[i]
	if s.down > 0 {
		s.down--
	}
	if w.pause[i] > 0 {
		if s.paused == nil {
			now := w.Clock.Now()
			s.paused = &now
		}
		if w.pause[i]--; w.pause[i] > 0 {
			return
		}
		_ = p.Tick(ctx)
		s.paused = nil
	}
	_ = p.Tick(ctx)
	if leading, _ := p.Leadership.Leading(); leading && s.down == 0 {
		w.looked, s.acted = true, w.Clock.Now()
	}
}

// act draws from numbers of its own what f does, unless this step or this fault is
// left out.
func (w *World) act(f func()) {
	if w.random.skips() {
		return
	}
	if how := w.random.strikes(Mischief, 1); how != nil {
		defer w.random.as(how)()
		f()
	}
}

// Mischief draws something that goes wrong at once.
func (w *World) Mischief(ctx context.Context) { w.act(func() { w.mischief(ctx) }) }

func (w *World) mischief(ctx context.Context) {
	i := w.random.IntN(len(w.cells))
	id := w.cells[i].presence().CellID
	switch w.random.IntN(24) {
	case 16: // a control plane is started anew
		i := w.random.IntN(len(w.Planes))
		w.tells("fault: %s is started anew", planeName(i))
		w.harmed("mischief", "a control plane is started anew")
		w.storage[i].paused, w.pause[i] = nil, 0
		w.object(errors.Join(w.medium.reopen(w.storage[i].access), w.boot(i)))
	case 0: // a cell cannot be reached for a while
		w.cutOff(i, 0, 1+w.random.IntN(30))
	case 1: // a cell is switched off and on again
		w.tells("fault: %s is switched off", id)
		w.harmed("mischief", "a cell is switched off")
		w.cells[i].lose()
		w.cutOff(i, 0, 1+w.random.IntN(10))
	case 2: // a leader is paused for up to three times its lease
		i := w.random.IntN(len(w.pause))
		w.pause[i] = 1 + w.random.IntN(15)
		w.tells("fault: %s is paused for %d steps", planeName(i), w.pause[i])
		w.harmed("mischief", "a control plane is paused")
	case 3: // the store is down for one of the planes
		s := w.storage[w.random.IntN(len(w.storage))]
		s.down = 1 + w.random.IntN(10)
		w.tells("fault: the store is down for %s for %d steps", s.name, s.down)
		w.harmed("mischief", "the store is down")
	case 4, 5, 6: // an instance crashes
		w.crash(i, w.random.IntN(2)*w.random.IntN(1000)) // often the same
	case 7: // a cell is drained, or no longer
		w.tells("%s is drained, or no longer", id)
		w.harmed("mischief", "a cell is drained")
		w.cells[i].drain()
	case 8: // a container disappears
		w.tells("fault: a container of %s disappears", id)
		w.harmed("mischief", "a container disappears")
		w.cells[i].vanish(w.random.IntN(1000))
	case 9:
		w.Outage()
	case 10:
		w.SpreadLoss(1 + w.random.IntN(60))
	case 11: // a cell keeps to itself that containers have ended, or does so no longer
		w.tells("fault: %s keeps the end of containers to itself, or no longer", id)
		w.harmed("mischief", "ends are kept secret")
		w.cells[i].hush()
	case 17: // a clock is set
		w.adjust(i)
	case 18, 19: // a cell tells lies
		w.deceive(i, lie(w.random.IntN(int(lies))), 1+w.random.IntN(30))
	case 20: // a cell answers too late
		w.troubles[i].slow = 1 + w.random.IntN(20)
		w.tells("fault: %s is slow for %d steps", id, w.troubles[i].slow)
		w.harmed("mischief", "a cell is slow")
	case 21: // a cell is at another address
		w.move(i)
	default:
		w.Consume(ctx)
	}
}

// crash lets a container of a cell fail. pick is any number.
func (w *World) crash(i, pick int) {
	w.tells("fault: a container of %s crashes, if it has one", w.cells[i].presence().CellID)
	w.harmed("mischief", "a container crashes")
	w.cells[i].crash(pick)
}

// fret changes whether an instance of a cell is ready for traffic. pick is any number.
func (w *World) fret(i, pick int) {
	w.tells("fault: an instance of %s becomes unready, or ready again, if it has one", w.cells[i].presence().CellID)
	w.harmed("mischief", "readiness changes")
	w.cells[i].fret(pick)
}

// cutOff lets nothing through to a cell or from it for some steps, save its
// announcements at first.
func (w *World) cutOff(i, announced, steps int) {
	w.tells("fault: %s is cut off for %d steps, and its announcements after %d", w.cells[i].presence().CellID, steps, announced)
	w.harmed("mischief", "a cell is cut off")
	w.cut[i], w.back[i], w.silence[i] = true, steps, spell{announced, steps}
}

// rejoin ends the cut and starts the cell if it was switched off.
func (w *World) rejoin(i int) {
	w.tells("%s can be reached again", w.cells[i].presence().CellID)
	w.cut[i], w.back[i], w.silence[i] = false, 0, spell{}
	w.cells[i].mend()
}

// presenceTTL is how many steps a cell is present without a word from it.
const presenceTTL = int(15 * time.Second / pace)

// Outage cuts off all cells. Their presences end in any order, and each cell is
// back, in any order, before its presence has been gone for the guards' grace, but
// not before all are gone: until then, a guard may take the first for lost, and those
// that are back may get their instances. It returns how many steps that takes at most.
func (w *World) Outage() (steps int) {
	w.harmed("mischief", "all cells are cut off")
	const spread = 5
	for i := range w.cells {
		announced := w.random.IntN(spread)
		w.cutOff(i, announced, max(spread+presenceTTL, announced+presenceTTL+1+w.random.IntN(int(lossGrace/pace)-1)))
	}
	return spread + presenceTTL + int(lossGrace/pace)
}

// SpreadLoss loses the announcements of all cells, beginning within some steps,
// and each cell's for less than the guards' grace for tasks; the cells can be
// reached all the same.
func (w *World) SpreadLoss(within int) (steps int) {
	w.harmed("mischief", "presences are lost")
	longest := presenceTTL + int(taskGrace/pace)
	for i := range w.cells {
		begins := w.random.IntN(within)
		w.silence[i] = spell{begins, begins + 1 + w.random.IntN(longest-1)}
		w.tells("fault: the announcements of %s are lost from %d to %d steps from now", w.cells[i].presence().CellID, begins, w.silence[i].ends)
	}
	return within + longest
}

// hide loses the announcements of a cell for some steps; it can be reached all the same.
func (w *World) hide(i, steps int) {
	w.tells("fault: the announcements of %s are lost for %d steps", w.cells[i].presence().CellID, steps)
	w.harmed("mischief", "presences are lost")
	w.silence[i] = spell{0, steps}
}

// Heal ends all faults.
func (w *World) Heal() {
	w.tells("all faults end")
	w.resting = w.random.step
	w.net.faults = 0
	w.healed = w.Clock.Now()
	w.net.deliverLate(true)
	for i, c := range w.cells {
		w.rejoin(i)
		c.heal()
		w.troubles[i].slow, w.troubles[i].lying, w.troubles[i].skew = 0, 0, 0
		w.uncordon(i)
	}
	for i := range w.Planes {
		w.pause[i], w.storage[i].down, w.storage[i].paused, w.storage[i].skew = 0, 0, nil, 0
	}
}

// definition is of some size that tells it from others.
func definition(n int) lrp.Definition {
	return lrp.Definition{
		Resources: executor.Resources{MemoryMB: int64(64 + n%64), DiskMB: 64},
		RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
		},
	}
}

// definition is one of the processes. Where consumers steer rollouts, every other is
// not ready for traffic at all times, on a real cell.
func (w *World) definition(n int) lrp.Definition {
	d := definition(n)
	if w.rolls && n%2 == 0 {
		d.Action.Run.Path = unsteadyProgram
		d.Check = &executor.CheckDefinition{ReadinessChecks: []executor.Check{{TCP: &executor.TCPCheck{Port: readyPort}}}}
	}
	return d
}

// Employ desires a number of processes, of four instances each, and of tasks.
func (w *World) Employ(ctx context.Context, processes, tasks int) error {
	for _, p := range w.Planes {
		if leading, _ := p.Leadership.Leading(); !leading {
			continue
		}
		w.employing = true
		defer func() { w.employing = false }()
		err := p.BBS.UpsertDomain(ctx, "apps", 0)
		for i := range processes {
			d := lrp.DeploymentDefinition{
				ProcessGUID: fmt.Sprintf("process-%d", i), Domain: "apps", Settings: lrp.Settings{Instances: 4},
				DefinitionID: "d", Definition: definition(0),
			}
			switch {
			case w.operated && i == 0:
				d.UpdateStrategy = lrp.Recreate
				d.Disruption = []*lrp.Disruption{nil, {MaxUnavailable: 1}, {MaxUnavailablePercent: 50}}[w.random.IntN(3)]
			case w.rolls:
				d.UpdateStrategy, d.Policies = lrp.UpdateStrategy(w.random.IntN(2)), lrp.Policies{Rollout: w.rolloutPolicy(), Disruption: w.disruption()}
			}
			err = errors.Join(err, p.BBS.CreateDeployment(ctx, d))
		}
		for range tasks {
			w.names++
			err = errors.Join(err, p.BBS.DesireTask(ctx, w.task()))
		}
		return err
	}
	return errors.New("nobody leads")
}

// task is a new one.
func (w *World) task() task.Desire {
	t := task.Definition{Resources: definition(0).Resources, RunInfo: definition(0).RunInfo}
	t.Action = executor.Action{Run: &executor.RunAction{Path: taskProgram, User: "vcap"}}
	return task.Desire{GUID: fmt.Sprintf("task-%d", w.names), Domain: "apps", Definition: t}
}

// Check returns what must not be: a slot that breaks an invariant, an event log
// that does not tell of every record, a crash that counts twice, work that was
// done twice, a leader that commits after it was replaced, a cell that is taken
// for lost too soon.
func (w *World) Check(ctx context.Context) error {
	if w.broken != nil {
		return w.broken
	}
	w.interrupted = true // nothing happens while it looks
	defer func() { w.interrupted = false }()
	if err := w.watchCells(ctx); err != nil {
		return err
	}
	if err := w.checkEvents(ctx); err != nil {
		return err
	}
	// A record that changes without an event is seen a little later, and at once if
	// the store is not the simulation's own.
	if w.seen != w.listed || w.bringsStore() || w.random.step%8 == 0 {
		w.listed = w.seen
		if err := w.checkRecords(ctx); err != nil {
			return err
		}
	}
	if w.bringsStore() {
		if err := w.ledger.shows(ctx, w.scratch); err != nil {
			return err
		}
	}
	if w.subject != nil {
		if err := w.subject.Look(ctx, w, false); err != nil {
			return err
		}
	}
	// What a plan leaves out is left out for longer than a step, or until time is what
	// makes it due.
	if news := w.seen != w.planned; news && w.random.step%2 == 0 || w.random.step%6 == 0 {
		w.planned = w.seen
		if err := w.checkPlans(ctx); err != nil {
			return err
		}
	}
	if err := w.watchContainers(); err != nil {
		return err
	}
	if err := w.ledger.budgets(); err != nil {
		return err
	}
	if err := w.ledger.expired(); err != nil {
		return err
	}
	if err := w.ledger.prompt(); err != nil {
		return err
	}
	if w.random.step%8 != 0 {
		return nil // what has run twice has done so at the next look, too
	}
	return w.checkTasks()
}

// checkEvents follows the log to its end.
func (w *World) checkEvents(ctx context.Context) error {
	if log, err := w.Store.Log(ctx); err != nil || log.Newest == w.seen {
		return err
	}
	for e, err := range w.Store.Events(ctx, w.seen, storage.EventFilter{}) {
		if err != nil {
			return err
		}
		if g := e.Gap; e.Sequence != w.seen+1 && (g == nil || g.After != w.seen) {
			return checkLog.violated("event %d follows event %d", e.Sequence, w.seen)
		}
		w.seen = e.Sequence
		if err := w.shown(e); err != nil {
			return err
		}
		if e.LRP != nil {
			w.fold(e.LRP)
		}
		if err := w.checkLoss(&e); err != nil {
			return err
		}
		if guid := crashed(e.LRP); guid != "" {
			if w.crashes[guid]++; w.crashes[guid] > 1 {
				return checkCrashes.violated("instance %s has crashed twice", guid)
			}
		}
	}
	return nil
}

// checkRecords makes sure that the records are those that the events tell of, and
// that every slot is valid.
func (w *World) checkRecords(ctx context.Context) error {
	all := w.scratch[:0] // slot by slot
	for r, err := range w.Store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return err
		}
		if told := w.records[keyOf(&r)]; told == nil || !told.Equal(&r) {
			return checkLog.violated("the events tell of %+v, and there is %+v", told, r)
		}
		all = append(all, r)
	}
	w.scratch = all
	if len(all) != len(w.records) {
		return checkLog.violated("the events tell of %d records, and there are %d", len(w.records), len(all))
	}
	for len(all) > 0 {
		s := lrp.Slot{ProcessGUID: all[0].ProcessGUID, Index: all[0].Index}
		n := 1
		for n < len(all) && all[n].ProcessGUID == s.ProcessGUID && all[n].Index == s.Index {
			n++
		}
		s.Records, all = all[:n], all[n:]
		if err := s.Validate(); err != nil {
			return checkInvariants.violated("%v", err)
		}
	}
	return nil
}

// watchCells notes which cells are gone, and since when.
func (w *World) watchCells(ctx context.Context) error {
	clear(w.presences)
	for l, err := range w.Store.Leases(ctx, storage.CellLease) {
		if err != nil {
			return err
		}
		w.presences[l.Name] = true
	}
	for _, c := range w.cells {
		id := c.presence().CellID
		switch _, known := w.gone[id]; {
		case !w.presences[id] && !known:
			w.gone[id] = w.Clock.Now()
		case w.presences[id] && w.looked:
			delete(w.gone, id)
		}
	}
	return nil
}

// checkLoss makes sure that an event is not of a cell that was taken for lost
// too soon: its tasks fail when it has been gone for their grace, its instances
// are suspect when it has been gone for the grace, or is one of few that went
// within that time. Right after the store fell back, the presences that it then
// has again do not tell how long the leader has missed a cell, so suspects are not
// judged for that long; tasks always are.
func (w *World) checkLoss(e *storage.Event) error {
	now := w.Clock.Now()
	if t := e.Task; t != nil && t.After != nil && t.Cause.Command == (task.CellMissing{}).Name() {
		if since, gone := w.gone[t.Before.CellID]; !gone || now.Sub(since) < taskGrace {
			return checkGuard.violated("task %s has failed with its cell, which is gone (%t) since %s", t.After.GUID, gone, since)
		}
	}
	settled := w.fell.IsZero() || now.Sub(w.fell) >= lossGrace
	if l := e.LRP; settled && l != nil && l.After != nil && l.After.Presence == lrp.Suspect && l.Before != nil && l.Before.Presence == lrp.Ordinary {
		since, gone := w.gone[l.After.CellID]
		if then, was := w.goneThen[l.After.CellID]; was && !gone {
			since, gone = then, true // it has come back since the plane looked
		}
		lately := w.lately(w.gone)
		if w.goneThen != nil {
			lately = min(lately, w.lately(w.goneThen)) // it has looked before its pause
		}
		if !gone || now.Sub(since) < lossGrace && float64(lately) > maxLoss*float64(len(w.cells)) {
			return checkGuard.violated("%s is suspect: its cell is gone (%t) since %s, as are %d others", keyOf(l.After).guid, gone, since, lately-1)
		}
	}
	return nil
}

// lately counts the cells that have been gone for less than the grace.
func (w *World) lately(gone map[string]time.Time) (n int) {
	for _, since := range gone {
		if w.Clock.Now().Sub(since) < lossGrace {
			n++
		}
	}
	return n
}

// checkPlans makes sure that convergence, when it looks only at what may need
// something, plans what it would if it looked at everything.
func (w *World) checkPlans(ctx context.Context) error {
	for i, p := range w.Planes {
		if leading, _ := p.Leadership.Leading(); !leading || w.storage[i].down > 0 {
			continue // a standby's plans come to nothing: it forgets all when it begins to lead
		}
		some, err := p.Converger.Plan(ctx, false)
		if err != nil {
			return err
		}
		all := some
		if !some.Full {
			if all, err = p.Converger.Plan(ctx, true); err != nil {
				return err
			}
		}
		if err := w.ledger.planned(all.LRPs); err != nil {
			return err
		}
		if some.Full {
			continue
		}
		w.asks(all.Tasks)
		if !reflect.DeepEqual(some.LRPs, all.LRPs) || !reflect.DeepEqual(some.Tasks, all.Tasks) {
			return checkAgenda.violated("convergence plans %+v, and would plan %+v if it looked at everything", some, all)
		}
		w.Plans++
		w.Actions += len(some.LRPs) + len(some.Tasks)
	}
	return nil
}

// checkTasks makes sure that no task was run twice, on the same cell or on two.
// When the store falls back, work on its way to a cell may run beside the work
// that the store then requests, so an earlier task may run twice after that.
func (w *World) checkTasks() error {
	for name, n := range w.counts() {
		most := 1
		if _, epoch, _ := strings.Cut(name, "@"); !w.fell.IsZero() && epoch <= strconv.FormatInt(w.fell.Add(w.slack()).UnixNano(), 10) {
			most = 2
		}
		if n-w.ranBefore[name] > most {
			return checkOnce.violated("task %s was run twice", name)
		}
	}
	return nil
}

func keyOf(r *lrp.ActualLRP) recordKey {
	return recordKey{r.ProcessGUID, r.Index, r.ModificationTag.Epoch}
}

// crashed is the guid of the instance that a crash is about, or "".
func crashed(e *lrp.Event) string {
	if e == nil || e.Kind != lrp.InstanceCrashed || e.Before == nil {
		return ""
	}
	return e.Before.InstanceGUID
}

// fold follows an event as a consumer would.
func (w *World) fold(e *lrp.Event) {
	switch e.Kind {
	case lrp.InstanceCreated, lrp.InstanceChanged:
		w.records[keyOf(e.After)] = e.After
	case lrp.InstanceRemoved:
		if r, ok := w.records[keyOf(e.Before)]; ok && r.InstanceKey == e.Before.InstanceKey {
			delete(w.records, keyOf(e.Before))
		}
	}
}

// Settled says what is not yet as it should be, or nil: every desired index has
// one RUNNING record and one container that runs, nothing else runs, and no
// task is left.
func (w *World) Settled(ctx context.Context) error {
	running := map[string]string{} // by instance guid: where
	for _, c := range w.cells {
		for _, k := range c.holds() {
			running[k.GUID] = workOf(&k) + " " + k.State.String()
		}
	}
	for d, err := range w.Store.Deployments(ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			return err
		}
		if w.gaveUp(d) {
			maps.DeleteFunc(running, func(_, what string) bool { return strings.HasPrefix(what, d.ProcessGUID+"/") })
			continue
		}
		for index := range d.Instances {
			s, _, err := w.Store.Slot(ctx, d.ProcessGUID, index)
			if err != nil {
				return err
			}
			if len(s.Records) != 1 || s.Records[0].State != lrp.Running || s.Records[0].Presence != lrp.Ordinary || s.Records[0].DefinitionID != d.ActiveDefinitionID {
				return fmt.Errorf("%s/%d of definition %s has %+v", d.ProcessGUID, index, d.ActiveDefinitionID, s.Records)
			}
			guid := s.Records[0].InstanceGUID
			if running[guid] != fmt.Sprintf("%s/%d %s", d.ProcessGUID, index, executor.Running) {
				return fmt.Errorf("%s/%d should run as %s, and that is %q", d.ProcessGUID, index, guid, running[guid])
			}
			delete(running, guid)
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("containers without a purpose: %v", slices.Sorted(maps.Values(running)))
	}
	for t, err := range w.Store.Tasks(ctx, storage.TaskFilter{}) {
		return fmt.Errorf("task %+v is left, %v", t, err)
	}
	for r, err := range w.Store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return err
		}
		if d, err := w.Store.Deployment(ctx, r.ProcessGUID); err != nil || !d.Desires(r.Index) {
			return fmt.Errorf("%s/%d is recorded and not desired", r.ProcessGUID, r.Index)
		}
	}
	return nil
}

// gaveUp reports whether a process has an instance that has crashed too often to
// start again, which also holds up a rollout.
func (w *World) gaveUp(d *lrp.Deployment) bool {
	most := w.restarts.of(d).most
	for key, r := range w.records {
		if key.guid == d.ProcessGUID && r.State == lrp.Crashed && r.CrashCount > most {
			return true
		}
	}
	return false
}
