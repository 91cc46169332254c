package rep

import (
	"strings"

	"github.com/diegosdk/diego/internal/enum"
	"github.com/diegosdk/diego/lrp"
)

// A Step is one thing to do about a container or its record.
type Step uint8

const (
	// ClaimLRP tells the BBS that this cell will start the instance.
	ClaimLRP Step = iota + 1
	// StartLRP tells the BBS that the instance runs. The BBS removes an
	// EVACUATING or SUSPECT record that it replaces in the same commit.
	StartLRP
	// CrashLRP tells the BBS that the instance crashed. The BBS decides on the
	// restart and on resetting the crash count (000 §Crashes).
	CrashLRP
	// RemoveLRP tells the BBS that the instance is gone. An index that is
	// still desired is UNCLAIMED again at once.
	RemoveLRP
	// RemoveEvacuatingLRP removes the instance's EVACUATING record.
	RemoveEvacuatingLRP

	// WithdrawLRP tells the BBS that the instance, which still runs, is not to
	// be routed to any more.
	WithdrawLRP

	// EvacuateClaimedLRP, EvacuateRunningLRP, EvacuateStoppedLRP and
	// EvacuateCrashedLRP tell the BBS about an instance on an evacuating cell.
	EvacuateClaimedLRP
	EvacuateRunningLRP
	EvacuateStoppedLRP
	EvacuateCrashedLRP

	// StartTask tells the BBS that this cell runs the task in this container.
	// It succeeds as often as it is repeated.
	StartTask
	// CompleteTask gives the BBS the container's result.
	CompleteTask
	// FailTask completes the task as failed, because its container is gone or
	// could not run. It is the task package's Complete with Failed set.
	FailTask
	// RejectTask tells the BBS that the work never began and may be tried
	// elsewhere, as often as the task's retries allow.
	RejectTask

	// RunContainer starts the work in a reserved container.
	RunContainer
	// DeleteContainer stops what still runs in the container, with its grace
	// period, and deletes it. An instance that another one has replaced gets
	// AwaitRouters first.
	DeleteContainer
	// DeleteContainerUnlessKept is DeleteContainer if the BBS answered the
	// step before it with "do not keep the container".
	DeleteContainerUnlessKept
	// StopContainer stops what runs in the container, with its grace period.
	StopContainer
	// AwaitRouters leaves the container alone for Options.StopPause. Then it
	// is looked at again.
	AwaitRouters

	endOfSteps
)

var stepNames = enum.Names[Step]{
	ClaimLRP:                  "claim LRP",
	StartLRP:                  "start LRP",
	CrashLRP:                  "crash LRP",
	RemoveLRP:                 "remove LRP",
	RemoveEvacuatingLRP:       "remove evacuating LRP",
	WithdrawLRP:               "withdraw LRP",
	EvacuateClaimedLRP:        "evacuate claimed LRP",
	EvacuateRunningLRP:        "evacuate running LRP",
	EvacuateStoppedLRP:        "evacuate stopped LRP",
	EvacuateCrashedLRP:        "evacuate crashed LRP",
	StartTask:                 "start task",
	CompleteTask:              "complete task",
	FailTask:                  "fail task",
	RejectTask:                "reject task",
	RunContainer:              "run container",
	DeleteContainer:           "delete container",
	DeleteContainerUnlessKept: "delete container unless kept",
	StopContainer:             "stop container",
	AwaitRouters:              "await routers",
}

func (s Step) String() string { return stepNames.Of(s) }

// CallsBBS reports whether the step is a call of the BBS; the others concern
// the container.
func (s Step) CallsBBS() bool { return s >= ClaimLRP && s <= RejectTask }

// DeleteWhenRefused reports whether the container is to be deleted when the BBS
// refuses the step with an *[lrp.TransitionError] or a *task.TransitionError:
// another cell has the work, or nobody wants it any more (000 §Starting
// ActualLRPs, §Task Lifecycle, §The missing cell-1 making API calls to BBS).
// Any other failure says nothing about the work, and the container stays until
// the next poll.
func (s Step) DeleteWhenRefused() bool {
	return s.CallsBBS() && s != EvacuateRunningLRP && s != FailTask
}

// A Row says what to do in one pair of situations. Rows are shared: do not
// change their steps.
type Row struct {
	// Steps are in order; none means that all is well.
	Steps []Step
	Odds  lrp.Odds
	// Reason says why these steps are right.
	Reason string
	// Added is true for a row that the specification's table leaves out.
	Added bool
}

// Action describes the steps in words.
func (r Row) Action() string {
	if len(r.Steps) == 0 {
		return "do nothing"
	}
	names := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		names[i] = s.String()
	}
	return strings.Join(names, ", then ")
}

// do makes the tables readable.
func do(steps ...Step) []Step { return steps }

// Where a row of a table is from.
const spec, added = false, true
