package diego

import (
	"context"
	"iter"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// ActualLRPs are the records that f wants: all there are at each index, ordered
// by process guid, index, definition and presence. Most consumers want
// [BBS.ResolvedLRPs].
func (b *BBS) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return b.o.Store.ActualLRPs(ctx, f)
}

// ResolvedLRPs are the instances as consumers should see them: one for each
// index, whatever is recorded there besides. f chooses among these.
func (b *BBS) ResolvedLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	// Whole slots are read: a record that f does not want may hide one that it
	// does.
	all := storage.ActualLRPFilter{ProcessGUIDs: f.ProcessGUIDs, Indices: f.Indices, Domains: f.Domains}
	return func(yield func(lrp.ActualLRP, error) bool) {
		for slot, err := range slotsOf(b.o.Store.ActualLRPs(ctx, all)) {
			if err != nil {
				if !yield(lrp.ActualLRP{}, err) {
					return
				}
				continue
			}
			if r, ok := lrp.Resolve(slot); ok && f.Match(&r) && !yield(r, nil) {
				return
			}
		}
	}
}

// Slot is everything recorded at one index, which may be nothing. Unlike the
// lists it costs the same however many instances the process has.
func (b *BBS) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	slot, _, err := b.o.Store.Slot(ctx, processGUID, index)
	return slot, err
}

// Retire stops what runs at an index; what is desired stays, so it starts
// again (002 §Killing ActualLRPs). Without a definition id the active
// definition's instance is meant. The error wraps lrp.ErrCannotBeRetired if
// there is nothing to retire.
func (b *BBS) Retire(ctx context.Context, processGUID string, index int, definitionID string) error {
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
	_, err = b.stepSlot(ctx, processGUID, index, command)
	return err
}
