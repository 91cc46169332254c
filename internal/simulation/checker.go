package simulation

import "fmt"

// A Violation is what a checker objects to.
type Violation struct {
	// Checker is the name of a [Checker].
	Checker string
	What    string
}

func (v *Violation) Error() string { return fmt.Sprintf("[%s] %s", v.Checker, v.What) }

// A Checker is something that must hold in every history.
type Checker struct {
	Name string
	// Says is what must hold, and Source is where that comes from: the
	// specification by file and section, or a page of docs.
	Says, Source string
}

// violated makes a Violation.
func (c *Checker) violated(format string, args ...any) error {
	return &Violation{c.Name, fmt.Sprintf(format, args...)}
}

// The checkers. Each of them is a second implementation of its rule: none asks
// the code under test what would be right.
var (
	checkInvariants = &Checker{"invariants", "Every slot keeps the invariants of its records.", "docs/architecture.md, lrp.Slot"}
	checkLog        = &Checker{"log", "The log has one event after another, each under a number of its own, and folding them gives the records.", "docs/storage.md, events"}
	checkLeaders    = &Checker{"leaders", "Leaders commit one after another, and no epoch is granted twice.", "docs/storage.md, leases"}
	checkAgenda     = &Checker{"agenda", "Convergence that looks only at what has changed or is due plans what it would if it looked at everything.", "docs/architecture.md, convergence"}
	checkOnce       = &Checker{"task-once", "A task runs at most once.", "000 §Task States"}
	checkGuard      = &Checker{"guard", "A cell is not taken for lost before the guard's graces allow that.", "docs/operations.md, guard"}
	checkSettles    = &Checker{"settles", "After the last fault, two roll calls and 20 passes of convergence exactly what is desired runs, and no task is left. Passes while an instance backs off or a rollout goes on do not count; all is over three hours later.", "000 §Convergence"}
	checkUnharmed   = &Checker{"unharmed", "An outage within the grace costs no task and no instance.", "docs/operations.md, guard"}
	checkPolicy     = &Checker{"placement-policy", "A filter or a scorer decides from its arguments alone, and does not change them.", "auction.Filter, auction.Scorer"}
	checkStore      = &Checker{"store", "A store shows what was committed and nothing else, and a commit fails only as the contract says.", "docs/storage.md, Commit"}

	checkUpdates  = &Checker{"lost-update", "A commit changes the record that was read, and no later one.", "docs/storage.md, Commit"}
	checkEvents   = &Checker{"events", "Every change of a record comes with an event.", "docs/architecture.md, events"}
	checkReasons  = &Checker{"reasons", "The record of a container that runs is given up only because the index is not desired and its cell is gone, because another instance runs, because its own cell says so, or because its evacuation is over.", "000 §Suspect Cells, §LRP Evacuation, §Stopping"}
	checkReplaced = &Checker{"replaced", "A replacement that runs ends the suspect and the evacuating records of its index in the same commit.", "000 §Expected Suspect Workflow, §Harmonizing During Evacuation"}
	checkStops    = &Checker{"stops", "A RUNNING instance is stopped only because the index is not desired, because another instance runs there and has nothing to prove, or because it was retired.", "lrp.RolloutPolicy, 000 §Stopping, 003 §UpdateLRPDeployment, 002 §Killing ActualLRPs"}
	checkOrders   = &Checker{"orders", "An order follows a commit that cannot be taken back: a cell is told to stop an instance only if its record says that it is to stop, or was given up, and to delete the container of a task only if the task does not run there any more. That holds for a control plane that does not know yet that another one leads.", "docs/architecture.md, the laws; docs/decisions.md, the control plane"}
	checkFresh    = &Checker{"freshness", "Convergence stops surplus instances only in a fresh domain.", "000 §DesiredLRPs, §Convergence 3"}
	checkDuties   = &Checker{"duties", "Convergence plans what the specification asks of it: a missing index, a restart and a start that are due, a suspect whose cell is back, an evacuation that is over, and surplus in a fresh domain.", "000 §Convergence, §Suspect Cells"}
	checkRollout  = &Checker{"rollout", "A rollout begins with an index only when all lower ones run the active definition, or were given up, but for as many as may be in flight, and not while it is paused or its canary is not confirmed. A definition is called healthy once an instance of it has run for as long as the process wants. A rollout ends by itself only when its definition has failed, and goes back to where it began.", "003 §UpdateLRPDeployment, docs/deployments.md, docs/decisions.md"}
	checkBudget   = &Checker{"budget", "Of a process with a budget, only RECREATE takes away what serves an index before another instance is ready there, and no more indices are without one then than the budget allows. Losses that nobody wanted count, and are nobody's fault.", "docs/decisions.md, the budget for disruptions"}
	checkCrashes  = &Checker{"crashes", "A crash counts once; the count decides when the instance starts again, and is lost only by a long run, a rollout or Retire.", "000 §Crashes"}
	checkEvacuate = &Checker{"evacuation", "An EVACUATING record lives no longer than its time, and a container that is evacuated is kept until another instance runs or none is desired.", "000 §LRP Evacuation, §Harmonizing During Evacuation"}
	checkAnswers  = &Checker{"answers", "A cell's Claim or Start is refused where, and only where, another instance has got further.", "000 §Harmonizing ActualLRPs, §Suspect Cells E"}
	checkUnwanted = &Checker{"unwanted", "A cell gives up an instance that does not run yet when it finds that there is no record of it. While it evacuates it does so once the control plane has answered.", "000 §Harmonizing ActualLRPs with Container State: Rep, §Harmonizing During Evacuation"}
	checkKeeps    = &Checker{"keeps", "A cell ends a container of an instance that runs only because it was told to stop it, because its report was refused, because it evacuates and need not keep it or has no time left, or because it has read that another instance runs at the index.", "000 §Harmonizing ActualLRPs with Container State: Rep, §Harmonizing During Evacuation, §Suspect Cells E"}
	checkRoom     = &Checker{"room", "A cell has the room that its containers leave.", "000 §Distributing, executor.Executor Remaining"}
	checkRoutes   = &Checker{"routes", "Group events add up to the routes of what runs.", "000 §Suspect Cells, 003 §Corresponding changes to ActualLRPs"}
	checkTasks    = &Checker{"tasks", "A task goes from state to state as the specification says, counts its rejections, and starts for its current attempt only.", "000 §Task Lifecycle"}
	checkPosts    = &Checker{"callbacks", "A completion is told while the task is RESOLVING, as often as it takes, and the task is deleted only once its consumer has it or its time is over.", "000 §Resolving Completed Tasks"}
	checkConsumer = &Checker{"consumer", "What was acknowledged to a consumer is carried out once, what was refused is not, and nothing else changes what is desired.", "docs/architecture.md, the BBS"}
	checkPrompt   = &Checker{"prompt", "While no message is lost, an UNCLAIMED record that no cell has refused is claimed within 15 s, so before convergence asks for its start again, and the cell of a replacement that is not needed any more is told at once.", "000 §Starting, docs/architecture.md, effects"}
	checkAuction  = &Checker{"auction", "The auctioneer gives a cell no more than it said it has room for, and none that evacuates or is cordoned any work. No cell takes more than it has room for.", "000 §Distributing, §Harmonizing During Evacuation"}
)

// checkOdds goes by the tables' own words.
var checkOdds = &Checker{"odds", "A history without faults meets no row that a table calls inconceivable.", "docs/tables, 000 §Harmonizing"}

// Checkers are all of them.
func Checkers() []*Checker {
	return []*Checker{
		checkInvariants, checkLog, checkLeaders, checkAgenda, checkOnce, checkGuard, checkSettles, checkUnharmed,
		checkUpdates, checkEvents, checkReasons, checkReplaced, checkStops, checkOrders, checkFresh, checkDuties, checkRollout, checkBudget, checkCrashes, checkEvacuate, checkAnswers,
		checkUnwanted, checkKeeps, checkRoom, checkRoutes, checkTasks, checkPosts, checkConsumer, checkAuction, checkPrompt, checkOdds, checkPolicy, checkStore,
	}
}
