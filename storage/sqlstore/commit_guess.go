package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/guess"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// This file tries a group of commits as a guess: see package guess.

// isPlain reports whether the group can be guessed.
func (a *attempt) isPlain() bool {
	s := a.s
	if !s.batches.Load() || s.guesses == nil || a.doubt != nil || s.trimDue() {
		return false
	}
	for _, it := range a.items {
		if s.guesses.NextOnly() && !it.goesOn() || it.isImpossible() || it.origin != nil && !s.memory.Holds(it.origin) {
			return false
		}
		if b := &it.batch; b.RequestID != "" || len(b.Domains)+len(b.Quarantine) > 0 {
			return false
		}
	}
	return true
}

// isImpossible reports whether the item names something that cannot exist.
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

// guess accepts the items that take part in a guess. It returns nil if there is
// none.
func (a *attempt) guess() *guess.Guess {
	g := &guess.Guess{Token: a.token, Least: a.s.seen.Load(), Most: math.MaxInt64}
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
			g.Most = a.s.memory.LogEnd()
			g.Least = max(g.Least, g.Most)
		}
		if f := it.batch.Fence; f != (storage.Fence{}) {
			if _, known := fences[f]; !known {
				fences[f] = struct{}{}
				g.Add(guess.Keeps, &tables.Leases, f.Kind, f.Name, f.Epoch)
			}
		}
		for i := range it.records {
			r := &it.records[i]
			if _, known := seen[r.key]; r.check && !known {
				checks = append(checks, r)
			}
			seen[r.key] = r.before
			if !r.check {
				guessWrite(g, r)
			}
		}
	}
	// Without events, a lost guess could not be found again, and a statement
	// has room for one segment only.
	if len(a.segments) != 1 {
		return nil
	}
	for _, r := range checks {
		if _, written := a.written[r.key]; !written { // writing it is a check too
			t, key := r.at()
			g.Add(guess.Keeps, t, append(key, r.before.Epoch, r.before.Index)...)
		}
	}
	g.Events, g.Data = a.segments[0].n, a.segments[0].data
	return g
}

// contradicts reports whether another item has read a different version of a
// record. One of the two must fail then.
func (it *item) contradicts(seen map[storage.RecordKey]executor.ModificationTag) bool {
	return slices.ContainsFunc(it.records, func(r change) bool {
		tag, known := seen[r.key]
		return known && tag != r.before
	})
}

// at is the table of the record and its key there.
func (c *change) at() (t *tables.Table, key []any) {
	switch k := &c.key; k.Kind {
	case storage.ActualLRPRecord:
		return &tables.LRPs, []any{k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence)}
	case storage.DeploymentRecord:
		return &tables.Deployments, []any{k.GUID}
	default:
		return &tables.Tasks, []any{k.GUID}
	}
}

// guessWrite adds the write of a record.
func guessWrite(g *guess.Guess, c *change) {
	t, key := c.at()
	version := []any{c.before.Epoch, c.before.Index}
	switch {
	case c.row == nil:
		g.Add(guess.Removes, t, append(key, version...)...)
		if t == &tables.Deployments {
			g.Add(guess.Drops, &guess.AllDefinitions, c.key.GUID)
		}
	case c.before.IsZero():
		g.Add(guess.Creates, t, c.row...)
	default:
		g.Add(guess.Changes, t, append(c.row[:len(c.row):len(c.row)], version...)...)
	}
	g.Add(guess.Drops, &tables.Definitions, c.undefined...)
	g.Add(guess.Creates, &tables.Definitions, c.defined...)
}

// try commits the guess. It fails with an error that IsWrongGuess knows if the
// store does not hold what the items have read.
func (a *attempt) try(ctx context.Context, c *sql.Conn, g *guess.Guess) error {
	var newest int64
	calls := append(a.s.beginCalls(), a.s.guesses.Calls(g, func(n int64) { newest = n })...)
	err := a.s.run(ctx, c, append(calls, dialect.Call{Query: "COMMIT"}))
	if class, _ := a.s.d.ClassOf(err); err != nil && class == dialect.Lost {
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
