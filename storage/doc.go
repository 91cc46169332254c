// Package storage is where Diego's records live: deployments, ActualLRPs,
// tasks, domains, the leases of cells and leaders, and the log of events.
//
// A [Store] is a database behind a small contract: consistent reads, [Store.Commit]
// of a [Batch] by compare-and-swap, and leases with a fencing epoch. It knows
// no rules: lrp.Step and task.Step decide what to write. [Apply] is the one
// loop that reads, decides and commits, and that starts again if another commit
// came first:
//
//	decision, _, err := storage.ApplySlot(ctx, store, guid, index, nil,
//		func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
//			return lrp.Step(slot, d, command, now, policy)
//		})
//
// Package memstore is a Store in memory, package sqlstore one on SQLite, MySQL
// and PostgreSQL, and package storagetest the suite that every Store passes,
// with a case for each sentence of the contract. docs/storage.md shows how to
// bring another database.
//
// # Concurrent use
//
// The methods of a [Store] may be called concurrently, and so may those of the
// optional interfaces that it implements. A [Decoder] and a [Selection] are for
// one goroutine at a time. All other types are plain values: any number of
// goroutines may use one while none changes it.
package storage
