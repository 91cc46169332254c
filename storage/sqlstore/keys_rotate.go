package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// Rotation is the result of [Store.Rotate].
type Rotation struct {
	// Rows is the number of rows that were encrypted again.
	Rows int
	// Skipped is the number of rows that could not be decrypted. They are
	// unchanged.
	Skipped int
}

// Rotate encrypts with Keys.Active all data that is encrypted with another key
// or not at all (or decrypts it, if no key is active). It works in small
// transactions beside everything else. It may be interrupted and called again
// at any time: what is done stays done.
//
// Once it has succeeded while every process had the new Keys.Active, no data
// needs the other keys; without an active key the store may then be opened
// without any. The error is the first *KeyError or *storage.CorruptError of the
// rows that it had to skip, or one that ended it.
func (s *Store) Rotate(ctx context.Context) (Rotation, error) {
	var done Rotation
	var skipped error
	for _, table := range s.sealedTables() {
		var key []any
		for last := false; !last; {
			if err := s.usable(ctx); err != nil {
				return done, err
			}
			var page rotationPage
			err := s.retry(ctx, "rotating keys", func() (err error) {
				page, err = s.rotatePage(ctx, &table, key)
				return err
			})
			if err != nil {
				return done, err
			}
			key, last = page.key, page.last
			done.Rows += page.rows
			done.Skipped += page.skipped
			if skipped == nil {
				skipped = page.err
			}
		}
	}
	if skipped == nil && s.sealer.active == "" {
		return done, s.retry(ctx, "forgetting keys", func() error { return s.forgetKeys(ctx) })
	}
	return done, skipped
}

// A sealedTable has a column of encrypted data.
type sealedTable struct {
	name, column string
	key          []string
	numbers      []bool // which parts of the key are numbers
	// reseal encrypts the data of a row anew; nil leaves it as it is.
	reseal func(key []any, data []byte) ([]byte, error)
	record func(key []any) storage.RecordKey
}

func (s *Store) sealedTables() []sealedTable {
	simple := func(place func(key []any) []byte) func(key []any, data []byte) ([]byte, error) {
		return func(key []any, data []byte) ([]byte, error) { return s.sealer.reseal(data, place(key)) }
	}
	deployment := func(key []any) storage.RecordKey { return storage.DeploymentKey(key[0].(string)) }
	return []sealedTable{
		{
			name: "deployments", column: "settings", key: tables.Deployments.Key, numbers: []bool{false},
			reseal: simple(func(key []any) []byte { return settingsPlace(key[0].(string)) }), record: deployment,
		},
		{
			name: "deployments", column: "revisions", key: tables.Deployments.Key, numbers: []bool{false},
			reseal: func(key []any, data []byte) ([]byte, error) {
				if len(data) == 0 {
					return nil, nil // it has none
				}
				return s.sealer.reseal(data, revisionsPlace(key[0].(string)))
			},
			record: deployment,
		},
		{
			name: "definitions", column: "data", key: tables.Definitions.Key, numbers: []bool{false, false},
			reseal: simple(func(key []any) []byte { return definitionPlace(key[0].(string), key[1].(string)) }), record: deployment,
		},
		{
			name: "actual_lrps", column: "data", key: tables.LRPs.Key, numbers: []bool{false, true, false, true},
			reseal: simple(func(key []any) []byte {
				return lrpPlaceOf(key[0].(string), key[1].(int64), key[2].(string), key[3].(int64))
			}),
			record: func(key []any) storage.RecordKey {
				return storage.RecordKey{
					Kind: storage.ActualLRPRecord, GUID: key[0].(string), Index: int(key[1].(int64)),
					DefinitionID: key[2].(string), Presence: uint8(key[3].(int64)),
				}
			},
		},
		{
			name: "tasks", column: "data", key: tables.Tasks.Key, numbers: []bool{false},
			reseal: simple(func(key []any) []byte { return taskPlace(key[0].(string)) }),
			record: func(key []any) storage.RecordKey { return storage.TaskKey(key[0].(string)) },
		},
		{
			name: "events", column: "data", key: []string{"seq"}, numbers: []bool{true},
			reseal: func(_ []any, data []byte) ([]byte, error) { return s.sealer.resealSegment(data) },
			record: func(key []any) storage.RecordKey { return storage.EventKey(storage.Cursor(key[0].(int64))) },
		},
	}
}

// rotationRows is how many rows one transaction looks at.
const rotationRows = 200

type rotationPage struct {
	key           []any // of the last row
	last          bool
	rows, skipped int
	err           error
}

// rotatePage encrypts the rows behind a key anew, in one transaction that no
// commit overlaps.
func (s *Store) rotatePage(ctx context.Context, t *sealedTable, after []any) (page rotationPage, err error) {
	c, err := s.write.Conn(ctx)
	if err != nil {
		return page, err
	}
	defer c.Close()
	err = dialect.InTransaction(ctx, c, s.beginWrite, func() error {
		var newest, oldest int64
		if err := dialect.QueryRow(ctx, c, s.q.lockLog, &newest, &oldest); err != nil {
			return err
		}
		var updates []dialect.Call
		page, updates, err = s.readRotation(ctx, c, t, after)
		if err != nil || len(updates) == 0 {
			return err
		}
		return dialect.RunEach(ctx, c, updates)
	})
	return page, err
}

func (s *Store) readRotation(ctx context.Context, q dialect.Querier, t *sealedTable, after []any) (page rotationPage, updates []dialect.Call, err error) {
	w := where{d: s.d}
	w.after(t.key, after)
	columns, matches := "", ""
	for i, column := range t.key {
		columns += column + ", "
		if i > 0 {
			matches += " AND "
		}
		matches += column + " = ?"
	}
	order := columns[:len(columns)-2]
	query := s.d.Rebind("SELECT " + columns + t.column + " FROM " + s.table(t.name) + w.String() + " ORDER BY " + order + " LIMIT " + strconv.Itoa(rotationRows))
	update := s.d.Rebind("UPDATE " + s.table(t.name) + " SET " + t.column + " = ? WHERE " + matches)
	rows, err := q.QueryContext(ctx, query, w.args...)
	if err != nil {
		return page, nil, err
	}
	seen := 0
	err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
		key, data, err := t.scan(rows)
		if err != nil {
			return err
		}
		seen++
		page.key = key
		fresh, err := t.reseal(key, data)
		if err != nil {
			page.skipped++
			if page.err == nil && errors.Is(err, ErrKey) {
				page.err = err
			} else if page.err == nil {
				page.err = &storage.CorruptError{Key: t.record(key), Err: err}
			}
			return nil
		}
		if fresh != nil {
			page.rows++
			updates = append(updates, dialect.Call{Query: update, Args: append([]any{fresh}, key...)})
		}
		return nil
	})
	page.last = seen < rotationRows
	return page, updates, err
}

func (t *sealedTable) scan(rows *sql.Rows) (key []any, data []byte, err error) {
	texts, numbers := make([]string, len(t.key)), make([]int64, len(t.key))
	dest := make([]any, 0, len(t.key)+1)
	for i := range t.key {
		if t.numbers[i] {
			dest = append(dest, &numbers[i])
		} else {
			dest = append(dest, &texts[i])
		}
	}
	if err := rows.Scan(append(dest, &data)...); err != nil {
		return nil, nil, err
	}
	for i := range t.key {
		if t.numbers[i] {
			key = append(key, numbers[i])
		} else {
			key = append(key, texts[i])
		}
	}
	return key, data, nil
}

// reseal encrypts data with the active key; nil if it is already.
func (k *sealer) reseal(data, where []byte) ([]byte, error) {
	if label, _ := sealedLabel(data); label == k.active {
		return nil, nil
	}
	plain, err := k.open(data, where)
	if err != nil {
		return nil, err
	}
	return k.seal(plain, where), nil
}

// resealSegment does the same for each event of a segment.
func (k *sealer) resealSegment(data []byte) ([]byte, error) {
	var out []byte
	changed := false
	for len(data) > 0 {
		event, rest, err := cutBytes(data)
		if err != nil {
			return nil, err
		}
		data = rest
		fresh, err := k.reseal(event, eventPlace)
		if err != nil {
			return nil, err
		}
		if fresh != nil {
			event, changed = fresh, true
		}
		out = appendEvent(out, event)
	}
	if !changed {
		return nil, nil
	}
	return out, nil
}
