package celltest

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// evacuationCases are about a cell that is told to empty itself.
var evacuationCases = []testCase{
	{sentence: "an evacuating cell says so and refuses work", check: func(f *fixture) {
		f.run()
		f.must(f.bbs.UpdateDeployment(f.ctx, process, lrp.Update{Instances: pointer(2)}))
		f.must(f.Evacuate(f.ctx))
		if !f.state().Evacuating {
			f.Errorf("it says %+v", f.state())
		}
		item := f.instance(1)
		f.rejected(f.offer(item), item.Key)
	}},
	{sentence: "a running instance stays until its replacement runs", check: staysUntilReplaced(arrives)},
	{sentence: "it stays though the request of its evacuation is lost", check: staysUntilReplaced(requestLost)},
	{sentence: "it stays though the answer to its evacuation is lost", check: staysUntilReplaced(answerLost)},
	{sentence: "an instance that has not started is given up", startsIn: 10 * time.Second, check: func(f *fixture) {
		f.desire(1)
		f.perform(f.instance(0))
		f.until("the instance is claimed", func() bool { return len(f.accepted(rep.ClaimLRP)) > 0 })
		f.must(f.Evacuate(f.ctx))
		f.until("the cell is empty", f.empty)
		if len(f.accepted(rep.EvacuateClaimedLRP)) != 1 {
			f.Errorf("want one evacuation of a claimed instance\n%s", f.bbs.account())
		}
		f.never(rep.StartLRP)
	}},
	{sentence: "an instance that fails while it waits for its replacement is reported", check: func(f *fixture) {
		r := f.run()
		f.must(f.Evacuate(f.ctx))
		f.evacuating()
		f.End(f, r.InstanceGUID, true)
		f.until("the cell is empty", f.empty)
		if len(f.accepted(rep.EvacuateCrashedLRP)) != 1 {
			f.Errorf("want one crash of an evacuating instance\n%s", f.bbs.account())
		}
		if _, still := f.record(lrp.Running, lrp.Evacuating, cellID); still {
			f.Errorf("its record is still there: %+v", f.records())
		}
	}},
	{sentence: "an instance that was stopped before ends without a replacement", check: func(f *fixture) {
		r := f.run()
		f.bbs.set(func() { f.bbs.down = true })
		f.must(f.Cell.StopLRP(f.ctx, r.Key, r.InstanceKey))
		f.must(f.Evacuate(f.ctx))
		f.Pass(soon)
		f.bbs.set(func() { f.bbs.down = false })
		f.until("the cell is empty", f.empty)
		f.never(rep.CrashLRP)
		if len(f.accepted(rep.EvacuateStoppedLRP))+len(f.accepted(rep.RemoveLRP)) == 0 {
			f.Errorf("want a report of its end\n%s", f.bbs.account())
		}
	}},
	{sentence: "an instance stays where it is if the evacuation is given up", check: ifCordoned(func(f *fixture, c rep.Cordoner) {
		r := f.run()
		f.must(f.Evacuate(f.ctx))
		f.evacuating()
		f.must(c.CancelEvacuation(f.ctx))
		f.must(c.CancelEvacuation(f.ctx)) // a repetition changes nothing
		if again := f.running(); again.InstanceKey != r.InstanceKey {
			f.Errorf("%v runs, want %v", again.InstanceKey, r.InstanceKey)
		}
		f.until("its EVACUATING record is gone", func() bool { return len(f.records()) == 1 })
		f.begunOnce(r.InstanceGUID)
		if f.state().Evacuating {
			f.Error("the cell says that it evacuates")
		}
		f.must(f.bbs.UpdateDeployment(f.ctx, process, lrp.Update{Instances: pointer(2)}))
		f.perform(f.instance(1))
	})},
	{sentence: "an instance whose replacement runs ends though the evacuation is given up", check: ifCordoned(func(f *fixture, c rep.Cordoner) {
		f.run()
		f.must(f.Evacuate(f.ctx))
		f.evacuating()
		f.startElsewhere()
		f.must(c.CancelEvacuation(f.ctx))
		f.evacuated()
	})},
	{sentence: "a task runs to its end", check: func(f *fixture) {
		t := f.runTask()
		f.must(f.Evacuate(f.ctx))
		f.Pass(soon)
		if !slices.Contains(f.state().Tasks, job) {
			f.Errorf("the task has ended\n%s", f.bbs.account())
		}
		f.End(f, t.InstanceGUID, false)
		f.completed(false)
	}},
}

func staysUntilReplaced(l loss) func(*fixture) {
	return func(f *fixture) {
		f.bbs.set(func() { f.bbs.lose[rep.EvacuateRunningLRP] = l })
		r := f.run()
		f.must(f.Evacuate(f.ctx))
		f.evacuating()
		f.Pass(soon)
		if !f.holds(r.Key) {
			f.Errorf("the instance has ended before its replacement ran\n%s", f.bbs.account())
		}
		f.begunOnce(r.InstanceGUID)
		f.startElsewhere()
		f.evacuated()
	}
}

// evacuating waits until the BBS has an EVACUATING record of the instance.
func (f *fixture) evacuating() {
	f.Helper()
	f.until("the BBS has an EVACUATING record", func() bool {
		_, there := f.record(lrp.Running, lrp.Evacuating, cellID)
		return there
	})
}

// evacuated waits until nothing of the cell is left.
func (f *fixture) evacuated() {
	f.Helper()
	f.until("the cell is empty", f.empty)
	f.until("no record names the cell", func() bool {
		return !slices.ContainsFunc(f.records(), func(r lrp.ActualLRP) bool { return r.CellID == cellID })
	})
}

func pointer[T any](v T) *T { return &v }
