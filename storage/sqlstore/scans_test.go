//go:build cgo

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/task"
)

// Sizes of the tables that no hot statement may scan, and the most rows that
// one operation may look at in all of them.
const (
	scanProcesses = 1000
	scanInstances = 4 // of each process
	scanCells     = 100
	scanMost      = 300
	scanTogether  = 16
)

// A meter tells how many rows the statements of a store have looked at.
type meter interface {
	rows(t *testing.T) int64
}

// What is done all the time must take what it takes however much the tables
// hold. Optimizers are not to be believed: MariaDB does not see the key in a
// list of one row, for instance, and reads all of them.
func TestNoHotStatementScansATable(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			var s *Store
			var m meter
			switch d.dialect {
			case SQLite:
				plans := &sqlitePlans{}
				db := sql.OpenDB(&recordingConnector{"file:" + filepath.Join(t.TempDir(), "diego.db") + "?_journal_mode=WAL&_busy_timeout=5000", plans})
				t.Cleanup(func() { db.Close() })
				var err error
				if s, err = New(db, SQLite, nil); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				plans.s = s
				m = plans
			default:
				s = mustOpen(t, d.database(t), Options{})
				s.read.SetMaxOpenConns(1) // whose counters those of the session are
				m = counters{s}
			}
			population(t, s)
			forget(m)
			for _, analyzed := range []bool{false, true} {
				if analyzed {
					analyze(t, s)
				}
				for _, op := range hotOperations() {
					t.Run(fmt.Sprintf("%s, analyzed=%v", op.name, analyzed), func(t *testing.T) {
						for i := range 3 { // the first time statements are prepared
							now, err := s.Now(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							s.swept, s.leasesSwept = now.UnixNano(), now.UnixNano() // that happens once a minute, to small tables
							before := m.rows(t)
							if err := op.do(t, s, i); err != nil {
								t.Fatal(err)
							}
							if n := m.rows(t) - before; n > scanMost {
								t.Fatalf("it has looked at %d rows, want at most %d", n, scanMost)
							}
						}
					})
				}
			}
		})
	}
}

func processName(i int) string { return fmt.Sprintf("process-%05d", i%scanProcesses) }
func cellName(i int) string    { return fmt.Sprintf("cell-%05d", i%scanCells) }

// population fills every table that grows.
func population(t *testing.T, s *Store) {
	t.Helper()
	var b storage.Batch
	commit := func() {
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b = storage.Batch{}
	}
	for p := range scanProcesses {
		b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: desired(processName(p), 100)})
		for i := range scanInstances {
			r := unclaimed(processName(p), i)
			r.DefinitionID = processName(p)
			r.State, r.InstanceKey = lrp.Claimed, lrp.InstanceKey{InstanceGUID: fmt.Sprint(p, "-", i), CellID: cellName(p*scanInstances + i)}
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
		}
		b.Tasks = append(b.Tasks, task.Write{After: hotTask(processName(p), cellName(p))})
		b.Domains = append(b.Domains, storage.DomainWrite{Name: fmt.Sprint("domain-", p), TTL: time.Hour})
		b.Events = append(b.Events, creation(unclaimed("p", 0)).Events...)
		if p%50 == 49 {
			commit()
		}
	}
	// One row of the log, and one of the requests or markers, for each commit.
	all(t, scanProcesses, func(i int) error {
		b := creation(unclaimed("q", i))
		b.ActualLRPs, b.RequestID = nil, fmt.Sprint("request-", i)
		_, err := s.Commit(t.Context(), b)
		return err
	})
	all(t, scanProcesses, func(i int) error {
		_, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.CellLease, Name: processName(i), Owner: "o"}, time.Hour)
		return err
	})
}

func hotTask(guid, cell string) *task.Task {
	return &task.Task{
		GUID: guid, Domain: "apps", State: task.Running, CellID: cell, InstanceGUID: guid,
		Definition: task.Definition{RunInfo: desired("p", 1).Definitions["p"].RunInfo},
		CreatedAt:  noon, UpdatedAt: noon, ModificationTag: task.ModificationTag{Epoch: noon.UnixNano()},
	}
}

// all calls f n times, many at once, and wants no error.
func all(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range scanTogether {
		wg.Go(func() {
			for i := range numbers {
				if err := f(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func analyze(t *testing.T, s *Store) {
	t.Helper()
	for _, name := range []string{"actual_lrps", "deployments", "definitions", "tasks", "domains", "leases", "events", "requests", "markers"} {
		statement := "ANALYZE "
		if s.d == &dialect.MySQL || s.d.Dir == "mysql" {
			statement += "TABLE "
		}
		if _, err := s.write.Exec(statement + s.table(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A hotOperation is what a control plane does all the time, alone or with
// others at once.
type hotOperation struct {
	name string
	do   func(t *testing.T, s *Store, i int) error
}

func hotOperations() []hotOperation {
	ended := func(list iter.Seq2[lrp.ActualLRP, error]) (err error) {
		for _, err = range list {
		}
		return err
	}
	together := func(f func(t *testing.T, s *Store, i int) error) func(t *testing.T, s *Store, i int) error {
		return func(t *testing.T, s *Store, i int) error {
			all(t, scanTogether, func(n int) error { return f(t, s, 100*(i+1)+n) })
			return nil
		}
	}
	slot := func(t *testing.T, s *Store, i int) error {
		slot, d, err := s.Slot(t.Context(), processName(i), i%scanInstances)
		if err == nil && (len(slot.Records) != 1 || d == nil) {
			err = fmt.Errorf("the slot is %+v of %v", slot, d)
		}
		return err
	}
	instances := func(t *testing.T, s *Store, i int) error {
		return ended(s.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{processName(i)}}))
	}
	lifecycle := func(t *testing.T, s *Store, i int) error { return live(t.Context(), s, processName(i), 50+i%40) }
	requested := func(t *testing.T, s *Store, i int) error {
		// With a request id no guess is made.
		r := unclaimed(processName(i), 95)
		r.DefinitionID = processName(i)
		b, gone := creation(r), storage.Batch{ActualLRPs: []lrp.Write{{Before: r}}}
		b.RequestID, gone.RequestID = fmt.Sprint("hot-", time.Now().UnixNano(), "-", i), fmt.Sprint("gone-", time.Now().UnixNano(), "-", i)
		_, err := s.Commit(t.Context(), b)
		if err == nil {
			_, err = s.Commit(t.Context(), gone)
		}
		return err
	}
	conflict := func(t *testing.T, s *Store, i int) error {
		_, err := s.Commit(t.Context(), creation(unclaimedAs(processName(i), 0, processName(i))))
		if !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("want ErrExists, got %w", err)
		}
		return nil
	}
	deployed := func(t *testing.T, s *Store, i int) error {
		guid := fmt.Sprint("new-", i)
		d := desired(guid, 1)
		scaled := *d
		scaled.Settings.Instances, scaled.ModificationTag = 2, d.ModificationTag.Next()
		for _, w := range []storage.DeploymentWrite{{After: d}, {Before: d, After: &scaled}, {Before: &scaled}} {
			if _, err := s.Commit(t.Context(), storage.Batch{Deployments: []storage.DeploymentWrite{w}, Events: creation(unclaimed("p", 0)).Events}); err != nil {
				return err
			}
		}
		return nil
	}
	tasks := func(t *testing.T, s *Store, i int) error {
		fresh := hotTask(fmt.Sprint("new-", i), "")
		fresh.State, fresh.InstanceGUID = task.Pending, ""
		started := hotTask(fresh.GUID, cellName(i))
		started.ModificationTag = fresh.ModificationTag.Next()
		for _, w := range []task.Write{{After: fresh}, {Before: fresh, After: started}, {Before: started}} {
			if _, err := s.Commit(t.Context(), storage.Batch{Tasks: []task.Write{w}, Events: creation(unclaimed("p", 0)).Events}); err != nil {
				return err
			}
		}
		return nil
	}
	lease := func(t *testing.T, s *Store, i int) error {
		l, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: fmt.Sprint("role-", i), Owner: "o"}, time.Hour)
		if err == nil {
			l, err = s.Renew(t.Context(), l, time.Hour)
		}
		if err == nil {
			b := creation(unclaimedAs(processName(i), 98, "d"))
			b.Fence = l.Fence()
			if _, err = s.Commit(t.Context(), b); err == nil {
				_, err = s.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{{Before: b.ActualLRPs[0].After}}, Fence: l.Fence()})
			}
		}
		if err == nil {
			err = s.Release(t.Context(), l)
		}
		return err
	}
	domain := func(t *testing.T, s *Store, i int) error {
		var b storage.Batch
		b.AddDomain(fmt.Sprint("domain-", i), time.Hour)
		_, err := s.Commit(t.Context(), b)
		return err
	}
	return []hotOperation{
		{"a slot", slot},
		{"slots", together(slot)},
		{"the instances of a process", instances},
		{"the instances of processes", together(instances)},
		{"the instances of several processes", func(t *testing.T, s *Store, i int) error {
			return ended(s.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{processName(i), processName(i + 7), processName(i + 500)}}))
		}},
		{"some instances of a process", func(t *testing.T, s *Store, i int) error {
			return ended(s.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{processName(i)}, Indices: []int{0, 2}, Domains: []string{"apps"}}))
		}},
		{"the instances on a cell", func(t *testing.T, s *Store, i int) error {
			return ended(s.ActualLRPs(t.Context(), storage.ActualLRPFilter{CellIDs: []string{cellName(i)}}))
		}},
		{"a deployment", func(t *testing.T, s *Store, i int) error {
			_, err := s.Deployment(t.Context(), processName(i))
			return err
		}},
		{"some deployments", func(t *testing.T, s *Store, i int) (err error) {
			f := storage.DeploymentFilter{ProcessGUIDs: []string{processName(i), processName(i + 77)}, Bare: i%3 == 1, WithoutDefinitions: i%3 == 2}
			for _, err = range s.Deployments(t.Context(), f) {
			}
			return err
		}},
		{"a definition of a deployment", func(t *testing.T, s *Store, i int) (err error) {
			f := storage.DeploymentFilter{ProcessGUIDs: []string{processName(i)}, DefinitionIDs: []string{processName(i), "absent"}[:1+i%2]}
			for _, err = range s.Deployments(t.Context(), f) {
			}
			return err
		}},
		{"a task", func(t *testing.T, s *Store, i int) error {
			_, err := s.Task(t.Context(), processName(i))
			return err
		}},
		{"the tasks on a cell", func(t *testing.T, s *Store, i int) (err error) {
			for _, err = range s.Tasks(t.Context(), storage.TaskFilter{CellIDs: []string{cellName(i)}}) {
			}
			return err
		}},
		{"the running tasks on a cell", func(t *testing.T, s *Store, i int) (err error) {
			for _, err = range s.Tasks(t.Context(), storage.TaskFilter{CellIDs: []string{cellName(i)}, States: []task.State{task.Running}}) {
			}
			return err
		}},
		{"the end of the log", func(t *testing.T, s *Store, i int) error {
			extent, err := s.Log(t.Context())
			if err == nil {
				for _, err = range s.Events(t.Context(), extent.Newest-10, storage.EventFilter{}) {
				}
			}
			if err == nil {
				err = s.Wait(t.Context(), extent.Newest-1)
			}
			return err
		}},
		{"a lifecycle", lifecycle},
		{"lifecycles", together(lifecycle)},
		{"a commit with a request id", requested},
		{"commits with request ids", together(requested)},
		{"a commit that conflicts", conflict},
		{"a deployment that comes and goes", deployed},
		{"deployments that come and go", together(deployed)},
		{"a task that comes and goes", tasks},
		{"tasks that come and go", together(tasks)},
		{"a lease and what it fences", lease},
		{"leases and what they fence", together(lease)},
		{"a domain", domain},
		{"domains", together(domain)},
	}
}

func unclaimedAs(guid string, index int, definition string) *lrp.ActualLRP {
	r := unclaimed(guid, index)
	r.DefinitionID = definition
	return r
}

// counters are those that PostgreSQL and MySQL keep. The store has three
// connections.
type counters struct{ s *Store }

func (c counters) rows(t *testing.T) (n int64) {
	t.Helper()
	if c.s.d.Dir == "mysql" {
		for _, db := range []*sql.DB{c.s.write, c.s.lease, c.s.read} {
			// Rows of a scan, rows of a range, and keys that were looked up.
			n += handled(t, db, "WHERE Variable_name IN ('Handler_read_rnd_next', 'Handler_read_next', 'Handler_read_prev')")
		}
		return n
	}
	for _, db := range []*sql.DB{c.s.write, c.s.lease, c.s.read} {
		if _, err := db.Exec("SELECT pg_stat_force_next_flush()"); err != nil {
			testenv.Missing(t, "pg_stat_force_next_flush", "use PostgreSQL 15 or newer")
		}
	}
	// Not the log, which has one row.
	err := c.s.write.QueryRow(`SELECT (SELECT COALESCE(SUM(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname <> 'diego_log')
		+ (SELECT COALESCE(SUM(idx_tup_read), 0) FROM pg_stat_user_indexes)`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sqlitePlans has no counters, but the statements themselves: the plan of each
// must say that it searches.
type sqlitePlans struct {
	s *Store

	mu   sync.Mutex
	sent map[string][]driver.NamedValue
}

func (p *sqlitePlans) record(query string, args []driver.NamedValue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == nil {
		p.sent = make(map[string][]driver.NamedValue)
	}
	p.sent[query] = args
}

// forget leaves out what was sent up to now.
func forget(m meter) {
	if p, is := m.(*sqlitePlans); is {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sent = nil
	}
}

// rows counts a scan as a million.
func (p *sqlitePlans) rows(t *testing.T) (n int64) {
	t.Helper()
	p.mu.Lock()
	sent := p.sent
	p.sent = nil
	p.mu.Unlock()
	for _, query := range slices.Sorted(maps.Keys(sent)) {
		if word, _, _ := strings.Cut(query, " "); !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, word) {
			continue
		}
		var args []any
		for _, a := range sent[query] {
			args = append(args, a.Value)
		}
		rows, err := p.s.read.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		err = dialect.ScanAll(rows, func(r *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := r.Scan(&id, &parent, &unused, &detail)
			if table, scans := strings.CutPrefix(detail, "SCAN "); scans && strings.HasPrefix(table, "diego_") {
				t.Errorf("%s\nhas the plan %q", query, detail)
				n += 1_000_000
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.mu.Lock()
	p.sent = nil // the explanations themselves
	p.mu.Unlock()
	return n
}

// A recordingConnector makes connections to SQLite that note what they are sent.
type recordingConnector struct {
	dsn   string
	plans *sqlitePlans
}

func (c *recordingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &recordingConn{conn.(*sqlite3.SQLiteConn), c.plans}, nil
}

func (c *recordingConnector) Driver() driver.Driver { return new(sqlite3.SQLiteDriver) }

type recordingConn struct {
	*sqlite3.SQLiteConn
	plans *sqlitePlans
}

func (c *recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.plans.record(query, args)
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c *recordingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.plans.record(query, args)
	return c.SQLiteConn.ExecContext(ctx, query, args)
}
