// Package tables has the names and columns of the tables that rows are written
// to. The migrations make them.
package tables

import (
	"slices"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A Table is one for which statements are made.
type Table struct {
	// Name comes behind the prefix of all tables.
	Name string
	// Key are the columns of the primary key, Rest the others.
	Key, Rest []string
	Kinds     []dialect.Kind // of both
	// Version are the columns that show whether a row is what was read. Present is
	// another condition that a row must fulfil to count.
	Version []string
	Present string
}

// Columns are all of them, the key first.
func (t *Table) Columns() []string { return slices.Concat(t.Key, t.Rest) }

// KeyKinds are the kinds of the key.
func (t *Table) KeyKinds() []dialect.Kind { return t.Kinds[:len(t.Key)] }

// KeyVersion are the columns that find a row in the version that was read.
func (t *Table) KeyVersion() ([]string, []dialect.Kind) {
	kinds := slices.Clone(t.KeyKinds())
	for range t.Version {
		kinds = append(kinds, dialect.Number)
	}
	return slices.Concat(t.Key, t.Version), kinds
}

// The tables.
var (
	LRPs = Table{
		Name: "actual_lrps", Key: []string{"process_guid", "idx", "definition_id", "presence"},
		Rest:  []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data", "stopping"},
		Kinds: []dialect.Kind{dialect.Text, dialect.Number, dialect.Text, dialect.Number, dialect.Text, dialect.Text, dialect.Number, dialect.Number, dialect.Number, dialect.Blob, dialect.Blob}, Version: tag,
	}
	Deployments = Table{
		Name: "deployments", Key: []string{"process_guid"},
		Rest:  []string{"domain", "update_strategy", "instances", "active_definition_id", "healthy_definition_id", "tag_epoch", "tag_index", "other_definition_ids", "settings", "rules", "revisions", "labels"},
		Kinds: []dialect.Kind{dialect.Text, dialect.Text, dialect.Number, dialect.Number, dialect.Text, dialect.Text, dialect.Number, dialect.Number, dialect.Blob, dialect.Blob, dialect.Blob, dialect.Blob, dialect.Blob}, Version: tag,
	}
	Definitions = Table{
		Name: "definitions", Key: []string{"process_guid", "definition_id"},
		Rest: []string{"data"}, Kinds: []dialect.Kind{dialect.Text, dialect.Text, dialect.Blob},
	}
	Tasks = Table{
		Name: "tasks", Key: []string{"guid"},
		Rest:  []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data"},
		Kinds: []dialect.Kind{dialect.Text, dialect.Text, dialect.Text, dialect.Number, dialect.Number, dialect.Number, dialect.Blob}, Version: tag,
	}
	Leases = Table{
		Name: "leases", Key: []string{"kind", "name"}, Rest: []string{"owner", "epoch", "expires_at", "value"},
		Kinds: []dialect.Kind{dialect.Text, dialect.Text, dialect.Text, dialect.Number, dialect.Number, dialect.Blob}, Version: []string{"epoch"}, Present: "owner <> ''",
	}
	Domains  = Table{Name: "domains", Key: []string{"name"}, Rest: []string{"expires_at"}, Kinds: []dialect.Kind{dialect.Text, dialect.Number}}
	Requests = Table{Name: "requests", Key: []string{"id"}, Rest: []string{"seq", "at"}, Kinds: []dialect.Kind{dialect.Text, dialect.Number, dialect.Number}}
	Events   = Table{Name: "events", Key: []string{"seq"}, Rest: []string{"n", "at", "token", "data"}, Kinds: []dialect.Kind{dialect.Number, dialect.Number, dialect.Number, dialect.Number, dialect.Blob}}

	tag = []string{"tag_epoch", "tag_index"}
)
