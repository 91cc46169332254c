package simulation

import (
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A history also meets the places at which faults strike, with what they do there,
// and the effects of decisions, with what they are about.
const (
	tableFaults  = "fault"
	tableEffects = "effect"
)

// What a fault does to a call, and to a commit.
var (
	harms       = [...]string{"the request is lost", "the answer is lost", "it comes twice", "it comes later"}
	slow        = "nobody waits for it"
	commitFails = map[bool]string{false: "it fails", true: "it is carried out, and reported as failed"}
)

// The calls of cells, of control planes and of consumers.
var (
	cellCalls = []string{
		"ClaimLRP", "StartLRP", "CrashLRP", "RemoveLRP", "EvacuateClaimedLRP", "EvacuateRunningLRP", "EvacuateStoppedLRP", "EvacuateCrashedLRP",
		"RemoveEvacuatingLRP", "StartTask", "CompleteTask", "RejectStartedTask",
	}
	planeCalls = []string{"State", "Inventory", "Perform", "StopLRP", "CancelTask"}
	consumers  = []string{opCreate, opScale, opPolicy, opDeploy, opDelete, opRetire, opTask, opCancel, opFinish, opFail, opHandle}
)

// The other faults.
var (
	interruptions = [...]string{"a late call arrives", "a consumer acts", "a cell looks", "a control plane is paused until another leads"}
	acceptances   = map[bool]string{false: "it is refused", true: "it is refused, and the task deleted"}
	mischiefs     = []string{
		"a cell is cut off", "a cell is switched off", "a control plane is paused", "a control plane is started anew", "the store is down",
		"a container crashes", "a cell is drained", "a container disappears", "all cells are cut off", "presences are lost", "ends are kept secret",
		"a clock is set", oldAnswers.String(), omissions.String(), phantoms.String(), room.String(), "a cell is slow", "a cell moves", "readiness changes",
		"a drain is given up", "a cell is cordoned",
	}
	backendOps = []scripted.Op{scripted.Create, scripted.Start, scripted.Delete, scripted.List}
)

// What an instance that is to stop may be recorded as.
var stops = []string{"no record", "ORDINARY CLAIMED", "ORDINARY RUNNING", "EVACUATING RUNNING", "SUSPECT CLAIMED", "SUSPECT RUNNING"}

// Points are all fault points and all effects.
func Points() (list []Row) {
	add := func(table, of string, with ...string) {
		for _, w := range with {
			list = append(list, Row{table, of, w})
		}
	}
	for _, verb := range slices.Concat(cellCalls, planeCalls, consumers, steering) {
		add(tableFaults, verb, harms[:]...)
	}
	for _, verb := range slices.Concat(cellCalls, planeCalls) {
		add(tableFaults, verb, slow)
	}
	add(tableFaults, "commit", commitFails[false], commitFails[true])
	add(tableFaults, "interrupt", interruptions[:]...)
	add(tableFaults, "callback", acceptances[false], acceptances[true])
	add(tableFaults, "mischief", mischiefs...)
	for _, op := range backendOps {
		add(tableFaults, "backend", string(op))
	}
	add(tableEffects, "StopLRP", stops...)
	add(tableEffects, "Perform", "an instance", "a task")
	for _, s := range []task.State{task.Absent, task.Pending, task.Running, task.Completed, task.Resolving} {
		add(tableEffects, "CancelTask", s.String())
	}
	add(tableEffects, "callback", "it is told", "it is told again")
	slices.SortFunc(list, compareRows)
	return list
}

// harmed notes what a fault does, and where.
func (w *World) harmed(where, what string) { w.meets(Row{tableFaults, where, what}) }

func (w *World) effected(what, about string) { w.meets(Row{tableEffects, what, about}) }

// kind is the call without what it is about.
func (c call) kind() string {
	verb, _, _ := strings.Cut(c.verb, " of ")
	return verb
}

// stopsAs is what an instance that is to stop is recorded as.
func stopsAs(r *lrp.ActualLRP) string {
	if r == nil {
		return "no record"
	}
	return r.Presence.String() + " " + r.State.String()
}

// UnmetPoints are the fault points and effects that were not met, in order.
func (m Met) UnmetPoints() (list []Row) {
	for _, r := range Points() {
		if _, met := m[r]; !met {
			list = append(list, r)
		}
	}
	return list
}
