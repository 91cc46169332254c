package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var commitCases = []testCase{
	{sentence: "a batch that was decided from a recollection conflicts as soon as slot or deployment is another", check: func(f *fixture) {
		d := deployment("p")
		f.commit(deploymentWrite(nil, d))
		f.createAll(unclaimed("p", 0))
		for what, change := range map[string]func(r storage.Recollection){
			"the record has changed": func(r storage.Recollection) {
				f.commit(lrpWrite(&r.Slot.Records[0], next(&r.Slot.Records[0], func(*lrp.ActualLRP) {})))
			},
			"a record was added": func(storage.Recollection) {
				added := unclaimed("p", 0)
				added.DefinitionID = fmt.Sprint("added-", f.log().Newest)
				b := lrpWrite(nil, added)
				b.Events = []storage.Event{created(added)}
				f.commit(b)
			},
			"the deployment has changed": func(storage.Recollection) {
				after := nextDeployment(d, func(d *lrp.Deployment) { d.Instances++ })
				f.commit(deploymentWrite(d, after))
				d = after
			},
			"nothing has changed": nil,
		} {
			r, ok := f.recall("p", 0)
			if !ok {
				return
			}
			slot, deployment, err := f.Store.Slot(f.ctx, "p", 0)
			f.must(err)
			f.same("recalled slot", r.Slot, slot)
			f.same("recalled deployment", r.Deployment, deployment)
			created := unclaimed("q", len(what))
			b := lrpWrite(nil, created)
			b.Origin = r.Origin
			if change == nil {
				f.commit(b)
				continue
			}
			change(r)
			f.refused(b, storage.ErrConflict)
		}
		b := lrpWrite(nil, unclaimed("r", 0))
		b.Origin = "of another store"
		f.refused(b, storage.ErrConflict)
	}},
	{sentence: "a creation, an update and a deletion do what they say", check: func(f *fixture) {
		r, d, t := running("p", 0, "cell-1"), deployment("p"), pending("t")
		b := lrpWrite(nil, r)
		b.Deployments = []storage.DeploymentWrite{{After: d}}
		b.Tasks = []task.Write{{After: t}}
		f.commit(b)
		r2 := next(r, func(r *lrp.ActualLRP) { r.CellID, r.CrashCount, r.Domain = "cell-2", 7, "other" })
		d2 := nextDeployment(d, func(d *lrp.Deployment) { d.Instances, d.Annotation, d.Domain = 9, "", "other" })
		t2 := nextTask(t, func(t *task.Task) { t.State, t.CellID, t.InstanceGUID = task.Running, "cell-2", "i" })
		b = lrpWrite(r, r2)
		b.Deployments = []storage.DeploymentWrite{{Before: d, After: d2}}
		b.Tasks = []task.Write{{Before: t, After: t2}}
		f.commit(b)
		f.same("updated", f.everything(), []any{
			[]*lrp.Deployment{d2}, []lrp.ActualLRP{*r2}, []*task.Task{t2}, []lrp.Domain(nil), storage.Extent{Oldest: 1},
		})
		f.same("on the old cell", len(f.lrps(storage.ActualLRPFilter{CellIDs: []string{"cell-1"}})), 0)
		f.same("on the new cell", len(f.lrps(storage.ActualLRPFilter{CellIDs: []string{"cell-2"}})), 1)
		b = lrpWrite(r2, nil)
		b.Deployments = []storage.DeploymentWrite{{Before: storage.Bare(d2)}}
		b.Tasks = []task.Write{{Before: t2}}
		f.commit(b)
		f.same("deleted", f.everything(), []any{
			[]*lrp.Deployment(nil), []lrp.ActualLRP(nil), []*task.Task(nil), []lrp.Domain(nil), storage.Extent{Oldest: 1},
		})
		f.commit(deploymentWrite(nil, d)) // its definitions did not stay
		got, err := f.Store.Deployment(f.ctx, "p")
		f.must(err)
		f.same("created again", got, d)
	}},
	{sentence: "the zero Batch changes nothing", check: func(f *fixture) {
		before := f.everything()
		f.same("cursor", f.commit(storage.Batch{}), storage.Cursor(0))
		f.same("everything", f.everything(), before)
	}},
	{sentence: "a write that finds a record where none should be is ErrExists", check: func(f *fixture) {
		r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
		f.createAll(r)
		f.commit(deploymentWrite(nil, d))
		f.commit(taskWrite(nil, t))
		f.conflict(lrpWrite(nil, r), storage.ActualLRPKey(r), storage.ErrExists)
		f.conflict(deploymentWrite(nil, d), storage.DeploymentKey("p"), storage.ErrExists)
		f.conflict(taskWrite(nil, t), storage.TaskKey("t"), storage.ErrExists)
	}},
	{sentence: "a write that finds no record where one should be is ErrNotFound", check: func(f *fixture) {
		r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
		f.conflict(lrpWrite(r, next(r, nil)), storage.ActualLRPKey(r), storage.ErrNotFound)
		f.conflict(lrpWrite(r, nil), storage.ActualLRPKey(r), storage.ErrNotFound)
		f.conflict(deploymentWrite(d, nextDeployment(d, nil)), storage.DeploymentKey("p"), storage.ErrNotFound)
		f.conflict(deploymentWrite(d, nil), storage.DeploymentKey("p"), storage.ErrNotFound)
		f.conflict(deploymentWrite(d, d), storage.DeploymentKey("p"), storage.ErrNotFound)
		f.conflict(taskWrite(t, nextTask(t, nil)), storage.TaskKey("t"), storage.ErrNotFound)
		f.conflict(taskWrite(t, nil), storage.TaskKey("t"), storage.ErrNotFound)
	}},
	{sentence: "a deletion of a record with a name that cannot be is ErrNotFound", check: func(f *fixture) {
		for _, name := range []string{"p\x00", "\xf0\x9f", strings.Repeat("p", storage.MaxIdentifierBytes+1)} {
			r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
			r.ProcessGUID, d.ProcessGUID, t.GUID = name, name, name
			f.conflict(lrpWrite(r, nil), storage.ActualLRPKey(r), storage.ErrNotFound)
			f.conflict(deploymentWrite(d, nil), storage.DeploymentKey(name), storage.ErrNotFound)
			f.conflict(taskWrite(t, nil), storage.TaskKey(name), storage.ErrNotFound)
			b := lrpWrite(r, nil)
			b.Events = []storage.Event{created(unclaimed("p", 0))}
			f.conflict(b, storage.ActualLRPKey(r), storage.ErrNotFound)
		}
	}},
	{sentence: "the zero tag stands for no record, and no write may name it", check: func(f *fixture) {
		r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
		r0, d0, t0 := *r, *d, *t
		r0.ModificationTag, d0.ModificationTag, t0.ModificationTag = lrp.ModificationTag{}, lrp.ModificationTag{}, lrp.ModificationTag{}
		for _, b := range []storage.Batch{
			lrpWrite(nil, &r0), deploymentWrite(nil, &d0), taskWrite(nil, &t0),
			lrpWrite(&r0, r), deploymentWrite(&d0, d), taskWrite(&t0, t),
			lrpWrite(&r0, nil), deploymentWrite(&d0, nil), taskWrite(&t0, nil),
		} {
			f.refused(b, executor.ErrInvalid)
		}
	}},
	{sentence: "a write that names another tag than the store has conflicts", check: func(f *fixture) {
		r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
		f.createAll(r)
		f.commit(deploymentWrite(nil, d))
		f.commit(taskWrite(nil, t))
		for _, other := range []lrp.ModificationTag{
			{Epoch: tag(0).Epoch, Index: 1}, {Epoch: tag(0).Epoch + 1}, {Epoch: tag(0).Epoch - 1, Index: 0},
		} {
			r2 := next(r, func(r *lrp.ActualLRP) { r.ModificationTag = other })
			d2 := nextDeployment(d, func(d *lrp.Deployment) { d.ModificationTag = other })
			t2 := nextTask(t, func(t *task.Task) { t.ModificationTag = other })
			f.conflict(lrpWrite(r2, next(r2, nil)), storage.ActualLRPKey(r), storage.ErrConflict)
			f.conflict(lrpWrite(r2, nil), storage.ActualLRPKey(r), storage.ErrConflict)
			f.conflict(deploymentWrite(d2, nextDeployment(d2, nil)), storage.DeploymentKey("p"), storage.ErrConflict)
			f.conflict(deploymentWrite(d2, nil), storage.DeploymentKey("p"), storage.ErrConflict)
			f.conflict(deploymentWrite(d2, d2), storage.DeploymentKey("p"), storage.ErrConflict)
			f.conflict(taskWrite(t2, nextTask(t2, nil)), storage.TaskKey("t"), storage.ErrConflict)
			f.conflict(taskWrite(t2, nil), storage.TaskKey("t"), storage.ErrConflict)
		}
	}},
	{sentence: "a write concerns only the record of its definition and presence", check: func(f *fixture) {
		r := running("p", 0, "cell")
		suspect, other := *r, *r
		suspect.Presence, suspect.ModificationTag = lrp.Suspect, tag(1)
		other.DefinitionID, other.ModificationTag = "D", tag(2)
		f.createAll(r, &suspect, &other)
		f.commit(lrpWrite(&suspect, nil))
		f.same("left", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/0/D/ORDINARY p/0/d/ORDINARY")
		f.conflict(lrpWrite(&suspect, nil), storage.ActualLRPKey(&suspect), storage.ErrNotFound)
	}},
	{sentence: "a batch is written completely or not at all", check: func(f *fixture) {
		r, d, t := unclaimed("p", 0), deployment("p"), pending("t")
		b := lrpWrite(nil, r)
		b.Deployments = []storage.DeploymentWrite{{After: d}}
		b.Tasks = []task.Write{{After: t}}
		f.commit(b)
		before := f.everything()
		bad := map[string]func(b *storage.Batch){
			"actual LRP": func(b *storage.Batch) {
				b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: unclaimed("absent", 0)})
			},
			"deployment": func(b *storage.Batch) {
				b.Deployments = append(b.Deployments, storage.DeploymentWrite{Before: deployment("absent")})
			},
			"task":       func(b *storage.Batch) { b.Tasks = append(b.Tasks, task.Write{Before: pending("absent")}) },
			"quarantine": func(b *storage.Batch) { b.AddQuarantine(corruptError(storage.TaskKey("absent"))) },
			"fence":      func(b *storage.Batch) { b.Fence = storage.Fence{Kind: "kind", Name: "n", Epoch: 1} },
		}
		for what, spoil := range bad {
			b := lrpWrite(r, next(r, nil))
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("q", 0)})
			b.Deployments = []storage.DeploymentWrite{{Before: d, After: nextDeployment(d, nil)}, {After: deployment("q")}}
			b.Tasks = []task.Write{{Before: t}, {After: pending("u")}}
			b.Events = []storage.Event{created(r)}
			b.AddDomain("domain", 0)
			b.RequestID = "request"
			spoil(&b)
			if _, err := f.Store.Commit(f.ctx, b); err == nil {
				f.Fatalf("a batch with a bad %s was committed", what)
			}
			f.same("everything after a bad "+what, f.everything(), before)
		}
		b = lrpWrite(r, next(r, nil))
		b.RequestID = "request"
		f.commit(b) // nothing was left of the request either
	}},
	{sentence: "a check changes nothing and conflicts when the deployment has changed", check: func(f *fixture) {
		d := deployment("p")
		f.commit(deploymentWrite(nil, d))
		b := deploymentWrite(storage.Bare(d), storage.Bare(d))
		b.ActualLRPs = []lrp.Write{{After: unclaimed("p", 0)}}
		f.commit(b)
		got, err := f.Store.Deployment(f.ctx, "p")
		f.must(err)
		f.same("deployment", got, d)
		f.commit(deploymentWrite(d, nextDeployment(d, nil)))
		b = deploymentWrite(storage.Bare(d), storage.Bare(d))
		b.ActualLRPs = []lrp.Write{{After: unclaimed("p", 1)}}
		f.conflict(b, storage.DeploymentKey("p"), storage.ErrConflict)
		f.same("records", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/0/d/ORDINARY")
	}},
	{sentence: "a check of an actual LRP changes nothing and conflicts when the record has changed", check: func(f *fixture) {
		r := unclaimed("p", 0)
		f.commit(lrpWrite(nil, r))
		check := lrp.Write{Before: r, After: r}
		b := lrpWrite(nil, unclaimed("p", 1))
		b.ActualLRPs = append(b.ActualLRPs, check)
		f.commit(b)
		f.same("records", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/0/d/ORDINARY p/1/d/ORDINARY")
		f.commit(lrpWrite(r, next(r, nil)))
		b = lrpWrite(nil, unclaimed("p", 2))
		b.ActualLRPs = append(b.ActualLRPs, check)
		f.conflict(b, storage.ActualLRPKey(r), storage.ErrConflict)
		f.same("records", names(f.lrps(storage.ActualLRPFilter{}), lrpName), "p/0/d/ORDINARY p/1/d/ORDINARY")
	}},
	{sentence: "definitions come and go with the deployment that has them", check: func(f *fixture) {
		first := deployment("p")
		q := deployment("q")
		b := deploymentWrite(nil, first)
		b.Deployments = append(b.Deployments, storage.DeploymentWrite{After: q})
		f.commit(b)
		with := func(d *lrp.Deployment, active string, ids ...string) *lrp.Deployment {
			return nextDeployment(d, func(d *lrp.Deployment) {
				d.ActiveDefinitionID, d.Definitions = active, map[string]lrp.Definition{}
				d.RolloutState.From = active // which it has
				for _, id := range ids {
					definition := first.Definitions["d"]
					if id != "d" {
						definition.LogGUID = id
					}
					d.Definitions[id] = definition
				}
			})
		}
		d := first
		for _, then := range []*lrp.Deployment{
			with(d, "second", "d", "second", "D"),
			with(with(d, "", "d"), "second", "second"),
			with(with(with(d, "", "d"), "", "d"), "d", "d", "third"),
		} {
			f.commit(deploymentWrite(d, then))
			got, err := f.Store.Deployment(f.ctx, "p")
			f.must(err)
			f.same("deployment", got, then)
			f.same("list", f.deployments(storage.DeploymentFilter{}), []*lrp.Deployment{then, q})
			d = then
		}
	}},
	{sentence: "a deployment has its revisions when it is read by itself, and none in lists", check: func(f *fixture) {
		listed := deployment("p")
		definition := listed.Definitions["d"]
		first := *listed
		first.Revisions = []lrp.Revision{
			{
				Number: 3, DefinitionID: "c", Definition: &definition, Began: lrp.BeganUpdated, BeganAt: begin, By: "ann",
				End: lrp.RevisionGivenUp, EndedAt: begin.Add(time.Nanosecond), Done: 1, Desired: 3, Healthy: true,
				Failure: &lrp.RolloutFailure{DefinitionID: "c", Kind: lrp.RolloutCrashed, Index: 2, Detail: "exit status 1"},
			},
			{Number: 4, DefinitionID: "d", Began: lrp.BeganRolledBack, BeganAt: begin.Add(time.Nanosecond)},
		}
		read := func(want *lrp.Deployment) {
			f.Helper()
			got, err := f.Store.Deployment(f.ctx, "p")
			f.must(err)
			f.same("deployment", got, want)
			without := *want
			without.Revisions = nil
			f.same("list", f.deployments(storage.DeploymentFilter{}), []*lrp.Deployment{&without})
			f.same("named", f.deployments(storage.DeploymentFilter{ProcessGUIDs: []string{"p"}}), []*lrp.Deployment{&without})
			f.same("without definitions", f.deployments(storage.DeploymentFilter{WithoutDefinitions: true}), []*lrp.Deployment{storage.WithoutDefinitions(&without)})
			f.same("bare", f.deployments(storage.DeploymentFilter{Bare: true}), []*lrp.Deployment{storage.Bare(&without)})
			_, d, err := f.Store.Slot(f.ctx, "p", 0)
			f.must(err)
			f.same("with a slot", len(d.Revisions), 0)
		}
		f.commit(deploymentWrite(nil, &first))
		read(&first)
		second := nextDeployment(&first, func(d *lrp.Deployment) { d.Annotation = "another" })
		f.commit(deploymentWrite(&first, second))
		read(second)
		third := nextDeployment(second, func(d *lrp.Deployment) { d.Revisions = d.Revisions[1:] })
		f.commit(deploymentWrite(second, third))
		read(third)
		f.commit(deploymentWrite(third, nil))
		f.commit(deploymentWrite(nil, listed))
		read(listed)
	}},
	{sentence: "an ill-formed batch is a validation error and writes nothing", check: func(f *fixture) {
		long, nul, notText := strings.Repeat("x", storage.MaxIdentifierBytes+1), "a\x00b", "a\xff"
		spoiled := func(change func(*lrp.ActualLRP)) storage.Batch {
			r := unclaimed("p", 0)
			change(r)
			return lrpWrite(nil, r)
		}
		for what, b := range map[string]storage.Batch{
			"nothing before and after":                   lrpWrite(nil, nil),
			"two keys":                                   lrpWrite(unclaimed("p", 0), next(unclaimed("p", 1), nil)),
			"two writes of one record":                   {ActualLRPs: []lrp.Write{{After: unclaimed("p", 0)}, {After: unclaimed("p", 0)}}},
			"a broken invariant":                         spoiled(func(r *lrp.ActualLRP) { r.State = lrp.Running }),
			"a long guid":                                spoiled(func(r *lrp.ActualLRP) { r.ProcessGUID = long }),
			"a guid with NUL":                            spoiled(func(r *lrp.ActualLRP) { r.ProcessGUID = nul }),
			"a guid that is not text":                    spoiled(func(r *lrp.ActualLRP) { r.ProcessGUID = notText }),
			"a reason that is not text":                  spoiled(func(r *lrp.ActualLRP) { r.CrashReason = notText }),
			"a local time":                               spoiled(func(r *lrp.ActualLRP) { r.Since = r.Since.In(time.FixedZone("x", 3600)) }),
			"a time out of range":                        spoiled(func(r *lrp.ActualLRP) { r.Since = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }),
			"a deployment without its active definition": deploymentWrite(nil, nextDeployment(deployment("p"), func(d *lrp.Deployment) { d.ActiveDefinitionID = "e" })),
			"a bare deployment":                          deploymentWrite(nil, storage.Bare(deployment("p"))),
			"a deployment without definitions":           deploymentWrite(nil, storage.WithoutDefinitions(deployment("p"))),
			"a deployment without one definition":        deploymentWrite(nil, storage.WithDefinitions(nextDeployment(deployment("p"), func(d *lrp.Deployment) { d.Definitions["e"] = d.Definitions["d"] }), "d")),
			"a task without a guid":                      taskWrite(nil, pending("")),
			"a bare task":                                taskWrite(nil, storage.BareTask(pending("t"))),
			"a domain without a name":                    {Domains: []storage.DomainWrite{{}}},
			"a negative TTL":                             {Domains: []storage.DomainWrite{{Name: "d", TTL: -1}}},
			"an event about nothing":                     {Events: []storage.Event{{}}},
			"a long request id":                          {RequestID: long},
		} {
			_, err := f.Store.Commit(f.ctx, b)
			var invalid *executor.ValidationError
			if !errors.As(err, &invalid) {
				f.Errorf("%s: %v, want a *executor.ValidationError", what, err)
			}
		}
		f.same("log", f.log(), storage.Extent{Oldest: 1})
	}},
	{sentence: "another batch with the same request id is a duplicate", check: func(f *fixture) {
		r := unclaimed("p", 0)
		b := lrpWrite(nil, r)
		b.Events = []storage.Event{created(r), created(r)}
		b.RequestID = "Request"
		cursor := f.commit(b)
		f.same("cursor", cursor, storage.Cursor(2))
		err := f.refused(storage.Batch{RequestID: "Request"}, storage.ErrDuplicate)
		var duplicate *storage.DuplicateError
		if !errors.As(err, &duplicate) || duplicate.Cursor != cursor || duplicate.RequestID != "Request" {
			f.Errorf("%v, want a *DuplicateError with cursor %d", err, cursor)
		}
		f.commit(storage.Batch{RequestID: "request"})
		for id, want := range map[string]bool{"Request": true, "request": true, "REQUEST": false, "\x00": false, "\xff": false, "": false} {
			known, err := f.Store.Remembers(f.ctx, id)
			f.must(err)
			f.same(fmt.Sprintf("remembered %q", id), known, want)
		}
	}},
	{sentence: "a request id is remembered for an hour at least", needs: needsAdvance, check: func(f *fixture) {
		f.commit(storage.Batch{RequestID: "request"})
		// A store may forget when it writes, so it writes something of each kind.
		const step = 59 * time.Second
		for passed := step; passed < time.Hour; passed += step {
			f.pass(step)
			r := unclaimed("p", int(passed/step))
			b := lrpWrite(nil, r)
			b.Events, b.RequestID = []storage.Event{created(r)}, fmt.Sprint("at ", passed)
			b.AddDomain("d", time.Minute)
			f.commit(b)
			f.commit(storage.Batch{Events: b.Events})
			f.acquireBriefly(b.RequestID, "o")
			known, err := f.Store.Remembers(f.ctx, "request")
			f.must(err)
			f.same(fmt.Sprintf("remembered %v later", passed), known, true)
			f.refused(storage.Batch{RequestID: "request"}, storage.ErrDuplicate)
		}
	}},
	{sentence: "of several errors the first of the contract's list is returned", check: func(f *fixture) {
		f.commit(storage.Batch{RequestID: "request"})
		conflicting := lrpWrite(unclaimed("p", 0), nil)
		f.refused(conflicting, storage.ErrConflict)
		conflicting.Fence = storage.Fence{Kind: "kind", Name: "n", Epoch: 1}
		f.refused(conflicting, storage.ErrFenced)
		conflicting.RequestID = "request"
		f.refused(conflicting, storage.ErrDuplicate)
		conflicting.Domains = []storage.DomainWrite{{}}
		f.refused(conflicting, executor.ErrInvalid)
	}},
	{sentence: "a large batch is one commit", check: func(f *fixture) {
		const many = 3000
		var b storage.Batch
		for i := range many {
			r := unclaimed("p", i)
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
			b.Events = append(b.Events, created(r))
		}
		f.same("cursor", f.commit(b), storage.Cursor(many))
		var again storage.Batch
		for i := range many {
			r := b.ActualLRPs[i].After
			n := next(r, nil)
			if i%3 == 0 {
				n = nil
			}
			again.ActualLRPs = append(again.ActualLRPs, lrp.Write{Before: r, After: n})
		}
		again.ActualLRPs = append(again.ActualLRPs, lrp.Write{Before: unclaimed("absent", 0)})
		f.conflict(again, storage.ActualLRPKey(unclaimed("absent", 0)), storage.ErrNotFound)
		f.same("records", len(f.lrps(storage.ActualLRPFilter{})), many)
		again.ActualLRPs = again.ActualLRPs[:many]
		f.commit(again)
		f.same("records", len(f.lrps(storage.ActualLRPFilter{})), many-many/3)
	}},
}

func corruptError(key storage.RecordKey) *storage.CorruptError {
	return &storage.CorruptError{Key: key, Err: errors.New("bits have rotted")}
}
