// Package converge makes a Diego cluster eventually consistent. Messages get
// lost, connections time out and components fail; convergence repairs the
// result (000 §Convergence, §Maintaining Consistency).
//
// [PlanLRPs] and [PlanTasks] are pure. They read a snapshot as ordered
// sequences, in constant memory. For each record that is not as it should be,
// they yield an [LRPAction] or [TaskAction] with a typed reason. [Guard]
// prevents action when so many cells vanish in a short time that the list of
// cells is more likely to be wrong than the cells.
//
// An action is a command for lrp.Step or task.Step. They check the record again
// when the command is applied, so an outdated plan does no harm.
//
// A [Converger] is the shell around the plans. Each [Converger.Pass] plans from
// one snapshot of a store, applies the plan and hands on all effects at once.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say
// otherwise: any number of goroutines may read one at the same time, but nobody
// else may use it while it is being changed. [PlanLRPs], [PlanTasks] and
// [Guard.Observe] keep no state and may be called concurrently. Goroutines may
// share a [Converger]; it calls its [Effects] from one goroutine at a time.
package converge
