package lrp

// A PlacementReason is the kind of a PlacementError.
type PlacementReason uint8

// The reasons why an instance or a task is on no cell. The texts of the first
// two are the specification's (000 §Communicating Fullness).
const (
	// Placed is no error.
	Placed PlacementReason = iota
	// NoCompatibleCells: no cell offers the root file system, the volume
	// drivers and the placement tags that are asked for.
	NoCompatibleCells
	// InsufficientResources: compatible cells exist, and all are full.
	InsufficientResources
	// CellsUnreachable: no cell answered.
	CellsUnreachable
	// TooManyStarting: the limit of starts in flight is reached.
	TooManyStarting
	// RejectedByCell: the chosen cell refused the work.
	RejectedByCell
)

// A PlacementError says why an instance was not placed. The zero value is no
// error. Its text is the reason's text and, after a colon, Detail.
type PlacementError struct {
	Reason PlacementReason
	// Detail is at most 1024 bytes with the reason's text.
	Detail string
}
