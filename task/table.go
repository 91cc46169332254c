package task

import (
	"slices"

	"github.com/diegosdk/diego/internal/enum"
)

// A Premise is what the sender of a command assumes about the record.
//
//   - Start, Complete: the container is the one that has the task; while the
//     task is PENDING, the container was reserved for the current attempt.
//   - Reject by a cell: the same. Reject by the auctioneer, which names no
//     container: no cell has the task.
//   - CellMissing: the task is on that cell.
//   - RequestAgain, ExpirePending, DemoteResolving, RequestCallback,
//     ExpireCompleted: it is time. RequestCallback also needs a URL.
//   - The other commands assume nothing: their premise always holds.
type Premise uint8

const (
	// Either is for rules that ignore the premise.
	Either Premise = iota
	// Holds is for rules that apply when the premise holds.
	Holds
	// Fails is for rules that apply when it does not.
	Fails
)

var premises = enum.Names[Premise]{Either: "either", Holds: "holds", Fails: "fails"}

// String is "either", "holds" or "fails".
func (p Premise) String() string { return premises.Of(p) }

// A Row is one rule: what happens to a task in State when Command comes.
type Row struct {
	State   State
	Command string
	Premise Premise
	// Next is the state afterwards; [Absent] after a removal, and State if nothing
	// changes.
	Next State
	// LastNext is the state after a Reject that uses up the retries; for all other
	// commands it equals Next.
	LastNext State
	// Effects are requested afterwards: CallBack only for a task with a URL, and
	// after the last Reject too.
	Effects []EffectKind
	// Err is the error that a refusal wraps; nil if the rule does not refuse.
	Err error
	// Reason says why, for people.
	Reason string
}

// Table returns the rules that [Step] looks up, in the order of the states,
// then of the commands. Each state with each command has either one row that
// ignores the premise, or one row for each of its values. Callers may change
// the copy.
func Table() []Row {
	rows := make([]Row, len(rules))
	for i, r := range rules {
		next := actionNext[r.do]
		if next == same {
			next = r.state
		}
		last := next
		if r.do == retry {
			last = actionNext[giveUp]
		}
		rows[i] = Row{
			State: r.state, Command: kindNames[r.command], Premise: r.premise,
			Next: next, LastNext: last, Effects: slices.Clone(actionEffects[r.do]),
			Err: r.err, Reason: r.reason,
		}
	}
	return rows
}

// An action is what Step does for a rule.
type action uint8

const (
	refuse       action = iota
	nothing             // no-op, not an error
	create              // the record is made
	run                 // on the caller's container
	retry               // from the start, or giveUp when the retries are used up
	giveUp              // rejected for the last time
	end                 // over
	stop                // over, and its container must end too
	resolve             // somebody handles it
	demote              // nobody handles it any more
	remove              // the record is gone
	requestStart        // nothing changes
	callBack            // nothing changes

	numActions
)

// same stands for the record's present state.
const same = numStates

var actionNext = [numActions]State{
	refuse: same, nothing: same, create: Pending, run: Running, retry: Pending, giveUp: Completed,
	end: Completed, stop: Completed, resolve: Resolving, demote: Completed,
	remove: Absent, requestStart: same, callBack: same,
}

var actionEffects = [numActions][]EffectKind{
	create:       {RequestStart},
	giveUp:       {CallBack},
	end:          {CallBack},
	stop:         {CancelOnCell, CallBack},
	demote:       {CallBack},
	requestStart: {RequestStart},
	callBack:     {CallBack},
}

type rule struct {
	state   State
	command kind
	premise Premise
	do      action
	err     error
	reason  string
}

var rules = []rule{
	{Absent, kindDesire, Either, create, nil, "a new task"},
	{Absent, kindCancel, Either, refuse, ErrNotFound, "there is nothing to cancel"},
	{Absent, kindResolve, Either, refuse, ErrNotFound, "there is nothing to resolve"},
	{Absent, kindDelete, Either, refuse, ErrNotFound, "there is nothing to delete"},
	{Absent, kindStart, Either, refuse, ErrNotFound, "the task was cancelled and deleted: the cell deletes its reservation"},
	{Absent, kindComplete, Either, refuse, ErrNotFound, "the task was cancelled and deleted: the cell deletes its container"},
	{Absent, kindReject, Either, refuse, ErrNotFound, "the task was cancelled and deleted: nobody tries again"},
	{Absent, kindFail, Either, refuse, ErrNotFound, "there is nothing to fail"},
	{Absent, kindRequestAgain, Either, nothing, nil, "the task is gone"},
	{Absent, kindExpirePending, Either, nothing, nil, "the task is gone"},
	{Absent, kindCellMissing, Either, nothing, nil, "the task is gone"},
	{Absent, kindDemoteResolving, Either, nothing, nil, "the task is gone"},
	{Absent, kindRequestCallback, Either, nothing, nil, "the task is gone"},
	{Absent, kindExpireCompleted, Either, nothing, nil, "the task is gone"},

	{Pending, kindDesire, Either, refuse, ErrExists, "a guid names one task"},
	{Pending, kindCancel, Either, end, nil, "cancelled before it ran; a cell that has a reservation deletes it when it hears of this"},
	{Pending, kindResolve, Either, refuse, ErrInvalidTransition, "only a COMPLETED task can be resolved"},
	{Pending, kindDelete, Either, refuse, ErrInvalidTransition, "only a RESOLVING task can be deleted; cancel it first"},
	{Pending, kindStart, Holds, run, nil, "the cell has a reservation and is told to run the task"},
	{Pending, kindStart, Fails, refuse, ErrOtherAttempt, "the reservation was for an attempt that is over"},
	{Pending, kindComplete, Holds, end, nil, "the container of this attempt has ended, so the task must not run again"},
	{Pending, kindComplete, Fails, refuse, ErrOtherAttempt, "the container was for an attempt that is over"},
	{Pending, kindReject, Holds, retry, nil, "no cell was found: tried again until the retries are used up, then COMPLETED and failed"},
	{Pending, kindReject, Fails, nothing, nil, "this rejection was counted already, or is by a cell that does not have the task"},
	{Pending, kindFail, Either, end, nil, "failed before it ran"},
	{Pending, kindRequestAgain, Holds, requestStart, nil, "the request for its start may be lost"},
	{Pending, kindRequestAgain, Fails, nothing, nil, "it is not time yet"},
	{Pending, kindExpirePending, Holds, end, nil, "not started within the time limit"},
	{Pending, kindExpirePending, Fails, nothing, nil, "it is not time yet"},
	{Pending, kindCellMissing, Either, nothing, nil, "the task is on no cell"},
	{Pending, kindDemoteResolving, Either, nothing, nil, "the task is not RESOLVING"},
	{Pending, kindRequestCallback, Either, nothing, nil, "the task is not COMPLETED"},
	{Pending, kindExpireCompleted, Either, nothing, nil, "the task is not COMPLETED"},

	{Running, kindDesire, Either, refuse, ErrExists, "a guid names one task"},
	{Running, kindCancel, Either, stop, nil, "cancelled; the cell deletes its container"},
	{Running, kindResolve, Either, refuse, ErrInvalidTransition, "only a COMPLETED task can be resolved"},
	{Running, kindDelete, Either, refuse, ErrInvalidTransition, "only a RESOLVING task can be deleted; cancel it first"},
	{Running, kindStart, Holds, nothing, nil, "this container has started the task already and must not do so again"},
	{Running, kindStart, Fails, refuse, ErrRunningElsewhere, "a task runs in one container"},
	{Running, kindComplete, Holds, end, nil, "the container has ended"},
	{Running, kindComplete, Fails, refuse, ErrRunningElsewhere, "only the container that has the task completes it"},
	{Running, kindReject, Holds, retry, nil, "the work was not begun: tried again until the retries are used up, then COMPLETED and failed"},
	{Running, kindReject, Fails, refuse, ErrRunningElsewhere, "only the cell that has the task knows that its work was not begun"},
	{Running, kindFail, Either, stop, nil, "failed; the cell deletes its container"},
	{Running, kindRequestAgain, Either, nothing, nil, "the task is not PENDING"},
	{Running, kindExpirePending, Either, nothing, nil, "the task is not PENDING"},
	{Running, kindCellMissing, Holds, end, nil, "the cell is gone, and the task may have run: it is not tried again"},
	{Running, kindCellMissing, Fails, nothing, nil, "the task is on another cell"},
	{Running, kindDemoteResolving, Either, nothing, nil, "the task is not RESOLVING"},
	{Running, kindRequestCallback, Either, nothing, nil, "the task is not COMPLETED"},
	{Running, kindExpireCompleted, Either, nothing, nil, "the task is not COMPLETED"},

	{Completed, kindDesire, Either, refuse, ErrExists, "a guid names one task until it is deleted"},
	{Completed, kindCancel, Either, refuse, ErrInvalidTransition, "only a PENDING or RUNNING task can be cancelled"},
	{Completed, kindResolve, Either, resolve, nil, "the first to resolve it deals with it"},
	{Completed, kindDelete, Either, refuse, ErrInvalidTransition, "only a RESOLVING task can be deleted; resolve it first"},
	{Completed, kindStart, Either, refuse, ErrInvalidTransition, "a task runs at most once"},
	{Completed, kindComplete, Holds, nothing, nil, "the task is over already: reported twice, or cancelled meanwhile"},
	{Completed, kindComplete, Fails, refuse, ErrInvalidTransition, "the task is over, and another container or none had it"},
	{Completed, kindReject, Either, refuse, ErrInvalidTransition, "a task runs at most once"},
	{Completed, kindFail, Either, refuse, ErrInvalidTransition, "only a PENDING or RUNNING task can fail"},
	{Completed, kindRequestAgain, Either, nothing, nil, "the task is not PENDING"},
	{Completed, kindExpirePending, Either, nothing, nil, "the task is not PENDING"},
	{Completed, kindCellMissing, Either, nothing, nil, "the task has ended"},
	{Completed, kindDemoteResolving, Either, nothing, nil, "the task is not RESOLVING"},
	{Completed, kindRequestCallback, Holds, callBack, nil, "the request for its callback may be lost"},
	{Completed, kindRequestCallback, Fails, nothing, nil, "it is not time yet, or nobody asked to be called"},
	{Completed, kindExpireCompleted, Holds, remove, nil, "nobody has resolved it in time"},
	{Completed, kindExpireCompleted, Fails, nothing, nil, "it is not time yet"},

	{Resolving, kindDesire, Either, refuse, ErrExists, "a guid names one task until it is deleted"},
	{Resolving, kindCancel, Either, refuse, ErrInvalidTransition, "only a PENDING or RUNNING task can be cancelled"},
	{Resolving, kindResolve, Either, refuse, ErrInvalidTransition, "somebody else deals with it"},
	{Resolving, kindDelete, Either, remove, nil, "the consumer has seen the result"},
	{Resolving, kindStart, Either, refuse, ErrInvalidTransition, "a task runs at most once"},
	{Resolving, kindComplete, Holds, nothing, nil, "the task is over already: reported twice, or cancelled meanwhile"},
	{Resolving, kindComplete, Fails, refuse, ErrInvalidTransition, "the task is over, and another container or none had it"},
	{Resolving, kindReject, Either, refuse, ErrInvalidTransition, "a task runs at most once"},
	{Resolving, kindFail, Either, refuse, ErrInvalidTransition, "only a PENDING or RUNNING task can fail"},
	{Resolving, kindRequestAgain, Either, nothing, nil, "the task is not PENDING"},
	{Resolving, kindExpirePending, Either, nothing, nil, "the task is not PENDING"},
	{Resolving, kindCellMissing, Either, nothing, nil, "the task has ended"},
	{Resolving, kindDemoteResolving, Holds, demote, nil, "the process that was resolving it may be gone"},
	{Resolving, kindDemoteResolving, Fails, nothing, nil, "it is not time yet"},
	{Resolving, kindRequestCallback, Either, nothing, nil, "somebody deals with it"},
	{Resolving, kindExpireCompleted, Either, nothing, nil, "somebody deals with it"},
}

// ruleIndex has the rules by state, command and whether the premise holds. A
// test fails if a triple has no rule, or two.
var ruleIndex = func() (index [numStates][numKinds][2]*rule) {
	for i := range rules {
		r := &rules[i]
		at := &index[r.state][r.command]
		if r.premise != Fails {
			at[1] = r
		}
		if r.premise != Holds {
			at[0] = r
		}
	}
	return index
}()

func lookup(s State, k kind, holds bool) *rule {
	if holds {
		return ruleIndex[s][k][1]
	}
	return ruleIndex[s][k][0]
}
