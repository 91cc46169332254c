// Package sqlstore is a storage.Store on SQLite, MySQL, MariaDB and
// PostgreSQL.
//
// [Open] takes a data source name, [New] a *sql.DB that the caller has. Queries
// are written once; a dialect is the handful of fragments that the databases
// differ in. Tables are made and migrated when the store is opened, or by the
// caller with the SQL of [Migrations].
//
// Commits go through groups (group.go): while one transaction is under way,
// the next commits gather, and then share a transaction (commit.go). The
// transaction locks the log first, so that there is one at a time, of however
// many processes; reads what its commits compare; decides, in memory, which of
// them go ahead; and writes all of those with one statement for each kind of
// row. Reads of single slots and processes are grouped in the same way
// (lrps.go). Longer lists come in pages from one snapshot (reader.go).
//
// docs/storage.md describes the tables, backups, upgrades and the rotation of
// encryption keys.
package sqlstore
