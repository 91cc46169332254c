// Package lrp holds the rules for long-running processes as pure functions.
//
// A [Deployment] says what should run: how many instances, of which
// definitions; a [DesiredLRP] is its projection on the active definition. An
// [ActualLRP] is the record of one instance. Everything recorded at one index
// of one process is a [Slot], and [Step] is the only thing that changes it:
//
//	decision, err := lrp.Step(slot, deployment, command, now, policy)
//
// A [Decision] is a value. It says which records to write, which events that
// makes, and which effects to carry out once the writes are committed.
// [Resolve] gives the one record of a slot that a consumer should see, [Delta]
// compares what is wanted with what is there, [Rollout] leads a deployment
// from one definition to the next, and [RestartPolicy] knows when a crashed
// instance starts again.
//
// The usual life of an instance is: CreateMissing makes it UNCLAIMED and asks
// for an auction; the winning cell sends Claim (CLAIMED) and, once the
// instance is healthy, Start (RUNNING); Crash puts it back to UNCLAIMED at
// once or, after too many crashes, to CRASHED until convergence sends
// Restart.
package lrp
