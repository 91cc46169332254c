package sqlstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/storagetest"
	"github.com/diegosdk/diego/task"
)

// sizesOfPages reads a list in one View, page by page, and returns how many elements
// each has.
func sizesOfPages[T any](t *testing.T, s *Store, begin func(r *reader) page[T]) (sizes []int, all []T) {
	t.Helper()
	err := s.view(t.Context(), func(r *reader) error {
		next := begin(r)
		for {
			entries, last, err := next(t.Context(), r.at)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.err != nil {
					return e.err
				}
				all = append(all, e.value)
			}
			if sizes = append(sizes, len(entries)); last || len(sizes) > 10_000 {
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes, all
}

// largeRecords commits small and large tasks and deployments in turn, and returns them
// in order. A large one has size bytes, at deployments for each of two definitions.
func largeRecords(t *testing.T, s *Store, n, size int) (tasks []*task.Task, deployments []*lrp.Deployment) {
	t.Helper()
	for i := range n {
		d := desired(fmt.Sprintf("p%03d", i), 1)
		definition := d.Definitions[d.ProcessGUID]
		large := i%4 != 0
		if large {
			definition.Action.Run.Args = []string{strings.Repeat("x", size)}
		}
		d.Definitions = map[string]lrp.Definition{d.ProcessGUID: definition, "other": definition}
		w := &task.Task{GUID: fmt.Sprintf("t%03d", i), Domain: "apps", State: task.Pending, CreatedAt: noon, UpdatedAt: noon, ModificationTag: lrp.ModificationTag{Epoch: 1}}
		w.RunInfo = definition.RunInfo
		b := storage.Batch{Tasks: []task.Write{{After: w}}, Deployments: []storage.DeploymentWrite{{After: d}}}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tasks, deployments = append(tasks, w), append(deployments, d)
	}
	return tasks, deployments
}

func TestAPageOfLargeRecordsEndsEarly(t *testing.T) {
	const n, size = 14, 1 << 20
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		tasks, deployments := largeRecords(t, s, n, size)
		var guids []string
		for _, d := range deployments {
			guids = append(guids, d.ProcessGUID)
		}
		check := func(what string, sizes []int, most int, same bool) {
			t.Helper()
			if slices.Max(sizes) > most || len(sizes) > 2*n || !same {
				t.Errorf("%s: pages of %v, want at most %d each; complete and in order: %v", what, sizes, most, same)
			}
		}
		most := pageBytes/size + 1 // large ones
		most += most/3 + 1         // and small ones between
		sizes, gotTasks := sizesOfPages(t, s, func(r *reader) page[*task.Task] { return r.taskPages(storage.TaskFilter{}) })
		check("tasks", sizes, most, storagetest.Equal(gotTasks, tasks))
		for what, f := range map[string]storage.DeploymentFilter{"deployments": {}, "named deployments": {ProcessGUIDs: guids}, "deployments of a domain": {Domains: []string{"apps"}}} {
			sizes, got := sizesOfPages(t, s, func(r *reader) page[*lrp.Deployment] { return r.deploymentPages(f) })
			check(what, sizes, most, storagetest.Equal(got, deployments))
		}
		if sizes, _ := sizesOfPages(t, s, func(r *reader) page[*task.Task] { return r.taskPages(storage.TaskFilter{Bare: true}) }); len(sizes) != 1 {
			t.Errorf("bare tasks: pages of %v", sizes)
		}
		// The same through the Store, which reads the first page twice.
		i := 0
		for got, err := range s.Tasks(t.Context(), storage.TaskFilter{}) {
			if err != nil || i >= n || !storagetest.Equal(got, tasks[i]) {
				t.Fatalf("task %d: %v", i, err)
			}
			i++
		}
		if i != n {
			t.Errorf("%d tasks, want %d", i, n)
		}
	})
}

// The instances of one process are read in a group with others, unless they are large.
func TestAPageOfLargeInstancesEndsEarly(t *testing.T) {
	const n = 32
	var ports []lrp.PortMapping // of 4 to 6 bytes
	for i := range uint16(50_000) {
		ports = append(ports, lrp.PortMapping{ContainerPort: i, HostPort: i})
	}
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		var want []lrp.ActualLRP
		for i := range n {
			r := unclaimed("p", i)
			r.State, r.RunningSince, r.Routable = lrp.Running, noon, true
			r.InstanceKey = lrp.InstanceKey{InstanceGUID: fmt.Sprint("i", i), CellID: "c"}
			r.NetInfo = lrp.NetInfo{Address: "10.0.0.1", Ports: ports}
			if _, err := s.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{{After: r}}}); err != nil {
				t.Fatal(err)
			}
			want = append(want, *r)
		}
		for _, f := range []storage.ActualLRPFilter{{}, {ProcessGUIDs: []string{"p"}}, {ProcessGUIDs: []string{"a", "p", "z"}}} {
			sizes, got := sizesOfPages(t, s, func(r *reader) page[lrp.ActualLRP] { return r.lrpPages(f) })
			if slices.Max(sizes) > pageBytes/200_000 || !storagetest.Equal(got, want) {
				t.Errorf("%v: pages of %v, and %d records", f, sizes, len(got))
			}
			got = nil
			for r, err := range s.ActualLRPs(t.Context(), f) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			if !storagetest.Equal(got, want) {
				t.Errorf("%v: %d records through the store", f, len(got))
			}
		}
	})
}

func TestPagesGrowAgainBehindLargeRecords(t *testing.T) {
	p := newPortion(laterPage)
	page := func(rows, bytes int) (asked int, last bool) {
		asked = p.rows
		for range min(rows, asked) {
			if p.took(bytes) != nil {
				break
			}
		}
		return asked, p.next()
	}
	for i, x := range []struct {
		rows, bytes, asked int
		last               bool
	}{
		{5000, 1, firstPage, false}, {5000, 1, laterPage, false}, {5000, 1 << 20, laterPage, false},
		{5000, 1 << 20, 4, false}, {5000, pageBytes + 1, 4, false}, {5000, 1, 1, false}, {5000, 1, 2, false}, {5000, 1, 4, false},
		{5000, 1, 8, false}, {5000, 1, 16, false}, {5000, 1, 32, false}, {5000, 1, 64, false}, {5000, 1, 128, false},
		{5000, 1, firstPage, false}, {laterPage - 1, 1, laterPage, true},
	} {
		if asked, last := page(x.rows, x.bytes); asked != x.asked || last != x.last {
			t.Errorf("page %d asks for %d rows, last: %v; want %d, %v", i, asked, last, x.asked, x.last)
		}
	}
}
