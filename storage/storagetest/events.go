package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

const retained = 50

// largeBytes is the size of a large event.
const largeBytes = 4 << 10

// enough is how long after KeepFor a store has forgotten what ended, once
// something is committed.
const enough = time.Hour

var eventCases = []testCase{
	{sentence: "events are numbered consecutively from 1 in the order of commits, those of one batch in a row", check: func(f *fixture) {
		r := unclaimed("p", 0)
		for n := range 10 {
			b := storage.Batch{Events: slices.Repeat([]storage.Event{created(r)}, n)}
			want := storage.Cursor(n * (n + 1) / 2)
			if n == 0 {
				want = 0
			}
			f.same("cursor", f.commit(b), want)
			f.refused(lrpWrite(r, nil), storage.ErrConflict) // uses up no number
		}
		for i, e := range f.events(0, storage.EventFilter{}) {
			f.same("sequence", e.Sequence, storage.Cursor(i+1))
		}
		f.same("log", f.log(), storage.Extent{Oldest: 1, Newest: 45})
	}},
	{sentence: "an event that is read is the one that was committed, and says when", check: func(f *fixture) {
		b := storage.Batch{Events: allEvents()}
		before := f.storeNow()
		f.commit(b)
		after := f.storeNow()
		for i, e := range f.events(0, storage.EventFilter{}) {
			if e.At.Before(before) || e.At.After(after) || e.At.Location() != time.UTC {
				f.Fatalf("event %d is of %v, want a time in UTC between %v and %v", i, e.At, before, after)
			}
			e.Sequence, e.At = 0, time.Time{}
			f.same(b.Events[i].Subject().Kind, e, b.Events[i])
		}
	}},
	{sentence: "Sequence and At of an event in a batch are ignored", check: func(f *fixture) {
		e := created(unclaimed("p", 0))
		e.Sequence, e.At = 77, begin
		f.same("cursor", f.commit(storage.Batch{Events: []storage.Event{e}}), storage.Cursor(1))
		if got := f.events(0, storage.EventFilter{})[0]; got.Sequence != 1 || got.At == begin {
			f.Errorf("event %d at %v", got.Sequence, got.At)
		}
	}},
	{sentence: "a list of events begins after its position", check: func(f *fixture) {
		f.commit(storage.Batch{Events: slices.Repeat([]storage.Event{created(unclaimed("p", 0))}, 5)})
		for after := range storage.Cursor(6) {
			got := f.events(after, storage.EventFilter{})
			if len(got) != 5-int(after) || len(got) > 0 && got[0].Sequence != after+1 {
				f.Errorf("after %d: %s", after, show(got))
			}
		}
	}},
	{sentence: "an event filter wants events that satisfy every field, on a cell before or after", check: func(f *fixture) {
		f.commit(storage.Batch{Events: allEvents()})
		all := f.events(0, storage.EventFilter{})
		for _, kinds := range [][]string{nil, {lrp.InstanceChanged.String()}, {storage.KindTaskChanged, lrp.InstanceCrashed.String(), storage.KindQuarantined}} {
			for _, guids := range [][]string{nil, {"p"}, {"q", "p"}} {
				for _, indices := range [][]int{nil, {0}, {1, -1}} {
					for _, tasks := range [][]string{nil, {"t"}} {
						for _, cells := range [][]string{nil, {"cell-1"}, {"cell-2", "cell-3"}, {""}} {
							for _, domains := range [][]string{nil, {"domain"}, {"fresh", "other"}} {
								// A filter judges each field by itself, so pairs and all together suffice.
								if n := given(kinds, guids, tasks, cells, domains) + given(indices); n > 2 && n < 6 {
									continue
								}
								filter := storage.EventFilter{Kinds: kinds, ProcessGUIDs: guids, Indices: indices, TaskGUIDs: tasks, CellIDs: cells, Domains: domains}
								var want []storage.Event
								for _, e := range all {
									if s := e.Subject(); filter.Match(&s) {
										want = append(want, e)
									}
								}
								sequence := func(e storage.Event) string { return fmt.Sprint(e.Sequence) }
								f.same(fmt.Sprintf("%+v", filter), names(f.events(0, filter), sequence), names(want, sequence))
							}
						}
					}
				}
			}
		}
	}},
	{sentence: "a position that the log never reached is gone", check: func(f *fixture) {
		f.commit(storage.Batch{Events: slices.Repeat([]storage.Event{created(unclaimed("p", 0))}, 3)})
		f.gone(4, storage.Extent{Oldest: 1, Newest: 3})
	}},
	{sentence: "the log keeps its newest events, drops the oldest and says where it begins", options: Options{Events: retained}, check: func(f *fixture) {
		event := []storage.Event{created(unclaimed("p", 0))}
		for n := range storage.Cursor(11 * retained) {
			f.commit(storage.Batch{Events: event})
			extent := f.log()
			if extent.Newest != n+1 || extent.Oldest > max(1, n+2-retained) {
				f.Fatalf("after %d events the log holds %+v", n+1, extent)
			}
		}
		extent := f.log()
		if extent.Oldest == 1 {
			f.Fatalf("the log still holds all of %d events, want at least %d and not ten times as many", extent.Newest, retained)
		}
		f.gone(extent.Oldest-2, extent)
		for i, e := range f.events(extent.Oldest-1, storage.EventFilter{}) {
			f.same("sequence", e.Sequence, extent.Oldest+storage.Cursor(i))
		}
		f.same("next", f.commit(storage.Batch{Events: event}), extent.Newest+1)
	}},
	{sentence: "the log keeps its newest events as far as their bytes allow, drops the oldest and says where it begins", options: Options{EventBytes: 64 * largeBytes}, needs: needsBytes, check: func(f *fixture) {
		event := func(bytes int) storage.Batch {
			e := created(unclaimed("p", 0))
			e.LRP.Cause.Detail = strings.Repeat("x", bytes)
			return storage.Batch{Events: []storage.Event{e}}
		}
		for n := range storage.Cursor(500) {
			f.commit(event(largeBytes))
			extent := f.log()
			if extent.Newest != n+1 || extent.Oldest > max(1, n+2-32) {
				f.Fatalf("after %d events the log holds %+v", n+1, extent)
			}
			if held := extent.Newest - extent.Oldest + 1; held > 2*64 {
				f.Fatalf("the log holds %d events, whose bytes are more than twice as many as it may have", held)
			}
		}
		extent := f.log()
		f.gone(extent.Oldest-2, extent)
		for i, e := range f.events(extent.Oldest-1, storage.EventFilter{}) {
			f.same("sequence", e.Sequence, extent.Oldest+storage.Cursor(i))
		}
		for n := range storage.Cursor(3) { // each is larger than the log may be
			last := f.commit(event(100 * largeBytes))
			f.same("next", last, extent.Newest+n+1)
			f.same("the newest", len(f.events(last-1, storage.EventFilter{})), 1)
		}
	}},
	{sentence: "Wait returns soon after the log has an event beyond a position, at once if it has one already", check: func(f *fixture) {
		event := []storage.Event{created(unclaimed("p", 0))}
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
		defer cancel()
		go func() {
			var err error
			for cursor := storage.Cursor(0); cursor < 20 && err == nil; {
				if err = storage.Wait(ctx, f.Store, cursor, time.Millisecond); err == nil {
					var extent storage.Extent
					extent, err = f.Store.Log(ctx)
					cursor = extent.Newest
				}
			}
			done <- err
		}()
		for range 20 {
			f.commit(storage.Batch{Events: event})
		}
		f.must(<-done)
		f.must(storage.Wait(ctx, f.Store, 19, time.Millisecond))
		cancel()
		f.must(storage.Wait(f.ctx, f.Store, 21, time.Millisecond)) // beyond the log, which never reached it
		if err := storage.Wait(ctx, f.Store, 20, time.Millisecond); !errors.Is(err, context.Canceled) {
			f.Errorf("Wait with an ended context: %v", err)
		}
	}},
}

// allEvents are events of every kind.
func allEvents() []storage.Event {
	var out []storage.Event
	cause := lrp.Cause{Command: "Crash", Detail: "exit status 1 🙂"}
	records := shapes()
	for i, r := range records {
		after := records[(i+1)%len(records)]
		for kind := lrp.InstanceCreated; kind <= lrp.GroupRemoved; kind++ {
			e := lrp.Event{Kind: kind, Before: r, After: after, Cause: cause}
			switch kind {
			case lrp.InstanceCreated, lrp.GroupCreated:
				e.Before = nil
			case lrp.InstanceRemoved, lrp.GroupRemoved:
				e.After = nil
			}
			out = append(out, storage.Event{LRP: &e})
		}
	}
	moved := running("q", 0, "cell-3")
	moved.Domain = "other"
	out = append(out, storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceChanged, Before: running("q", 0, "cell-1"), After: moved, Cause: cause}})
	d := deployment("p")
	for kind := lrp.DeploymentCreated; kind <= lrp.DesiredRemoved; kind++ {
		e := lrp.Event{Kind: kind, DeploymentBefore: d, DeploymentAfter: nextDeployment(d, nil), Cause: cause}
		switch kind {
		case lrp.DeploymentCreated, lrp.DesiredCreated:
			e.DeploymentBefore = nil
		case lrp.DeploymentRemoved, lrp.DesiredRemoved:
			e.DeploymentAfter = nil
		}
		out = append(out, storage.Event{LRP: &e})
	}
	t := pending("t")
	started := nextTask(t, func(t *task.Task) { t.State, t.CellID, t.InstanceGUID = task.Running, "cell-2", "i" })
	out = append(out,
		storage.Event{Task: &task.Event{Kind: task.Created, After: t, Cause: cause}},
		storage.Event{Task: &task.Event{Kind: task.Changed, Before: t, After: started, Cause: cause}},
		storage.Event{Task: &task.Event{Kind: task.Removed, Before: started, Cause: cause}})
	var b storage.Batch
	b.AddDomain("fresh", time.Minute)
	b.AddQuarantine(corruptError(storage.ActualLRPKey(records[1])))
	b.AddQuarantine(corruptError(storage.DeploymentKey("p")))
	b.AddQuarantine(corruptError(storage.TaskKey("t")))
	index := 1
	began := storage.SessionEvent{
		ID: "s-1", Kind: storage.SessionExec, ProcessGUID: "p", Index: &index, Domain: "domain", CellID: "cell-1", InstanceGUID: "i",
		Caller: "alice", Command: []string{"sh", "-c", "echo 🙂"}, BeganAt: begin,
	}
	ended := began
	ended.EndedAt, ended.End, ended.Failed = begin.Add(time.Minute), "the client has gone", true
	ofTask := storage.SessionEvent{ID: "s-2", Kind: storage.SessionCopyOut, TaskGUID: "t", CellID: "cell-2", InstanceGUID: "i", Command: []string{"/tmp"}, BeganAt: begin}
	b.Events = append(b.Events, storage.Event{Session: &began}, storage.Event{Session: &ended}, storage.Event{Session: &ofTask})
	return append(out, b.Events...)
}

var domainCases = []testCase{
	{sentence: "a domain is fresh for its TTL from the commit on, by the store's clock", check: func(f *fixture) {
		before := f.storeNow()
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d", TTL: f.ttl()}}})
		after := f.storeNow()
		d := all(f, f.Store.Domains(f.ctx))[0]
		if d.ExpiresAt.Before(before.Add(f.ttl())) || d.ExpiresAt.After(after.Add(f.ttl())) || d.ExpiresAt.Location() != time.UTC {
			f.Errorf("expires at %v, want %v after a time between %v and %v, in UTC", d.ExpiresAt, f.ttl(), before, after)
		}
		f.pass(f.ttl())
		if d.Fresh(f.storeNow()) {
			f.Error("still fresh after its TTL")
		}
	}},
	{sentence: "a domain without a TTL is fresh for ever", check: func(f *fixture) {
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d"}}})
		f.same("domains", all(f, f.Store.Domains(f.ctx)), []lrp.Domain{{Name: "d"}})
	}},
	{sentence: "a write replaces what was known of the domain", check: func(f *fixture) {
		for _, ttl := range []time.Duration{f.ttl(), 0, 48 * time.Hour} {
			f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d", TTL: ttl}, {Name: "D"}}})
			domains := all(f, f.Store.Domains(f.ctx))
			f.same("names", names(domains, func(d lrp.Domain) string { return d.Name }), "D d")
			f.same("never expires", domains[1].ExpiresAt.IsZero(), ttl == 0)
		}
	}},
	{sentence: "domains that are no longer fresh are still listed", check: func(f *fixture) {
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d", TTL: f.ttl()}}})
		f.pass(2 * f.ttl())
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "e"}}})
		f.same("domains", len(all(f, f.Store.Domains(f.ctx))), 2)
	}},
	{sentence: "a domain is listed for KeepFor after it was fresh, and some time later is not", needs: needsAdvance, check: func(f *fixture) {
		name := func(d lrp.Domain) string { return d.Name }
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d", TTL: f.ttl()}, {Name: "for ever"}}})
		f.Advance(storage.KeepFor - f.ttl())
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "e", TTL: f.ttl()}}})
		f.same("domains", names(all(f, f.Store.Domains(f.ctx)), name), "d e for ever")
		f.Advance(enough)
		f.commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "f", TTL: f.ttl()}}})
		f.same("domains", names(all(f, f.Store.Domains(f.ctx)), name), "e f for ever")
	}},
}

// given is how many lists are there.
func given[T any](lists ...[]T) (n int) {
	for _, list := range lists {
		if list != nil {
			n++
		}
	}
	return n
}
