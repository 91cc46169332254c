// Package lrp holds the rules for long-running processes as pure functions.
//
// A [Deployment] says what should run: how many instances, of which
// definitions; a [DesiredLRP] is its projection on the active definition. An
// [ActualLRP] is the record of one instance. Everything recorded at one index
// of one process is a [Slot], and only [Step] changes it:
//
//	decision, err := lrp.Step(slot, deployment, command, now, policy)
//
// A [Decision] is a value. It says which records to write, which events to
// publish, and which effects to carry out after the commit. [Resolve] returns
// the one record of a slot that a consumer should see. [Delta] compares what is
// wanted with what exists. [Rollout] leads a deployment from one definition to
// the next. [RestartPolicy] decides when a crashed instance starts again.
//
// The usual life of an instance is: [CreateMissing] makes it UNCLAIMED and
// requests an auction. The winning cell sends [Claim] (CLAIMED) and, once the
// instance is healthy, [Start] (RUNNING). [Crash] puts it back to UNCLAIMED at
// once or, after too many crashes, to CRASHED until convergence sends
// [Restart]. An [InstanceKey] names the instance: a guid that the cell makes,
// new for each container, and the cell's id. Each command of the cell carries
// it:
//
//	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
//	me := lrp.InstanceKey{InstanceGUID: guid, CellID: "cell-1"}
//	for _, c := range []lrp.Command{
//		lrp.CreateMissing{},
//		lrp.Claim{Instance: me},
//		lrp.Start{Instance: me, NetInfo: lrp.NetInfo{Address: "10.0.0.1"}},
//		lrp.Crash{Instance: me, Reason: "exit status 1"},
//	} {
//		decision, err := lrp.Step(slot, deployment, c, now, policy) // lrp.Policy{} means the defaults
//		if err != nil { … }          // the slot is as it was
//		slot = slot.Apply(decision)  // or commit decision.Writes to a store
//		if decision.Deployment != nil {
//			deployment = decision.Deployment
//		}
//	}
//
// A record that is CRASHED starts again when the policy says so, and keeps its
// crash count:
//
//	record, _ := lrp.Resolve(slot)
//	if policy.Restart.Next(record.CrashCount, record.Since).Due(now) {
//		decision, err := lrp.Step(slot, deployment, lrp.Restart{DefinitionID: record.DefinitionID}, now, policy)
//		…
//	}
//
// [Create] and [CreateFrom] return a [Change] whose After is the new
// deployment. Its [Definition] needs at least a RootFS and an Action. A
// decision may contain the next version of the deployment. If you keep slots in
// a store, commit Writes, Deployment and Events together, by compare-and-swap
// on the modification tags, and carry out Effects afterwards.
//
// Every change is reported twice: by instance events, which say what happened
// to each record and from which the slot can be rebuilt, and by group events,
// which say what a router should know. [Event.Explain] describes an event in
// words.
//
// From one decision about a slot to the next, now must not go back. New records
// take their epoch from it. If an epoch were used again at the same key, a
// write that was decided on an older record would pass.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say
// otherwise: any number of goroutines may read one at the same time, but nobody
// else may use it while it is being changed. The functions keep no state and
// may be called concurrently; they do not change their arguments. A [Rollout]
// belongs to one goroutine.
package lrp
