package memstore

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A state is everything that readers see. Once the original goes on with
// another owner, a copy of it never changes: trees copy their nodes, the log
// only grows behind the copy's end, and the map of corrupt records is replaced.
type state struct {
	owner, leaseOwner *owner

	deployments tree[string, deployed]
	lrps        tree[lrpKey, *lrp.ActualLRP]
	// onCells has the keys of those that are on a cell, in order of cells.
	onCells tree[cellKey, struct{}]
	tasks   tree[string, *task.Task]
	domains tree[string, lrp.Domain]
	leases  tree[leaseKey, lease]
	// log ends with the newest event. It may begin before the oldest event that
	// counts.
	log            []storage.Event
	oldest, newest storage.Cursor
	// gaps are the gaps of the log, in order. The slice is replaced, not changed.
	gaps []storage.Gap
	// corrupt says what is wrong with the records that a test has damaged.
	corrupt map[storage.RecordKey]error
}

// A deployed is a deployment, whole, as lists have it, and bare.
type deployed struct{ whole, listed, bare *lrp.Deployment }

func newDeployed(d *lrp.Deployment) deployed {
	listed := *d
	listed.Revisions = nil
	return deployed{d, &listed, storage.Bare(d)}
}

type lrpKey struct {
	guid       string
	index      int
	definition string
	presence   lrp.Presence
}

func (a lrpKey) compare(b lrpKey) int {
	if c := strings.Compare(a.guid, b.guid); c != 0 {
		return c
	}
	if a.index != b.index {
		return cmp.Compare(a.index, b.index)
	}
	if c := strings.Compare(a.definition, b.definition); c != 0 {
		return c
	}
	return cmp.Compare(a.presence, b.presence)
}

func keyOf(r *lrp.ActualLRP) lrpKey {
	return lrpKey{guid: r.ProcessGUID, index: r.Index, definition: r.DefinitionID, presence: r.Presence}
}

type cellKey struct {
	cell string
	lrp  lrpKey
}

func (a cellKey) compare(b cellKey) int {
	if c := strings.Compare(a.cell, b.cell); c != 0 {
		return c
	}
	return a.lrp.compare(b.lrp)
}

type leaseKey struct{ kind, name string }

func (a leaseKey) compare(b leaseKey) int {
	if c := strings.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}

// A released lease stays for a while, without an owner; its expiry is the time
// of the release.
type lease struct{ storage.Lease }

func (l lease) free(now time.Time) bool { return l.Owner == "" || !now.Before(l.ExpiresAt) }

// good reports whether nobody has acquired or released the lease since epoch.
func (l lease) good(epoch int64) bool { return l.Owner != "" && l.Epoch == epoch }

func newState() state {
	return state{
		owner:       new(owner),
		leaseOwner:  new(owner),
		oldest:      1,
		deployments: tree[string, deployed]{compare: strings.Compare},
		lrps:        tree[lrpKey, *lrp.ActualLRP]{compare: lrpKey.compare},
		onCells:     tree[cellKey, struct{}]{compare: cellKey.compare},
		tasks:       tree[string, *task.Task]{compare: strings.Compare},
		domains:     tree[string, lrp.Domain]{compare: strings.Compare},
		leases:      tree[leaseKey, lease]{compare: leaseKey.compare},
	}
}

func (s *state) extent() storage.Extent {
	return storage.Extent{Oldest: s.oldest, Newest: s.newest}
}

// after returns the events behind a position.
func (s *state) after(position storage.Cursor) []storage.Event {
	i, _ := slices.BinarySearchFunc(s.log, position+1, func(e storage.Event, n storage.Cursor) int { return cmp.Compare(e.Sequence, n) })
	return s.log[i:]
}

// corruptAt returns the *storage.CorruptError for a damaged record, or nil.
func (s *state) corruptAt(k storage.RecordKey) error {
	if len(s.corrupt) == 0 {
		return nil
	}
	if err := s.corrupt[k]; err != nil {
		return &storage.CorruptError{Key: k, Err: err}
	}
	return nil
}
