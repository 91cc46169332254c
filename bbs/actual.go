package bbs

import (
	"context"
	"iter"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// ActualLRPs lists the records that f wants: all at each index, ordered by
// process guid, index, definition and presence. Most consumers want
// [BBS.ResolvedLRPs].
func (b *BBS) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return b.labelledRecords(ctx, f, selected(ctx, b, f, b.records))
}

// records lists the records that f wants. For one index it reads only the slot,
// unless a record there cannot be decoded: then it reads a list, which still
// returns the others.
func (b *BBS) records(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	list := b.o.Store.ActualLRPs(ctx, f)
	if len(f.ProcessGUIDs) != 1 || len(f.Indices) != 1 {
		return list
	}
	return func(yield func(lrp.ActualLRP, error) bool) {
		slot, _, err := b.o.Store.Slot(ctx, f.ProcessGUIDs[0], f.Indices[0])
		switch {
		case isCorrupt(err):
			list(yield)
			return
		case err != nil:
			yield(lrp.ActualLRP{}, err)
			return
		}
		for _, r := range slot.Records {
			if f.Match(&r) && !yield(r, nil) {
				return
			}
		}
	}
}

// ResolvedLRPs lists the instances as consumers should see them: one for each
// index, regardless of its other records. f selects among these.
func (b *BBS) ResolvedLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	match := f.Matcher()
	return b.labelledRecords(ctx, f, func(yield func(lrp.ActualLRP, error) bool) {
		for slot, err := range selected(ctx, b, f, b.slots) {
			if err != nil {
				if !yield(lrp.ActualLRP{}, err) {
					return
				}
				continue
			}
			if r, ok := lrp.Resolve(slot); ok && match(&r) && !yield(r, nil) {
				return
			}
		}
	})
}

// ActualLRPGroups lists what routers should know about each definition at each
// index: the instance, and the one that leaves its cell (003 §Corresponding
// changes to ActualLRPs). The groups are ordered by process guid, index and
// definition. A group is listed if f wants one of its records.
func (b *BBS) ActualLRPGroups(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.Group, error] {
	match := f.Matcher()
	return b.labelledGroups(ctx, f, func(yield func(lrp.Group, error) bool) {
		for slot, err := range selected(ctx, b, f, b.slots) {
			if err != nil {
				if !yield(lrp.Group{}, err) {
					return
				}
				continue
			}
			for _, g := range slot.Groups() {
				wanted := g.Instance != nil && match(g.Instance) || g.Evacuating != nil && match(g.Evacuating)
				if wanted && !yield(g, nil) {
					return
				}
			}
		}
	})
}

// ActualLRPGroup is the group of the active definition at an index, or of all
// definitions if the active one has no record there, without labels. The error
// wraps lrp.ErrNotFound, and so storage.ErrNotFound, if no definition has one.
func (b *BBS) ActualLRPGroup(ctx context.Context, processGUID string, index int) (lrp.Group, error) {
	slot, d, err := b.o.Store.Slot(ctx, processGUID, index)
	if err != nil {
		return lrp.Group{}, err
	}
	g := slot.ActiveGroup(d)
	if g == (lrp.Group{}) {
		return g, &storage.NotFoundError{Key: storage.ActualLRPKey(&lrp.ActualLRP{Key: lrp.Key{ProcessGUID: processGUID, Index: index}})}
	}
	return g, nil
}

// slots lists the slots of which f may want a record, each whole: a record that
// f does not want may hide one that it does.
func (b *BBS) slots(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.Slot, error] {
	whole := storage.ActualLRPFilter{ProcessGUIDs: f.ProcessGUIDs, Indices: f.Indices}
	if len(f.Domains) == 0 || len(f.ProcessGUIDs) > 0 {
		return storage.SlotsOf(b.records(ctx, whole))
	}
	// A process that has come back in another domain has records in both, so the
	// domain tells only which processes to read.
	return func(yield func(lrp.Slot, error) bool) {
		const most = 500 // processes at a time
		read := func(guids []string) bool {
			whole.ProcessGUIDs = guids
			for slot, err := range storage.SlotsOf(b.records(ctx, whole)) {
				if !isCorrupt(err) && !yield(slot, err) { // the list below yields what is corrupt
					return false
				}
			}
			return true
		}
		var guids []string
		for r, err := range b.records(ctx, storage.ActualLRPFilter{Indices: f.Indices, Domains: f.Domains}) {
			switch {
			case err != nil:
				if !yield(lrp.Slot{}, err) {
					return
				}
				continue
			case len(guids) > 0 && guids[len(guids)-1] == r.ProcessGUID:
				continue
			case len(guids) == most:
				if !read(guids) {
					return
				}
				guids = nil
			}
			guids = append(guids, r.ProcessGUID)
		}
		if len(guids) > 0 {
			read(guids)
		}
	}
}

// Slot returns everything recorded at one index, which may be nothing.
func (b *BBS) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	if err := checkIndex(index); err != nil {
		return lrp.Slot{}, err
	}
	slot, _, err := b.o.Store.Slot(ctx, processGUID, index)
	return slot, err
}

// Retire stops the instance at an index; the desired state stays, so it starts
// again (002 §Killing ActualLRPs). Without a definition id it concerns the
// active definition's instance. The error wraps lrp.ErrCannotBeRetired if there
// is nothing to retire. After the call has succeeded, the cell is asked once to
// stop the instance. A repetition under the same request id does not ask again,
// because another instance may run by then.
//
// A BBS without Effects refuses Retire with an error that wraps lrp.ErrRefused:
// no record would tell the leader to ask the cell.
func (b *BBS) Retire(ctx context.Context, processGUID string, index int, definitionID string) error {
	if b.o.Effects == nil {
		return b.answer("Retire", &lrp.RefusedError{
			ProcessGUID: processGUID, Why: "this BBS has no Effects, so it cannot ask a cell to stop an instance; ask that of a control plane, or of one over HTTP",
		})
	}
	slot, _, err := b.o.Store.Slot(ctx, processGUID, index)
	if err != nil {
		return b.answer("Retire", err)
	}
	missing, err := b.missingCells(ctx, []lrp.Slot{slot})
	if err != nil {
		return b.answer("Retire", err)
	}
	command := lrp.Retire{DefinitionID: definitionID}
	if len(missing) > 0 {
		command.MissingCell = missing[0]
	}
	_, err = b.stepSlot(ctx, "Retire", processGUID, index, command)
	return err
}
