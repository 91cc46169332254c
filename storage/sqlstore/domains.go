package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"strconv"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// Domains implements storage.Reader.
func (r *reader) Domains(ctx context.Context) iter.Seq2[lrp.Domain, error] {
	s := r.s
	return list(ctx, r, "listing domains", true, func() page[lrp.Domain] {
		var key []any
		const n = firstPage
		return func(ctx context.Context, q querier) (entries []entry[lrp.Domain], last bool, err error) {
			w := where{d: s.d}
			w.after([]string{"name"}, key)
			query := s.d.rebind("SELECT name, expires_at FROM " + s.table("domains") + w.String() + " ORDER BY name LIMIT " + strconv.Itoa(n))
			rows, err := q.QueryContext(ctx, query, w.args...)
			if err != nil {
				return nil, false, err
			}
			err = scanAll(rows, func(rows *sql.Rows) error {
				var e entry[lrp.Domain]
				var expires int64
				err := rows.Scan(&e.value.Name, &expires)
				e.value.ExpiresAt = executor.Instant(expires)
				entries = append(entries, e)
				key = []any{e.value.Name}
				return err
			})
			return entries, len(entries) < n, err
		}
	})
}

// Leases implements storage.Reader.
func (r *reader) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	s := r.s
	return list(ctx, r, "listing leases", true, func() page[storage.Lease] {
		var key []any
		const n = firstPage
		return func(ctx context.Context, q querier) (entries []entry[storage.Lease], last bool, err error) {
			w := where{d: s.d}
			w.add("kind = ?", kind)
			w.add("owner <> ''")
			if now := r.moment; !now.IsZero() {
				w.add("expires_at > ?", now.UnixNano())
			} else {
				w.add("expires_at > " + s.d.clock)
			}
			w.after([]string{"name"}, key)
			query := s.d.rebind("SELECT name, owner, epoch, expires_at, value FROM " + s.table("leases") + w.String() +
				" ORDER BY name LIMIT " + strconv.Itoa(n))
			rows, err := q.QueryContext(ctx, query, w.args...)
			if err != nil {
				return nil, false, err
			}
			err = scanAll(rows, func(rows *sql.Rows) error {
				var row leaseRow
				var name string
				err := rows.Scan(&name, &row.owner, &row.epoch, &row.expires, &row.value)
				entries = append(entries, entry[storage.Lease]{value: row.lease(kind, name)})
				key = []any{name}
				return err
			})
			return entries, len(entries) < n, err
		}
	})
}
