package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// Most groups hold nothing but compare-and-swaps that all succeed. Such a
// group is written in a single round trip that reads nothing first: its
// transaction fails if it does not find what it should. Nothing is written
// then, and the group takes the usual way.

// A table is what a guess knows of one.
type table struct {
	name      string
	key, rest []string
	kinds     []kind // of both
	// version are the columns that tell whether a row is what was read, and
	// present what else must be true of it.
	version []string
	present string
}

func (t *table) columns() []string { return append(slices.Clone(t.key), t.rest...) }

// keyVersion are the columns that find a row in the version that was read.
func (t *table) keyVersion() ([]string, []kind) {
	kinds := slices.Clone(t.kinds[:len(t.key)])
	for range t.version {
		kinds = append(kinds, number)
	}
	return append(slices.Clone(t.key), t.version...), kinds
}

// A verb is what a guess does with the rows of a table.
type verb uint8

const (
	creates verb = iota // rows of all columns; none may be there
	changes             // rows of all columns and the version before; all must be there
	removes             // rows of the key and the version; all must be there
	keeps               // the same, and they stay as they are
	drops               // rows of the key; whether they are there does not matter
)

var (
	tagColumns = []string{"tag_epoch", "tag_index"}
	lrpKinds   = []kind{text, number, text, number, text, text, number, number, number, blob}

	lrpTable         = table{name: "actual_lrps", key: lrpKey, rest: lrpRest, kinds: lrpKinds, version: tagColumns}
	deploymentTable  = table{name: "deployments", key: deploymentKey, rest: deploymentRest, kinds: deploymentKinds, version: tagColumns}
	taskTable        = table{name: "tasks", key: taskKey, rest: taskRest, kinds: taskKinds, version: tagColumns}
	definitionTable  = table{name: "definitions", key: definitionKey, rest: []string{"data"}, kinds: []kind{text, text, blob}}
	definitionsTable = table{name: "definitions", key: deploymentKey, kinds: []kind{text}} // all of a deployment
	leaseTable       = table{name: "leases", key: []string{"kind", "name"}, kinds: []kind{text, text}, version: []string{"epoch"}, present: "owner <> ''"}
)

// A part is one of the things that a guess may do.
type part struct {
	verb
	*table
}

// width is how many values a row has.
func (p *part) width() int {
	switch p.verb {
	case creates:
		return len(p.kinds)
	case changes:
		return len(p.kinds) + len(p.version)
	case drops:
		return len(p.key)
	default:
		return len(p.key) + len(p.version)
	}
}

// parts are all of them. The statements of MySQL have this order.
var parts = [...]part{
	{keeps, &leaseTable},
	{keeps, &lrpTable}, {keeps, &deploymentTable},
	{removes, &lrpTable}, {changes, &lrpTable}, {creates, &lrpTable},
	{removes, &deploymentTable}, {drops, &definitionsTable}, {drops, &definitionTable},
	{changes, &deploymentTable}, {creates, &deploymentTable}, {creates, &definitionTable},
	{removes, &taskTable}, {changes, &taskTable}, {creates, &taskTable},
}

// A guess is a group whose items are all taken to succeed, but for those that
// are deferred.
type guess struct {
	rows   [len(parts)][]any // flat lists
	events segment
	token  int64
	// The log must end between least and most: not below what was seen of it,
	// and where it ended before if something comes from memory.
	least, most int64
}

func (g *guess) add(v verb, t *table, row ...any) {
	for i := range parts {
		if parts[i].verb == v && parts[i].table == t {
			g.rows[i] = append(g.rows[i], row...)
		}
	}
}

// isPlain reports whether the group can be guessed.
func (a *attempt) isPlain() bool {
	s := a.s
	if !s.batches.Load() || s.d.guess == nil || a.doubt != nil || s.trimDue() {
		return false
	}
	for _, it := range a.items {
		if s.d.nextOnly && !it.goesOn() || it.isImpossible() || it.origin != nil && !s.memory.holds(it.origin) {
			return false
		}
		if b := &it.batch; b.RequestID != "" || len(b.Domains)+len(b.Quarantine) > 0 {
			return false
		}
	}
	return true
}

// isImpossible reports whether it names something that cannot be there.
func (it *item) isImpossible() bool {
	return isImpossible(it.batch.Fence.Kind) || isImpossible(it.batch.Fence.Name) || slices.ContainsFunc(it.records, func(c change) bool {
		return isImpossible(c.key.GUID) || isImpossible(c.key.DefinitionID)
	})
}

// goesOn reports whether each record that changes gets its next version.
func (it *item) goesOn() bool {
	return !slices.ContainsFunc(it.records, func(c change) bool {
		return c.row != nil && !c.before.IsZero() && c.after != c.before.Next()
	})
}

// guess accepts the items that have a part in a guess. It returns nil if they
// make none.
func (a *attempt) guess() *guess {
	g := &guess{token: a.token, least: a.s.seen.Load(), most: math.MaxInt64}
	seen := make(map[storage.RecordKey]executor.ModificationTag, len(a.items))
	fences := make(map[storage.Fence]struct{})
	var checks []*change
	for _, it := range a.items {
		it.cursor, it.err = 0, nil
		if a.concernsWritten(it) || it.contradicts(seen) {
			a.deferred[it] = true
			continue
		}
		a.accept(it)
		if it.origin != nil {
			g.most = a.s.memory.logEnd()
			g.least = max(g.least, g.most)
		}
		if f := it.batch.Fence; f != (storage.Fence{}) {
			if _, known := fences[f]; !known {
				fences[f] = struct{}{}
				g.add(keeps, &leaseTable, f.Kind, f.Name, f.Epoch)
			}
		}
		for i := range it.records {
			r := &it.records[i]
			if _, known := seen[r.key]; r.check && !known {
				checks = append(checks, r)
			}
			seen[r.key] = r.before
			if !r.check {
				g.write(r)
			}
		}
	}
	// What fails cannot be found again without events, and one segment is all
	// that a statement has room for.
	if len(a.segments) != 1 {
		return nil
	}
	for _, r := range checks {
		if _, written := a.written[r.key]; !written { // writing it is a check too
			t, key := r.at()
			g.add(keeps, t, append(key, r.before.Epoch, r.before.Index)...)
		}
	}
	g.events = a.segments[0]
	return g
}

// contradicts reports whether another item has read another version of
// something than this one, so that one of the two must fail.
func (it *item) contradicts(seen map[storage.RecordKey]executor.ModificationTag) bool {
	return slices.ContainsFunc(it.records, func(r change) bool {
		tag, known := seen[r.key]
		return known && tag != r.before
	})
}

// at is where the record is: its table and its key there.
func (c *change) at() (t *table, key []any) {
	switch k := &c.key; k.Kind {
	case storage.ActualLRPRecord:
		return &lrpTable, []any{k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence)}
	case storage.DeploymentRecord:
		return &deploymentTable, []any{k.GUID}
	default:
		return &taskTable, []any{k.GUID}
	}
}

// write adds what a record's write does.
func (g *guess) write(c *change) {
	t, key := c.at()
	version := []any{c.before.Epoch, c.before.Index}
	switch {
	case c.row == nil:
		g.add(removes, t, append(key, version...)...)
		if t == &deploymentTable {
			g.add(drops, &definitionsTable, c.key.GUID)
		}
	case c.before.IsZero():
		g.add(creates, t, c.row...)
	default:
		g.add(changes, t, append(c.row[:len(c.row):len(c.row)], version...)...)
	}
	g.add(drops, &definitionTable, c.undefined...)
	g.add(creates, &definitionTable, c.defined...)
}

// try commits the guess. It fails with an error that isWrongGuess knows if the
// store does not hold what the items have read.
func (a *attempt) try(ctx context.Context, c *sql.Conn, g *guess) error {
	var newest int64
	calls := a.s.d.guess(a.s, g, func(n int64) { newest = n })
	err := a.s.run(ctx, c, calls)
	if class, _ := a.s.d.classOf(err); err != nil && class == lost {
		a.doubt = a.outcome()
	}
	if err != nil {
		return err
	}
	base := newest - a.newest
	for _, it := range a.items {
		if it.cursor > 0 {
			it.cursor += storage.Cursor(base)
		}
	}
	a.newest = newest
	return nil
}
