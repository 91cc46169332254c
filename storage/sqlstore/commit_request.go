package sqlstore

import "github.com/diegosdk/diego/storage"

// This file remembers the request ids of commits, so that a call that comes
// again is not carried out again. The BBS names them (bbs/requestid.go), and
// Remembers answers whether one was committed.

// repeatedRequest fails with a *storage.DuplicateError if the item's request was
// committed before.
func (a *attempt) repeatedRequest(it *item) error {
	if cursor, before := a.requests[it.batch.RequestID]; before {
		return &storage.DuplicateError{RequestID: it.batch.RequestID, Cursor: cursor}
	}
	return nil
}

// rememberRequest keeps the item's request id, if it has one, with the end of its
// events, in the transaction that commits the item.
func (a *attempt) rememberRequest(it *item) {
	if id := it.batch.RequestID; id != "" {
		a.requestRows = append(a.requestRows, id, int64(it.cursor), a.now)
		a.written[storage.RecordKey{Kind: requestKey, GUID: id}] = struct{}{}
	}
}
