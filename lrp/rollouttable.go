package lrp

import (
	"slices"

	"github.com/diegosdk/diego/internal/enum"
)

// This file is the planner of rollouts as a table: what is due at one index, and
// what the rollout waits for there.

// A RolloutTurn says whether the rollout may change an index now.
type RolloutTurn uint8

// The turns of an index.
const (
	// TurnNow may change the index.
	TurnNow RolloutTurn = iota
	// TurnLater waits until fewer indices are in flight.
	TurnLater
	// TurnAfterCanary waits until the canary is confirmed.
	TurnAfterCanary
	// TurnPaused waits until the rollout is resumed.
	TurnPaused
)

// RolloutTurns is the number of values of RolloutTurn.
const RolloutTurns = 4

var turnNames = enum.Names[RolloutTurn]{
	TurnNow: "now", TurnLater: "when fewer are in flight", TurnAfterCanary: "after the canary", TurnPaused: "when resumed",
}

// String describes the turn for people. The text may change.
func (t RolloutTurn) String() string { return turnNames.Of(t) }

// A RolloutActive describes the ORDINARY record of the active definition at an
// index.
type RolloutActive uint8

// What the active definition has at an index.
const (
	ActiveNone RolloutActive = iota
	// ActiveStarting is UNCLAIMED or CLAIMED, or was told to stop before its
	// definition became active again: it starts anew when it has ended.
	ActiveStarting
	// ActiveCrashed is CRASHED.
	ActiveCrashed
	// ActiveYoung is RUNNING, but not yet for RolloutPolicy.MinHealthy.
	ActiveYoung
	// ActiveUnready is RUNNING for that long, but not ready for traffic.
	ActiveUnready
	// ActiveGivenUp has not proved healthy within RolloutPolicy.Deadline, but its
	// definition has elsewhere.
	ActiveGivenUp
	// ActiveFailed shows that its definition has failed: see
	// RolloutPolicy.OnFailure.
	ActiveFailed
	// ActiveFirst has proved healthy, which is not noted yet.
	ActiveFirst
	// ActiveProven has proved healthy.
	ActiveProven
)

// RolloutActives is the number of values of RolloutActive.
const RolloutActives = 9

var activeNames = enum.Names[RolloutActive]{
	ActiveNone: "none", ActiveStarting: "starting", ActiveCrashed: "CRASHED", ActiveYoung: "RUNNING, too young", ActiveUnready: "RUNNING, not ready",
	ActiveGivenUp: "overdue, proved elsewhere", ActiveFailed: "failed", ActiveFirst: "proven, not noted", ActiveProven: "proven",
}

// String describes the record for people. The text may change.
func (a RolloutActive) String() string { return activeNames.Of(a) }

// A RolloutOthers describes the ORDINARY records of other definitions at an
// index.
type RolloutOthers uint8

// What other definitions have at an index.
const (
	OthersNone RolloutOthers = iota
	// OthersOld are to be replaced, and stay until then.
	OthersOld
	// OthersStray are of definitions that are neither active nor healthy. They do
	// not run, and at most the active definition runs beside them.
	OthersStray
	// OthersOvertaken are one that runs and at least one that was to replace it in
	// a rollout that is over.
	OthersOvertaken
)

// RolloutOthersKinds is the number of values of RolloutOthers.
const RolloutOthersKinds = 4

var othersNames = enum.Names[RolloutOthers]{OthersNone: "none", OthersOld: "old", OthersStray: "strays", OthersOvertaken: "overtaken"}

// String describes the records for people. The text may change.
func (o RolloutOthers) String() string { return othersNames.Of(o) }

// A RolloutWait is what a rollout waits for.
type RolloutWait uint8

// What a rollout may wait for.
const (
	// WaitNothing: the rollout is complete, or goes on at once.
	WaitNothing RolloutWait = iota
	// WaitStart: a new instance has to be placed and to run.
	WaitStart
	// WaitRestart: a new instance has crashed and has to be restarted.
	WaitRestart
	// WaitHealthy: a new instance runs, but not yet for RolloutPolicy.MinHealthy.
	WaitHealthy
	// WaitReady: a new instance runs, but is not ready for traffic.
	WaitReady
	// WaitConfirmed: somebody has to confirm or abort the canary.
	WaitConfirmed
	// WaitResumed: somebody has to resume or abort the paused rollout.
	WaitResumed
)

var waitNames = enum.Names[RolloutWait]{
	WaitNothing: "NOTHING", WaitStart: "START", WaitRestart: "RESTART", WaitHealthy: "HEALTHY", WaitReady: "READY",
	WaitConfirmed: "CONFIRMED", WaitResumed: "RESUMED",
}

// String is a word such as "START".
func (w RolloutWait) String() string { return waitNames.Of(w) }

// MarshalText fails on a value that is none of the constants.
func (w RolloutWait) MarshalText() ([]byte, error) { return waitNames.Marshal("waits_for", w) }

// UnmarshalText accepts only the words of the constants, upper case.
func (w *RolloutWait) UnmarshalText(text []byte) error {
	return waitNames.Unmarshal("waits_for", w, text)
}

// A RolloutCount is what an index counts as in the RolloutStatus.
type RolloutCount uint8

// What an index may count as.
const (
	// CountsPending is neither done nor given up, and not in flight.
	CountsPending RolloutCount = iota
	// CountsInFlight is pending, and one of those that RolloutPolicy.MaxInFlight
	// limits.
	CountsInFlight
	// CountsStalled is given up for now.
	CountsStalled
	// CountsDone runs only the active definition.
	CountsDone
)

var countNames = enum.Names[RolloutCount]{CountsPending: "pending", CountsInFlight: "in flight", CountsStalled: "stalled", CountsDone: "done"}

// String is a word such as "pending", for people.
func (c RolloutCount) String() string { return countNames.Of(c) }

// A RolloutRow says what a rollout does at an index. The row applies if each of
// the three situations is in the row's list; an empty list stands for all. If
// several rows apply, the first one counts.
type RolloutRow struct {
	Turns  []RolloutTurn
	Active []RolloutActive
	Others []RolloutOthers

	// Command is due at the index, or nil. An AdvanceRollout has no DefinitionID
	// here: it is for the active definition.
	Command Command
	Count   RolloutCount
	Wait    RolloutWait
	Reason  string
}

// RolloutTable returns the table of rollouts, in its order. It is total: some
// row applies to every situation. Callers may change the slice, but not the
// lists in its rows.
func RolloutTable() []RolloutRow { return slices.Clone(rolloutTable) }

var rolloutTable = []RolloutRow{
	{Active: []RolloutActive{ActiveProven}, Others: []RolloutOthers{OthersNone},
		Count: CountsDone, Reason: "only the active definition runs here"},

	{Turns: []RolloutTurn{TurnPaused}, Others: []RolloutOthers{OthersOvertaken},
		Command: StopOvertaken{}, Wait: WaitResumed, Reason: "what an earlier rollout was about to start is not needed; what runs stays"},
	{Turns: []RolloutTurn{TurnPaused},
		Wait: WaitResumed, Reason: "the rollout is paused"},

	{Active: []RolloutActive{ActiveFailed},
		Command: FailRollout{}, Count: CountsInFlight, Reason: "the definition has failed: the rollout is paused or rolled back"},

	{Turns: []RolloutTurn{TurnAfterCanary}, Others: []RolloutOthers{OthersOvertaken},
		Command: StopOvertaken{}, Wait: WaitConfirmed, Reason: "what an earlier rollout was about to start is not needed; what runs stays"},
	{Turns: []RolloutTurn{TurnAfterCanary},
		Wait: WaitConfirmed, Reason: "the index comes after the canary, which is not confirmed"},

	{Active: []RolloutActive{ActiveFirst},
		Command: AdvanceRollout{}, Reason: "it is noted that the definition works, and others at the index are stopped"},
	{Active: []RolloutActive{ActiveProven},
		Command: AdvanceRollout{}, Reason: "the new instance has proved healthy, so the others are stopped"},

	{Active: []RolloutActive{ActiveNone}, Others: []RolloutOthers{OthersNone},
		Reason: "nothing is here: convergence first starts the healthy definition"},

	{Active: []RolloutActive{ActiveGivenUp}, Others: []RolloutOthers{OthersOvertaken},
		Command: StopOvertaken{}, Count: CountsStalled, Reason: "as below; and what an earlier rollout was about to start is not needed"},
	{Active: []RolloutActive{ActiveGivenUp},
		Count: CountsStalled, Reason: "the rollout goes on without the index; what runs stays, and the new instance keeps trying"},

	{Turns: []RolloutTurn{TurnLater}, Others: []RolloutOthers{OthersOvertaken},
		Command: StopOvertaken{}, Reason: "what an earlier rollout was about to start is not needed; what runs stays"},
	{Turns: []RolloutTurn{TurnLater},
		Reason: "as many indices are in flight as may be"},

	{Active: []RolloutActive{ActiveNone},
		Command: AdvanceRollout{}, Count: CountsInFlight, Wait: WaitStart, Reason: "it is this index's turn: the new instance is made"},
	{Others: []RolloutOthers{OthersStray},
		Command: AdvanceRollout{}, Count: CountsInFlight, Wait: WaitStart, Reason: "what an earlier rollout was about to start gives way"},
	{Others: []RolloutOthers{OthersOvertaken},
		Command: StopOvertaken{}, Count: CountsInFlight, Wait: WaitStart, Reason: "what an earlier rollout was about to start gives way; what runs stays"},
	{Active: []RolloutActive{ActiveStarting},
		Count: CountsInFlight, Wait: WaitStart, Reason: "the new instance does not run yet"},
	{Active: []RolloutActive{ActiveCrashed},
		Count: CountsInFlight, Wait: WaitRestart, Reason: "the new instance has crashed, and is restarted in time"},
	{Active: []RolloutActive{ActiveYoung},
		Count: CountsInFlight, Wait: WaitHealthy, Reason: "the new instance has not been RUNNING for long enough"},
	{Active: []RolloutActive{ActiveUnready},
		Count: CountsInFlight, Wait: WaitReady, Reason: "the new instance is not ready for traffic"},
}

// RolloutRule returns the row that applies at one index. It panics on values
// that are not situations. Callers must not change the lists in the row.
func RolloutRule(t RolloutTurn, a RolloutActive, o RolloutOthers) RolloutRow {
	return *rolloutRow(t, a, o)
}

func rolloutRow(t RolloutTurn, a RolloutActive, o RolloutOthers) *RolloutRow {
	return &rolloutTable[rolloutRules[t][a][o]]
}

// rolloutRules are the numbers of the rows that apply.
var rolloutRules = func() (rules [RolloutTurns][RolloutActives][RolloutOthersKinds]uint8) {
	for t := range RolloutTurn(RolloutTurns) {
		for a := range RolloutActive(RolloutActives) {
			for o := range RolloutOthers(RolloutOthersKinds) {
				rules[t][a][o] = uint8(slices.IndexFunc(rolloutTable, func(r RolloutRow) bool {
					return among(r.Turns, t) && among(r.Active, a) && among(r.Others, o)
				}))
			}
		}
	}
	return rules
}()

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }
