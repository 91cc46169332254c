package executor

import "time"

// A Reservation asks a cell for room for a container.
type Reservation struct {
	// GUID must not belong to another container.
	GUID      string
	Resources Resources
	// Tags say what the container is for. The map passes to the reservation.
	Tags map[string]string
}

// A Refusal says why a Reservation was refused: it lacks room
// ([*CapacityError]), it is invalid ([*ValidationError]), or its GUID is in
// use.
type Refusal struct {
	GUID string
	Err  error
}

// Work is what a reserved container is to run.
type Work struct {
	RunInfo
	// Tags are added to those of the reservation.
	Tags map[string]string
	// ImageUsername and ImagePassword are for the registry that holds RootFS.
	// They are not part of the Container, so nobody reads them from the cell.
	ImageUsername, ImagePassword string
	// Grace is the time between TERM and KILL; 0 means the cell's default.
	Grace time.Duration
}
