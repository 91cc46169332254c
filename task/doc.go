// Package task holds the rules for one-off tasks as pure functions (000
// §Tasks).
//
// A [Task] is the record of one task: its [Definition], which says what to run,
// and the state of its life. Only [Step] changes it:
//
//	decision, err := task.Step(record, command, now, policy)
//
// A [Decision] is a value. It says which record to write, which events to
// publish, and which effects to carry out after the commit.
//
// The usual life of a task is: Desire makes it PENDING and requests an auction.
// The winning cell sends Start (RUNNING) and, when the container has ended,
// Complete (COMPLETED). Then the consumer, or the sender of its completion
// callback, sends Resolve (RESOLVING) and Delete. [Table] says what each command
// does in each state.
//
// A task runs at most once. Nothing leads from COMPLETED or RESOLVING back to
// PENDING or RUNNING. Only the cell that holds a RUNNING task can lead it back
// to PENDING, by saying that the work did not begin. Each container has an
// instance guid of its own and carries the [Attempt] that it was reserved for,
// so a late container is never mistaken for another.
//
// [CallbackPolicy] says what follows from each answer to a completion callback.
// [Overdue] says what is due because time has passed.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say
// otherwise: any number of goroutines may read one at the same time, but nobody
// else may use it while it is being changed. The functions keep no state and
// may be called concurrently; they do not change their arguments.
package task
