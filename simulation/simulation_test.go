package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/simulation"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

func memory(now func() time.Time) (storage.Store, error) {
	return memstore.New(&memstore.Options{Now: now}), nil
}

func model(o simulation.CellOptions) *memcell.Cell {
	return &memcell.Cell{Presence: o.Presence, BBS: o.BBS, Now: o.Now, NewGUID: o.NewGUID, StartsIn: 6 * time.Second, TaskTakes: time.Hour}
}

// A repCell is a rep over a manager over a scripted backend.
type repCell struct {
	*localcell.Cell
	backend *scripted.Backend
	begun   map[string]int
}

func newRepCell(o simulation.CellOptions) (simulation.Cell, error) {
	c := repCell{begun: map[string]int{}}
	c.backend = scripted.New(scripted.Options{
		Now: o.Now, Programs: map[string][]string{"/task": {"wait forever", "on TERM", "exit 0"}},
		Fault: func(op scripted.Op, guid string) error {
			if op == scripted.Start {
				c.begun[guid]++
			}
			return nil
		},
	})
	m, err := manager.New(context.Background(), manager.Options{
		Backend: c.backend, Now: o.Now, Capacity: executor.Capacity{MemoryMB: o.Presence.Capacity.MemoryMB, DiskMB: o.Presence.Capacity.DiskMB},
	})
	if err != nil {
		return nil, err
	}
	c.Cell, err = localcell.New(m, rep.Options{
		CellID: o.Presence.CellID, BBS: o.BBS, Announcer: o.Announcer, Zone: o.Presence.Zone,
		RootFSProviders: o.Presence.RootFSProviders, Concurrency: 1, Now: o.Now, NewGUID: o.NewGUID,
	})
	return c, err
}

func (c repCell) Step(ctx context.Context) {
	c.Manager.Tick(ctx)
	c.Rep.Tick(ctx)
	c.Manager.Tick(ctx)
}

func (c repCell) End(guid string, r executor.RunResult) bool {
	signal := executor.Terminate // upon which a task exits with status 0
	if r.Failed {
		signal = executor.Kill
	}
	return c.backend.Signal(context.Background(), guid, signal) == nil
}

func (c repCell) Begun(guid string) int { return c.begun[guid] }

// even holds while nothing goes wrong, under the usual policy.
var even = simulation.Check{
	Name: "even", Says: "No cell has more than three instances of a process.",
	Judge: func(_ context.Context, w simulation.World) error {
		for _, c := range w.Cells {
			count := map[string]int{}
			for _, k := range c.LRPs {
				if count[k.ProcessGUID]++; w.Settled && count[k.ProcessGUID] > 3 {
					return fmt.Errorf("cell %s has %d of %s", c.ID, count[k.ProcessGUID], k.ProcessGUID)
				}
			}
		}
		return nil
	},
}

func TestWhatKeepsItsPromisesPasses(t *testing.T) {
	for name, o := range map[string]simulation.Options{
		"nothing of one's own": {},
		"a store":              {Store: memory},
		"a cell":               {Cell: func(o simulation.CellOptions) (simulation.Cell, error) { return model(o), nil }},
		"a rep":                {Cell: newRepCell},
		"a policy": {
			Placement: auction.Policy{
				Filters: []auction.Filter{func(*auction.Item, *auction.CellState) auction.CellReason { return "" }},
				Scorer: func(_ *auction.Item, c *auction.CellState, _ auction.Score) float64 {
					return float64(len(c.LRPs) + len(c.Tasks))
				},
			},
			LRPs: lrp.Policy{
				Restart:        lrp.RestartPolicy{ImmediateRestarts: -1, MaxRestarts: -1, MinBackoff: 5 * time.Second, MaxBackoff: 20 * time.Second, ResetAfter: time.Minute},
				StaleUnclaimed: 10 * time.Second, EvacuationTimeout: time.Minute, RolloutGiveUp: time.Minute,
			},
			Tasks: task.Policy{MaxRetries: -1, StaleResolving: time.Minute, ExpireCompleted: 5 * time.Minute},
		},
		"no faults": {Faults: -1, Checks: []simulation.Check{even}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Seeds = 2
			simulation.Run(t, o)
		})
	}
}

// caught plays seeds until a checker objects.
func caught(t *testing.T, o simulation.Options, checkers ...string) {
	t.Helper()
	for seed := range uint64(20) {
		err := simulation.Play(t.Context(), o, seed)
		if err == nil {
			continue
		}
		var v *simulation.Violation
		if !errors.As(err, &v) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.Contains(checkers, v.Checker) || v.Says == "" || v.Seed != seed || v.Step == 0 || !strings.Contains(v.Error(), "["+v.Checker+"]") {
			t.Errorf("one of %q should object; it is %+v", checkers, v)
		}
		return
	}
	t.Errorf("none of %q has objected", checkers)
}

// A store that breaks a promise, in Commit.
type brokenStore struct {
	*memstore.Store
	commit func(s *memstore.Store, b storage.Batch) (storage.Cursor, error)
}

func (s brokenStore) Commit(_ context.Context, b storage.Batch) (storage.Cursor, error) {
	return s.commit(s.Store, b)
}

func TestAStoreThatBreaksAPromiseIsNamed(t *testing.T) {
	commits := 0
	for name, c := range map[string]struct {
		checkers []string // any of them may be the first to see it
		commit   func(s *memstore.Store, b storage.Batch) (storage.Cursor, error)
	}{
		"it loses a commit": {[]string{"store"}, func(s *memstore.Store, b storage.Batch) (storage.Cursor, error) {
			if commits++; commits%10 == 0 && b.RequestID != "" {
				return 1, nil
			}
			return s.Commit(context.Background(), b)
		}},
		"it acknowledges what conflicts": {[]string{"lost-update", "store"}, func(s *memstore.Store, b storage.Batch) (storage.Cursor, error) {
			c, err := s.Commit(context.Background(), b)
			if errors.Is(err, storage.ErrConflict) {
				return c, nil
			}
			return c, err
		}},
		"it fails by itself": {[]string{"store"}, func(s *memstore.Store, b storage.Batch) (storage.Cursor, error) {
			if commits++; commits%10 == 0 {
				return 0, errors.New("the disk is full")
			}
			return s.Commit(context.Background(), b)
		}},
		"it ignores fences": {[]string{"leaders", "lost-update"}, func(s *memstore.Store, b storage.Batch) (storage.Cursor, error) {
			b.Fence = storage.Fence{Kind: b.Fence.Kind, Name: b.Fence.Name, Epoch: newest(s)}
			return s.Commit(context.Background(), b)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			caught(t, simulation.Options{Store: func(now func() time.Time) (storage.Store, error) {
				return brokenStore{memstore.New(&memstore.Options{Now: now}), c.commit}, nil
			}}, c.checkers...)
		})
	}
}

// newest is the epoch of the leader.
func newest(s *memstore.Store) (epoch int64) {
	for l := range s.Leases(context.Background(), storage.LeaderLease) {
		epoch = max(epoch, l.Epoch)
	}
	return epoch
}

// A cell that breaks a promise.
type brokenCell struct {
	*memcell.Cell
	state   func(*auction.CellState)
	perform func(c *memcell.Cell, w auction.Work) ([]auction.Rejection, error)
	step    func(c *memcell.Cell)
	begun   func(n int) int
	// blind cells do not find out that a container is gone, nor tell anybody.
	blind bool
}

func (c brokenCell) State(ctx context.Context) (auction.CellState, error) {
	s, err := c.Cell.State(ctx)
	if c.state != nil {
		c.state(&s)
	}
	return s, err
}

func (c brokenCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	if c.perform != nil {
		return c.perform(c.Cell, w)
	}
	return c.Cell.Perform(ctx, w)
}

func (c brokenCell) Step(ctx context.Context) {
	c.Cell.Step(ctx)
	if c.step != nil {
		c.step(c.Cell)
	}
}

func (c brokenCell) Begun(guid string) int {
	if c.begun != nil {
		return c.begun(c.Cell.Begun(guid))
	}
	return c.Cell.Begun(guid)
}

func (c brokenCell) Inventory(ctx context.Context) (auction.Inventory, error) {
	if c.blind {
		return auction.Inventory{}, errors.New("not known")
	}
	return c.Cell.Inventory(ctx)
}

func (c brokenCell) Poll(ctx context.Context) {
	if !c.blind {
		c.Cell.Poll(ctx)
	}
}

func TestACellThatBreaksAPromiseIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		cell     brokenCell
		checkers []string
	}{
		"it forgets its containers": {brokenCell{blind: true, step: func(c *memcell.Cell) {
			if list, _ := c.Containers(context.Background()); len(list) > 2 {
				c.Lose()
			}
		}}, []string{"settles", "consumer"}},
		"it begins a task twice": {brokenCell{begun: func(n int) int { return 2 * n }}, []string{"task-once"}},
		"it takes work while it evacuates": {brokenCell{
			state: func(s *auction.CellState) { s.Evacuating = false },
			perform: func(c *memcell.Cell, w auction.Work) ([]auction.Rejection, error) {
				s, _ := c.Evacuation(context.Background())
				_ = c.CancelEvacuation(context.Background())
				rejections, err := c.Perform(context.Background(), w)
				if s.Evacuating {
					err = errors.Join(err, c.Evacuate(context.Background()))
				}
				return rejections, err
			},
		}, []string{"auction", "evacuation", "settles"}},
	} {
		t.Run(name, func(t *testing.T) {
			caught(t, simulation.Options{Cell: func(o simulation.CellOptions) (simulation.Cell, error) {
				cell := c.cell
				cell.Cell = model(o)
				return cell, nil
			}}, c.checkers...)
		})
	}
}

func TestAPolicyThatBreaksAPromiseIsNamed(t *testing.T) {
	calls := 0
	for name, c := range map[string]struct {
		options simulation.Options
		checker string
	}{
		"a scorer that answers differently each time": {simulation.Options{Placement: auction.Policy{
			Scorer: func(*auction.Item, *auction.CellState, auction.Score) float64 { calls++; return float64(calls) },
		}}, "placement-policy"},
		"a filter that changes what it is asked about": {simulation.Options{Placement: auction.Policy{
			Filters: []auction.Filter{func(_ *auction.Item, c *auction.CellState) auction.CellReason {
				c.LRPs = append(c.LRPs[:0], lrp.Key{ProcessGUID: "a-mark"})
				return ""
			}},
		}}, "placement-policy"},
		"a filter that lets nothing through": {simulation.Options{Placement: auction.Policy{
			Filters: []auction.Filter{func(item *auction.Item, _ *auction.CellState) auction.CellReason {
				if item.Index == 2 {
					return "an odd place"
				}
				return ""
			}},
		}}, "settles"},
		"a scorer that packs": {simulation.Options{Faults: -1, Checks: []simulation.Check{even}, Placement: auction.Policy{
			Scorer: func(_ *auction.Item, c *auction.CellState, _ auction.Score) float64 { return -float64(len(c.LRPs)) },
		}}, "even"},
		"restarts that wait for days": {simulation.Options{LRPs: lrp.Policy{Restart: lrp.RestartPolicy{
			ImmediateRestarts: -1, MinBackoff: 24 * time.Hour, MaxBackoff: 48 * time.Hour,
		}}}, "settles"},
	} {
		t.Run(name, func(t *testing.T) { caught(t, c.options, c.checker) })
	}
}

func TestTheSameSeedHasTheSameHistory(t *testing.T) {
	play := func() (story []string) {
		o := simulation.Options{Checks: []simulation.Check{{Name: "mine", Says: "Nothing.", Judge: func(_ context.Context, w simulation.World) error {
			story = append(story, fmt.Sprint(w.Now, w.Cells))
			return nil
		}}}, Cell: func(o simulation.CellOptions) (simulation.Cell, error) { return model(o), nil }, Store: memory, Steps: 40}
		if err := simulation.Play(t.Context(), o, 7); err != nil {
			t.Fatal(err)
		}
		return story
	}
	if first, second := play(), play(); len(first) < 80 || !slices.Equal(first, second) {
		t.Errorf("histories of %d and %d steps differ", len(first), len(second))
	}
}

func TestOptionsOutsideTheirLimitsAreRefused(t *testing.T) {
	judge := func(context.Context, simulation.World) error { return nil }
	for field, o := range map[string]simulation.Options{
		"seeds":                     {Seeds: -1},
		"steps":                     {Steps: -1},
		"faults":                    {Faults: 2},
		"placement.bin_pack_weight": {Placement: auction.Policy{BinPackWeight: -1}},
		"lrps.stale_unclaimed":      {LRPs: lrp.Policy{StaleUnclaimed: -1}},
		"tasks.stale_pending":       {Tasks: task.Policy{StalePending: -1}},
		"cells[0].cell_id":          {Cells: []bbs.CellPresence{{Address: "a"}}},
		"cells[1].address":          {Cells: []bbs.CellPresence{{CellID: "a", Address: "a"}, {CellID: "b", Address: "a"}}},
		"checks[0].name":            {Checks: []simulation.Check{{Name: "settles", Judge: judge}}},
		"checks[1].name":            {Checks: []simulation.Check{{Name: "mine", Judge: judge}, {Name: "mine", Judge: judge}}},
		"checks[0].judge":           {Checks: []simulation.Check{{Name: "mine"}}},
	} {
		var invalid *executor.ValidationError
		if err := simulation.Play(t.Context(), o, 1); !errors.As(err, &invalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// The test that fails on purpose, in a process of its own.
func TestFailing(t *testing.T) {
	if os.Getenv("DIEGO_SIMULATION_FAILS") == "" {
		return
	}
	simulation.Run(t, simulation.Options{Checks: []simulation.Check{{Name: "never", Says: "It never gets here.", Judge: func(context.Context, simulation.World) error {
		return errors.New("it is here")
	}}}})
}

func TestAFailureSaysHowItIsPlayedAgain(t *testing.T) {
	fail := exec.Command(os.Args[0], "-test.run=^TestFailing$")
	for seed, env := range map[string]string{"1": "", "43": simulation.SeedVariable + "=43"} {
		fail := exec.Command(fail.Path, fail.Args[1:]...)
		fail.Env = append(os.Environ(), "DIEGO_SIMULATION_FAILS=1", env)
		output, err := fail.CombinedOutput()
		for _, want := range []string{
			"seed " + seed + ", step 1: [never] it is here", "It never gets here.",
			"the whole story: DIEGO_SIMULATION_SEED=" + seed + " go test -v -run '^TestFailing$' .",
		} {
			if err == nil || !strings.Contains(string(output), want) {
				t.Errorf("%v, and its output is without %q:\n%s", err, want, output)
			}
		}
	}
}

func TestEveryCheckerSaysWhatItIsAndWhereThatComesFrom(t *testing.T) {
	names := map[string]bool{}
	for _, c := range simulation.Checkers() {
		if c.Name == "" || c.Says == "" || c.Source == "" || names[c.Name] {
			t.Errorf("got %+v", c)
		}
		names[c.Name] = true
	}
}
