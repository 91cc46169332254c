package sqlstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/group"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
)

// An item is one Commit on its way through a group. It was checked, encoded and
// encrypted before, because that needs no database.
type item struct {
	group.Ticket
	batch storage.Batch
	// origin is the memory that the batch was decided on, if any.
	origin *memory.Origin
	// records are the compare-and-swaps of the batch, in the order of
	// storage.Batch.
	records []change
	events  [][]byte
	size    int // bytes of everything encoded

	cursor storage.Cursor
	err    error
}

// A change is one write of a record.
type change struct {
	key storage.RecordKey
	// before is the tag that the store must hold; if it is zero, there must be
	// no record.
	before executor.ModificationTag
	after  executor.ModificationTag // of row
	row    []any                    // nil deletes the record
	check  bool                     // writes nothing
	// stays is true for an ActualLRP whose cell does not change.
	stays bool
	// plain is the row of an ActualLRP in the form of the memory, which has its mark
	// Stopping apart; bare is the same for a deployment.
	plain    []byte
	stopping time.Time
	bare     *lrp.Deployment
	// defined and undefined are the definitions that are added and dropped.
	defined, undefined []any
}

// newItem prepares a batch that has been checked.
func (s *Store) newItem(b storage.Batch) (*item, error) {
	it := &item{Ticket: group.NewTicket(), batch: b}
	if b.Origin != nil {
		// The origin of another store is unknown here.
		if it.origin, _ = b.Origin.(*memory.Origin); it.origin == nil {
			it.origin = new(memory.Origin)
		}
	}
	it.records = make([]change, 0, len(b.ActualLRPs)+len(b.Deployments)+len(b.Tasks))
	for i := range b.ActualLRPs {
		it.records = append(it.records, s.lrpChange(&b.ActualLRPs[i]))
	}
	for i := range b.Deployments {
		w := &b.Deployments[i]
		if it.origin != nil && w.IsCheck() && w.Key().GUID == it.origin.Key.GUID {
			continue // the origin holds only while the deployment is the same
		}
		c, err := s.deploymentChange(w)
		if err != nil {
			return nil, err
		}
		it.records = append(it.records, c)
	}
	for i := range b.Tasks {
		w := &b.Tasks[i]
		c := change{key: storage.TaskWriteKey(w)}
		if w.Before != nil {
			c.before = w.Before.ModificationTag
		}
		if t := w.After; t != nil {
			c.after = t.ModificationTag
			data, err := storage.Encode(t)
			if err != nil {
				return nil, err
			}
			c.row = []any{t.GUID, t.Domain, t.CellID, int64(t.State), t.ModificationTag.Epoch, t.ModificationTag.Index, s.sealer.seal(data, taskPlace(t.GUID))}
		}
		it.records = append(it.records, c)
	}
	for i := range b.Events {
		data, err := storage.EncodeEvent(&b.Events[i])
		if err != nil {
			return nil, err
		}
		it.events = append(it.events, s.sealer.seal(data, eventPlace))
		it.size += len(data)
	}
	for i := range it.records {
		it.size += dialect.SizeOf(it.records[i].row) + dialect.SizeOf(it.records[i].defined)
	}
	return it, nil
}

func (s *Store) lrpChange(w *lrp.Write) change {
	c := change{key: storage.LRPWriteKey(w), check: storage.IsCheck(w)}
	if w.Before != nil {
		c.before = w.Before.ModificationTag
		c.stays = w.After != nil && w.After.CellID == w.Before.CellID
	}
	if r := w.After; r != nil && !c.check {
		c.after = r.ModificationTag
		c.plain = storage.AppendActualLRP(make([]byte, 0, 256), r)
		c.row = []any{
			r.ProcessGUID, int64(r.Index), r.DefinitionID, int64(r.Presence),
			r.Domain, r.CellID, int64(r.State), r.ModificationTag.Epoch, r.ModificationTag.Index,
			s.sealer.seal(c.plain, lrpPlace(r)), storage.EncodeStopping(r),
		}
		c.stopping = r.Stopping
	}
	return c
}

func (s *Store) deploymentChange(w *storage.DeploymentWrite) (change, error) {
	c := change{key: w.Key(), check: w.IsCheck()}
	if w.Before != nil {
		c.before = w.Before.ModificationTag
	}
	d := w.After
	if d == nil || c.check {
		return c, nil
	}
	c.after = d.ModificationTag
	c.bare = storage.Bare(d)
	plain := *d
	storage.Rules{}.Set(&plain) // they have a column of their own, and so have the labels
	plain.Labels = nil
	settings, err := storage.Encode(&plain.Settings)
	if err != nil {
		return c, err
	}
	rules, err := storage.EncodeRules(d)
	if err != nil {
		return c, err
	}
	var labels []byte
	if len(d.Labels) > 0 {
		if labels, err = storage.Encode(d.Labels); err != nil {
			return c, err
		}
	}
	revisions, err := storage.EncodeRevisions(d)
	if err != nil {
		return c, err
	}
	if len(revisions) > 0 {
		revisions = s.sealer.seal(revisions, revisionsPlace(d.ProcessGUID))
	}
	c.row = []any{
		d.ProcessGUID, d.Domain, int64(d.UpdateStrategy), int64(d.Instances),
		d.ActiveDefinitionID, d.HealthyDefinitionID, d.ModificationTag.Epoch, d.ModificationTag.Index, otherIDs(d),
		s.sealer.seal(settings, settingsPlace(d.ProcessGUID)), rules, revisions, labels,
	}
	had := map[string]lrp.Definition{}
	if w.Before != nil {
		had = w.Before.Definitions
		for _, id := range w.Before.DefinitionIDs() {
			if _, stays := d.Definitions[id]; !stays {
				c.undefined = append(c.undefined, d.ProcessGUID, id)
			}
		}
	}
	for _, id := range d.DefinitionIDs() {
		if _, known := had[id]; known {
			continue
		}
		definition := d.Definitions[id]
		data, err := storage.Encode(&definition)
		if err != nil {
			return c, err
		}
		c.defined = append(c.defined, d.ProcessGUID, id, s.sealer.seal(data, definitionPlace(d.ProcessGUID, id)))
	}
	return c, nil
}

// otherIDs are the ids of the definitions besides the active one, in order,
// each with its length before it.
func otherIDs(d *lrp.Deployment) []byte {
	out := []byte{}
	for _, id := range d.DefinitionIDs() {
		if id != d.ActiveDefinitionID {
			out = append(binary.AppendUvarint(out, uint64(len(id))), id...)
		}
	}
	return out
}

// expiry is the recorded form of now plus ttl, or 0 for never.
func expiry(now int64, ttl time.Duration) int64 {
	if ttl == 0 {
		return 0
	}
	return now + min(int64(ttl), math.MaxInt64-now)
}
