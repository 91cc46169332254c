// Package sqlstore is a storage.Store on SQLite, MySQL, MariaDB and
// PostgreSQL.
//
// [Open] takes a data source name, [New] a *sql.DB that the caller has. Each query
// is written once, with fragments where the databases differ. Opening a store
// makes and migrates its tables; a caller may also do it with the SQL of
// [Migrations].
//
// Commits go through groups: while one transaction is under way, the next commits
// gather, and then share a transaction. The transaction first locks the log, so
// there is one at a time among all processes. It reads what its commits compare,
// decides in memory which of them go ahead, and writes those with one statement
// for each kind of row. Reads of single slots and processes are grouped in the same
// way. Longer lists come in pages from one snapshot.
//
// The files and the packages below internal, by subject:
//
//	dialect               which databases there are, and errors of theirs
//	open, connections     data source names, options, pools, what bounds a connection
//	store                 the Store, its retries and its end
//	commit_group          how many commits share a transaction
//	commit_*              the transaction: what it looks up, decides and writes, the
//	                      fence, the events, the guess in one round trip, an outcome
//	                      in doubt
//	lease, tx             leases; commits in a transaction of the caller's
//	log*                  rows of the log, and gaps where it may have gone back
//	read*                 lists, filters, slots, events; the View
//	queries               the statements of a store, made once
//	keys*                 encryption, and its rotation
//	migrate, migrations   the schema and its versions
//	internal/dialect      what SQLite, MySQL and PostgreSQL differ in: statements,
//	                      errors, sessions, data source names
//	internal/tables       the columns of each table
//	internal/guess        the statements of a guess
//	internal/group        how requests gather into batches
//	internal/memory       slots and deployments as this process's last commit left them
//
// docs/storage.md describes the tables, backups, upgrades and the rotation of
// encryption keys.
//
// # Concurrent use
//
// The methods of [Store] may be called concurrently, in any number of processes
// that share a database. All other types are plain values: any number of
// goroutines may use one while none changes it.
package sqlstore
