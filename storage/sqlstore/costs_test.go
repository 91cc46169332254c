//go:build cgo

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
	"github.com/diegosdk/diego/task"
)

// What the lists of TestNoListCostsMoreThanItsRowsAndTheTable find: so many
// processes, and as many cells, domains and tasks.
const (
	costProcesses = 4000
	costInstances = 2 // of each process
)

func costName(kind string, i int) string { return fmt.Sprintf("%s-%05d", kind, i) }

// costFill commits the records.
func costFill(t *testing.T, s *Store) {
	t.Helper()
	var b storage.Batch
	for p := range costProcesses {
		d := desired(costName("process", p), costInstances)
		d.Domain = costName("domain", p)
		b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: d})
		for i := range costInstances {
			r := unclaimedAs(d.ProcessGUID, i, d.ProcessGUID)
			r.Domain = d.Domain
			r.State, r.InstanceKey = lrp.Claimed, lrp.InstanceKey{InstanceGUID: fmt.Sprint(p, "-", i), CellID: costName("cell", (7*p+i)%costProcesses)}
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
		}
		x := hotTask(costName("task", p), costName("cell", 7*p%costProcesses))
		x.Domain = d.Domain
		b.Tasks = append(b.Tasks, task.Write{After: x})
		if p%500 == 499 {
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b = storage.Batch{}
		}
	}
}

// A costlyList is a list with n values in one field of its filter.
type costlyList struct {
	name string
	// rows are how many it has, for n values.
	rows func(n int) int
	// looksUp: it costs nothing but its rows, however large the table is.
	looksUp bool
	list    func(r storage.Reader, n int) iter.Seq2[string, error]
}

// anyKey makes the lists of all records comparable.
func anyKey[T any](list iter.Seq2[T, error], key func(T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for x, err := range list {
			name := ""
			if err == nil {
				name = key(x)
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

func costlyLists() []costlyList {
	ctx := context.Background()
	values := func(kind string, n int) (out []string) {
		for i := range n { // from all over the table, in no order; then others
			if out = append(out, costName(kind, i)); i < costProcesses {
				out[i] = costName(kind, i*7919%costProcesses)
			}
		}
		return out
	}
	lrps := func(f func(n int) storage.ActualLRPFilter) func(storage.Reader, int) iter.Seq2[string, error] {
		return func(r storage.Reader, n int) iter.Seq2[string, error] {
			return anyKey(r.ActualLRPs(ctx, f(n)), func(x lrp.ActualLRP) string { return fmt.Sprintf("%s %02d", x.ProcessGUID, x.Index) })
		}
	}
	tasks := func(f func(n int) storage.TaskFilter) func(storage.Reader, int) iter.Seq2[string, error] {
		return func(r storage.Reader, n int) iter.Seq2[string, error] {
			return anyKey(r.Tasks(ctx, f(n)), func(x *task.Task) string { return x.GUID })
		}
	}
	deployments := func(f func(n int) storage.DeploymentFilter) func(storage.Reader, int) iter.Seq2[string, error] {
		return func(r storage.Reader, n int) iter.Seq2[string, error] {
			return anyKey(r.Deployments(ctx, f(n)), func(x *lrp.Deployment) string { return x.ProcessGUID })
		}
	}
	each := func(n int) int { return min(n, costProcesses) }
	twice := func(n int) int { return costInstances * each(n) }
	allLRPs := func(int) int { return costInstances * costProcesses }
	numbers := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	return []costlyList{
		{"instances of processes", twice, true, lrps(func(n int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{ProcessGUIDs: values("process", n)}
		})},
		{"instances of processes in domains", twice, true, lrps(func(n int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{ProcessGUIDs: values("process", n), Domains: values("domain", n)}
		})},
		{"instances on cells", twice, false, lrps(func(n int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{CellIDs: values("cell", n)}
		})},
		{"instances in domains", twice, false, lrps(func(n int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{Domains: values("domain", n)}
		})},
		{"instances with indices", allLRPs, false, lrps(func(n int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{Indices: numbers(n)}
		})},
		{"instances in states", allLRPs, false, lrps(func(int) storage.ActualLRPFilter {
			return storage.ActualLRPFilter{States: []lrp.State{lrp.Claimed}, Presences: []lrp.Presence{lrp.Ordinary}}
		})},
		{"tasks on cells", each, false, tasks(func(n int) storage.TaskFilter {
			return storage.TaskFilter{CellIDs: values("cell", n)}
		})},
		{"tasks in domains", each, false, tasks(func(n int) storage.TaskFilter {
			return storage.TaskFilter{Domains: values("domain", n)}
		})},
		{"tasks in states", func(int) int { return costProcesses }, false, tasks(func(int) storage.TaskFilter {
			return storage.TaskFilter{States: []task.State{task.Running}}
		})},
		{"deployments of processes", each, true, deployments(func(n int) storage.DeploymentFilter {
			return storage.DeploymentFilter{ProcessGUIDs: values("process", n), Bare: true}
		})},
		{"whole deployments of processes", each, true, deployments(func(n int) storage.DeploymentFilter {
			return storage.DeploymentFilter{ProcessGUIDs: values("process", n)}
		})},
		{"deployments in domains", each, false, deployments(func(n int) storage.DeploymentFilter {
			return storage.DeploymentFilter{Domains: values("domain", n), Bare: true}
		})},
	}
}

// costOf is how many pages PostgreSQL, or rows MariaDB, looks at for what f reads
// in a View. Only the View's own session counts: others tell the server what they
// have done seconds later, and a vacuum comes when it likes.
func costOf(t *testing.T, s *Store, f func(r storage.Reader) error) int64 {
	t.Helper()
	var before, after int64
	err := s.view(t.Context(), func(r *reader) error {
		before = work(t, s, r.at)
		err := f(r)
		after = work(t, s, r.at)
		return err
	})
	if err == nil && after == before && s.d.Dir != "sqlite" {
		err = errors.New("the server has counted nothing")
	}
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

func work(t *testing.T, s *Store, session dialect.Querier) (n int64) {
	t.Helper()
	switch s.d.Dir {
	case "sqlite": // does not count
	case "mysql":
		n = handled(t, session, "LIKE 'Handler_read_%'")
	case "postgres":
		err := dialect.QueryRow(t.Context(), session, "SELECT SUM(pg_stat_get_xact_blocks_fetched(oid)) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'i')", &n)
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// handled is the sum of those counters that MySQL keeps of a session.
func handled(t *testing.T, session dialect.Querier, which string) (sum int64) {
	t.Helper()
	rows, err := session.QueryContext(t.Context(), "SHOW SESSION STATUS "+which)
	if err == nil {
		err = dialect.ScanAll(rows, func(r *sql.Rows) error {
			var name string
			var value int64
			err := r.Scan(&name, &value)
			sum += value
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A list that is read in pages must not pay for each page again what the filter
// finds in all, nor compare each row with each value.
func TestNoListCostsMoreThanItsRowsAndTheTable(t *testing.T) {
	const perRow = 6 // pages of an index and of a table that one row takes
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			costFill(t, s)
			for _, analyzed := range []bool{false, true} {
				if analyzed {
					analyze(t, s)
				}
				for _, x := range costlyLists() {
					for _, n := range []int{10, 100, 1000, 3000, 10_000} {
						t.Run(fmt.Sprintf("%s, values=%d, analyzed=%v", x.name, n, analyzed), func(t *testing.T) {
							cost := costOf(t, s, func(r storage.Reader) error { return wantList(x.list(r, n), x.rows(n)) })
							most := int64(perRow * (x.rows(n) + n + 100))
							if !x.looksUp {
								most += 2 * costInstances * costProcesses
							}
							if cost > most {
								t.Errorf("%d rows cost %d, want at most %d", x.rows(n), cost, most)
							}
						})
					}
				}
			}
		})
	}
}

// wantList checks that a list has so many elements, in order.
func wantList(list iter.Seq2[string, error], want int) error {
	n, last := 0, ""
	for x, err := range list {
		if err != nil {
			return err
		}
		if x <= last {
			return fmt.Errorf("%q comes after %q", x, last)
		}
		n, last = n+1, x
	}
	if n != want {
		return fmt.Errorf("the list has %d elements, want %d", n, want)
	}
	return nil
}

// One process may have most of the instances: its pages do not begin with its
// first instance again.
func TestThePagesOfALargeProcessBeginWhereTheLastOneEnded(t *testing.T) {
	const instances = 5000
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			var b storage.Batch
			for i := range instances {
				b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("large", i)})
			}
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			list := func(r storage.Reader) iter.Seq2[string, error] {
				return anyKey(r.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{"a", "large", "z", "a"}}),
					func(x lrp.ActualLRP) string { return fmt.Sprintf("%s %05d", x.ProcessGUID, x.Index) })
			}
			cost := costOf(t, s, func(r storage.Reader) error { return wantList(list(r), instances) })
			if d.dialect == SQLite {
				if plan := planOf(t, s, within()); !strings.Contains(plan, "(process_guid=? AND (idx,definition_id,presence)>(?,?,?))") {
					t.Errorf("the plan is %q", plan)
				}
			} else if cost > 3*instances {
				t.Errorf("%d rows cost %d", instances, cost)
			}
		})
	}
}

// within is the filter of a later page of a process.
func within() func(w *where) []string {
	x := newNames([]string{"large"})
	x.seen([]any{"large", int64(7), "d", int64(0)}, true)
	return func(w *where) []string { return x.want(w, tables.LRPs.Key) }
}

// planOf is the database's plan for a page of ActualLRPs.
func planOf(t *testing.T, s *Store, f func(w *where) []string) (plan string) {
	t.Helper()
	explain := "EXPLAIN "
	if s.d.Dir == "sqlite" {
		explain += "QUERY PLAN "
	}
	w := where{d: s.d}
	order := f(&w)
	rows, err := s.read.Query(explain+w.page("process_guid, data", s.table("actual_lrps"), order, laterPage), w.args...)
	if err == nil {
		err = dialect.ScanAll(rows, func(r *sql.Rows) error {
			columns, err := r.Columns()
			if err != nil {
				return err
			}
			fields, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range fields {
				into[i] = &fields[i]
			}
			err = r.Scan(into...)
			for _, f := range fields {
				plan += f.String + " "
			}
			plan += "\n"
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Neither what is compared with each row nor a sort of what was found counts as
// rows that were looked at, so the plans must show it.
func TestAWalkGoesByTheKeyAndFindsEachValueInAHash(t *testing.T) {
	var domains []string
	for i := range maxPushed {
		domains = append(domains, fmt.Sprint("domain-", i))
	}
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		for name, f := range map[string]func(w *where) []string{
			"in domains": func(w *where) []string {
				w.walk = true
				keep(w, "cell_id", dialect.Text, domains, textArg)
				keep(w, "domain", dialect.Text, domains, textArg)
				w.after(tables.LRPs.Key, []any{"p", int64(0), "d", int64(0)})
				return tables.LRPs.Key
			},
			"of processes": func(w *where) []string {
				keep(w, "domain", dialect.Text, domains, textArg)
				return newNames(domains).want(w, tables.LRPs.Key)
			},
			"of one process": within(),
		} {
			t.Run(name, func(t *testing.T) {
				plan := planOf(t, s, f)
				key, not := map[string]string{"sqlite": "USING PRIMARY KEY", "mysql": "PRIMARY", "postgres": "actual_lrps_pkey"}[s.d.Dir],
					map[string]string{"sqlite": "TEMP B-TREE", "mysql": "filesort", "postgres": "Sort"}[s.d.Dir]
				if !strings.Contains(plan, key) || strings.Contains(plan, not) {
					t.Errorf("want %q, not %q, in the plan\n%s", key, not, plan)
				}
				if s.d.Dir == "postgres" && strings.Contains(plan, "domain") && !strings.Contains(plan, "hashed SubPlan") {
					t.Errorf("the plan compares each row with each value:\n%s", plan)
				}
			})
		}
	})
}
