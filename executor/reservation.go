package executor

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
