package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// referenceModel does in SQL what the reference implementation does for the
// lifecycle of an instance: each step is a transaction of its own, which locks the
// row, looks at it and changes it. There is no log of events and no comparison of
// versions. Statements have placeholders, so the driver of MySQL prepares each of
// them, as it does there.
type referenceModel struct {
	db *sql.DB
	d  *dialect.Dialect
}

func newReferenceModel(b *testing.B, dialect Dialect, dsn string) *referenceModel {
	m := &referenceModel{openReference(b, dialect, dsn), dialect.fragments()}
	identifier, long := "VARCHAR(255)", "TEXT"
	if dialect == MySQL {
		long = "MEDIUMTEXT"
	}
	statements := []string{"CREATE TABLE reference_lrps (process_guid " + identifier + ", instance_index INT, presence INT, domain " + identifier +
		" NOT NULL, state " + identifier + " NOT NULL, instance_guid " + identifier + " NOT NULL, cell_id " + identifier +
		" NOT NULL, placement_error VARCHAR(1024) NOT NULL, since BIGINT, net_info " + long + " NOT NULL, internal_routes " + long + ", metric_tags " + long +
		", routable BOOLEAN, availability_zone " + identifier + ", modification_tag_epoch " + identifier + " NOT NULL, modification_tag_index INT, " +
		"crash_count INT NOT NULL, crash_reason VARCHAR(1024) NOT NULL, expire_time BIGINT, evacuating BOOLEAN, " +
		"PRIMARY KEY (process_guid, instance_index, presence))"}
	for _, column := range []string{"domain", "cell_id", "since", "state", "expire_time"} {
		statements = append(statements, "CREATE INDEX reference_"+column+" ON reference_lrps ("+column+")")
	}
	for _, statement := range statements {
		if _, err := m.db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func openReference(b *testing.B, dialect Dialect, dsn string) *sql.DB {
	db := openDB(b, dialect, dsn)
	db.SetMaxIdleConns(32)
	return db
}

const (
	referenceKey    = " WHERE process_guid = ? AND instance_index = ? AND presence = 0"
	referenceSelect = "SELECT process_guid, instance_index, presence, domain, state, instance_guid, cell_id, placement_error, since, net_info, " +
		"modification_tag_epoch, modification_tag_index, crash_count, crash_reason FROM reference_lrps" + referenceKey + " FOR UPDATE"
)

// step is one transaction: it locks and reads the row if it is to be there, and
// then changes it.
func (m *referenceModel) step(ctx context.Context, guid string, index int, there bool, change string, args ...any) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if there {
		var s [9]string
		var n [5]int64
		err := tx.QueryRowContext(ctx, m.d.Rebind(referenceSelect), guid, index).Scan(&s[0], &n[0], &n[1], &s[1], &s[2], &s[3], &s[4], &s[5], &n[2], &s[6], &s[7], &n[3], &n[4], &s[8])
		if err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, m.d.Rebind(change), args...); err != nil {
		return err
	}
	return tx.Commit()
}

func (m *referenceModel) live(ctx context.Context, guid string, index int) error {
	instance, cell := fmt.Sprint("instance-", guid, index), fmt.Sprintf("cell-%04d", index%500)
	const net = `{"address":"10.0.0.1","ports":[{"container_port":8080,"host_port":61001}],"instance_address":"10.255.0.1"}`
	err := m.step(ctx, guid, index, false, "INSERT INTO reference_lrps (process_guid, instance_index, presence, domain, state, instance_guid, cell_id, placement_error, since, "+
		"net_info, modification_tag_epoch, modification_tag_index, crash_count, crash_reason) VALUES (?, ?, 0, ?, 'UNCLAIMED', '', '', '', ?, '', ?, 0, 0, '')",
		guid, index, "apps", noon.UnixNano(), "0123456789abcdef0123")
	if err == nil {
		err = m.step(ctx, guid, index, true, "UPDATE reference_lrps SET state = 'CLAIMED', cell_id = ?, instance_guid = ?, modification_tag_index = ?, placement_error = '', since = ?, net_info = ''"+referenceKey,
			cell, instance, 1, noon.UnixNano()+1, guid, index)
	}
	if err == nil {
		err = m.step(ctx, guid, index, true, "UPDATE reference_lrps SET state = 'RUNNING', cell_id = ?, instance_guid = ?, modification_tag_index = ?, placement_error = '', since = ?, net_info = ?"+referenceKey,
			cell, instance, 2, noon.UnixNano()+2, net, guid, index)
	}
	if err == nil {
		err = m.step(ctx, guid, index, true, "DELETE FROM reference_lrps"+referenceKey, guid, index)
	}
	return err
}

// BenchmarkAgainstReference does the same lifecycles as BenchmarkLifecycle through
// the store and through a model of the reference's statements, by turns, in
// databases of one server.
func BenchmarkAgainstReference(b *testing.B) {
	for _, d := range servers {
		for _, clients := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/clients=%d", d.name, clients), func(b *testing.B) {
				s, m := mustOpen(b, d.database(b), Options{}), newReferenceModel(b, d.dialect, d.database(b))
				const turns = 8
				var ours, theirs float64
				b.ResetTimer()
				for turn := range turns {
					n := max(clients, b.N/turns)
					b.StopTimer()
					began := b.Elapsed()
					guids := deployed(b, s, clients)
					b.StartTimer()
					lifecycles(b, clients, n, func(client, index int) error { return live(b.Context(), s, guids[client], index) })
					ours += (b.Elapsed() - began).Seconds()
					began = b.Elapsed()
					lifecycles(b, clients, n, func(client, index int) error {
						return m.live(b.Context(), fmt.Sprint("process-", client), turn*n+index)
					})
					theirs += (b.Elapsed() - began).Seconds()
				}
				n := float64(turns * max(clients, b.N/turns))
				b.ReportMetric(n/ours, "lifecycles/s")
				b.ReportMetric(n/theirs, "reference/s")
				b.ReportMetric(theirs/ours, "ratio")
			})
		}
	}
}

// lifecycles calls one n times, from several clients at once.
func lifecycles(b *testing.B, clients, n int, one func(client, index int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for index := 0; next.Add(1) <= int64(n); index++ {
				if err := one(client, index%(1<<16)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
