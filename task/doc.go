// Package task holds the rules for one-off tasks as pure functions (000
// §Tasks).
//
// A [Task] is the record of one task: its [Definition], which says what runs,
// and what is known of its life. [Step] is the only thing that changes it:
//
//	decision, err := task.Step(record, command, now, policy)
//
// A [Decision] is a value. It says which record to write, which events that
// makes, and which effects to carry out once the write is committed.
//
// The usual life of a task is: Desire makes it PENDING and asks for an
// auction; the winning cell sends Start (RUNNING) and, when the container has
// ended, Complete (COMPLETED). Then somebody, the consumer or whoever makes
// its completion callback, sends Resolve (RESOLVING) and Delete. [Table] has
// every state and command.
//
// A task runs at most once: nothing leads from COMPLETED or RESOLVING back to
// PENDING or RUNNING, and only the cell that holds a RUNNING task, by its word
// that the work never began, leads it back to PENDING. Each container has an
// instance guid of its own, and comes with the [Attempt] that it was reserved
// for, so that one that is late is never taken for another.
//
// [CallbackPolicy] says what to do about the answers to a completion callback,
// and [Overdue] what time alone calls for.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say otherwise:
// any number of goroutines may read one at the same time, and a caller that
// changes one keeps the others away meanwhile. The functions keep no state
// and may be called at the same time; they change none of their arguments.
package task
