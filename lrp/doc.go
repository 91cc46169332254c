// Package lrp holds the rules for long-running processes as pure functions.
//
// A [Deployment] says what should run: how many instances, of which
// definitions; a [DesiredLRP] is its projection on the active definition. An
// [ActualLRP] is the record of one instance. Everything recorded at one index
// of one process is a [Slot], and only [Step] changes it:
//
//	decision, err := lrp.Step(slot, deployment, command, now, policy)
//
// A [Decision] is a value: which records to write, which events to publish, and
// which effects to carry out after the commit. [Resolve] returns the one record
// of a slot that a consumer should see. [Delta] compares what is wanted with what
// exists. [Rollout] leads a deployment from one definition to the next.
// [RestartPolicy] decides when a crashed instance starts again.
//
// The usual life of an instance is: [CreateMissing] makes it UNCLAIMED and
// requests an auction. The winning cell sends [Claim] (CLAIMED) and, once the
// instance is healthy, [Start] (RUNNING). [Crash] puts it back to UNCLAIMED at
// once or, after too many crashes, to CRASHED until convergence sends [Restart].
// Each command of a cell carries the [InstanceKey]: the cell's id, and a guid
// that the cell makes for each container. The example of Step plays such a life.
//
// [Create] and [CreateFrom] make a deployment; its [Definition] needs at least a
// RootFS and an Action. Commit the Writes, Deployment and Events of a decision
// together, by compare-and-swap on the modification tags, and carry out Effects
// afterwards. [Slot.Apply] does it for a slot in memory.
//
// Every change is reported twice. Instance events say what happened to each
// record; a slot can be rebuilt from them. Group events say what a router should
// know. [Event.Explain] describes an event in words.
//
// The time that is passed to Step must not go back between two decisions about a
// slot. New records take their epoch from it. If two records had the same key and
// epoch, one after the other, a write that was decided on the first could replace
// the second.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say
// otherwise: any number of goroutines may read one at the same time, but nobody
// else may use it while it is being changed. The functions keep no state and
// may be called concurrently; they do not change their arguments. A [Rollout]
// belongs to one goroutine.
package lrp
