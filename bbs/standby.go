package bbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/diegosdk/diego/storage"
)

// ErrNotLeader is wrapped by every [NotLeaderError].
var ErrNotLeader = errors.New("not the leader")

// A NotLeaderError says that this process may not write. It also wraps
// storage.ErrFenced.
type NotLeaderError struct {
	// Role is the role that has one leader, for example "bbs".
	Role string
	// Leader is the owner that was last seen to lead, or empty.
	Leader string
	// Address is where the leader can be reached, if it has given one.
	Address string
	// Why is the reason why this process cannot lead, if its store fails and
	// nobody else is known to lead.
	Why string
}

func (e *NotLeaderError) Error() string {
	switch {
	case e.Leader == "" && e.Why != "":
		return fmt.Sprintf("%v of %q, because its store fails: %s; nobody else is known to lead, so repair the store and try again", ErrNotLeader, e.Role, e.Why)
	case e.Leader == "":
		return fmt.Sprintf("%v of %q; nobody is known to be, so try again soon", ErrNotLeader, e.Role)
	}
	if e.Address == "" {
		return fmt.Sprintf("%v of %q; ask %q", ErrNotLeader, e.Role, e.Leader)
	}
	return fmt.Sprintf("%v of %q; ask %q at %s", ErrNotLeader, e.Role, e.Leader, e.Address)
}

// Unwrap makes errors.Is work with ErrNotLeader and storage.ErrFenced.
func (e *NotLeaderError) Unwrap() []error { return []error{ErrNotLeader, storage.ErrFenced} }

// notLeader returns why this process may not commit. It is called with the
// lock.
func (l *Leadership) notLeader() error {
	e := &NotLeaderError{Role: l.o.Role}
	if l.leader != l.o.Owner { // its own lease has run out
		e.Leader, e.Address = l.leader, l.address
	}
	if err := cmp.Or(l.failed, l.commitFailed); e.Leader == "" && err != nil {
		e.Why = err.Error()
	}
	return e
}

// Readiness reports whether somebody leads.
func (l *Leadership) Readiness() Readiness {
	leading, _ := l.Leading()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Readiness{Ready: true, Role: "standby", Leader: l.leader, Address: l.address}
	switch {
	case leading:
		r.Role = "leader"
	case l.failed != nil:
		r.Ready, r.Why = false, "the leadership could not be asked for: "+l.failed.Error()
	case l.leader == "":
		r.Ready, r.Why = false, "nobody is known to lead"
	}
	return r
}

// A Readiness reports whether a process can do its work, and in which role.
type Readiness struct {
	Ready bool `json:"ready"`
	// Role is "leader", "standby" or "cell".
	Role string `json:"role"`
	// Leader is the last known owner of the leadership, and Address its address.
	Leader  string `json:"leader,omitempty"`
	Address string `json:"address,omitempty"`
	// Why says what is missing, if the process is not ready.
	Why string `json:"why,omitempty"`
}

// FindLeader is for httpapi.ClientOptions.Find: it finds the process that leads in a
// role, "bbs" or "auctioneer", for clients with access to the store.
func FindLeader(store storage.Reader, role string) func(context.Context) (address string, err error) {
	return func(ctx context.Context) (string, error) {
		for lease, err := range store.Leases(ctx, storage.LeaderLease) {
			if err != nil {
				return "", err
			}
			if lease.Name == role {
				return string(lease.Value), nil
			}
		}
		return "", nil
	}
}
