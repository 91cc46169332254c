package celltest

import (
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// instanceCases are about what a cell owes the BBS for an instance.
var instanceCases = []testCase{
	{sentence: "an instance is claimed before its work begins, and started once it runs", check: func(f *fixture) {
		begun := map[rep.Step]int{rep.ClaimLRP: 0, rep.StartLRP: 1}
		f.bbs.set(func() {
			f.bbs.before = func(c call) {
				if n, known := begun[c.step]; known && f.Begun(c.instance) != n {
					f.Errorf("its work has begun %d times when the cell asks to %v, want %d", f.Begun(c.instance), c.step, n)
				}
			}
		})
		r := f.run()
		claims, starts := f.accepted(rep.ClaimLRP), f.accepted(rep.StartLRP)
		if len(claims) != 1 || len(starts) != 1 || claims[0].instance != r.InstanceGUID || starts[0].instance != r.InstanceGUID {
			f.Errorf("want one claim and one start by %s\n%s", r.InstanceGUID, f.bbs.account())
		}
		f.begunOnce(r.InstanceGUID)
	}},
	{sentence: "after a claim that is refused the work never begins, and the reservation goes", check: func(f *fixture) {
		f.desire(1)
		f.perform(f.instance(0))
		f.onCall(rep.ClaimLRP, func(call) { f.startElsewhere() })
		f.until("the cell is empty", f.empty)
		f.neverBegun(rep.ClaimLRP)
		f.never(rep.StartLRP)
	}},
	{sentence: "after a start that is refused the instance ends", check: func(f *fixture) {
		f.desire(1)
		f.perform(f.instance(0))
		f.onCall(rep.StartLRP, func(call) { f.startElsewhere() })
		f.until("the cell reports that the instance runs", func() bool { return len(f.all(rep.StartLRP)) > 0 })
		f.within(soon, "the cell is empty", f.empty)
		if _, runs := f.record(lrp.Running, lrp.Ordinary, other.CellID); !runs {
			f.Errorf("the other instance does not run any more: %+v", f.records())
		}
	}},
	{sentence: "an instance that fails is reported as crashed, once and with a reason", check: func(f *fixture) {
		r := f.run()
		f.End(f, r.InstanceGUID, true)
		f.until("the cell is empty", f.empty)
		if crashes := f.accepted(rep.CrashLRP); len(crashes) != 1 || crashes[0].instance != r.InstanceGUID || len(f.accepted(rep.RemoveLRP)) != 0 {
			f.Errorf("want one crash of %s and no removal\n%s", r.InstanceGUID, f.bbs.account())
		}
		if records := f.records(); len(records) != 1 || records[0].CrashCount != 1 || records[0].CrashReason == "" {
			f.Errorf("want one crash with a reason: %+v", records)
		}
	}},
	{sentence: "an end that could not be reported is reported later", check: func(f *fixture) {
		r := f.run()
		f.bbs.set(func() { f.bbs.down = true })
		f.End(f, r.InstanceGUID, true)
		f.Pass(20 * time.Second)
		f.bbs.set(func() { f.bbs.down = false })
		f.until("the crash is reported", func() bool { return len(f.accepted(rep.CrashLRP)) > 0 })
		if records := f.records(); len(records) != 1 || records[0].CrashCount != 1 {
			f.Errorf("want one crash: %+v", records)
		}
	}},
	{sentence: "an instance that is stopped ends and is removed, and is not a crash", check: func(f *fixture) {
		r := f.run()
		f.must(f.Cell.StopLRP(f.ctx, r.Key, r.InstanceKey))
		f.until("the cell is empty", f.empty)
		f.never(rep.CrashLRP)
		if removed := f.accepted(rep.RemoveLRP); len(removed) != 1 || removed[0].instance != r.InstanceGUID {
			f.Errorf("want one removal of %s\n%s", r.InstanceGUID, f.bbs.account())
		}
	}},
	{sentence: "a record of the cell without a container is removed", check: func(f *fixture) {
		f.desire(1)
		ghost := lrp.InstanceKey{InstanceGUID: "ghost", CellID: cellID}
		f.must(f.bbs.BBS.ClaimLRP(f.ctx, process, 0, lrp.Claim{DefinitionID: f.instance(0).DefinitionID, Instance: ghost}))
		f.until("the record is removed", func() bool { return len(f.accepted(rep.RemoveLRP)) > 0 })
		if _, still := f.record(lrp.Claimed, lrp.Ordinary, cellID); still {
			f.Errorf("the record is still there: %+v", f.records())
		}
	}},
	{sentence: "an instance that runs and has no record is reported again", check: func(f *fixture) {
		r := f.run()
		f.must(f.bbs.BBS.RemoveLRP(f.ctx, process, 0, lrp.Remove{DefinitionID: r.DefinitionID, Instance: r.InstanceKey}))
		if again := f.running(); again.InstanceKey != r.InstanceKey {
			f.Errorf("%v runs, want %v", again.InstanceKey, r.InstanceKey)
		}
		f.begunOnce(r.InstanceGUID)
	}},
	{sentence: "an instance that was replaced while its cell was missing ends", check: func(f *fixture) {
		f.run()
		f.losesCell()
		f.startElsewhere()
		f.until("the cell is empty", f.empty)
		if _, runs := f.record(lrp.Running, lrp.Ordinary, other.CellID); !runs || len(f.records()) != 1 {
			f.Errorf("want only the replacement: %+v", f.records())
		}
	}},
	{sentence: "reports of an instance whose requests are lost are made again", check: lostReports(requestLost)},
	{sentence: "reports of an instance whose answers are lost do no harm", check: lostReports(answerLost)},
}

// lostReports lets an instance crash and another one be stopped, while the first
// call of each kind is lost.
func lostReports(l loss) func(*fixture) {
	return func(f *fixture) {
		f.bbs.set(func() {
			for _, step := range []rep.Step{rep.ClaimLRP, rep.StartLRP, rep.CrashLRP, rep.RemoveLRP} {
				f.bbs.lose[step] = l
			}
		})
		r := f.run()
		f.begunOnce(r.InstanceGUID)
		f.End(f, r.InstanceGUID, true)
		f.until("the crash is recorded", func() bool { _, waits := f.record(lrp.Unclaimed, lrp.Ordinary, ""); return waits })
		f.until("the cell is empty", f.empty)
		if records := f.records(); len(records) != 1 || records[0].CrashCount != 1 {
			f.Errorf("want one crash: %+v\n%s", records, f.bbs.account())
		}

		f.perform(f.instance(0))
		r = f.running()
		f.must(f.Cell.StopLRP(f.ctx, r.Key, r.InstanceKey))
		f.until("the record is removed", func() bool { _, still := f.record(lrp.Running, lrp.Ordinary, cellID); return !still })
		f.until("the cell is empty", f.empty)
	}
}
