package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
	"github.com/diegosdk/diego/task"
)

func (s *Store) decodeTask(guid string, data []byte, bare bool) (e entry[*task.Task], err error) {
	t := new(task.Task)
	plain, err := s.sealer.open(data, taskPlace(guid))
	switch {
	case err != nil:
	case bare:
		t, err = storage.DecodeBareTask(plain)
	default:
		err = storage.Decode(plain, t)
	}
	if err == nil && t.GUID != guid {
		err = fmt.Errorf("it says it is task %q", t.GUID)
	}
	if err != nil {
		return corrupt[*task.Task](storage.TaskKey(guid), err)
	}
	e.value = t
	return e, nil
}

// Tasks implements storage.Reader.
func (r *reader) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return list(ctx, r, "listing tasks", true, func() page[*task.Task] { return r.taskPages(f) })
}

func (r *reader) taskPages(f storage.TaskFilter) page[*task.Task] {
	s := r.s
	match := f.Matcher()
	var key []any
	pages, size := 0, newPortion(firstPage)
	return func(ctx context.Context, q dialect.Querier) (entries []entry[*task.Task], last bool, err error) {
		w := where{d: s.d}
		cells, domains := keep[string], keep[string]
		switch {
		case looksUp(f.CellIDs, pages, cellPages):
			cells = lookUp
		case looksUp(f.Domains, pages, domainPages):
			domains = lookUp
		default:
			w.walk = true
		}
		cells(&w, "cell_id", dialect.Text, f.CellIDs, textArg)
		domains(&w, "domain", dialect.Text, f.Domains, textArg)
		keep(&w, "state", dialect.Number, f.States, intArg)
		w.after(tables.Tasks.Key, key)
		query := w.page("guid, data", s.table("tasks"), tables.Tasks.Key, size.rows)
		rows, err := q.QueryContext(ctx, query, w.args...)
		if err != nil {
			return nil, false, err
		}
		var guid string
		var data sql.RawBytes
		err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
			if err := rows.Scan(&guid, &data); err != nil {
				return err
			}
			key = []any{guid}
			e, err := s.decodeTask(guid, data, f.Bare)
			if err != nil {
				return err
			}
			kept := 0
			if e.err != nil || match(e.value) {
				if kept = len(data); f.Bare && e.err == nil {
					e.value.Labels, kept = nil, 0 // a few KiB at most
				}
				entries = append(entries, e)
			}
			return size.took(kept)
		})
		pages++
		return entries, size.next(), err
	}
}

// Task implements storage.Reader.
func (r *reader) Task(ctx context.Context, guid string) (*task.Task, error) {
	return one(ctx, r, "reading a task", storage.TaskKey(guid), r.s.queryTask)
}

func (s *Store) queryTask(ctx context.Context, q dialect.Querier, guid string) (e entry[*task.Task], err error) {
	rows, err := q.QueryContext(ctx, s.q.rawTask, guid)
	if err != nil {
		return e, err
	}
	var data sql.RawBytes
	return e, dialect.ScanAll(rows, func(rows *sql.Rows) (err error) {
		var found string
		if err := rows.Scan(&found, &data); err != nil {
			return err
		}
		e, err = s.decodeTask(guid, data, false)
		return err
	})
}

// examine reads one record and reports whether it exists and whether it can be
// decoded.
func (r *reader) examine(ctx context.Context, q dialect.Querier, k storage.RecordKey) (found, damaged bool, err error) {
	s := r.s
	switch k.Kind {
	case storage.DeploymentRecord:
		e, err := s.queryDeployment(ctx, q, k.GUID, nil, true)
		return e.value != nil, e.err != nil, err
	case storage.TaskRecord:
		e, err := s.queryTask(ctx, q, k.GUID)
		return e.value != nil || e.err != nil, e.err != nil, err
	}
	rows, err := q.QueryContext(ctx, s.q.rawLRP, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
	if err != nil {
		return false, false, err
	}
	scanner := lrpScanner{s: s}
	err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
		e, err := scanner.scan(rows)
		found, damaged = true, e.err != nil
		return err
	})
	return found, damaged, err
}
