// Package converge brings a Diego cluster into eventual consistency: messages
// get lost, connections time out, components fail, and convergence mends what
// that leaves behind (000 §Convergence, §Maintaining Consistency).
//
// [PlanLRPs] and [PlanTasks] are pure. They read a snapshot as ordered
// sequences, in constant memory, and say what is to be done about it: an
// [LRPAction] or [TaskAction] with a typed reason for each record that is not
// as it should be. [Guard] keeps them from acting when so many cells vanish in a
// short time that the list of cells is more likely to be wrong than the cells.
//
// An action is a command for lrp.Step or task.Step, which look at the record
// again when it is applied; a plan that is out of date does no harm.
//
// A [Converger] is the shell around them: each [Converger.Pass] plans from one
// snapshot of a store, applies the plan and hands on all effects at once.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say otherwise:
// any number of goroutines may read one at the same time, and a caller that
// changes one keeps the others away meanwhile. [PlanLRPs], [PlanTasks] and
// [Guard.Observe] keep no state and may be called at the same time. A [Converger]
// may be shared by goroutines; it calls its [Effects] from one at a time.
package converge
