package sqlstore

import (
	"context"
	"database/sql"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// Remembers implements storage.Store, for the Store and for a caller's
// transaction.
func (r *reader) Remembers(ctx context.Context, requestID string) (known bool, err error) {
	if isImpossible(requestID) {
		return false, r.s.usable(ctx) // it is not there
	}
	err = r.query(ctx, "looking for a request", func(ctx context.Context, q dialect.Querier) error {
		known = false
		rows, err := q.QueryContext(ctx, r.s.q.findRequest, requestID)
		if err != nil {
			return err
		}
		return dialect.ScanAll(rows, func(rows *sql.Rows) error {
			var seq int64
			known = true
			return rows.Scan(&seq)
		})
	})
	return known, err
}
