package storagetest

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var corruptCases = []testCase{
	{sentence: "a record that cannot be decoded comes in its place in the order, and the list goes on", needs: needsCorrupt, check: func(f *fixture) {
		f.damaged()
		checkCorruptList(f, f.Store.ActualLRPs(f.ctx, storage.ActualLRPFilter{}), storage.ActualLRPKey(unclaimed("p", 1)))
		checkCorruptList(f, f.Store.Tasks(f.ctx, storage.TaskFilter{}), storage.TaskKey("t1"))
		checkCorruptList(f, f.Store.Deployments(f.ctx, storage.DeploymentFilter{}), storage.DeploymentKey("p1"))
		// Nobody knows its labels, so any selector lists it.
		blog, err := executor.ParseSelector("team=blog")
		f.must(err)
		checkCorruptList(f, f.Store.Tasks(f.ctx, storage.TaskFilter{Selector: blog}), storage.TaskKey("t1"))
		checkCorruptList(f, f.Store.Deployments(f.ctx, storage.DeploymentFilter{Selector: blog}), storage.DeploymentKey("p1"))
		checkCorruptList(f, f.Store.Tasks(f.ctx, storage.TaskFilter{Bare: true}), storage.TaskKey("t1"))
		for _, selector := range []executor.Selector{{}, blog} {
			var corrupt *storage.CorruptError
			filter := storage.DeploymentFilter{ProcessGUIDs: []string{"p1"}, Selector: selector}
			if err := lastError(f.Store.Deployments(f.ctx, filter)); !errors.As(err, &corrupt) || corrupt.Key != storage.DeploymentKey("p1") {
				f.Errorf("the only one of a list: %v, want a *CorruptError", err)
			}
		}
	}},
	{sentence: "an event that cannot be decoded comes in its place, and the list goes on", needs: needsCorrupt, check: func(f *fixture) {
		f.commit(storage.Batch{Events: []storage.Event{created(unclaimed("p", 0)), created(unclaimed("p", 1)), created(unclaimed("p", 2))}})
		f.Corrupt(f, storage.EventKey(2))
		checkCorruptList(f, f.Store.Events(f.ctx, 0, storage.EventFilter{}), storage.EventKey(2))
		checkCorruptList(f, f.Store.Events(f.ctx, 0, storage.EventFilter{ProcessGUIDs: []string{"p"}}), storage.EventKey(2))
		f.same("after it", len(f.events(2, storage.EventFilter{})), 1)
	}},
	{sentence: "the read of one record that cannot be decoded is ErrCorrupt", needs: needsCorrupt, check: func(f *fixture) {
		f.damaged()
		_, _, slotErr := f.Store.Slot(f.ctx, "p", 1)
		_, deploymentErr := f.Store.Deployment(f.ctx, "p1")
		_, taskErr := f.Store.Task(f.ctx, "t1")
		for key, err := range map[storage.RecordKey]error{
			storage.ActualLRPKey(unclaimed("p", 1)): slotErr,
			storage.DeploymentKey("p1"):             deploymentErr,
			storage.TaskKey("t1"):                   taskErr,
		} {
			var corrupt *storage.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Key != key || !errors.Is(err, storage.ErrCorrupt) {
				f.Errorf("%v: %v, want a *CorruptError", key, err)
			}
		}
		if _, _, err := f.Store.Slot(f.ctx, "p", 0); err != nil {
			f.Errorf("another slot: %v", err)
		}
	}},
	{sentence: "a read never deletes a record", needs: needsCorrupt, check: func(f *fixture) {
		f.damaged()
		for range 2 {
			checkCorruptList(f, f.Store.ActualLRPs(f.ctx, storage.ActualLRPFilter{}), storage.ActualLRPKey(unclaimed("p", 1)))
		}
		f.conflict(lrpWrite(nil, unclaimed("p", 1)), storage.ActualLRPKey(unclaimed("p", 1)), storage.ErrExists)
	}},
	{sentence: "a quarantine takes a record out of the lists and frees its key", needs: needsCorrupt, check: func(f *fixture) {
		keys := f.damaged()
		var b storage.Batch
		for _, key := range keys {
			b.AddQuarantine(corruptError(key))
		}
		f.commit(b)
		f.same("actual LRPs", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/0/d/ORDINARY p/2/d/ORDINARY")
		f.same("tasks", len(f.tasks(storage.TaskFilter{})), 2)
		f.same("deployments", len(f.deployments(storage.DeploymentFilter{})), 2)
		for i, e := range f.events(0, storage.EventFilter{Kinds: []string{storage.KindQuarantined}}) {
			f.same("event", e.Quarantine.Key, keys[i])
		}
		again := lrpWrite(nil, unclaimed("p", 1))
		again.Tasks = []task.Write{{After: pending("t1")}}
		again.Deployments = []storage.DeploymentWrite{{After: deployment("p1")}}
		f.commit(again)
		f.same("actual LRPs", len(f.lrps(storage.ActualLRPFilter{})), 3)
		f.same("deployments", len(f.deployments(storage.DeploymentFilter{})), 3)
	}},
	{sentence: "a quarantine of a record that is gone or can be decoded conflicts", check: func(f *fixture) {
		r := unclaimed("p", 0)
		b := lrpWrite(nil, r)
		b.Tasks = []task.Write{{After: pending("t")}}
		b.Deployments = []storage.DeploymentWrite{{After: deployment("p")}}
		f.commit(b)
		for key, want := range map[storage.RecordKey]error{
			storage.ActualLRPKey(r):                 storage.ErrConflict,
			storage.TaskKey("t"):                    storage.ErrConflict,
			storage.DeploymentKey("p"):              storage.ErrConflict,
			storage.ActualLRPKey(unclaimed("p", 1)): storage.ErrNotFound,
			storage.TaskKey("T"):                    storage.ErrNotFound,
			storage.DeploymentKey("q"):              storage.ErrNotFound,
		} {
			f.conflict(storage.Batch{Quarantine: []storage.Quarantine{{Key: key, Reason: "looks odd"}}}, key, want)
		}
		f.same("records", len(f.lrps(storage.ActualLRPFilter{})), 1)
	}},
}

// damaged commits three records of each kind, damages the second of each and
// returns their keys.
func (f *fixture) damaged() []storage.RecordKey {
	f.Helper()
	var b storage.Batch
	for i, id := range []string{"0", "1", "2"} {
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("p", i)})
		b.Tasks = append(b.Tasks, task.Write{After: pending("t" + id)})
		b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: deployment("p" + id)})
	}
	f.commit(b)
	keys := []storage.RecordKey{storage.ActualLRPKey(unclaimed("p", 1)), storage.TaskKey("t1"), storage.DeploymentKey("p1")}
	for _, key := range keys {
		f.Corrupt(f, key)
	}
	return keys
}

// checkCorruptList wants the second of three records to be corrupt.
func checkCorruptList[T any](f *fixture, list iter.Seq2[T, error], key storage.RecordKey) {
	f.Helper()
	n := 0
	for _, err := range list {
		if n++; n != 2 {
			f.must(err)
			continue
		}
		var corrupt *storage.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Key != key {
			f.Fatalf("element 2: %v, want a *CorruptError of %v", err, key)
		}
	}
	f.same("elements", n, 3)
}

var contextCases = []testCase{
	{sentence: "with a context that has ended every method fails with its error and changes nothing", check: func(f *fixture) {
		f.createAll(unclaimed("p", 0))
		lease := f.acquire("n", "o", "")
		before := f.everything()
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		for method, err := range callAll(ctx, f.Store, lease) {
			if !errors.Is(err, context.Canceled) {
				f.Errorf("%s: %v, want context.Canceled", method, err)
			}
		}
		f.same("everything", f.everything(), before)
		f.good(lease)
	}},
	{sentence: "a list ends with the error of its context", check: func(f *fixture) {
		const many = 5000
		var b storage.Batch
		for i := range many {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("p", i)})
		}
		f.commit(b)
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		n := 0
		var last error
		for _, err := range f.Store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
			if last != nil {
				f.Fatal("the list went on after its error")
			}
			if last = err; err == nil {
				n++
			}
			cancel()
		}
		if !errors.Is(last, context.Canceled) || n == many {
			f.Errorf("the list ended after %d of %d records with %v", n, many, last)
		}
	}},
	{sentence: "after Close every method fails", check: func(f *fixture) {
		lease := f.acquire("n", "o", "")
		f.must(f.Store.Close())
		for method, err := range callAll(f.ctx, f.Store, lease) {
			if err == nil {
				f.Errorf("%s succeeds", method)
			}
		}
	}},
}

// callAll calls every method once and returns the errors by method.
func callAll(ctx context.Context, s storage.Store, lease storage.Lease) map[string]error {
	errs := map[string]error{}
	_, errs["Now"] = s.Now(ctx)
	_, errs["Deployment"] = s.Deployment(ctx, "p")
	_, _, errs["Slot"] = s.Slot(ctx, "p", 0)
	_, errs["Task"] = s.Task(ctx, "t")
	_, errs["Log"] = s.Log(ctx)
	errs["View"] = s.View(ctx, func(storage.Reader) error { return nil })
	_, errs["Commit"] = s.Commit(ctx, lrpWrite(nil, unclaimed("new", 0)))
	_, errs["Acquire"] = s.Acquire(ctx, storage.Lease{Kind: "kind", Name: "new", Owner: "o"}, time.Hour)
	_, errs["Renew"] = s.Renew(ctx, lease, time.Hour)
	errs["Release"] = s.Release(ctx, lease)
	errs["Deployments"] = lastError(s.Deployments(ctx, storage.DeploymentFilter{}))
	errs["ActualLRPs"] = lastError(s.ActualLRPs(ctx, storage.ActualLRPFilter{}))
	errs["Tasks"] = lastError(s.Tasks(ctx, storage.TaskFilter{}))
	errs["Domains"] = lastError(s.Domains(ctx))
	errs["Leases"] = lastError(s.Leases(ctx, "kind"))
	errs["Events"] = lastError(s.Events(ctx, 0, storage.EventFilter{}))
	return errs
}

func lastError[T any](list iter.Seq2[T, error]) (last error) {
	for _, err := range list {
		last = err
	}
	return last
}
