package manager

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// The vocabulary of a cell is package executor's, because the rep speaks it
// without knowing this package.
type (
	// Capacity is an amount of what containers take from a cell.
	Capacity = executor.Capacity
	// CapacityError says what a cell lacks for a container.
	CapacityError = executor.CapacityError
	// Reservation asks for room for a container.
	Reservation = executor.Reservation
	// Refusal says why a Reservation was refused: with a *CapacityError, a
	// [*GUIDError] or a *executor.ValidationError.
	Refusal = executor.Refusal
	// Work is what a reserved container is to do.
	Work = executor.Work
)

// Errors for which a container is refused.
var (
	// ErrCapacity: the cell has not enough left.
	ErrCapacity = executor.ErrCapacity
	// ErrExists: the guid is in use, or its last container is still being
	// removed from the host.
	ErrExists = errors.New("the guid is in use")
	// ErrNotFound: there is no container with that guid.
	ErrNotFound = errors.New("no such container")
)

// A GUIDError says that a guid is in use, or that no container has it. It wraps
// ErrExists or ErrNotFound.
type GUIDError struct {
	GUID string
	Err  error
}

func (e *GUIDError) Error() string { return fmt.Sprintf("container %q: %v", e.GUID, e.Err) }

// Unwrap is ErrExists or ErrNotFound.
func (e *GUIDError) Unwrap() error { return e.Err }

// share is what a container takes, from its reservation to its end.
func (m *Manager) share(r executor.Resources) Capacity {
	pids := r.MaxPIDs
	pids = cmp.Or(pids, m.options.DefaultMaxPIDs)
	if m.options.Capacity.PIDs == 0 {
		pids = 0
	}
	return Capacity{MemoryMB: r.MemoryMB, DiskMB: r.DiskMB, Containers: 1, PIDs: pids, Extra: r.Extra}
}
