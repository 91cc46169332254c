package auction

// Looked is how many cells and nodes of trees a placement of the batch looks
// at.
func Looked(cells []CellState, work []Item, p Policy) int64 {
	return run(cells, nil, work, &p, false, false).fleet.looked
}

// WithDefaults returns the options that a Runner with options o has.
func (o RunnerOptions) WithDefaults() (RunnerOptions, error) { return o.withDefaults() }

// Reason is what the placement's cell gets to know.
func (p Placement) Reason() string { return p.reason() }
