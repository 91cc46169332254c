package auction

// Looked is how many cells and nodes of trees a placement of the batch looks
// at.
func Looked(cells []CellState, work []Item, p Policy) int64 {
	return run(cells, nil, work, &p, false).fleet.looked
}
