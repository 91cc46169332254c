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
// The usual life of an instance is: [CreateMissing] makes it UNCLAIMED and asks
// for an auction; the winning cell sends [Claim] (CLAIMED) and, once the
// instance is healthy, [Start] (RUNNING); [Crash] puts it back to UNCLAIMED at
// once or, after too many crashes, to CRASHED until convergence sends
// [Restart]. The instance is named by an [InstanceKey], a guid of the cell's
// making, new for each container, and the cell's id, and each command carries
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
// A record that is CRASHED by then starts again when the policy says so, with
// the count that it has:
//
//	record, _ := lrp.Resolve(slot)
//	if policy.Restart.Next(record.CrashCount, record.Since).Due(now) {
//		decision, err := lrp.Step(slot, deployment, lrp.Restart{DefinitionID: record.DefinitionID}, now, policy)
//		…
//	}
//
// [Create] and [CreateFrom] make the deployment, as the After of a [Change]; the
// least that its [Definition] needs is a RootFS and an Action. A decision may
// bring its next version. Whoever keeps slots elsewhere than in memory commits
// Writes, Deployment and Events together, by compare-and-swap on the
// modification tags, and carries out Effects afterwards.
//
// Every change is told twice: by instance events, which say what became of each
// record and from which the slot can be rebuilt, and by group events, which say
// what a router should know. [Event.Explain] puts one into words.
//
// now must not go back from one decision about a slot to the next: new records
// take their epoch from it, and an epoch that comes again at the same key would
// let a write pass that was decided on an older record.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say otherwise:
// any number of goroutines may read one at the same time, and a caller that
// changes one keeps the others away meanwhile. The functions keep no state
// and may be called at the same time; they change none of their arguments. Only a
// [Rollout] belongs to one goroutine.
package lrp
