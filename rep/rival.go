package rep

import (
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/storage"
)

// A rival is another run of the cell that is present. If it was killed, its
// presence ends by itself. If its presence is renewed, two daemons have one id.
type rival struct {
	owner   string
	expires time.Time
	alive   bool
}

// seen is the rival that err names, or r if it names none. A rival whose presence
// was renewed since r was seen is alive.
func (r rival) seen(err error) rival {
	var held *storage.HeldError
	if !errors.As(err, &held) {
		return r
	}
	now := rival{owner: held.Lease.Owner, expires: held.Lease.ExpiresAt}
	now.alive = now.owner == r.owner && (r.alive || now.expires.After(r.expires))
	return now
}

// explain adds to err what to do about the rival.
func (r rival) explain(cellID string, err error) error {
	if r.alive {
		return fmt.Errorf("another run of cell %q is alive and renews its presence: give one of the two another id, or end the other one; until then this one gets no work: %w", cellID, err)
	}
	return fmt.Errorf("another run of cell %q is present: if it was killed, this one takes its place once that presence ends: %w", cellID, err)
}
