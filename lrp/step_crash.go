package lrp

import "github.com/diegosdk/diego/executor"

// What a crash does (000 §Crashes). RestartPolicy says when a crashed instance
// starts again.

func (x *draft) crashed(c Crash) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	reason := executor.CutReason(c.Reason)
	x.cause.Detail = reason
	switch i, left := x.leave(c.Instance); {
	case i != none:
		x.crashOrRestart(i, reason)
		return nil
	case left:
		return nil // its replacement is on its way already
	}
	if x.anyOrdinary() {
		return x.refuse(ErrCannotBeCrashed, x.target(c.DefinitionID, Running), "it is not this instance's record")
	}
	x.crashUnrecorded(c.DefinitionID, reason)
	return nil
}

// crashUnrecorded handles a crash at a desired index without an ORDINARY
// record: the record was lost, and the known facts are recorded again.
func (x *draft) crashUnrecorded(definition, reason string) {
	if !x.desired() || x.anyOrdinary() {
		return
	}
	if _, known := x.d.Definitions[definition]; !known {
		definition = x.d.restartDefinition(definition)
	}
	x.crashOrRestart(x.add(definition, x.d.Domain, Claimed), reason)
}

// crashOrRestart is the specification's RepCrashDance (000 §Crashes): the count
// before the crash decides whether the instance restarts at once.
func (x *draft) crashOrRestart(i int, reason string) {
	r := &x.records[i]
	x.crash = crash{happened: true, after: none}
	if r.from != none {
		x.crash.before = &x.slot.Records[r.from]
	}
	count := x.policy.Restart.Count(&r.ActualLRP, x.now)
	r.CrashCount, r.CrashReason = count+1, reason
	switch {
	case !x.desired():
		x.remove(i)
	case x.policy.Restart.AtOnce(count):
		x.crash.after = x.restart(i)
	default:
		x.setState(i, Crashed)
		x.crash.after = i
		x.judge(i)
	}
}

func (x *draft) restartCrashed(c Restart) {
	i := x.of(c.DefinitionID, Ordinary)
	if i == none || x.records[i].State != Crashed || !x.desired() {
		return
	}
	if r := &x.records[i]; x.policy.Restart.Next(r.CrashCount, r.Since).Due(x.now) {
		x.restart(i)
	}
}
