package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/group"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

const lrpColumns = "process_guid, idx, definition_id, presence, data, stopping"

// An lrpScanner decodes rows of ActualLRPs.
type lrpScanner struct {
	s     *Store
	names storage.Decoder
	// last and lastDefinition come from the row before.
	last, lastDefinition string

	guid, definition, data, stopping sql.RawBytes
	index, presence                  int64
}

func (x *lrpScanner) scan(rows *sql.Rows) (entry[lrp.ActualLRP], error) {
	if err := rows.Scan(&x.guid, &x.index, &x.definition, &x.presence, &x.data, &x.stopping); err != nil {
		return entry[lrp.ActualLRP]{}, err
	}
	return x.decode()
}

// bytes is how much the columns hold that may be long.
func (x *lrpScanner) bytes() int { return len(x.data) + len(x.stopping) }

// decode makes a record of the columns. An error that concerns only this record
// goes into the entry; any other error ends the list.
func (x *lrpScanner) decode() (e entry[lrp.ActualLRP], err error) {
	r := &e.value
	if string(x.guid) != x.last {
		x.last = string(x.guid)
	}
	r.ProcessGUID = x.last
	if string(x.definition) == x.last {
		r.DefinitionID = x.last
	} else {
		r.DefinitionID = x.names.Name(x.definition)
	}
	x.lastDefinition = r.DefinitionID
	r.Index = int(x.index)
	r.Presence = lrp.Presence(x.presence)
	data := []byte(x.data)
	if len(data) > 0 && data[0] == sealedVersion {
		if data, err = x.s.sealer.open(data, lrpPlace(r)); err != nil {
			return x.damaged(r, err)
		}
	}
	if err = x.names.ActualLRP(data, r); err == nil {
		err = storage.DecodeStopping(x.stopping, r)
	}
	if err != nil {
		return x.damaged(r, err)
	}
	return e, nil
}

func (x *lrpScanner) damaged(r *lrp.ActualLRP, err error) (entry[lrp.ActualLRP], error) {
	return corrupt[lrp.ActualLRP](storage.ActualLRPKey(r), err)
}

// ActualLRPs implements storage.Reader.
func (r *reader) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	paged := list(ctx, r, "listing ActualLRPs", true, func() page[lrp.ActualLRP] { return r.lrpPages(f) })
	if r.at != nil || len(f.ProcessGUIDs) != 1 || len(f.CellIDs)+len(f.Domains)+len(f.States) > 0 {
		return paged
	}
	if isImpossible(f.ProcessGUIDs[0]) {
		return paged
	}
	return func(yield func(lrp.ActualLRP, error) bool) {
		read := &listRead{Ticket: group.NewTicket(), guid: f.ProcessGUIDs[0]}
		err := r.s.lists.Do(ctx, read)
		if err == nil {
			err = read.err
		}
		if errors.Is(err, errLong) {
			paged(yield)
			return
		}
		if err != nil {
			yield(lrp.ActualLRP{}, err)
			return
		}
		for _, e := range read.entries {
			if err := ctx.Err(); err != nil {
				yield(lrp.ActualLRP{}, err)
				return
			}
			if !wanted(&f, &e) {
				continue
			}
			if !yield(e.value, e.err) {
				return
			}
		}
	}
}

// wanted applies the parts of a filter that the key decides.
func wanted(f *storage.ActualLRPFilter, e *entry[lrp.ActualLRP]) bool {
	if len(f.Indices)+len(f.Presences) == 0 {
		return true
	}
	r := &e.value
	if c := new(storage.CorruptError); errors.As(e.err, &c) {
		r = &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: c.Key.GUID, Index: c.Key.Index}, Presence: lrp.Presence(c.Key.Presence)}
	}
	return f.Match(r)
}

func (r *reader) lrpPages(f storage.ActualLRPFilter) page[lrp.ActualLRP] {
	s := r.s
	scanner := lrpScanner{s: s}
	match := f.Matcher()
	var key []any
	var guids *names
	if len(f.ProcessGUIDs) > 0 {
		guids = newNames(f.ProcessGUIDs)
	}
	pages, size := 0, newPortion(laterPage)
	return func(ctx context.Context, q dialect.Querier) (entries []entry[lrp.ActualLRP], last bool, err error) {
		w := where{d: s.d}
		cells, order := keep[string], tables.LRPs.Key
		switch {
		case guids != nil:
			order = guids.want(&w, tables.LRPs.Key)
		case looksUp(f.CellIDs, pages, cellPages):
			cells = lookUp
		default:
			w.walk = true
		}
		cells(&w, "cell_id", dialect.Text, f.CellIDs, textArg)
		keep(&w, "idx", dialect.Number, f.Indices, intArg)
		keep(&w, "domain", dialect.Text, f.Domains, textArg)
		keep(&w, "state", dialect.Number, f.States, intArg)
		keep(&w, "presence", dialect.Number, f.Presences, intArg)
		if guids == nil {
			w.after(tables.LRPs.Key, key)
		}
		query := w.page(lrpColumns, s.table("actual_lrps"), order, size.rows)
		rows, err := q.QueryContext(ctx, query, w.args...)
		if err != nil {
			return nil, false, err
		}
		entries = make([]entry[lrp.ActualLRP], 0, size.rows)
		err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
			e, err := scanner.scan(rows)
			if err != nil {
				return err
			}
			entries = append(entries, e)
			kept := scanner.bytes()
			if end := len(entries) - 1; e.err == nil && !match(&entries[end].value) { // &e would allocate each
				entries, kept = entries[:end], 0
			}
			return size.took(kept)
		})
		if size.seen > 0 {
			key = []any{scanner.last, scanner.index, scanner.lastDefinition, scanner.presence}
		}
		last = size.next()
		if guids != nil {
			last = guids.seen(key, !last)
		}
		pages++
		return entries, last, err
	}
}

// errLong says that a list is too long for a grouped read.
var errLong = errors.New("the list is long")

// maxShared is the largest number of rows of one grouped read. It may have pageBytes.
const maxShared = 4096

// A listRead asks for the ActualLRPs of one process.
type listRead struct {
	group.Ticket
	guid    string
	entries []entry[lrp.ActualLRP]
	err     error
}

// readLists carries out several reads in one statement.
func (s *Store) readLists(reads []*listRead) {
	n := s.d.Padded(len(reads))
	rows := make([]any, n)
	for i := range rows {
		rows[i] = reads[min(i, len(reads)-1)].guid
	}
	byGUID := make(map[string][]entry[lrp.ActualLRP], len(reads))
	locked := make(map[string]error) // those that lack an encryption key
	w := where{d: s.d}
	w.oneOf("process_guid", dialect.Text, rows)
	query := w.page(lrpColumns, s.table("actual_lrps"), tables.LRPs.Key, maxShared)
	err := s.ask(background, "listing ActualLRPs", func(ctx context.Context, q dialect.Querier) error {
		clear(byGUID)
		clear(locked)
		scanner := lrpScanner{s: s}
		total, bytes := 0, 0
		rows, err := q.QueryContext(ctx, query, w.args...)
		if err != nil {
			return err
		}
		err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
			e, err := scanner.scan(rows)
			if total++; errors.Is(err, ErrKey) {
				locked[scanner.last] = err
				return nil
			}
			if bytes += scanner.bytes(); err == nil && bytes >= pageBytes {
				err = errLong
			}
			byGUID[scanner.last] = append(byGUID[scanner.last], e)
			return err
		})
		if err == nil && total == maxShared {
			err = errLong
		}
		return err
	})
	for _, r := range reads {
		if r.entries, r.err = byGUID[r.guid], err; err == nil {
			r.err = locked[r.guid]
		}
		r.Finish()
	}
}

// A slotRead asks for one slot.
type slotRead struct {
	group.Ticket
	guid       string
	index      int
	records    []lrp.ActualLRP
	deployment *lrp.Deployment
	err        error
}

// Slot implements storage.Reader.
func (r *reader) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, *lrp.Deployment, error) {
	read := &slotRead{Ticket: group.NewTicket(), guid: processGUID, index: index}
	var err error
	if isImpossible(processGUID) {
		err = r.s.usable(ctx)
	} else if r.at == nil && index >= 0 {
		key := memory.SlotKey{GUID: processGUID, Index: index}
		r.s.memory.Begin(key)
		if err = r.s.slots.Do(ctx, read); err == nil {
			err = read.err
		}
		if err != nil { // a batch that its caller has left may be writing to read
			r.s.memory.End(key, nil, nil, err)
		} else {
			r.s.memory.End(key, read.records, read.deployment, nil)
		}
	} else {
		err = r.query(ctx, "reading a slot", func(ctx context.Context, q dialect.Querier) error {
			return r.s.querySlots(ctx, q, []*slotRead{read})
		})
	}
	if err == nil {
		err = read.err
	}
	if err != nil {
		return lrp.Slot{}, nil, err
	}
	return lrp.Slot{ProcessGUID: processGUID, Index: index, Records: read.records}, read.deployment, nil
}

// readSlots carries out several reads in one statement.
func (s *Store) readSlots(reads []*slotRead) {
	err := s.ask(background, "reading slots", func(ctx context.Context, q dialect.Querier) error { return s.querySlots(ctx, q, reads) })
	for _, r := range reads {
		if err != nil {
			r.err = err
		}
		r.Finish()
	}
}

// querySlots reads the records and the deployments in one statement, and so
// from one moment.
func (s *Store) querySlots(ctx context.Context, q dialect.Querier, reads []*slotRead) error {
	n := s.d.Padded(len(reads))
	slots := make(map[memory.SlotKey][]*slotRead, len(reads))
	guids, keys := make([]any, 0, n), make([]any, 0, 2*n)
	for i := range n {
		r := reads[min(i, len(reads)-1)]
		guids = append(guids, r.guid)
		keys = append(keys, r.guid, int64(r.index))
		if i < len(reads) {
			r.records, r.deployment, r.err = nil, nil, nil
			slots[memory.SlotKey{GUID: r.guid, Index: r.index}] = append(slots[memory.SlotKey{GUID: r.guid, Index: r.index}], r)
		}
	}
	args := append(s.d.ListArgs(guids, 1), s.d.ListArgs(keys, 2)...)
	rows, err := q.QueryContext(ctx, s.slotQuery(n), args...)
	if err != nil {
		return err
	}
	scanner := lrpScanner{s: s}
	var isDeployment int64
	var domain, healthy sql.RawBytes
	var epoch, tag int64
	return dialect.ScanAll(rows, func(rows *sql.Rows) error {
		// A deployment uses the columns of a record.
		if err := rows.Scan(&isDeployment, &scanner.guid, &scanner.index, &scanner.definition, &scanner.presence,
			&domain, &healthy, &epoch, &tag, &scanner.stopping, &scanner.data); err != nil {
			return err
		}
		if isDeployment == 1 {
			d, err := bareDeployment(string(scanner.guid), string(domain), scanner.presence, scanner.index,
				string(scanner.definition), string(healthy), epoch, tag, scanner.stopping, scanner.data)
			for _, r := range reads {
				if r.guid == d.ProcessGUID {
					r.deployment = d
					if err != nil {
						r.err = &storage.CorruptError{Key: storage.DeploymentKey(r.guid), Err: err}
					}
				}
			}
			return nil
		}
		e, err := scanner.decode()
		if errors.Is(err, ErrKey) {
			e.err, err = err, nil
		}
		if err != nil {
			return err
		}
		for _, r := range slots[memory.SlotKey{GUID: scanner.last, Index: int(scanner.index)}] {
			if e.err != nil {
				r.err = e.err
				continue
			}
			r.records = append(r.records, e.value)
			lrp.SortRecords(r.records)
		}
		return nil
	})
}

func (s *Store) slotQuery(n int) string {
	var b strings.Builder
	b.WriteString("SELECT 1, process_guid, instances, active_definition_id, update_strategy, domain, healthy_definition_id, tag_epoch, tag_index, other_definition_ids, rules FROM ")
	b.WriteString(s.table("deployments"))
	b.WriteString(" WHERE ")
	b.WriteString(s.d.OneOf([]string{"process_guid"}, []dialect.Kind{dialect.Text}, n))
	b.WriteString(" UNION ALL SELECT 0, process_guid, idx, definition_id, presence, domain, cell_id, tag_epoch, tag_index, stopping, data FROM ")
	b.WriteString(s.table("actual_lrps"))
	b.WriteString(" WHERE ")
	b.WriteString(s.d.OneOf([]string{"process_guid", "idx"}, []dialect.Kind{dialect.Text, dialect.Number}, n))
	return s.d.Rebind(b.String())
}
