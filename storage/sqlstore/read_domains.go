package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"strconv"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// Domains implements storage.Reader.
func (r *reader) Domains(ctx context.Context) iter.Seq2[lrp.Domain, error] {
	s := r.s
	return list(ctx, r, "listing domains", true, func() page[lrp.Domain] {
		var key []any
		const n = firstPage
		return func(ctx context.Context, q dialect.Querier) (entries []entry[lrp.Domain], last bool, err error) {
			w := where{d: s.d}
			w.after([]string{"name"}, key)
			query := s.d.Rebind("SELECT name, expires_at FROM " + s.table("domains") + w.String() + " ORDER BY name LIMIT " + strconv.Itoa(n))
			rows, err := q.QueryContext(ctx, query, w.args...)
			if err != nil {
				return nil, false, err
			}
			err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
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
