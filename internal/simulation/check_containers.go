package simulation

import (
	"context"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A residence is where an instance ran when somebody last looked.
type residence struct {
	machine machine
	work    string
}

// dooms notes a reason that an instance's own cell knows for the end of its container.
func (w *World) dooms(instanceGUID string) { w.doomed[instanceGUID] = true }

// doomsRefused does so for an instance whose call the control plane has refused, if the
// refusal reached the cell.
func (w *World) doomsRefused(i lrp.InstanceKey, err error) error {
	if refused, _ := w.ledger.told(err); refused {
		w.dooms(i.InstanceGUID)
	}
	return err
}

// doomsReplaced does so for the instances of a cell that has just read that another
// instance runs at their index.
func (w *World) doomsReplaced(cellID string, c *executor.Container, s lrp.Slot) {
	if ordinaryRuns(s.Records, lrp.InstanceKey{InstanceGUID: c.GUID, CellID: cellID}) {
		w.dooms(c.GUID)
	}
}

// loses forgets what ran on a machine that was switched off.
func (w *World) loses(m machine) {
	for guid, r := range w.resides {
		if r.machine == m {
			delete(w.resides, guid)
		}
	}
}

// watchContainers makes sure that no cell has ended a container of an instance without
// a reason that it knew.
func (w *World) watchContainers() error {
	ran := w.resides
	w.resides = make(map[string]residence, len(ran))
	for _, m := range w.cells {
		for _, c := range m.lists() {
			if c.State == executor.Running && c.Tags != nil && !isTask(&c) {
				w.resides[c.GUID] = residence{m, workOf(&c)}
			}
		}
	}
	for guid, r := range ran {
		h, isReal := r.machine.(*host)
		if w.resides[guid].machine == nil && !w.doomed[guid] && !(isReal && h.overdue()) {
			return checkKeeps.violated("cell %s has ended %s, which ran as %s, and nobody has asked for that", r.machine.presence().CellID, guid, r.work)
		}
	}
	return nil
}

// roomy judges that a cell has as much room as its containers leave. One that somebody
// has brought may count otherwise.
func roomy(s auction.CellState, m machine) error {
	if _, brought := m.(*guest); brought {
		return nil
	}
	list := m.lists()
	left := s.Total
	for i := range list {
		r := &list[i].Resources
		left.MemoryMB, left.DiskMB, left.Containers = left.MemoryMB-r.MemoryMB, left.DiskMB-r.DiskMB, left.Containers-1
	}
	if got := s.Remaining; got.MemoryMB != left.MemoryMB || got.DiskMB != left.DiskMB || got.Containers != left.Containers {
		return checkRoom.violated("cell %s says that it has room for %+v, and its %d containers leave %+v", s.ID, got, len(list), left)
	}
	return nil
}

// rooms judges the room of all cells that work.
func (w *World) rooms(ctx context.Context) error {
	for _, m := range w.cells {
		if s, err := m.State(ctx); err == nil {
			if err := roomy(s, m); err != nil {
				return err
			}
		}
	}
	return nil
}
