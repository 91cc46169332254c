package storage

import (
	"iter"

	"github.com/diegosdk/diego/lrp"
)

// SlotsOf groups records, ordered as a store lists them, by their slots. An
// error comes before the slot at which it occurred; that slot may lack a
// record.
func SlotsOf(records iter.Seq2[lrp.ActualLRP, error]) iter.Seq2[lrp.Slot, error] {
	return func(yield func(lrp.Slot, error) bool) {
		var slot lrp.Slot
		for r, err := range records {
			if err != nil {
				if !yield(lrp.Slot{}, err) {
					return
				}
				continue
			}
			if len(slot.Records) > 0 && (slot.ProcessGUID != r.ProcessGUID || slot.Index != r.Index) {
				if !yield(slot, nil) {
					return
				}
				slot.Records = nil
			}
			slot.ProcessGUID, slot.Index = r.ProcessGUID, r.Index
			slot.Records = append(slot.Records, r)
		}
		if len(slot.Records) > 0 {
			yield(slot, nil)
		}
	}
}
