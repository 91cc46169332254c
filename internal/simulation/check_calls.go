package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// claimed and started judge the answer to a cell's call. before are the records
// when the cell spoke; alone says that nobody else has committed since.

func (l *ledger) claimed(key slotKey, c lrp.Claim, before []lrp.ActualLRP, alone bool, err error) error {
	refused, told := l.told(err)
	if l.closed || !told || !alone {
		return nil
	}
	mine := find(before, c.Instance)
	free := slices.ContainsFunc(before, func(r lrp.ActualLRP) bool {
		return r.Presence == lrp.Ordinary && r.State == lrp.Unclaimed && r.DefinitionID == c.DefinitionID
	})
	var want bool // refused
	switch {
	case mine != nil && mine.Presence == lrp.Suspect:
		var known bool
		if want, known = l.isReplaced(before, mine); !known {
			return nil
		}
	case mine != nil && mine.Presence == lrp.Evacuating:
		want = true
	default:
		want = mine == nil && !free
	}
	return l.judge(key, "Claim", before, refused, want, err)
}

func (l *ledger) started(key slotKey, c lrp.Start, before []lrp.ActualLRP, alone bool, err error) error {
	refused, told := l.told(err)
	if l.closed || !told || !alone {
		return nil
	}
	mine := find(before, c.Instance)
	switch {
	case mine != nil && mine.Presence == lrp.Suspect:
		want, known := l.isReplaced(before, mine)
		if !known {
			return nil
		}
		return l.judge(key, "Start", before, refused, want, err)
	case !another(before, c.Instance) && slices.ContainsFunc(before, func(r lrp.ActualLRP) bool { return r.Presence == lrp.Ordinary && r.DefinitionID == c.DefinitionID }):
		return l.judge(key, "Start", before, refused, false, err) // it is alive, and no other is
	case slices.ContainsFunc(before, func(r lrp.ActualLRP) bool {
		return r.Presence == lrp.Ordinary && stays(&r) && r.DefinitionID == c.DefinitionID && r.InstanceKey != c.Instance
	}):
		return l.judge(key, "Start", before, refused, mine == nil || mine.Presence != lrp.Ordinary, err)
	}
	return nil
}

// isReplaced reports whether an ORDINARY instance runs that replaces a suspect. That
// is known unless it depends on which of two clocks is asked.
func (l *ledger) isReplaced(records []lrp.ActualLRP, suspect *lrp.ActualLRP) (replaced, known bool) {
	by := func(at time.Time) bool {
		return slices.ContainsFunc(records, func(r lrp.ActualLRP) bool {
			return r.Presence == lrp.Ordinary && l.replaces(&r, suspect, at)
		})
	}
	early, late := by(l.earliest()), by(l.latest())
	return late, early == late
}

// removed judges that a cell was told that its instance is taken for gone.
func (l *ledger) removed(key slotKey, instance lrp.InstanceKey, alone bool) error {
	s := l.slot(key.guid, key.index)
	if l.closed || !alone || find(s.records, instance) == nil {
		return nil
	}
	return checkAnswers.violated("%s/%d: cell %s has said that its instance is gone, and there is %+v", key.guid, key.index, instance.CellID, s.records)
}

// told reports whether err is an answer, and whether that is a refusal.
func (l *ledger) told(err error) (refused, told bool) {
	var t *lrp.TransitionError
	refused = errors.As(err, &t)
	return refused, refused || err == nil
}

func (l *ledger) judge(key slotKey, command string, before []lrp.ActualLRP, refused, want bool, err error) error {
	if refused == want {
		return nil
	}
	return checkAnswers.violated("%s/%d: %s is answered with %v, refused %t, want %t: %+v", key.guid, key.index, command, err, refused, want, before)
}

func find(records []lrp.ActualLRP, i lrp.InstanceKey) *lrp.ActualLRP {
	for j := range records {
		if records[j].InstanceKey == i {
			return &records[j]
		}
	}
	return nil
}

// finds judges that a cell has looked at an index where it has this container: one
// that does not run yet, and of which there is no record, is gone at the next look.
// A cell that evacuates says so to the control plane first, and deletes it only after
// an answer. The backend of a real cell may refuse to delete it, so only models are
// judged. A model reads an index for one of its containers there, and nobody can tell
// for which, so the first look counts only if it has no other.
func (w *World) finds(m machine, c *executor.Container, s lrp.Slot) error {
	_, isModel := m.(*model)
	starts := c.State == executor.Initializing || c.State == executor.Created
	if !isModel || !starts || len(s.Records) > 0 {
		delete(w.unwanted, c.GUID)
		return nil
	}
	first, known := w.unwanted[c.GUID]
	if !known {
		if !slices.ContainsFunc(m.holds(), func(o executor.Container) bool { return o.GUID != c.GUID && workOf(&o) == workOf(c) }) {
			w.unwanted[c.GUID] = w.random.step
		}
		return nil
	}
	if first == w.random.step {
		return nil
	}
	return checkUnwanted.violated("%s/%d: cell %s found in step %d that there is no record of %s, which starts, and still has it", s.ProcessGUID, s.Index, m.presence().CellID, first, c.GUID)
}

// excuses lets a cell keep a container for another look if it got no answer when it
// said that it gives the instance up.
func (w *World) excuses(i lrp.InstanceKey, err error) {
	if _, told := w.ledger.told(err); !told {
		delete(w.unwanted, i.InstanceGUID)
	}
}

func ordinaryRuns(records []lrp.ActualLRP, than lrp.InstanceKey) bool {
	return slices.ContainsFunc(records, func(r lrp.ActualLRP) bool {
		return r.Presence == lrp.Ordinary && r.State == lrp.Running && r.InstanceKey != than
	})
}

// handed judges work that is handed to a cell, by what the cell said last, and
// what it answers: a cell that evacuates or is cordoned takes nothing.
func handed(said auction.CellState, work auction.Work) error {
	if said.Evacuating || said.Cordoned {
		return checkAuction.violated("cell %s has said that it evacuates (%t) or is cordoned (%t), and gets %d items", work.CellID, said.Evacuating, said.Cordoned, len(work.Items))
	}
	left := said.Remaining
	for _, item := range work.Items {
		left.MemoryMB, left.DiskMB, left.Containers = left.MemoryMB-item.MemoryMB, left.DiskMB-item.DiskMB, left.Containers-1
	}
	if left.MemoryMB < 0 || left.DiskMB < 0 || left.Containers < 0 {
		return checkAuction.violated("cell %s said that it has room for %+v, and gets %d items, which leaves %+v", work.CellID, said.Remaining, len(work.Items), left)
	}
	return nil
}

// kept judges that a cell has no more on it than it has room for, even if it was
// wrong about its room before.
func kept(truth auction.CellState) error {
	if r := truth.Remaining; r.MemoryMB < 0 || r.DiskMB < 0 || r.Containers < 0 {
		return checkAuction.violated("cell %s has taken more than it has room for, which leaves %+v", truth.ID, r)
	}
	return nil
}

// taken judges how many containers a cell has made for the work it was given.
func taken(cellID string, evacuates, cordoned bool, containers int) error {
	if (evacuates || cordoned) && containers > 0 {
		return checkAuction.violated("cell %s evacuates (%t) or is cordoned (%t), and takes %d items", cellID, evacuates, cordoned, containers)
	}
	return nil
}
