package rep

import "github.com/diegosdk/diego/lrp"

// DecideTask is the table for tasks (000 §Harmonizing Tasks with Container
// State: Rep). It panics on values that are not situations.
//
// A container that failed before its work began is rejected rather than
// completed, so that the task may be tried elsewhere; in any other respect it
// is like every COMPLETED one.
func DecideTask(c TaskContainer, t TaskSituation) Row { return taskTable[c][t] }

// TaskRunFailed says what to do when RunContainer fails at once (000 §Task
// Lifecycle). A container that fails later is COMPLETED, which is in the table.
func TaskRunFailed() Row { return taskRunFailed }

var taskRunFailed = Row{do(FailTask, DeleteContainer), lrp.Conceivable, "the task was started here and cannot run here", spec}

// TaskStartedUnheard says what to do when a cell that has asked to start the
// task of a RESERVED container finds the record RUNNING α: the BBS has agreed,
// and the answer was lost. By the table the container is about to run, which it
// is not. The record is as good as the answer, and RunContainer works once.
func TaskStartedUnheard() Row { return taskStartedUnheard }

var taskStartedUnheard = Row{do(RunContainer), lrp.Conceivable, "the task was started for this container, and the answer got lost", added}

var taskTable = [TaskContainers][TaskSituations]Row{
	TaskContainerNone: {
		TaskNone:           {nil, lrp.Expected, "nothing here and nothing recorded", added},
		TaskPending:        {nil, lrp.Expected, "the auctioneer will find a cell", added},
		TaskRunningAlpha:   {do(FailTask), lrp.Conceivable, "the task was to run here, and its container is gone", spec},
		TaskRunningOmega:   {nil, lrp.Expected, "the task runs elsewhere", added},
		TaskCompletedAlpha: {nil, lrp.Expected, "the consumer has not dealt with the task yet", spec},
		TaskCompletedOmega: {nil, lrp.Expected, "the task was not ours", added},
		TaskResolvingAlpha: {nil, lrp.Expected, "the consumer is dealing with the task", spec},
		TaskResolvingOmega: {nil, lrp.Expected, "the task was not ours", added},
	},
	TaskContainerReserved: {
		TaskNone:           {do(DeleteContainer), lrp.Conceivable, "the task was cancelled and deleted", spec},
		TaskPending:        {do(StartTask, RunContainer), lrp.Expected, "this cell won the auction", spec},
		TaskRunningAlpha:   {nil, lrp.Expected, "the container is about to run; if it never does, its reservation expires", spec},
		TaskRunningOmega:   {do(DeleteContainer), lrp.Conceivable, "the task runs elsewhere and must not run twice", spec},
		TaskCompletedAlpha: {do(DeleteContainer), lrp.Conceivable, "the task is over and must not run again", spec},
		TaskCompletedOmega: {do(DeleteContainer), lrp.Conceivable, "the task is over and must not run again", spec},
		TaskResolvingAlpha: {do(DeleteContainer), lrp.Conceivable, "the task is over and must not run again", spec},
		TaskResolvingOmega: {do(DeleteContainer), lrp.Conceivable, "the task is over and must not run again", spec},
	},
	TaskContainerActive: {
		TaskNone:           {do(DeleteContainer), lrp.Conceivable, "the task was cancelled and deleted", spec},
		TaskPending:        {do(StartTask), lrp.Inconceivable, "the record is changed before the container runs: correct it", spec},
		TaskRunningAlpha:   {nil, lrp.Expected, "the record says what is the case", spec},
		TaskRunningOmega:   {do(DeleteContainer), lrp.Inconceivable, "the task runs elsewhere as well", spec},
		TaskCompletedAlpha: {do(DeleteContainer), lrp.Conceivable, "the task was ended from outside, by its consumer perhaps", spec},
		TaskCompletedOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere as well", spec},
		TaskResolvingAlpha: {do(DeleteContainer), lrp.Conceivable, "the task was ended from outside, by its consumer perhaps", spec},
		TaskResolvingOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere as well", spec},
	},
	TaskContainerRetryable: {
		TaskNone:           {do(DeleteContainer), lrp.Conceivable, "the task was cancelled and deleted", added},
		TaskPending:        {do(DeleteContainer), lrp.Conceivable, "the work never began, and convergence requests the task again", added},
		TaskRunningAlpha:   {do(RejectTask, DeleteContainer), lrp.Conceivable, "the work never began, so another try is safe", added},
		TaskRunningOmega:   {do(DeleteContainer), lrp.Inconceivable, "the task runs elsewhere", added},
		TaskCompletedAlpha: {do(DeleteContainer), lrp.Conceivable, "the task is over already", added},
		TaskCompletedOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere", added},
		TaskResolvingAlpha: {do(DeleteContainer), lrp.Conceivable, "the task is over already", added},
		TaskResolvingOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere", added},
	},
	TaskContainerCompleted: {
		TaskNone:           {do(DeleteContainer), lrp.Conceivable, "the task was cancelled and deleted", spec},
		TaskPending:        {do(CompleteTask, DeleteContainer), lrp.Inconceivable, "the work is done, so it must not be done again", spec},
		TaskRunningAlpha:   {do(CompleteTask, DeleteContainer), lrp.Expected, "the work is done", spec},
		TaskRunningOmega:   {do(DeleteContainer), lrp.Inconceivable, "the task runs elsewhere as well", spec},
		TaskCompletedAlpha: {do(DeleteContainer), lrp.Conceivable, "the BBS knows already", spec},
		TaskCompletedOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere as well", spec},
		TaskResolvingAlpha: {do(DeleteContainer), lrp.Conceivable, "the BBS knows already", spec},
		TaskResolvingOmega: {do(DeleteContainer), lrp.Inconceivable, "the task ran elsewhere as well", spec},
	},
}
