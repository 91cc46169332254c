package sqlstore

import "slices"

// A table is one that statements are made for.
type table struct {
	// name comes behind the prefix of all tables.
	name string
	// key are the columns of the primary key, rest the others.
	key, rest []string
	kinds     []kind // of both
	// version are the columns that tell whether a row is what was read, and
	// present what else must be true of a row for it to count.
	version []string
	present string
}

// columns are all of them, the key first.
func (t *table) columns() []string { return slices.Concat(t.key, t.rest) }

// keyKinds are the kinds of the key.
func (t *table) keyKinds() []kind { return t.kinds[:len(t.key)] }

// keyVersion are the columns that find a row in the version that was read.
func (t *table) keyVersion() ([]string, []kind) {
	kinds := slices.Clone(t.keyKinds())
	for range t.version {
		kinds = append(kinds, number)
	}
	return slices.Concat(t.key, t.version), kinds
}

// The tables.
var (
	lrpTable = table{
		name: "actual_lrps", key: []string{"process_guid", "idx", "definition_id", "presence"},
		rest:  []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data"},
		kinds: []kind{text, number, text, number, text, text, number, number, number, blob}, version: tag,
	}
	deploymentTable = table{
		name: "deployments", key: []string{"process_guid"},
		rest:  []string{"domain", "update_strategy", "instances", "active_definition_id", "healthy_definition_id", "tag_epoch", "tag_index", "other_definition_ids", "settings"},
		kinds: []kind{text, text, number, number, text, text, number, number, blob, blob}, version: tag,
	}
	definitionTable = table{
		name: "definitions", key: []string{"process_guid", "definition_id"},
		rest: []string{"data"}, kinds: []kind{text, text, blob},
	}
	taskTable = table{
		name: "tasks", key: []string{"guid"},
		rest:  []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data"},
		kinds: []kind{text, text, text, number, number, number, blob}, version: tag,
	}
	leaseTable = table{
		name: "leases", key: []string{"kind", "name"}, rest: []string{"owner", "epoch", "expires_at", "value"},
		kinds: []kind{text, text, text, number, number, blob}, version: []string{"epoch"}, present: "owner <> ''",
	}
	domainTable  = table{name: "domains", key: []string{"name"}, rest: []string{"expires_at"}, kinds: []kind{text, number}}
	requestTable = table{name: "requests", key: []string{"id"}, rest: []string{"seq", "at"}, kinds: []kind{text, number, number}}
	eventTable   = table{name: "events", key: []string{"seq"}, rest: []string{"n", "at", "token", "data"}, kinds: []kind{number, number, number, number, blob}}

	tag = []string{"tag_epoch", "tag_index"}
)
