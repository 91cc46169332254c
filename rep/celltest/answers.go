package celltest

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// answerCases are about what the control plane asks a cell.
var answerCases = []testCase{
	{sentence: "a cordoned cell keeps what it has and takes no work", check: ifCordoned(func(f *fixture, c rep.Cordoner) {
		r := f.run()
		f.must(f.bbs.UpdateDeployment(f.ctx, process, lrp.Update{Instances: pointer(2)}))
		f.must(c.Cordon(f.ctx, true))
		item := f.instance(1)
		f.rejected(f.offer(item), item.Key)
		f.Pass(soon)
		if s := f.state(); !s.Cordoned || !f.holds(r.Key) {
			f.Errorf("it says %+v", s)
		}
		f.must(c.Cordon(f.ctx, false))
		if f.state().Cordoned {
			f.Error("it says that it is cordoned")
		}
		f.perform(item)
	})},
	{sentence: "State lists what the cell has from the reservation on, and takes it from what remains", check: func(f *fixture) {
		f.desire(1)
		item, before := f.instance(0), f.state()
		if before.ID != cellID || before.Remaining.MemoryMB > before.Total.MemoryMB {
			f.Errorf("an empty cell says %+v", before)
		}
		f.perform(item)
		after := f.state()
		if !slices.Equal(after.LRPs, []lrp.Key{item.Key.LRP()}) || !after.Total.Equal(before.Total) {
			f.Errorf("after Perform the cell says %+v", after)
		}
		left := before.Remaining.Minus(auction.Capacity{MemoryMB: size.MemoryMB, DiskMB: size.DiskMB, Containers: 1})
		left.PIDs = after.Remaining.PIDs // which every cell counts as it likes
		if !after.Remaining.Equal(left) {
			f.Errorf("%+v remain, want %+v", after.Remaining, left)
		}
	}},
	{sentence: "work for another cell is refused, and none of it begins", check: func(f *fixture) {
		f.desire(1)
		item := f.instance(0)
		rejections, err := f.Cell.Perform(f.ctx, auction.Work{CellID: "cell-9", Items: []auction.Item{item}})
		f.must(err)
		f.rejected(rejections, item.Key)
		if !f.empty() {
			f.Error("the cell has taken it")
		}
	}},
	{sentence: "work without room is refused by its key with a reason, and the rest is taken", check: func(f *fixture) {
		f.desire(2)
		small, large := f.instance(0), f.instance(1)
		large.MemoryMB = f.state().Total.MemoryMB + 1
		f.rejected(f.offer(large, small), large.Key)
		f.running()
		if f.holds(large.Key.LRP()) {
			f.Error("the cell has what it refused")
		}
	}},
	{sentence: "work that the cell has already is neither refused nor begun twice", check: func(f *fixture) {
		f.desire(1)
		f.perform(f.instance(0))
		f.perform(f.instance(0))
		r := f.running()
		f.perform(f.instance(0))
		f.Pass(soon)
		f.begunOnce(r.InstanceGUID)
		if keys := f.state().LRPs; len(keys) != 1 {
			f.Errorf("the cell has %v", keys)
		}
	}},
	{sentence: "StopLRP of what the cell does not have is not an error and stops nothing", check: func(f *fixture) {
		r := f.run()
		another, elsewhere := r.Key, r.InstanceKey
		another.Index, elsewhere.CellID = 7, other.CellID
		f.must(f.Cell.StopLRP(f.ctx, r.Key, lrp.InstanceKey{InstanceGUID: "none", CellID: cellID}))
		f.must(f.Cell.StopLRP(f.ctx, another, r.InstanceKey))
		f.must(f.Cell.StopLRP(f.ctx, r.Key, elsewhere))
		f.Pass(soon)
		if now, runs := f.record(lrp.Running, lrp.Ordinary, cellID); !runs || now.InstanceKey != r.InstanceKey || !f.holds(r.Key) {
			f.Errorf("the instance has ended\n%s", f.bbs.account())
		}
	}},
	{sentence: "CancelTask of what the cell does not have is not an error and ends nothing", check: func(f *fixture) {
		t := f.runTask()
		f.must(f.Cell.CancelTask(f.ctx, job, "none"))
		f.must(f.Cell.CancelTask(f.ctx, "another", t.InstanceGUID))
		f.Pass(soon)
		if !slices.Contains(f.state().Tasks, job) {
			f.Errorf("the task has ended\n%s", f.bbs.account())
		}
	}},
	{sentence: "an Inventory lists a container from its reservation until its end is reported", check: func(f *fixture) {
		c, tells := f.Cell.(auction.InventoryClient)
		if !tells {
			f.Log("left out: the cell is not an auction.InventoryClient")
			return
		}
		f.desire(1)
		f.perform(f.instance(0))
		if list := f.inventory(); len(list) != 1 {
			f.Errorf("after Perform it lists %q, want one container", list)
		}
		r := f.running()
		f.bbs.set(func() { f.bbs.down = true })
		f.End(f, r.InstanceGUID, true)
		f.Pass(10 * time.Second)
		i, err := c.Inventory(f.ctx)
		f.must(err)
		if !slices.Equal(i.Containers, []string{r.InstanceGUID}) {
			f.Errorf("while the end cannot be reported it lists %q", i.Containers)
		}
		f.bbs.set(func() { f.bbs.down = false })
		f.until("the cell is empty", f.empty)
	}},
}

// rejected fails unless one item was refused, with a reason.
func (f *fixture) rejected(rejections []auction.Rejection, key auction.Key) {
	f.Helper()
	if len(rejections) != 1 || rejections[0].Key != key || rejections[0].Reason == "" {
		f.Errorf("the cell refuses %+v, want %v with a reason", rejections, key)
	}
}
