package executor

import (
	"context"
	"time"
)

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
	// Files, if it is not nil, returns the files that VolumeMountedFiles leaves out. It is
	// called when the container is made: until then many containers may wait, whose files
	// need not be in memory. It is not called concurrently, and returns when ctx ends. An
	// error fails the container before its work has begun.
	Files func(ctx context.Context) ([]File, error)
}
