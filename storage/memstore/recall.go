package memstore

import (
	"context"
	"slices"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// An origin is a slot as it was recalled. Records are replaced, never changed,
// so comparing pointers shows whether they are still the same.
type origin struct {
	processGUID string
	index       int
	records     []*lrp.ActualLRP
	deployment  *lrp.Deployment
}

// Recall implements [storage.Recaller]. Here it only reads, because everything
// is in memory; its benefit is the Origin. It returns false if a record of the
// slot cannot be decoded or the store is closed.
func (s *Store) Recall(processGUID string, index int) (storage.Recollection, bool) {
	st, letGo, err := s.core.hold(context.Background())
	if err != nil {
		return storage.Recollection{}, false
	}
	defer letGo()
	o, err := st.slot(processGUID, index)
	if err != nil {
		return storage.Recollection{}, false // let a read tell
	}
	return storage.Recollection{Slot: o.slot(), Deployment: o.deployment, Origin: o}, true
}

// slot finds the records of a slot and the deployment.
func (s *state) slot(processGUID string, index int) (o *origin, err error) {
	o = &origin{processGUID: processGUID, index: index}
	s.lrps.ascend(lrpKey{guid: processGUID, index: index}, func(k lrpKey, r *lrp.ActualLRP) bool {
		if k.guid != processGUID || k.index != index {
			return false
		}
		if err = s.corruptAt(storage.ActualLRPKey(r)); err != nil {
			return false
		}
		o.records = append(o.records, r)
		return true
	})
	if err != nil {
		return nil, err
	}
	if d, ok := s.deployments.get(processGUID); ok {
		if err := s.corruptAt(storage.DeploymentKey(processGUID)); err != nil {
			return nil, err
		}
		o.deployment = d.bare
	}
	return o, nil
}

func (o *origin) slot() lrp.Slot {
	slot := lrp.Slot{ProcessGUID: o.processGUID, Index: o.index}
	if len(o.records) > 0 {
		slot.Records = make([]lrp.ActualLRP, len(o.records))
	}
	for i, r := range o.records {
		slot.Records[i] = *r
	}
	return slot
}

// compare returns why a batch that was decided from this origin cannot be
// committed, or nil. An origin of another store always conflicts.
func (s *state) compare(from any) error {
	o, ok := from.(*origin)
	if !ok {
		o = new(origin)
	}
	if now, err := s.slot(o.processGUID, o.index); ok && err == nil && slices.Equal(now.records, o.records) && now.deployment == o.deployment {
		return nil
	}
	return &storage.ConflictError{Key: storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: o.processGUID, Index: o.index}, Err: storage.ErrConflict}
}
