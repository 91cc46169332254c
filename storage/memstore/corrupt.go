package memstore

import (
	"errors"
	"maps"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A record of this store cannot become corrupt by itself. This file lets tests
// damage one, to check how they handle a record that cannot be decoded.

var errDamaged = errors.New("damaged by a test")

// Corrupt makes a record undecodable until it is written again or quarantined.
// It reports whether there is a record with the key. It is for tests.
func (s *Store) Corrupt(key storage.RecordKey) bool {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.has(key) {
		return false
	}
	c.setCorrupt(key, errDamaged)
	return true
}

// Quarantined returns the records in quarantine, in the order in which they
// came. The caller may change the slice.
func (s *Store) Quarantined() []storage.Quarantine {
	c := s.core
	c.mu.RLock()
	defer c.mu.RUnlock()
	return append([]storage.Quarantine(nil), c.aside...)
}

func (c *core) has(key storage.RecordKey) (has bool) {
	switch key.Kind {
	case storage.DeploymentRecord:
		_, has = c.state.deployments.get(key.GUID)
	case storage.ActualLRPRecord:
		_, has = c.state.lrps.get(lrpKeyOf(key))
	case storage.TaskRecord:
		_, has = c.state.tasks.get(key.GUID)
	case storage.EventRecord:
		extent := c.state.extent()
		has = key.Sequence >= extent.Oldest && key.Sequence <= extent.Newest
	}
	return has
}

func lrpKeyOf(k storage.RecordKey) lrpKey {
	return lrpKey{guid: k.GUID, index: k.Index, definition: k.DefinitionID, presence: lrp.Presence(k.Presence)}
}

// quarantine moves a corrupt record away.
func (c *core) quarantine(q storage.Quarantine) {
	switch st := &c.state; q.Key.Kind {
	case storage.DeploymentRecord:
		st.deployments.remove(st.owner, q.Key.GUID)
	case storage.ActualLRPRecord:
		c.removeLRP(lrpKeyOf(q.Key))
	case storage.TaskRecord:
		st.tasks.remove(st.owner, q.Key.GUID)
	}
	c.mend(q.Key)
	c.aside = append(c.aside, q)
}

// mend notes that a record is not corrupt any more.
func (c *core) mend(key storage.RecordKey) {
	if len(c.state.corrupt) > 0 && c.state.corrupt[key] != nil {
		c.setCorrupt(key, nil)
	}
}

// setCorrupt replaces the map, which snapshots share.
func (c *core) setCorrupt(key storage.RecordKey, err error) {
	next := maps.Clone(c.state.corrupt)
	if next == nil {
		next = make(map[storage.RecordKey]error)
	}
	if err == nil {
		delete(next, key)
	} else {
		next[key] = err
	}
	c.state.corrupt = next
}
