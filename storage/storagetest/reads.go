package storagetest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// awkward are identifiers that a careless collation, index or pattern would
// take for one another, or order in another way.
var awkward = []string{
	"%", "A", "App", "_", "a", "a b", "a ", "app", "application", "ä", "日本", "🙂",
}

var readCases = []testCase{
	{sentence: "a new store has nothing in it", check: func(f *fixture) {
		f.same("everything", f.everything(), []any{
			[]*lrp.Deployment(nil), []lrp.ActualLRP(nil), []*task.Task(nil), []lrp.Domain(nil), storage.Extent{Oldest: 1, Newest: 0},
		})
	}},
	{sentence: "an ActualLRP that is read is the one that was committed, in every state", check: func(f *fixture) {
		want := shapes()
		f.createAll(want...)
		for i, got := range f.lrps(storage.ActualLRPFilter{}) {
			f.same("record", got, *want[i])
			slot, _, err := f.Store.Slot(f.ctx, got.ProcessGUID, got.Index)
			f.must(err)
			f.same("slot", slot, lrp.Slot{ProcessGUID: "p", Index: i, Records: []lrp.ActualLRP{*want[i]}})
		}
	}},
	{sentence: "a deployment that is read is the one that was committed", check: func(f *fixture) {
		want := deployment("p")
		f.commit(deploymentWrite(nil, want))
		got, err := f.Store.Deployment(f.ctx, "p")
		f.must(err)
		f.same("deployment", got, want)
		f.same("list", f.deployments(storage.DeploymentFilter{}), []*lrp.Deployment{want})
	}},
	{sentence: "a task that is read is the one that was committed", check: func(f *fixture) {
		created := pending("t")
		failed := nextTask(created, func(t *task.Task) {
			t.State, t.CellID, t.InstanceGUID = task.Resolving, "cell-1", "i-1"
			t.Failed, t.FailureReason = true, "exit status 1\x00\n"
			t.RejectionCount, t.RejectionReason = 3, "no room"
			t.UpdatedAt, t.FirstCompletedAt = begin.Add(2), begin.Add(1)
		})
		f.commit(taskWrite(nil, created))
		f.commit(taskWrite(created, failed))
		got, err := f.Store.Task(f.ctx, "t")
		f.must(err)
		f.same("task", got, failed)
		f.same("list", f.tasks(storage.TaskFilter{}), []*task.Task{failed})
	}},
	{sentence: "records of maximal size are kept whole", check: func(f *fixture) {
		id := strings.Repeat("🙂", storage.MaxIdentifierBytes/4) + "abc"
		reason := strings.Repeat("ü", executor.MaxReasonBytes/2)
		d := deployment(id)
		d.Annotation = strings.Repeat("x", 10*1024)
		d.Routes = lrp.Routes{"r": []byte(`"` + strings.Repeat("y", 128*1024-2) + `"`)}
		d.Definitions = map[string]lrp.Definition{}
		for i := range lrp.MaxDefinitions {
			definition := lrp.Definition{RunInfo: runInfo()}
			definition.Env[0].Value = strings.Repeat("z", 64*1024)
			d.ActiveDefinitionID = fmt.Sprintf("%s%02d", id[:storage.MaxIdentifierBytes-2], i)
			if i == 0 {
				d.ActiveDefinitionID = "d"
			}
			d.Definitions[d.ActiveDefinitionID] = definition
		}
		d.Domain = id
		r := unclaimed(id, 1<<31-1)
		r.Domain, r.DefinitionID, r.CrashReason, r.CrashCount = id, id, reason, 1<<31-1
		r.PlacementError = lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: reason[:900]}
		r.ModificationTag = lrp.ModificationTag{Epoch: 1<<63 - 1, Index: 1<<63 - 1}
		held := running(id, 0, id)
		held.InstanceGUID, held.Zone = id, id
		for port := range 1000 {
			held.Ports = append(held.Ports, lrp.PortMapping{ContainerPort: uint16(port + 1), HostPort: 65535})
		}
		t := pending(id)
		t.State, t.CellID, t.InstanceGUID, t.Domain = task.Completed, id, id, id
		t.FailureReason, t.RejectionReason = reason, reason
		t.Annotation, t.Result = strings.Repeat("x", 10*1024), strings.Repeat("r", task.MaxResultBytes)
		b := lrpWrite(nil, r)
		b.AddChange(lrp.Change{After: d, Events: []lrp.Event{{Kind: lrp.DeploymentCreated, DeploymentAfter: d}}})
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: held})
		b.Tasks = []task.Write{{After: t}}
		b.Domains = []storage.DomainWrite{{Name: id}}
		b.RequestID = id
		f.commit(b)
		f.same("deployments", f.deployments(storage.DeploymentFilter{}), []*lrp.Deployment{d})
		f.same("actual LRPs", f.lrps(storage.ActualLRPFilter{}), []lrp.ActualLRP{*held, *r})
		f.same("tasks", f.tasks(storage.TaskFilter{}), []*task.Task{t})
		f.same("domains", all(f, f.Store.Domains(f.ctx)), []lrp.Domain{{Name: id}})
		f.same("event", f.events(0, storage.EventFilter{})[0].LRP.DeploymentAfter, d)
	}},
	{sentence: "identifiers are compared and ordered by their bytes", check: func(f *fixture) {
		want := strings.Join(slices.Sorted(slices.Values(awkward)), "|")
		for i := range awkward { // in another order than theirs
			id := awkward[(i*5)%len(awkward)]
			b := deploymentWrite(nil, deployment(id))
			r := running(id, 0, id)
			r.Domain = id
			b.ActualLRPs = []lrp.Write{{After: r}}
			t := pending(id)
			t.Domain = id
			b.Tasks = []task.Write{{After: t}}
			b.Domains = []storage.DomainWrite{{Name: id}}
			b.RequestID = id
			b.Events = []storage.Event{created(r)}
			f.commit(b)
			_, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: id, Owner: "o"}, time.Hour)
			f.must(err)
		}
		join := func(what string, got []string) {
			f.Helper()
			if g := strings.Join(got, "|"); g != want {
				f.Fatalf("%s in the order %s, want %s", what, g, want)
			}
		}
		var lists [5][]string
		for _, d := range f.deployments(storage.DeploymentFilter{}) {
			lists[0] = append(lists[0], d.ProcessGUID)
		}
		for _, r := range f.lrps(storage.ActualLRPFilter{}) {
			lists[1] = append(lists[1], r.ProcessGUID)
		}
		for _, t := range f.tasks(storage.TaskFilter{}) {
			lists[2] = append(lists[2], t.GUID)
		}
		for _, d := range all(f, f.Store.Domains(f.ctx)) {
			lists[3] = append(lists[3], d.Name)
		}
		for _, l := range all(f, f.Store.Leases(f.ctx, "kind")) {
			lists[4] = append(lists[4], l.Name)
		}
		for i, what := range []string{"deployments", "actual LRPs", "tasks", "domains", "leases"} {
			join(what, lists[i])
		}
		for _, id := range awkward {
			one := []string{id}
			for what, n := range map[string]int{
				"deployments by guid":   len(f.deployments(storage.DeploymentFilter{ProcessGUIDs: one})),
				"actual LRPs by guid":   len(f.lrps(storage.ActualLRPFilter{ProcessGUIDs: one})),
				"actual LRPs by cell":   len(f.lrps(storage.ActualLRPFilter{CellIDs: one})),
				"actual LRPs by domain": len(f.lrps(storage.ActualLRPFilter{Domains: one})),
				"tasks by domain":       len(f.tasks(storage.TaskFilter{Domains: one})),
				"events by guid":        len(f.events(0, storage.EventFilter{ProcessGUIDs: one})),
				"events by domain":      len(f.events(0, storage.EventFilter{Domains: one})),
				"events by cell":        len(f.events(0, storage.EventFilter{CellIDs: one})),
			} {
				if n != 1 {
					f.Errorf("%s %q: %d, want 1", what, id, n)
				}
			}
			t, err := f.Store.Task(f.ctx, id)
			f.must(err)
			f.same("task", t.GUID, id)
		}
	}},
	{sentence: "ActualLRPs are ordered by process guid, index, definition id and presence", check: func(f *fixture) {
		var want, records []*lrp.ActualLRP
		for _, guid := range []string{"B", "a", "b"} {
			for _, index := range []int{0, 2, 10} {
				for _, definition := range []string{"D2", "d1"} {
					for _, presence := range []lrp.Presence{lrp.Ordinary, lrp.Evacuating, lrp.Suspect} {
						r := running(guid, index, "cell")
						r.DefinitionID, r.Presence, r.ModificationTag = definition, presence, tag(len(want))
						if presence == lrp.Evacuating {
							r.ExpiresAt = begin.Add(1)
						}
						want = append(want, r)
					}
				}
			}
		}
		for i := range want {
			records = append(records, want[(i*23)%len(want)])
		}
		f.createAll(records...)
		text := func(r *lrp.ActualLRP) string { return lrpName(*r) }
		f.same("list", names(f.lrps(storage.ActualLRPFilter{}), lrpName), names(want, text))
		slot, _, err := f.Store.Slot(f.ctx, "a", 2)
		f.must(err)
		f.same("slot", names(slot.Records, lrpName), names(want[24:30], text))
		f.same("by guids", names(f.lrps(storage.ActualLRPFilter{ProcessGUIDs: []string{"b", "a", "b"}}), lrpName), names(want[18:], text))
		f.same("on a cell", names(f.lrps(storage.ActualLRPFilter{CellIDs: []string{"cell"}}), lrpName), names(want, text))
	}},
	{sentence: "a record must satisfy every field of a filter with any of its values", check: checkFilters},
	{sentence: "a bare deployment has only what Step and PlanLRPs look at", check: func(f *fixture) {
		whole := deployment("p")
		whole.HealthyDefinitionID = "d"
		whole.Definitions["e"] = whole.Definitions["d"]
		f.commit(deploymentWrite(nil, whole))
		f.same("list", f.deployments(storage.DeploymentFilter{Bare: true}), []*lrp.Deployment{storage.Bare(whole)})
		_, bare, err := f.Store.Slot(f.ctx, "p", 0)
		f.must(err)
		f.same("of a slot", bare, storage.Bare(whole))
	}},
	{sentence: "a bare task has neither its definition nor its result", check: func(f *fixture) {
		waiting := pending("t")
		waiting.Env[0].Value = strings.Repeat("z", 1<<20)
		ended := nextTask(pending("u"), func(t *task.Task) {
			t.State, t.CellID, t.InstanceGUID, t.Domain = task.Completed, "cell-1", "i-1", "other"
			t.Result = strings.Repeat("r", task.MaxResultBytes)
			t.RejectionCount, t.RejectionReason = 3, "no room"
			t.UpdatedAt, t.FirstCompletedAt = begin.Add(2), begin.Add(1)
			t.Labels = map[string]string{"team": "shop"}
		})
		shop, err := executor.ParseSelector("team=shop")
		f.must(err)
		for _, t := range []*task.Task{waiting, ended} {
			f.commit(taskWrite(nil, t))
		}
		f.same("list", f.tasks(storage.TaskFilter{Bare: true}), []*task.Task{storage.BareTask(waiting), storage.BareTask(ended)})
		for _, filter := range []storage.TaskFilter{
			{CellIDs: []string{"cell-1"}}, {Domains: []string{"other"}}, {States: []task.State{task.Completed}}, {Selector: shop},
		} {
			filter.Bare = true
			f.same("filtered", f.tasks(filter), []*task.Task{storage.BareTask(ended)})
		}
		whole, err := f.Store.Task(f.ctx, "t")
		f.must(err)
		f.same("task", whole, waiting)
	}},
	{sentence: "a deployment without definitions has all settings, and of the definitions their ids", check: func(f *fixture) {
		whole, other := deployment("p"), deployment("q")
		whole.HealthyDefinitionID = "d"
		whole.Definitions["e"] = whole.Definitions["d"]
		other.Domain = "other"
		f.commit(deploymentWrite(nil, whole))
		f.commit(deploymentWrite(nil, other))
		f.same("list", f.deployments(storage.DeploymentFilter{WithoutDefinitions: true}),
			[]*lrp.Deployment{storage.WithoutDefinitions(whole), storage.WithoutDefinitions(other)})
		for _, filter := range []storage.DeploymentFilter{{ProcessGUIDs: []string{"q", "x"}}, {Domains: []string{"other"}}} {
			filter.WithoutDefinitions = true
			f.same("filtered", f.deployments(filter), []*lrp.Deployment{storage.WithoutDefinitions(other)})
		}
		f.same("bare", f.deployments(storage.DeploymentFilter{Bare: true, WithoutDefinitions: true, Domains: []string{"domain"}}),
			[]*lrp.Deployment{storage.Bare(whole)})
	}},
	{sentence: "of the definitions, a deployment has those that are asked for, and the ids of the others", check: func(f *fixture) {
		whole, other := deployment("p"), deployment("q")
		whole.HealthyDefinitionID = "e"
		for i, id := range []string{"D", "e", "ä"} {
			d := whole.Definitions["d"]
			d.Resources.MemoryMB = int64(100 + i)
			whole.Definitions[id] = d
		}
		f.commit(deploymentWrite(nil, whole))
		f.commit(deploymentWrite(nil, other))
		many := []string{"ä"} // more than fit into a statement
		for i := range 2000 {
			many = append(many, fmt.Sprint("absent-", i))
		}
		for _, ids := range [][]string{{"d"}, {"D"}, {"e", "d"}, {"ä", "ä"}, {"absent"}, {"absent", "e"}, {"e\x00"}, {"\xff", "D"}, {""}, {"d", "D", "e", "ä"}, many} {
			for _, filter := range []storage.DeploymentFilter{{}, {ProcessGUIDs: []string{"p"}}, {ProcessGUIDs: []string{"q", "p", "x"}}, {Domains: []string{"domain"}}} {
				filter.DefinitionIDs = ids
				want := []*lrp.Deployment{storage.WithDefinitions(whole, ids...)}
				if len(filter.ProcessGUIDs) != 1 {
					want = append(want, storage.WithDefinitions(other, ids...))
				}
				f.same(fmt.Sprintf("%.5q of %q", ids, filter.ProcessGUIDs), f.deployments(filter), want)
			}
		}
		f.same("bare", f.deployments(storage.DeploymentFilter{ProcessGUIDs: []string{"p"}, DefinitionIDs: []string{"d"}, Bare: true}),
			[]*lrp.Deployment{storage.Bare(whole)})
		f.same("without", f.deployments(storage.DeploymentFilter{ProcessGUIDs: []string{"p"}, DefinitionIDs: []string{"d"}, WithoutDefinitions: true}),
			[]*lrp.Deployment{storage.WithoutDefinitions(whole)})
	}},
	{sentence: "a slot without records or deployment is not an error", check: func(f *fixture) {
		f.createAll(unclaimed("p", 1), unclaimed("q", 0))
		slot, d, err := f.Store.Slot(f.ctx, "p", 0)
		f.must(err)
		f.same("slot", slot, lrp.Slot{ProcessGUID: "p"})
		if d != nil {
			f.Fatalf("deployment %+v, want none", d)
		}
	}},
	{sentence: "the read of one record that is not there is ErrNotFound", check: func(f *fixture) {
		_, deploymentErr := f.Store.Deployment(f.ctx, "p")
		_, taskErr := f.Store.Task(f.ctx, "t")
		for key, err := range map[storage.RecordKey]error{storage.DeploymentKey("p"): deploymentErr, storage.TaskKey("t"): taskErr} {
			var e *storage.NotFoundError
			if !errors.As(err, &e) || e.Key != key || !errors.Is(err, storage.ErrNotFound) {
				f.Errorf("%v: %v, want a *NotFoundError", key, err)
			}
		}
	}},
	{sentence: "a name that no record can have finds nothing", check: func(f *fixture) {
		f.createAll(unclaimed("p", 0))
		for _, name := range []string{"", "p\x00", "p\xff", strings.Repeat("p", 1000)} {
			guids := []string{name, "p"}
			f.same("an only name", len(f.lrps(storage.ActualLRPFilter{ProcessGUIDs: guids[:1]})), 0)
			f.same("one of two names", len(f.lrps(storage.ActualLRPFilter{ProcessGUIDs: guids})), 1)
			f.same("deployments", len(f.deployments(storage.DeploymentFilter{ProcessGUIDs: guids})), 0)
			f.same("tasks", len(f.tasks(storage.TaskFilter{CellIDs: []string{name}, States: []task.State{task.Running}})), 0)
			f.same("leases", len(all(f, f.Store.Leases(f.ctx, name))), 0)
			slot, d, err := f.Store.Slot(f.ctx, name, 0)
			f.must(err)
			f.same("slot", len(slot.Records) == 0 && d == nil, true)
			_, deploymentErr := f.Store.Deployment(f.ctx, name)
			_, taskErr := f.Store.Task(f.ctx, name)
			if !errors.Is(deploymentErr, storage.ErrNotFound) || !errors.Is(taskErr, storage.ErrNotFound) {
				f.Errorf("%q: %v, %v, want ErrNotFound", name, deploymentErr, taskErr)
			}
		}
	}},
	{sentence: "a list reads from the start each time it is ranged over", check: func(f *fixture) {
		f.createAll(unclaimed("p", 0), unclaimed("p", 1))
		list := f.Store.ActualLRPs(f.ctx, storage.ActualLRPFilter{})
		for range list {
			break
		}
		f.same("second time", len(all(f, list)), 2)
		f.createAll(unclaimed("p", 2))
		f.same("third time", len(all(f, list)), 3)
	}},
	{sentence: "a caller that stops early leaves nothing behind", check: func(f *fixture) {
		const many = 300
		var b storage.Batch
		for i := range many {
			r := unclaimed("p", i)
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
			b.Events = append(b.Events, created(r))
			b.Domains = append(b.Domains, storage.DomainWrite{Name: fmt.Sprint(i)})
		}
		f.commit(b)
		for i := range 30 { // more than a pool has
			stopEarly(f.Store.ActualLRPs(f.ctx, storage.ActualLRPFilter{}))
			stopEarly(f.Store.Events(f.ctx, 0, storage.EventFilter{}))
			stopEarly(f.Store.Domains(f.ctx))
			f.must(f.Store.View(f.ctx, func(r storage.Reader) error {
				stopEarly(r.ActualLRPs(f.ctx, storage.ActualLRPFilter{}))
				return nil
			}))
			f.createAll(unclaimed("q", i))
		}
	}},
	{sentence: "a list of large records is whole, in order and of one moment", check: func(f *fixture) {
		const many, size = 20, 512 << 10 // in all, several pages of a store that has some
		var tasks []*task.Task
		var deployments []*lrp.Deployment
		for i := range many {
			t, d := pending(fmt.Sprintf("t%02d", i)), deployment(fmt.Sprintf("p%02d", i))
			if i%5 != 0 {
				t.Action.Run = &executor.RunAction{Path: "/bin/app", Args: []string{strings.Repeat("x", size)}, User: "vcap"}
				for id, definition := range d.Definitions {
					definition.Action.Run = t.Action.Run
					d.Definitions[id] = definition
				}
			}
			tasks, deployments = append(tasks, t), append(deployments, d)
			f.commit(storage.Batch{Tasks: []task.Write{{After: t}}, Deployments: []storage.DeploymentWrite{{After: d}}})
		}
		var seenTasks []*task.Task
		for t, err := range f.Store.Tasks(f.ctx, storage.TaskFilter{}) {
			f.must(err)
			if len(seenTasks) == 0 {
				last := tasks[many-1]
				f.commit(storage.Batch{Tasks: []task.Write{{After: pending("u")}, {Before: last, After: nextTask(last, nil)}}})
			}
			seenTasks = append(seenTasks, t)
		}
		f.same("tasks", seenTasks, tasks)
		f.same("deployments", f.deployments(storage.DeploymentFilter{}), deployments)
		f.same("named deployments", f.deployments(storage.DeploymentFilter{ProcessGUIDs: []string{"p01", "p19", "p00", "p07", "p08", "p13"}}),
			[]*lrp.Deployment{deployments[0], deployments[1], deployments[7], deployments[8], deployments[13], deployments[19]})
		f.same("tasks later", len(f.tasks(storage.TaskFilter{})), many+1)
	}},
	{sentence: "lists of one Reader may be interleaved", check: func(f *fixture) {
		const many = 1500
		var b storage.Batch
		for i := range many {
			guid := fmt.Sprintf("p%05d", i)
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed(guid, 0)})
			b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: deployment(guid)})
		}
		f.commit(b)
		join := func(r storage.Reader) error {
			deployments, stop := iter.Pull2(r.Deployments(f.ctx, storage.DeploymentFilter{Bare: true}))
			defer stop()
			n := 0
			for rec, err := range r.ActualLRPs(f.ctx, storage.ActualLRPFilter{}) {
				f.must(err)
				d, err, ok := deployments()
				f.must(err)
				if !ok || d.ProcessGUID != rec.ProcessGUID {
					f.Fatalf("record %d is of %s, the deployment is %+v", n, rec.ProcessGUID, d)
				}
				n++
			}
			f.same("pairs", n, many)
			return nil
		}
		f.must(f.Store.View(f.ctx, join))
		f.must(join(f.Store))
	}},
	{sentence: "a list sees one moment while commits go on", check: func(f *fixture) {
		const many = 2500
		var b storage.Batch
		for i := range many {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("p", 2*i)})
		}
		f.commit(b)
		n := 0
		for r, err := range f.Store.ActualLRPs(f.ctx, storage.ActualLRPFilter{}) {
			f.must(err)
			if r.Index != 2*n || r.State != lrp.Unclaimed {
				f.Fatalf("record %d has index %d and is %v: it was changed after the list began", n, r.Index, r.State)
			}
			if n == 0 {
				last := b.ActualLRPs[many-1].After
				f.createAll(unclaimed("p", 1), unclaimed("p", 2*many-3))
				f.commit(lrpWrite(last, next(last, func(r *lrp.ActualLRP) { r.State = lrp.Crashed })))
				f.commit(lrpWrite(b.ActualLRPs[many-2].After, nil))
			}
			n++
		}
		f.same("records", n, many)
		f.same("records now", len(f.lrps(storage.ActualLRPFilter{})), many+1)
	}},
	{sentence: "a View sees one moment: all that was committed before and nothing later", check: func(f *fixture) {
		d, r, t := deployment("p"), unclaimed("p", 0), pending("t")
		b := deploymentWrite(nil, d)
		b.ActualLRPs = []lrp.Write{{After: r}}
		b.Tasks = []task.Write{{After: t}}
		b.Events = []storage.Event{created(r)}
		b.AddDomain("domain", 0)
		f.commit(b)
		lease, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: "o"}, time.Hour)
		f.must(err)
		f.must(f.Store.View(f.ctx, func(view storage.Reader) error {
			now, err := view.Now(f.ctx)
			f.must(err)
			for round := range 2 {
				f.same("deployments", all(f, view.Deployments(f.ctx, storage.DeploymentFilter{})), []*lrp.Deployment{d})
				f.same("actual LRPs", all(f, view.ActualLRPs(f.ctx, storage.ActualLRPFilter{})), []lrp.ActualLRP{*r})
				f.same("tasks", all(f, view.Tasks(f.ctx, storage.TaskFilter{})), []*task.Task{t})
				f.same("domains", len(all(f, view.Domains(f.ctx))), 1)
				f.same("leases", len(all(f, view.Leases(f.ctx, "kind"))), 1)
				f.same("events", len(all(f, view.Events(f.ctx, 0, storage.EventFilter{}))), 2)
				extent, err := view.Log(f.ctx)
				f.must(err)
				f.same("log", extent, storage.Extent{Oldest: 1, Newest: 2})
				slot, bare, err := view.Slot(f.ctx, "p", 0)
				f.must(err)
				f.same("slot", slot.Records, []lrp.ActualLRP{*r})
				f.same("deployment of the slot", bare, storage.Bare(d))
				got, err := view.Deployment(f.ctx, "p")
				f.must(err)
				f.same("deployment", got, d)
				one, err := view.Task(f.ctx, "t")
				f.must(err)
				f.same("task", one, t)
				again, err := view.Now(f.ctx)
				f.must(err)
				f.same("clock", again, now)
				if round == 1 {
					break
				}
				b := deploymentWrite(d, nextDeployment(d, nil))
				b.ActualLRPs = []lrp.Write{{Before: r}, {After: unclaimed("p", 1)}}
				b.Tasks = []task.Write{{Before: t}}
				b.AddDomain("another", 0)
				f.commit(b)
				f.must(f.Store.Release(f.ctx, lease))
			}
			return nil
		}))
		f.same("actual LRPs afterwards", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/1/d/ORDINARY")
	}},
	{sentence: "in a View the clock stands still, and no lease expires", check: func(f *fixture) {
		lease := f.acquireBriefly("n", "o")
		f.must(f.Store.View(f.ctx, func(view storage.Reader) error {
			before, err := view.Now(f.ctx)
			f.must(err)
			for range 2 {
				now, err := view.Now(f.ctx)
				f.must(err)
				f.same("clock", now, before)
				f.same("leases", all(f, view.Leases(f.ctx, "kind")), []storage.Lease{lease})
				f.pass(2 * f.ttl())
			}
			return nil
		}))
		f.same("leases afterwards", len(all(f, f.Store.Leases(f.ctx, "kind"))), 0)
	}},
	{sentence: "a View returns the error of its function, and its Reader ends with it", check: func(f *fixture) {
		f.createAll(unclaimed("p", 0))
		want := errors.New("mine")
		var kept storage.Reader
		err := f.Store.View(f.ctx, func(r storage.Reader) error { kept = r; return want })
		if !errors.Is(err, want) {
			f.Errorf("View: %v, want %v", err, want)
		}
		for _, err := range kept.ActualLRPs(f.ctx, storage.ActualLRPFilter{}) {
			if err == nil {
				f.Error("a Reader lists records after its View")
			}
		}
		if _, _, err := kept.Slot(f.ctx, "p", 0); err == nil {
			f.Error("a Reader reads a slot after its View")
		}
	}},
	{sentence: "what was committed is there after the store was opened again", needs: needsReopen, check: func(f *fixture) {
		d := deployment("p")
		b := deploymentWrite(nil, d)
		for _, r := range shapes() {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
			b.Events = append(b.Events, created(r))
		}
		b.AddTask(task.Decision{Write: task.Write{After: pending("t")}})
		b.AddDomain("domain", 0)
		b.RequestID = "request"
		f.commit(b)
		lease, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: "o"}, time.Hour)
		f.must(err)
		before, events := f.records(), f.events(0, storage.EventFilter{})
		f.Store = f.Reopen(f)
		f.same("records", f.records(), before)
		after := f.events(0, storage.EventFilter{})
		f.same("events", after[:min(len(events), len(after))], events)
		for _, e := range after[len(events):] {
			if e.Gap == nil {
				f.Errorf("opening has added %s", show(e))
			}
		}
		f.refused(storage.Batch{RequestID: "request"}, storage.ErrDuplicate)
		_, err = f.Store.Renew(f.ctx, lease, f.ttl())
		f.must(err)
	}},
}

func stopEarly[T any](list iter.Seq2[T, error]) {
	for range list {
		return
	}
}

// checkFilters compares the lists with what Match says of every record.
func checkFilters(f *fixture) {
	cells, domains := []string{"c1", "c2"}, []string{"x", "y", "z"}
	labels := []map[string]string{nil, {"team": "blog"}, {"team": "shop", "tier": ""}}
	var b storage.Batch
	n := 0
	for _, guid := range []string{"p", "q", "r"} {
		for index := range 3 {
			for _, state := range []lrp.State{lrp.Unclaimed, lrp.Claimed, lrp.Running, lrp.Crashed} {
				r := unclaimed(guid, index)
				if state == lrp.Claimed || state == lrp.Running {
					r = running(guid, index, cells[n%2])
				}
				if state == lrp.Claimed {
					r.RunningSince, r.NetInfo, r.Routable, r.Zone = time.Time{}, lrp.NetInfo{}, false, ""
				}
				r.State, r.DefinitionID, r.Domain, r.ModificationTag = state, fmt.Sprint("d", state), domains[n%3], tag(n)
				if state == lrp.Running && n%4 == 2 {
					r.Presence = lrp.Suspect
				}
				b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
				n++
			}
		}
		for i := range 4 {
			t := pending(fmt.Sprint(guid, i))
			t.State, t.Domain, t.Labels = task.State(i+1), domains[i%3], labels[(i+n)%3]
			if t.State != task.Pending {
				t.CellID, t.InstanceGUID = cells[i%2], "i"
			}
			b.Tasks = append(b.Tasks, task.Write{After: t})
			d := deployment(fmt.Sprint(guid, i))
			d.Domain, d.Labels = domains[i%3], labels[(i+n)%3]
			b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: d})
		}
	}
	f.commit(b)

	var selectors []executor.Selector
	for _, text := range []string{"", "team=blog", "team!=blog", "tier,team", "!team"} {
		s, err := executor.ParseSelector(text)
		f.must(err)
		selectors = append(selectors, s)
	}
	// A third of all combinations, in which every field has none, one and
	// several values.
	allLRPs := f.lrps(storage.ActualLRPFilter{})
	guids := [][]string{nil, {"p"}, {"r", "p"}, {"absent"}}
	onCells := [][]string{nil, {"c1"}, {"c1", "c2"}, {""}}
	for _, g := range guids {
		for _, indices := range [][]int{nil, {1}, {2, 0}} {
			for _, c := range onCells {
				for _, d := range [][]string{nil, {"y"}, {"z", "x"}} {
					for _, s := range [][]lrp.State{nil, {lrp.Running}, {lrp.Unclaimed, lrp.Crashed}} {
						for _, p := range [][]lrp.Presence{nil, {lrp.Suspect}, {lrp.Ordinary, lrp.Evacuating}} {
							if (len(g)+len(indices)+len(c)+len(d)+len(s)+len(p))%3 != 0 {
								continue
							}
							filter := storage.ActualLRPFilter{ProcessGUIDs: g, Indices: indices, CellIDs: c, Domains: d, States: s, Presences: p}
							var want []lrp.ActualLRP
							for i := range allLRPs {
								if filter.Match(&allLRPs[i]) {
									want = append(want, allLRPs[i])
								}
							}
							f.same(fmt.Sprintf("%+v", filter), names(f.lrps(filter), lrpName), names(want, lrpName))
						}
					}
				}
			}
		}
	}
	allTasks := f.tasks(storage.TaskFilter{})
	for _, c := range onCells {
		for _, d := range [][]string{nil, {"y"}, {"z", "x"}} {
			for _, s := range [][]task.State{nil, {task.Running}, {task.Pending, task.Resolving}} {
				for _, selector := range selectors {
					filter := storage.TaskFilter{CellIDs: c, Domains: d, States: s, Selector: selector}
					var want, bare []*task.Task
					for _, t := range allTasks {
						if filter.Match(t) {
							want, bare = append(want, t), append(bare, storage.BareTask(t))
						}
					}
					f.same(fmt.Sprintf("%+v", filter), f.tasks(filter), want)
					filter.Bare = true
					f.same(fmt.Sprintf("%+v", filter), f.tasks(filter), bare)
				}
			}
		}
	}
	allDeployments := f.deployments(storage.DeploymentFilter{})
	for _, g := range [][]string{nil, {"q1"}, {"r3", "p0", "absent", "p0"}} {
		for _, d := range [][]string{nil, {"y"}, {"z", "x"}} {
			for _, selector := range selectors {
				filter := storage.DeploymentFilter{ProcessGUIDs: g, Domains: d, Selector: selector}
				var want, bare, without, some []*lrp.Deployment
				for _, d := range allDeployments {
					if filter.Match(d) {
						want, bare, without = append(want, d), append(bare, storage.Bare(d)), append(without, storage.WithoutDefinitions(d))
						some = append(some, storage.WithDefinitions(d, "d"))
					}
				}
				f.same(fmt.Sprintf("%+v", filter), f.deployments(filter), want)
				filter.DefinitionIDs = []string{"d"}
				f.same(fmt.Sprintf("%+v", filter), f.deployments(filter), some)
				filter.WithoutDefinitions = true
				f.same(fmt.Sprintf("%+v", filter), f.deployments(filter), without)
				filter.Bare = true
				f.same(fmt.Sprintf("%+v", filter), f.deployments(filter), bare)
			}
		}
	}
}
