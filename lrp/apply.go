package lrp

// Apply returns the slot after the decision's writes. A store does the same by
// key and tag; tests, simulations and programs that keep slots in memory need
// no more than this.
func (s Slot) Apply(d Decision) Slot {
	out := Slot{ProcessGUID: s.ProcessGUID, Index: s.Index}
	for i := range s.Records {
		if w := writeOf(d.Writes, &s.Records[i]); w == nil {
			out.Records = append(out.Records, s.Records[i])
		} else if w.After != nil {
			out.Records = append(out.Records, *w.After)
		}
	}
	for _, w := range d.Writes {
		if w.Before == nil {
			out.Records = append(out.Records, *w.After)
		}
	}
	SortRecords(out.Records)
	return out
}

// writeOf returns the write that replaces r, or nil.
func writeOf(writes []Write, r *ActualLRP) *Write {
	for i := range writes {
		if b := writes[i].Before; b != nil && CompareRecords(b, r) == 0 {
			return &writes[i]
		}
	}
	return nil
}
