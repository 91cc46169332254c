package sqlstore

import "github.com/diegosdk/diego/storage"

// fence fails with a *storage.FencedError unless the lease of a fence is held
// with the fence's epoch, in the transaction that commits. The leader's epoch is
// added by bbs.Leadership.Store.
func (a *attempt) fence(f storage.Fence) error {
	if f == (storage.Fence{}) {
		return nil
	}
	if row := a.leases[leaseID{f.Kind, f.Name}]; row == nil || row.epoch != f.Epoch || row.owner == "" {
		return fenced(f, row)
	}
	return nil
}

func fenced(f storage.Fence, row *leaseRow) error {
	e := &storage.FencedError{Fence: f}
	if row != nil {
		e.Epoch = row.epoch
	}
	return e
}
