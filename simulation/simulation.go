package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	internal "github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Options say what is tested, and for how long. Zero values mean the defaults.
type Options struct {
	// Seeds is how many histories Run plays, each of a seed of its own (default
	// 10). FirstSeed is the first seed (default 1).
	Seeds     int
	FirstSeed uint64
	// Steps is how many steps of a history, of 3 s each, have faults (default 100).
	// 40 quiet steps come before. After them the history goes on without faults
	// until everything runs that should, for three hours at most.
	Steps int
	// Faults is the share of calls that fail in these steps (default 0.15, at most
	// 1). If it is negative, nothing goes wrong, and only consumers act.
	Faults float64

	// Store opens an empty store whose clock is now (default: one in memory). Run
	// and Play close it.
	Store func(now func() time.Time) (storage.Store, error)
	// Cells are the presences of the cells, each with an id and an address of its
	// own (default: four in three zones, each with the root file system
	// preloaded:linux and 64 GiB of memory, in some histories 1 GiB). Work asks for this root file system, up to 127 MiB of memory and
	// 64 MiB of disk.
	Cells []bbs.CellPresence
	// Cell makes a cell (default: a model of package memcell). When a cell has been
	// switched off or emptied, Cell makes the next one.
	Cell func(CellOptions) (Cell, error)

	// Placement is the policy of the auctioneer, with filters and a scorer. LRPs is
	// about restarts, back-off and rollouts, and Tasks about retries.
	Placement auction.Policy
	LRPs      lrp.Policy
	Tasks     task.Policy

	// Checks are your own checkers, in addition to [Checkers].
	Checks []Check

	// Story receives the history line by line: every call, every fault, and which
	// records a commit changed and why. Nil discards it; but if Run plays the one
	// seed of SeedVariable and go test has the flag -v, it goes to the test's log.
	Story func(line string)
}

// A Check is a checker of your own.
type Check struct {
	// Name is what a Violation calls it, and Says is the sentence that must hold.
	Name, Says string
	// Judge returns why the sentence does not hold, or nil. It is called after each
	// step, and a last time once everything has settled. It changes nothing.
	Judge func(context.Context, World) error
}

// A World is the state that a Check looks at.
type World struct {
	// Now is the time, and Store reads the records, past all faults.
	Now   time.Time
	Store storage.Reader
	// Cells are what all cells would say of themselves, save those that are
	// switched off, in the order of Options.Cells.
	Cells []auction.CellState
	// Settled says that all faults have ended and everything runs that should.
	Settled bool
}

// A Violation says which checker's sentence does not hold, and where.
type Violation struct {
	// Checker is the name of a Checker or a Check, Says the sentence that does not
	// hold, and Source where it comes from.
	Checker, Says, Source string
	// What has happened, and at which step.
	What string
	Step int
	// Seed is that of the history.
	Seed uint64
}

func (v *Violation) Error() string {
	text := fmt.Sprintf("seed %d, step %d: [%s] %s\n%s", v.Seed, v.Step, v.Checker, v.What, v.Says)
	if v.Source != "" {
		text += " (" + v.Source + ")"
	}
	return text
}

// A Checker is something that must hold in every history.
type Checker struct {
	Name string
	// Says is what must hold, and Source is where that comes from: the
	// specification of Diego by file and section, or a page of docs.
	Says, Source string
}

// Checkers returns the checkers that judge every history.
func Checkers() (list []Checker) {
	for _, c := range internal.Checkers() {
		list = append(list, Checker{c.Name, c.Says, c.Source})
	}
	return list
}

// SeedVariable is the environment variable that makes Run play one seed only.
const SeedVariable = "DIEGO_SIMULATION_SEED"

// Run plays a history for each seed, as a subtest, until one fails. Its message
// has the command that plays it again.
func Run(t *testing.T, o Options) {
	t.Helper()
	first, seeds, log := cmp.Or(o.FirstSeed, 1), cmp.Or(o.Seeds, 10), false
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q, and must be a seed, a number of at least 0", SeedVariable, text)
		}
		first, seeds, log = seed, 1, o.Story == nil && testing.Verbose()
	}
	test := pattern(t.Name())
	for seed := first; seed < first+uint64(seeds); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			o := o
			if log {
				o.Story = func(line string) { t.Log(line) }
			}
			if err := Play(t.Context(), o, seed); err != nil {
				t.Errorf("%v\nthe whole story: %s=%d go test -v -run '%s' .", err, SeedVariable, seed, test)
			}
		}) {
			return
		}
	}
}

// pattern is what go test -run takes for one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Play plays the history of one seed. The error is a *[Violation] if a checker
// objects, and an *[executor.ValidationError] if an option is outside its limits;
// any other says what kept the history from going on.
func Play(ctx context.Context, o Options, seed uint64) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	var opened storage.Store
	defer func() {
		if opened != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	s := &internal.Subject{
		Cells: o.Cells, Placement: o.Placement, LRPs: o.LRPs, Tasks: o.Tasks, Look: o.look,
		Steps: cmp.Or(o.Steps, 100), Faults: max(cmp.Or(o.Faults, 0.15), 0),
	}
	if o.Store != nil {
		s.Store = func(now func() time.Time) (_ storage.Store, err error) {
			opened, err = o.Store(now)
			return opened, err
		}
	}
	if o.Cell != nil {
		s.Cell = func(c internal.CellOptions) (internal.Cell, error) { return o.Cell(CellOptions(c)) }
	}
	played, err := internal.Visit.Play(ctx, internal.History{Seed: seed, Subject: s}, o.Story)
	var v *internal.Violation
	if !errors.As(err, &v) {
		return err
	}
	says, source := o.sentence(v.Checker)
	return &Violation{Checker: v.Checker, Says: says, Source: source, What: v.What, Step: played.Steps, Seed: seed}
}

// sentence is what a checker or a check says, and where that comes from.
func (o *Options) sentence(name string) (says, source string) {
	for _, c := range internal.Checkers() {
		if c.Name == name {
			return c.Says, c.Source
		}
	}
	for _, c := range o.Checks {
		if c.Name == name {
			return c.Says, ""
		}
	}
	return "", ""
}

func (o *Options) validate() error {
	var v executor.Validator
	executor.NotNegative(&v, "seeds", o.Seeds)
	executor.NotNegative(&v, "steps", o.Steps)
	v.Check(o.Faults <= 1, "faults", o.Faults, "at most 1")
	o.Placement.Validate(v.In("placement"))
	o.LRPs.Validate(v.In("lrps"))
	o.Tasks.Validate(v.In("tasks"))
	ids, addresses := map[string]bool{}, map[string]bool{}
	for i, c := range o.Cells {
		v := v.At("cells", i)
		v.Check(c.CellID != "" && !ids[c.CellID], "cell_id", c.CellID, "not empty, and no other cell's")
		v.Check(c.Address != "" && !addresses[c.Address], "address", c.Address, "not empty, and no other cell's: the simulation finds a cell by it")
		ids[c.CellID], addresses[c.Address] = true, true
	}
	taken := map[string]bool{}
	for _, c := range internal.Checkers() {
		taken[c.Name] = true
	}
	for i, c := range o.Checks {
		v := v.At("checks", i)
		v.Check(c.Name != "" && !taken[c.Name], "name", c.Name, "not empty, and no other check's or checker's")
		v.Check(c.Judge != nil, "judge", "", "a function")
		taken[c.Name] = true
	}
	return v.Err()
}

// look lets all checks judge.
func (o *Options) look(ctx context.Context, w *internal.World, settled bool) error {
	if len(o.Checks) == 0 {
		return nil
	}
	states, err := w.States(ctx)
	if err != nil {
		return err
	}
	for _, c := range o.Checks {
		if err := c.Judge(ctx, World{w.Clock.Now(), w.Store, states, settled}); err != nil {
			return internal.Object(c.Name, err)
		}
	}
	return nil
}
