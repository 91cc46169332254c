package lrp

import "slices"

// Delta compares the indices that a process should have, 0 … instances−1, with
// those that it has, in any order (000 §Computing ∆s). An index exists if it
// has an ORDINARY record in any state. Both results are in ascending order.
func Delta(instances int, have []int) (missing, extra []int) {
	have = slices.Compact(slices.Sorted(slices.Values(have)))
	next := 0
	for _, index := range have {
		if index < 0 || index >= instances {
			extra = append(extra, index)
			continue
		}
		for ; next < index; next++ {
			missing = append(missing, next)
		}
		next++
	}
	for ; next < instances; next++ {
		missing = append(missing, next)
	}
	return missing, extra
}
