package lrp

import (
	"fmt"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// A PlacementReason is the kind of a PlacementError.
type PlacementReason uint8

// The reasons why an instance or a task is not placed.
const (
	// Placed is not an error.
	Placed PlacementReason = iota
	// NoCompatibleCells: no cell offers the requested root file system, volume
	// drivers and placement tags.
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

// The first two texts are the specification's (000 §Communicating Fullness).
var placementReasons = enum.Names[PlacementReason]{
	NoCompatibleCells:     "found no compatible cells",
	InsufficientResources: "insufficient resources",
	CellsUnreachable:      "no cell answered",
	TooManyStarting:       "too many instances are starting",
	RejectedByCell:        "rejected by the cell",
}

// String is the reason's text; it is empty for Placed.
func (r PlacementReason) String() string {
	if r == Placed {
		return ""
	}
	return placementReasons.Of(r)
}

// A PlacementError says why an instance was not placed. The zero value means no
// error. Its text, also in JSON, is the reason's text and, after a colon,
// Detail.
type PlacementError struct {
	Reason PlacementReason
	// Detail is what an operator needs to know besides the reason, for example
	// which resource is short and by how much. Together with the reason's text it
	// has at most executor.MaxReasonBytes; Step cuts a longer one.
	Detail string
}

// IsZero reports whether e says nothing, because there is no error.
func (e PlacementError) IsZero() bool { return e.Reason == Placed }

// String is the reason's text and, after a colon, Detail. It is empty if there is
// no error.
func (e PlacementError) String() string {
	if e.Detail == "" || e.Reason == Placed {
		return e.Reason.String()
	}
	return e.Reason.String() + ": " + e.Detail
}

// A Shortage says what a cell lacks to take an instance.
type Shortage struct {
	CellID string            `json:"cell_id"`
	Lacks  executor.Capacity `json:"lacks"`
}

// String is text such as "cell-4, lacks 12 MiB of memory".
func (s Shortage) String() string { return fmt.Sprintf("%s, lacks %v", s.CellID, s.Lacks) }

// Nearest returns the cell that lacks least of what the instance needs. It
// reads that from the end of Detail, where package auction writes it, and
// returns nil if Detail does not say it or was cut.
func (e PlacementError) Nearest() *Shortage {
	const nearest = "; the nearest, "
	at := strings.LastIndex(e.Detail, nearest)
	if at < 0 || executor.IsCut(e.Detail) {
		return nil
	}
	cellID, lacks, _ := strings.Cut(e.Detail[at+len(nearest):], ", lacks ")
	capacity, err := executor.ParseCapacity(lacks)
	if err != nil {
		return nil
	}
	return &Shortage{cellID, capacity}
}

// ParsePlacementError is the inverse of String. Text that begins with no known
// reason is an error.
func ParsePlacementError(text string) (PlacementError, error) {
	if text == "" {
		return PlacementError{}, nil
	}
	reason, detail, _ := strings.Cut(text, ": ")
	e := PlacementError{Detail: detail}
	if err := placementReasons.Unmarshal("placement_error", &e.Reason, []byte(reason)); err != nil {
		return PlacementError{}, err
	}
	return e, nil
}

// MarshalText fails on a value that has no known reason.
func (e PlacementError) MarshalText() ([]byte, error) {
	if e.Reason == Placed {
		return nil, nil
	}
	if _, err := placementReasons.Marshal("placement_error", e.Reason); err != nil {
		return nil, err
	}
	return []byte(e.String()), nil
}

// UnmarshalText accepts the texts that MarshalText makes.
func (e *PlacementError) UnmarshalText(text []byte) error {
	parsed, err := ParsePlacementError(string(text))
	if err != nil {
		return err
	}
	*e = parsed
	return nil
}

// limited is e with its text cut to executor.MaxReasonBytes.
func (e PlacementError) limited() PlacementError {
	text := executor.CutReason(e.String())
	e.Detail = strings.TrimPrefix(strings.TrimPrefix(text, e.Reason.String()), ": ")
	return e
}

// check refuses a placement error without a known reason.
func (e PlacementError) check() error {
	var v executor.Validator
	v.Check(e.Reason != Placed && e.Reason <= RejectedByCell, "placement_error", e, "a reason why nothing was placed")
	return v.Err()
}
