package task

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

func typeName(v any) string { return reflect.TypeOf(v).String() }

// The whole state space of a guid is explored: two tasks that have it one
// after the other, up to two attempts each, and on both cells a container for
// each attempt, which may send any of its commands at any time, however late.
// Time is told in seconds, with a policy of few of them.
var spacePolicy = Policy{
	MaxRetries:   1,
	StalePending: time.Second, StaleCompleted: time.Second, StaleResolving: time.Second,
	ExpireCompleted: 2 * time.Second, ExpirePending: 3 * time.Second,
}

const (
	spaceTasks    = 2
	spaceAttempts = 2
	spaceCells    = 2
	containers    = spaceTasks * spaceAttempts * spaceCells
)

var cellNames = [spaceCells]string{"α", "β"}

// A container is one that a cell has reserved. Its number says for which task,
// attempt and cell.
type container int

func (c container) task() int    { return int(c) / (spaceAttempts * spaceCells) }
func (c container) attempt() int { return int(c) / spaceCells % spaceAttempts }
func (c container) cell() string { return cellNames[int(c)%spaceCells] }
func (c container) guid() string { return fmt.Sprintf("instance-%d", c) }

// A world is a record and what an onlooker remembers of the past.
type world struct {
	record *Task
	now    time.Time
	epochs [spaceTasks]int64 // of the tasks so far, 0 for those to come

	ended bool             // this task has been COMPLETED
	begun [containers]bool // told to run, and has not said that it never began
	told  [containers]bool // told to run, ever
}

// A key is what of a world matters for its future.
type key struct {
	tasks                   int
	sameInstant             bool // as the creation of the first task
	state                   State
	cell, instance          string
	rejections              int
	sinceCreated            time.Duration
	sinceUpdated, sinceDone time.Duration
	ended                   bool
	begun, told             [containers]bool
}

func (w *world) key() key {
	k := key{sameInstant: w.epochs[0] == w.now.UnixNano(), ended: w.ended, begun: w.begun, told: w.told}
	for _, e := range w.epochs {
		if e != 0 {
			k.tasks++
		}
	}
	if t := w.record; t != nil {
		k.state, k.cell, k.instance, k.rejections = t.State, t.CellID, t.InstanceGUID, t.RejectionCount
		k.sinceUpdated = min(w.now.Sub(t.UpdatedAt), time.Second)
		if t.State == Pending || t.State == Running {
			k.sinceCreated = min(w.now.Sub(t.CreatedAt), spacePolicy.ExpirePending)
		} else {
			k.sinceDone = min(w.now.Sub(t.FirstCompletedAt), spacePolicy.ExpireCompleted)
		}
	}
	return k
}

// A move is a command, and the container that sends it or -1.
type move struct {
	command Command
	by      container
}

// moves are all commands that anybody may send in w. With known attempts, they
// say which attempt they are about.
func (w *world) moves(knownAttempts bool) []move {
	moves := []move{}
	for _, c := range []Command{
		Cancel{}, Resolve{}, Delete{}, Fail{Reason: "no"}, RequestAgain{}, ExpirePending{},
		CellMissing{CellID: "α"}, CellMissing{CellID: "β"}, DemoteResolving{}, RequestCallback{}, ExpireCompleted{},
	} {
		moves = append(moves, move{c, -1})
	}
	for c := range container(containers) {
		attempt := Attempt{Epoch: w.epochs[c.task()], Rejections: c.attempt()}
		if attempt.Epoch == 0 {
			continue
		}
		if !knownAttempts {
			attempt = Attempt{}
		}
		moves = append(moves,
			move{Start{CellID: c.cell(), InstanceGUID: c.guid(), Attempt: attempt}, c},
			move{Complete{CellID: c.cell(), InstanceGUID: c.guid(), Attempt: attempt, Result: "r"}, c},
			move{Complete{CellID: c.cell(), InstanceGUID: c.guid(), Attempt: attempt, Failed: true, FailureReason: "f"}, c},
			move{Reject{CellID: c.cell(), InstanceGUID: c.guid(), Attempt: attempt, Reason: "not created"}, c},
			move{Reject{Attempt: attempt, Reason: "no room"}, -1},
		)
	}
	d := desire()
	if w.epochs[0] == w.now.UnixNano() {
		return moves // see Desire
	}
	if w.epochs[0] != 0 {
		d.Definition.CompletionCallbackURL = "" // the second task has none
	}
	return append(moves, move{d, -1})
}

// rank orders the states of a life.
func rank(t *Task) State {
	if t == nil {
		return Resolving + 1
	}
	return t.State
}

// explore visits every reachable world, or the first under the race detector,
// and calls edge for each move in it.
func explore(t *testing.T, knownAttempts bool, edge func(w *world, m move, d Decision, err error)) int {
	queue := []world{{now: epoch}}
	seen := map[key]bool{queue[0].key(): true}
	visit := func(next world) {
		if k := next.key(); !seen[k] {
			seen[k] = true
			queue = append(queue, next)
		}
	}
	for len(queue) > 0 && (!testenv.Race || len(seen) < 1000) {
		w := queue[0]
		queue = queue[1:]

		// Time passes.
		later := w
		later.now = later.now.Add(time.Second)
		visit(later)

		for _, m := range w.moves(knownAttempts) {
			kept := w
			if w.record != nil {
				copied := *w.record
				kept.record = &copied
			}
			d, err := Step(w.record, m.command, w.now, spacePolicy)
			if kept.record != nil && fields(kept.record) != fields(w.record) {
				t.Fatalf("%s changed what it was given", m.command.Name())
			}
			edge(&w, m, d, err)
			if t.Failed() {
				t.Fatalf("in %s\nby %#v\nleading to %s", toJSON(t, w.record), m.command, toJSON(t, d.Write.After))
			}
			next := w
			if err == nil && !d.Write.IsZero() {
				next.record = d.Write.After
				if d.Write.Before == nil {
					n := w.key().tasks
					if n == spaceTasks {
						continue
					}
					next.epochs[n] = next.record.ModificationTag.Epoch
					next.ended, next.begun = false, [containers]bool{}
				}
			}
			next.ended = next.record != nil && (next.ended || next.record.State == Completed)
			if d.ShouldRun {
				next.begun[m.by] = true
				next.told[m.by] = knownAttempts // nothing is promised of it otherwise
			}
			if r, ok := m.command.(Reject); ok && r.CellID != "" && err == nil && !d.Write.IsZero() {
				next.begun[m.by] = false
			}
			visit(next)
		}
	}
	return len(seen)
}

// changeable is what a command may change of a record.
type changeable struct {
	guid                string
	state               State
	cell, instance      string
	failed              bool
	reason, result      string
	rejections          int
	rejection           string
	updated, firstEnded time.Time
	tag                 ModificationTag
}

func fields(t *Task) changeable {
	return changeable{t.GUID, t.State, t.CellID, t.InstanceGUID, t.Failed, t.FailureReason, t.Result,
		t.RejectionCount, t.RejectionReason, t.UpdatedAt, t.FirstCompletedAt, t.ModificationTag}
}

func TestNoSequenceOfCommandsRunsATaskTwice(t *testing.T) {
	for _, knownAttempts := range []bool{true, false} {
		t.Run(fmt.Sprintf("attempts known %v", knownAttempts), func(t *testing.T) {
			lastRan := false // the last container of all was told to run
			worlds := explore(t, knownAttempts, func(w *world, m move, d Decision, err error) {
				next := written(w.record, d)
				lastRan = lastRan || d.ShouldRun && m.by == containers-1
				if w.ended && next != nil && (next.State == Pending || next.State == Running) {
					t.Errorf("a task that was COMPLETED is %v", next.State)
				}
				if !d.ShouldRun {
					return
				}
				if w.ended {
					t.Error("a task that was COMPLETED is run")
				}
				for c, begun := range w.begun {
					if begun {
						t.Errorf("container %d is to run what container %d runs", m.by, c)
					}
				}
				if next.State != Running || next.CellID != m.by.cell() || next.InstanceGUID != m.by.guid() {
					t.Error("the container that is to run the task does not hold it")
				}
				if !knownAttempts {
					return
				}
				if w.told[m.by] {
					t.Errorf("container %d is told to run twice", m.by)
				}
				if w.epochs[m.by.task()] != next.ModificationTag.Epoch {
					t.Errorf("container %d was reserved for another task", m.by)
				}
			})
			if !lastRan && !testenv.Race {
				t.Error("the space was not explored to its end")
			}
			t.Logf("%d worlds", worlds)
		})
	}
}

func TestOnlyTheHolderMovesARunningTask(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, err error) {
		if w.record == nil || w.record.State != Running || m.by < 0 || d.Write.IsZero() {
			return
		}
		if w.record.InstanceGUID != m.by.guid() || w.record.CellID != m.by.cell() {
			t.Errorf("container %d moves it", m.by)
		}
	})
}

func TestLifeGoesForwardButForRejectionsAndDemotions(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, err error) {
		if w.record == nil || d.Write.IsZero() || rank(d.Write.After) > rank(w.record) {
			return
		}
		switch m.command.(type) {
		case Reject:
			if d.Write.After.RejectionCount != w.record.RejectionCount+1 {
				t.Error("a rejection is not counted")
			}
		case DemoteResolving:
			if d.Write.After.FirstCompletedAt != w.record.FirstCompletedAt {
				t.Error("the time of the first completion is lost")
			}
		default:
			t.Errorf("%s leads back", m.command.Name())
		}
	})
}

func TestEveryDecisionIsWhatTheTableSays(t *testing.T) {
	reached := map[*rule]bool{}
	explore(t, true, func(w *world, m move, d Decision, err error) {
		s := step{before: w.record, command: m.command, now: w.now, policy: spacePolicy}
		state := Absent
		if w.record != nil {
			state = w.record.State
		}
		r := lookup(state, m.command.kind(), s.premiseHolds())
		reached[r] = true

		var refused *TransitionError
		switch {
		case r.err != nil:
			if !errors.Is(err, r.err) || !errors.As(err, &refused) || refused.Why != r.reason || refused.Command != m.command.Name() || refused.State != state {
				t.Errorf("error %v, want %v", err, r.err)
			}
		case err != nil:
			t.Errorf("error %v, want none", err)
		}
		if err != nil && !reflect.DeepEqual(d, Decision{}) {
			t.Error("an error comes with a decision")
		}

		next := Absent
		if after := written(w.record, d); after != nil {
			next = after.State
		}
		want := actionNext[r.do]
		switch {
		case want == same:
			want = state
		case r.do == retry && w.record.RejectionCount == spacePolicy.MaxRetries:
			want = Completed
		}
		if next != want {
			t.Errorf("the state is %v, want %v", next, want)
		}
	})
	for i := range rules {
		if !reached[&rules[i]] && !testenv.Race {
			t.Errorf("nothing reaches %v, %s, %v", rules[i].state, kindNames[rules[i].command], rules[i].premise)
		}
	}
}

func TestEveryWriteIsValidAndHasItsEvent(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, err error) {
		if d.Write.IsZero() {
			if len(d.Events) > 0 || d.ShouldRun {
				t.Error("something happens that is not written")
			}
			return
		}
		if d.Write.Before != w.record {
			t.Error("the write replaces another record")
		}
		kind := Changed
		after := d.Write.After
		switch {
		case after == nil:
			kind = Removed
		case w.record == nil:
			kind = Created
			if after.ModificationTag != (ModificationTag{Epoch: w.now.UnixNano()}) {
				t.Errorf("a new record has the tag %v", after.ModificationTag)
			}
		case after.ModificationTag != w.record.ModificationTag.Next():
			t.Errorf("the tag %v follows %v", after.ModificationTag, w.record.ModificationTag)
		}
		if after != nil {
			if rule := after.broken(); rule != "" {
				t.Error(rule)
			}
			if !after.UpdatedAt.Equal(w.now) {
				t.Error("the time of the change is not kept")
			}
		}
		if len(d.Events) != 1 {
			t.Fatalf("%d events for one write", len(d.Events))
		}
		e := d.Events[0]
		if got := e.Effects(); !reflect.DeepEqual(got, d.Effects) {
			t.Errorf("the effects by the event of %s are %v, want %v", e.Cause.Command, got, d.Effects)
		}
		if e.Kind != kind || e.Before != w.record || e.After != after || e.Cause.Command != m.command.Name() {
			t.Errorf("the event %+v does not tell of the write", e)
		}
	})
}

func TestEveryEffectIsOfTheRecordThatIsLeft(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, err error) {
		left := written(w.record, d)
		for i, e := range d.Effects {
			if e.Task != left {
				t.Error("the effect is of another record")
			}
			switch e.Kind {
			case RequestStart:
				if left.State != Pending {
					t.Error("a start is requested of a task that is not PENDING")
				}
			case CallBack:
				if left.State != Completed || left.CompletionCallbackURL == "" {
					t.Error("a callback is requested of a task that has none")
				}
			case CancelOnCell:
				if i != 0 || w.record.State != Running || left.CellID != w.record.CellID || left.InstanceGUID != w.record.InstanceGUID {
					t.Error("a container is cancelled that does not have the task")
				}
			}
		}
		completes := left != nil && left.State == Completed && w.record.State != Completed
		if completes && left.CompletionCallbackURL != "" && d.Effects[len(d.Effects)-1].Kind != CallBack {
			t.Error("a task completes and its consumer is not called")
		}
	})
}

func TestACommandToldTwiceCountsOnce(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, _ error) {
		if d.Write.IsZero() {
			return
		}
		again, err := Step(d.Write.After, m.command, w.now, spacePolicy)
		if !again.Write.IsZero() || again.ShouldRun {
			t.Errorf("the second %s writes", m.command.Name())
		}
		switch m.command.(type) {
		case Start, RequestAgain, ExpirePending, CellMissing, DemoteResolving, RequestCallback, ExpireCompleted, Complete:
			if err != nil {
				t.Errorf("the second %s: %v", m.command.Name(), err)
			}
		}
	})
}

func TestOverdueIsWhatStepActsOn(t *testing.T) {
	explore(t, true, func(w *world, m move, d Decision, err error) {
		if w.record == nil || m.command.kind() != kindCancel { // once for each world
			return
		}
		overdue := Overdue(w.record, w.now, spacePolicy)
		if overdue != nil {
			d, err := Step(w.record, overdue, w.now, spacePolicy)
			if err != nil || d.Write.IsZero() && len(d.Effects) == 0 {
				t.Errorf("%s is overdue and does nothing: %v", overdue.Name(), err)
			}
			return
		}
		for _, c := range timed {
			d, err := Step(w.record, c, w.now, spacePolicy)
			if err != nil || !reflect.DeepEqual(d, Decision{}) {
				t.Errorf("%s is not overdue and does something", c.Name())
			}
		}
		if next := NextOverdue(w.record, w.now, spacePolicy); !next.IsZero() {
			if early := Overdue(w.record, next.Add(-1), spacePolicy); early != nil || !next.After(w.now) {
				t.Errorf("%v is overdue before %v, which is the next time to look", early, next)
			}
		} else if late := Overdue(w.record, w.now.Add(1000*time.Hour), spacePolicy); late != nil {
			t.Errorf("%s is overdue some day, and nobody would look", late.Name())
		}
	})
}
