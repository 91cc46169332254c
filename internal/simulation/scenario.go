package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A Scenario is one kind of history: what goes wrong in it, and when.
type Scenario struct {
	Name string
	// Says is what must hold in it besides all that a World checks.
	Says string
	play func(context.Context, *World) error
}

// Scenarios are all of them.
func Scenarios() []Scenario { return scenarios }

var scenarios = []Scenario{
	{"anything", "When all faults have ended, exactly what is desired runs. Convergence misses nothing when it looks only at what has changed or is due.", anything},
	{"faultless", "Nothing goes wrong: applications crash, consumers want something, and cells are drained and come back. No row is met that a table calls inconceivable.", faultless},
	{"calm", "No message is lost. Cells come and go, and what waits for a start is claimed without waiting for convergence to ask again.", calm},
	{"drains", "Cells are drained one after another and several at a time, so a replacement is evacuated before it has replaced anything, while everything else goes wrong.", drains},
	{"errands", "Consumers want tasks only, cancel, resolve and delete them at any time, and cells that run them are lost.", errands},
	{"handed-on", "All cells are lost, back and drained at any time, so an instance is replaced, its replacement is evacuated, and the first is back and evacuated as well.", handedOn},
	{"belated", "Containers take half a minute or longer to start, most cells come and go, and half of the calls go wrong, so records move on before containers do.", belated},
	{"handled", "Consumers resolve tasks, keep them so and repeat what they ask, and cells speak of tasks that they do not have, while half of the calls go wrong.", handled},
	{"rollouts", "Consumers deploy, activate, pause, resume, confirm and abort, with every policy and budget; cells are lost and drained, and instances become unready and ready again.", rollouts},
	{"operators", "Operators drain several cells at once, give drains up, cordon cells and take them back, and draining cells ask for the same place of a budget at the same moment.", operators},
	{"losses", "A cell is lost, and then the one that starts the replacement, or the first is back; and an instance crashes while it is evacuated: what has to start or stop is asked for at once.", losses},
	{"crash-loop", "An instance that crashes again and again starts again as its policy says, and at last no more.", crashLoop},
	{"crash-storm", "The same while most messages are lost, late or repeated, and cells say that something runs that does not.", crashStorm},
	{"fall-back", "A store that falls back to an earlier moment shows no event number twice, skips none without saying so, and grants no epoch twice.", fallsBack},
	{"outage", "All cells are cut off, and each is back within the grace: no task fails and no instance is replaced.", outage},
	{"spread-loss", "The presences of all cells are lost one after another, each for less than the grace for tasks: no task fails.", spreadLoss},
	{"usurped", "A control plane is paused in the middle of what it does until another one leads, while cells are drained and cordoned and processes have budgets: what it then commits does not count.", usurped},
}

// GCPercent suits programs that play histories: a world is small, and what it
// allocates is soon garbage.
const GCPercent = 800

// usualCells is the number of cells of a scenario's world.
const usualCells = 4

// settled is how many steps a world takes before a scenario begins: its cells
// have announced themselves for longer than the guards' grace by then.
const settled = 40

// A Played history has come to its end, or to a violation.
type Played struct {
	// Simulated is how much time has passed in the world.
	Simulated time.Duration
	// Steps is how many steps it had, and Struck are the faults that struck, in
	// their order.
	Steps  int
	Struck []Point
	// Healed is the step after which there were no more faults: 0 if it has not come
	// so far.
	Healed int
	// Met is what it has met.
	Met Met
}

// Play plays a history of the scenario in a world of its own. The error is a
// *[Violation] or says what kept the world from going on.
//
// tell gets the story line by line: who did what, which records changed and why,
// and which faults struck. It may be nil.
func (s Scenario) Play(ctx context.Context, h History, tell func(line string)) (p Played, err error) {
	w, err := NewWorld(h)
	if err != nil {
		return p, err
	}
	w.tell = tell
	defer func() { err = errors.Join(err, w.Close()) }()
	began := w.Clock.Now()
	if err = w.Steps(ctx, settled); err == nil {
		err = s.play(ctx, w)
	}
	if err != nil {
		err = fmt.Errorf("step %d: %w", w.random.step, err)
	}
	return Played{w.Clock.Now().Sub(began), w.random.step, w.random.struck, w.resting, w.met}, err
}

// Steps makes n steps.
func (w *World) Steps(ctx context.Context, n int) error {
	for range n {
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func anything(ctx context.Context, w *World) error {
	w.Faults(0.15)
	for range 300 {
		w.Mischief(ctx)
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	w.Heal()
	return settle(ctx, w)
}

// drains gives each cell some time to empty itself.
func drains(ctx context.Context, w *World) error {
	if err := w.Employ(ctx, 2, 0); err != nil {
		return err
	}
	w.Faults(0.1)
	return w.suffered(ctx, 240, func() {
		i := w.random.IntN(len(w.cells))
		switch w.random.IntN(10) {
		case 0, 1:
			w.toggleDrain(i)
		case 2, 3:
			w.cells[i].crash(w.random.IntN(1000))
		case 4:
			w.Consume(ctx)
		case 5:
			w.cutOff(i, 0, 1+w.random.IntN(20))
		case 6:
			w.toggleCordon(i)
		}
	})
}

func errands(ctx context.Context, w *World) error {
	w.errands = true
	w.Faults(0.15)
	return w.suffered(ctx, 240, func() {
		w.Consume(ctx)
		w.Consume(ctx)
		w.unsettle(w.random.IntN(len(w.cells)), w.random.IntN(12))
	})
}

// unsettle switches a cell off, cuts it off or drains it, by the number that was
// drawn, which is mostly one that does nothing.
func (w *World) unsettle(i, drawn int) {
	switch drawn {
	case 0:
		w.cells[i].lose()
		w.cutOff(i, 0, 1+w.random.IntN(20))
	case 1:
		w.cutOff(i, 0, 1+w.random.IntN(20))
	case 2:
		w.cells[i].drain()
	}
}

func handedOn(ctx context.Context, w *World) error {
	if err := w.Employ(ctx, 1, 0); err != nil {
		return err
	}
	w.Faults(0.3)
	return w.suffered(ctx, 240, func() {
		i := w.random.IntN(len(w.cells))
		switch w.random.IntN(14) {
		case 0, 1:
			w.cutOff(i, 0, 15+w.random.IntN(30))
		case 2, 3:
			w.rejoin(i)
		case 4, 5:
			w.cells[i].drain()
		case 6:
			w.cells[i].crash(w.random.IntN(1000))
		case 7, 8:
			w.Consume(ctx)
		}
	})
}

func belated(ctx context.Context, w *World) error {
	w.creation = time.Duration(10+10*w.random.IntN(2)) * pace
	if err := w.Employ(ctx, 2, 0); err != nil {
		return err
	}
	w.Faults(0.4)
	return w.suffered(ctx, 240, func() {
		i := w.random.IntN(len(w.cells))
		switch w.random.IntN(14) {
		case 0:
			w.cells[i].drain()
		case 1, 2, 3:
			w.crash(i, w.random.IntN(1000))
		case 4:
			w.cutOff(i, 0, 1+w.random.IntN(30))
		case 5:
			w.SpreadLoss(1 + w.random.IntN(20))
		case 6:
			w.cells[i].vanish(w.random.IntN(1000))
		case 7:
			w.cells[i].lose()
			w.cutOff(i, 0, 1+w.random.IntN(10))
		case 8, 9, 10:
			w.Consume(ctx)
		}
	})
}

func handled(ctx context.Context, w *World) error {
	w.errands, w.handles = true, true
	w.Faults(0.4)
	return w.suffered(ctx, 240, func() {
		for range 4 {
			w.Consume(ctx)
		}
		i := w.random.IntN(len(w.cells))
		switch drawn := w.random.IntN(20); drawn {
		case 3, 4:
			w.deceive(i, phantoms, 1+w.random.IntN(20))
		default:
			w.unsettle(i, drawn)
		}
	})
}

func rollouts(ctx context.Context, w *World) error {
	w.rolls = true
	// Mostly, a replacement runs soon. One that takes long leaves a rollout time to go on
	// beside the instance of a missing cell.
	w.creation = time.Duration([]int{2, 2, 10}[w.random.IntN(3)]) * pace
	if err := w.Employ(ctx, 2, 0); err != nil {
		return err
	}
	w.Faults(0.15)
	return w.suffered(ctx, 240, func() {
		i := w.random.IntN(len(w.cells))
		switch w.random.IntN(20) {
		case 0, 1, 2, 3, 4, 5:
			w.Consume(ctx)
		case 6, 7:
			w.fret(i, w.random.IntN(1000))
		case 8, 9, 10:
			w.crash(i, w.random.IntN(2)*w.random.IntN(1000))
		case 11, 12:
			w.toggleDrain(i)
		case 13:
			w.cutOff(i, 0, 1+w.random.IntN(20))
		case 14:
			w.unsettle(i, 0)
		case 15, 16:
			w.hide(i, presenceTTL+w.random.IntN(20))
		case 17:
			w.toggleCordon(i)
		}
	})
}

// operators lets several cells empty themselves at once, round after round. One process
// takes its instances away before it starts new ones, and has a budget for that.
func operators(ctx context.Context, w *World) error {
	w.operated = true
	if err := w.Employ(ctx, 2, 0); err != nil {
		return err
	}
	for range 6 {
		w.Faults(0)
		if err := w.until(ctx, func() bool { return w.Settled(ctx) == nil }); err != nil {
			return err
		}
		w.Faults(0.05)
		w.act(func() {
			for range 2 + w.random.IntN(2) {
				w.evacuate(w.random.IntN(len(w.cells)))
			}
		})
		if err := w.suffer(ctx, 25, func() { w.operate(ctx, w.random.IntN(len(w.cells))) }); err != nil {
			return err
		}
		for i := range w.cells {
			w.giveUp(i)
			w.uncordon(i)
		}
	}
	w.Heal()
	return settle(ctx, w)
}

// usurped is rollouts and operators in turn, with two control planes that lead by turns.
func usurped(ctx context.Context, w *World) error {
	w.rolls, w.usurped = true, true
	if err := w.Employ(ctx, 3, 0); err != nil {
		return err
	}
	w.Faults(0.1)
	return w.suffered(ctx, 160, func() {
		switch i := w.random.IntN(len(w.cells)); w.random.IntN(4) {
		case 0:
			w.operate(ctx, i)
		case 1:
			w.evacuate(i)
			w.evacuate(w.random.IntN(len(w.cells)))
		default:
			w.mischief(ctx)
		}
	})
}

// operate draws what an operator does to a cell, or what else happens meanwhile.
func (w *World) operate(ctx context.Context, i int) {
	switch w.random.IntN(20) {
	case 0, 1:
		w.evacuate(i)
	case 2, 3:
		w.giveUp(i)
	case 4, 5:
		w.cordon(i)
	case 6, 7:
		w.uncordon(i)
	case 8, 9:
		w.crash(i, w.random.IntN(1000))
	case 10:
		w.unsettle(i, 0)
	case 11:
		w.Consume(ctx)
	}
}

// suffer makes a number of steps, with an act of mischief before each.
func (w *World) suffer(ctx context.Context, steps int, mischief func()) error {
	for range steps {
		w.act(mischief)
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// suffered is suffer and then settle.
func (w *World) suffered(ctx context.Context, steps int, mischief func()) error {
	if err := w.suffer(ctx, steps, mischief); err != nil {
		return err
	}
	w.Heal()
	return settle(ctx, w)
}

// faultless lets applications crash and consumers act for a while, and drains a cell
// once all is as it should be. Nothing else happens meanwhile. Two things at once can
// make rows that the specification calls inconceivable (000 §Harmonizing During
// Evacuation): a replacement that crashes before the instance that it replaces has
// stopped, a process that is deleted and created again, or rolled, while its instance
// is evacuated.
func faultless(ctx context.Context, w *World) error {
	w.calm, w.faultless = true, true
	for range 8 {
		i := w.random.IntN(len(w.cells))
		err := w.suffer(ctx, 20, func() {
			switch w.random.IntN(10) {
			case 0, 1:
				w.cells[w.random.IntN(len(w.cells))].crash(w.random.IntN(2) * w.random.IntN(1000))
			case 2, 3, 4, 5:
				w.Consume(ctx)
			}
		})
		if err == nil {
			err = w.until(ctx, func() bool { return w.Settled(ctx) == nil })
		}
		if err == nil && w.Settled(ctx) == nil {
			w.cells[i].drain()
			err = w.Steps(ctx, 10+w.random.IntN(30))
			w.cells[i].heal()
		}
		if err == nil {
			err = w.until(ctx, func() bool { return w.away() == 0 })
		}
		if err != nil {
			return err
		}
	}
	w.Heal()
	return settle(ctx, w)
}

// until makes steps until it is so, or for five minutes.
func (w *World) until(ctx context.Context, so func() bool) error {
	for range 100 {
		if so() {
			return nil
		}
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// calm keeps half of the cells at least, and switches off only a cell that has
// claimed all that it has reserved.
func calm(ctx context.Context, w *World) error {
	w.calm = true
	for range 300 {
		w.act(func() { comeAndGo(ctx, w) })
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	w.Heal()
	return settle(ctx, w)
}

func comeAndGo(ctx context.Context, w *World) {
	i := w.random.IntN(len(w.cells))
	switch w.random.IntN(24) {
	case 0:
		if w.away() < len(w.cells)/2 && w.idle(i) {
			w.cells[i].lose()
			w.cutOff(i, 0, 1+w.random.IntN(20))
		}
	case 1:
		if w.cells[i].evacuates() || w.away() < len(w.cells)/2 {
			w.toggleDrain(i)
		}
	case 2, 3, 4:
		w.crash(i, w.random.IntN(2)*w.random.IntN(1000))
	case 5, 6, 7, 8:
		w.Consume(ctx)
	case 9:
		if w.troubles[i].cordoned || w.away() < len(w.cells)/2 {
			w.toggleCordon(i)
		}
	}
}

func crashLoop(ctx context.Context, w *World) error {
	w.calm = true
	return crashes(ctx, w, 400, 0)
}

func crashStorm(ctx context.Context, w *World) error { return crashes(ctx, w, 200, 0.5) }

// crashes lets an instance crash as soon as it runs, or run for a while first.
func crashes(ctx context.Context, w *World, steps int, faults float64) error {
	if err := w.Employ(ctx, 1, 0); err != nil {
		return err
	}
	w.Faults(faults)
	runs := 0
	for range steps {
		for _, c := range w.cells {
			for _, k := range c.holds() {
				if !isTask(&k) && k.Tags[executor.TagProcessIndex] == "0" && k.State == executor.Running && runs == 0 {
					w.act(func() {
						c.crash(0) // the first that runs, which is another one now and then
						runs = w.random.IntN(3) * w.random.IntN(3) * 5
					})
				}
			}
		}
		runs = max(0, runs-1)
		if !w.calm {
			w.act(func() {
				if w.random.IntN(8) == 0 {
					w.deceive(w.random.IntN(len(w.cells)), phantoms, 1+w.random.IntN(20))
				}
			})
		}
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	w.Heal()
	return settle(ctx, w)
}

func losses(ctx context.Context, w *World) error {
	w.calm = true
	// Where a start takes long, only an order ends a replacement that is not needed any more.
	w.creation = time.Duration(2+8*w.random.IntN(2)) * pace
	if err := w.Employ(ctx, 1, 0); err != nil {
		return err
	}
	if err := w.Steps(ctx, 20); err != nil {
		return err
	}
	for range 4 {
		first := w.random.IntN(len(w.cells))
		for i := 1; i < len(w.cells) && !w.idle(first); i++ { // what it is to start would wait
			first = (first + 1) % len(w.cells)
		}
		if w.random.IntN(2) == 0 {
			w.cells[first].lose()
		}
		w.cutOff(first, 0, 20)
		for range 20 {
			if err := w.Step(ctx); err != nil {
				return err
			}
			second := w.starting(first)
			if second == none {
				continue
			}
			if w.random.IntN(2) == 0 {
				w.cutOff(second, 0, 20)
			} else {
				w.rejoin(first)
			}
			break
		}
		if err := w.Steps(ctx, 40); err != nil {
			return err
		}
		third := w.cells[w.random.IntN(len(w.cells))]
		w.act(func() {
			third.drain()
			third.crash(0)
		})
		if err := w.Steps(ctx, 20); err != nil {
			return err
		}
		third.heal()
	}
	w.Heal()
	return settle(ctx, w)
}

// starting is a cell other than this one with a CLAIMED record and without a
// reservation, or none.
func (w *World) starting(but int) int {
	for i, c := range w.cells {
		for _, r := range w.records {
			if i != but && r.State == lrp.Claimed && r.CellID == c.presence().CellID && w.idle(i) {
				return i
			}
		}
	}
	return none
}

// away counts the cells that take no work.
func (w *World) away() (n int) {
	for i, c := range w.cells {
		if w.cut[i] || c.evacuates() || w.troubles[i].cordoned || !w.present(c.presence().CellID) {
			n++
		}
	}
	return n
}

// idle reports whether a cell has no reservation.
func (w *World) idle(i int) bool {
	return !slices.ContainsFunc(w.cells[i].holds(), func(k executor.Container) bool { return k.State == executor.Reserved })
}

func fallsBack(ctx context.Context, w *World) error {
	w.Faults(0.1)
	for step := range 240 {
		w.Mischief(ctx)
		if step%12 == 0 { // the moment to which it falls back is up to 84 s ago, or was before
			if err := w.Save(); err != nil {
				return err
			}
		}
		if step%28 == 27 {
			if err := w.FallBack(ctx); err != nil {
				return err
			}
		}
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	if w.random.whole() && w.Fallen != 8 {
		return fmt.Errorf("the store fell back %d times", w.Fallen)
	}
	w.Heal()
	return settle(ctx, w)
}

func outage(ctx context.Context, w *World) error {
	before, err := employed(ctx, w)
	if err != nil {
		return err
	}
	if err := w.Steps(ctx, w.Outage()+40); err != nil {
		return err
	}
	return unharmed(ctx, w, before, true)
}

// The cells can be reached all the while, so replacements of the first to go may
// run.
func spreadLoss(ctx context.Context, w *World) error {
	before, err := employed(ctx, w)
	if err != nil {
		return err
	}
	if err := w.Steps(ctx, w.SpreadLoss(40)+40); err != nil {
		return err
	}
	if err := unharmed(ctx, w, before, false); err != nil {
		return err
	}
	return settle(ctx, w)
}

// inventoryInterval is the time between two roll calls of a leader, by default.
const inventoryInterval = 5 * time.Minute

// After the last fault, and after a leader has called the roll twice, passesToSettle
// passes of convergence bring about what is desired. The time that back-offs and rollouts
// take does not count, but all is over after longestSettle.
const (
	passesToSettle   = 20
	convergeInterval = 30 * time.Second // between two passes, by default
	longestSettle    = 3 * time.Hour    // a crashed instance may wait for 16 minutes, and again
)

// settle gives the world time to come to rest.
func settle(ctx context.Context, w *World) (err error) {
	// No domain is fresh at the end of them, and a leader has called the roll of
	// cells that do not report how containers end.
	if err := w.Steps(ctx, int(2*inventoryInterval/pace)); err != nil {
		return err
	}
	if err := w.ledger.ended(); err != nil {
		return err
	}
	begin, left := w.Clock.Now(), passesToSettle*convergeInterval
	for left > 0 && w.Clock.Now().Sub(begin) < longestSettle {
		before, takesTime := w.Clock.Now(), w.backsOffOrRolls()
		if err := w.Steps(ctx, 20); err != nil {
			return err
		}
		w.freshen(ctx)
		w.decide(ctx)
		if err = w.Settled(ctx); err == nil {
			return w.rooms(ctx)
		}
		if !takesTime {
			left -= w.Clock.Now().Sub(before)
		}
	}
	return checkSettles.violated("%v later: %v", w.Clock.Now().Sub(begin), err)
}

// backsOffOrRolls reports whether an instance waits for the end of its back-off, and is
// to start again, or whether one of a former definition is left.
func (w *World) backsOffOrRolls() bool {
	for key, r := range w.records {
		d := w.ledger.deployments[key.guid]
		if d == nil || !d.Desires(r.Index) {
			continue
		}
		wait, ever := w.ledger.restarts(key.guid).waits(r.CrashCount)
		if r.DefinitionID != d.ActiveDefinitionID || r.State == lrp.Crashed && ever && w.Clock.Now().Before(r.Since.Add(wait)) {
			return true
		}
	}
	return false
}

// employed gives the cells work, and returns the instances that run.
func employed(ctx context.Context, w *World) (map[string]bool, error) {
	if err := w.Employ(ctx, 3, 0); err != nil {
		return nil, err
	}
	if err := w.Steps(ctx, 20); err != nil {
		return nil, err
	}
	if err := w.Settled(ctx); err != nil {
		return nil, err
	}
	if err := w.Employ(ctx, 0, 8); err != nil {
		return nil, err
	}
	if err := w.Steps(ctx, 4); err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for r, err := range w.Store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return nil, err
		}
		running[r.InstanceGUID] = true
	}
	tasks := 0
	for range w.Store.Tasks(ctx, storage.TaskFilter{States: []task.State{task.Running}}) {
		tasks++
	}
	if len(running) != 12 || tasks < 4 {
		return nil, fmt.Errorf("%d instances and %d tasks run", len(running), tasks)
	}
	return running, nil
}

// unharmed returns what the log tells of a task that has failed or, if alone, of
// an instance that runs and did not before.
func unharmed(ctx context.Context, w *World, before map[string]bool, alone bool) error {
	ended := 0
	for e, err := range w.Store.Events(ctx, 0, storage.EventFilter{}) {
		switch {
		case err != nil:
			return err
		case e.Task != nil && e.Task.After != nil && e.Task.After.Failed:
			return checkUnharmed.violated("task %s has failed: %s", e.Task.After.GUID, e.Task.After.FailureReason)
		case e.Task != nil && e.Task.After != nil && e.Task.After.State == task.Completed:
			ended++
		case alone && e.LRP != nil && e.LRP.After != nil && e.LRP.After.State == lrp.Running && !before[e.LRP.After.InstanceGUID]:
			return checkUnharmed.violated("%s/%d runs as %s: %s", e.LRP.After.ProcessGUID, e.LRP.After.Index, e.LRP.After.InstanceGUID, e.LRP.Explain())
		}
	}
	if ended != 8 {
		return checkUnharmed.violated("%d tasks have ended, want 8", ended)
	}
	return nil
}
