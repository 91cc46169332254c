package storagetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

var gapCases = []testCase{
	{sentence: "no number comes twice after the store was put back to an earlier moment", needs: needsSave, check: func(f *fixture) {
		seen := map[storage.Cursor]string{}
		look := func() {
			f.Helper()
			for _, e := range f.events(f.log().Oldest-1, storage.EventFilter{}) {
				text := show(e)
				if before, known := seen[e.Sequence]; known && before != text {
					f.Fatalf("event %d was %s, and is now %s", e.Sequence, before, text)
				}
				seen[e.Sequence] = text
			}
		}
		f.marked("shared", 3)
		fallBack := f.Save(f)
		for round := range 3 { // the second time, the gap is lost as well
			f.marked(fmt.Sprint("lost", round), 4)
			look()
			f.Store = fallBack(f)
			f.marked(fmt.Sprint("new", round), 10)
			look()
		}
	}},
	{sentence: "no epoch is granted twice after the store was put back to an earlier moment", needs: needsSave, check: func(f *fixture) {
		granted := map[string]int64{}
		acquire := func(name string) storage.Lease {
			f.Helper()
			l := f.acquire(name, "o", "")
			if l.Epoch <= granted[name] {
				f.Fatalf("%s: epoch %d was granted after %d", name, l.Epoch, granted[name])
			}
			granted[name] = l.Epoch
			return l
		}
		kept := acquire("kept")
		fallBack := f.Save(f)
		for range 3 {
			lost := []storage.Lease{acquire("kept"), acquire("new")}
			acquire("new")
			f.Store = fallBack(f)
			for _, l := range lost {
				f.refused(storage.Batch{Fence: l.Fence(), Domains: []storage.DomainWrite{{Name: "fenced"}}}, storage.ErrFenced)
			}
			f.good(kept)
			f.good(acquire("new"))
		}
		f.good(acquire("kept"))
	}},
	{sentence: "a reader that has seen lost events is told so, and one that has not goes on and misses nothing", needs: needsSave, check: func(f *fixture) {
		f.marked("shared", 3)
		fallBack := f.Save(f)
		f.marked("lost", 4)
		f.Store = fallBack(f)
		for range 2 { // also when the log has grown again
			extent := f.log()
			for after := storage.Cursor(4); after <= 7; after++ {
				if gone := f.gone(after, extent); gone.Gap == nil || gone.Gap.After > 3 || gone.Gap.First <= 7 {
					f.Fatalf("after %d: %v, want an error with the gap", after, gone)
				}
			}
			for after := range storage.Cursor(4) {
				at := after
				for _, e := range f.events(after, storage.EventFilter{}) {
					if g := e.Gap; e.Sequence != at+1 && (g == nil || g.After != at || g.First != e.Sequence) {
						f.Fatalf("event %s comes after event %d", show(e), at)
					}
					at = e.Sequence
				}
				f.same("the last", at, extent.Newest)
			}
			f.marked("new", 10)
		}
	}},
	{sentence: "Restored leaves a gap that ends with an event of its own", needs: needsRestorer, check: func(f *fixture) {
		f.marked("a", 2)
		held := f.acquire("n", "o", "")
		f.restored()
		x := f.log()
		f.same("oldest", x.Oldest, storage.Cursor(1))
		events := f.events(2, storage.EventFilter{})
		if len(events) != 1 || events[0].Gap == nil || *events[0].Gap != (storage.Gap{After: 2, First: x.Newest}) || events[0].Sequence != x.Newest {
			f.Fatalf("after event 2, with a log of %+v: %s", x, show(events))
		}
		if now := f.storeNow(); x.Newest > storage.Cursor(now.UnixMicro()) || x.Newest < storage.Cursor(now.Add(-time.Minute).UnixMicro()) {
			f.Errorf("the gap ends with %d at %v", x.Newest, now)
		}
		f.same("of its kind", f.events(0, storage.EventFilter{Kinds: []string{storage.KindLogGap}}), events)
		f.same("of a domain", len(f.events(2, storage.EventFilter{Domains: []string{"domain"}})), 0)
		f.same("next", f.marked("b", 1), x.Newest+1)
		f.same("before the gap's event", len(f.events(x.Newest-1, storage.EventFilter{})), 2)
		f.good(held)
		if next := f.acquire("n", "o", ""); next.Epoch <= int64(x.Newest) {
			f.Errorf("epoch %d, want one above %d", next.Epoch, x.Newest)
		}
		f.restored()
		f.restored()
		f.same("a gap behind a gap", len(f.events(x.Newest+1, storage.EventFilter{})), 2)
	}},
	{sentence: "a log without events may have a gap", needs: needsRestorer, check: func(f *fixture) {
		f.restored()
		x := f.log()
		f.same("the only event", x.Oldest, x.Newest)
		for _, after := range []storage.Cursor{0, x.Oldest - 1} {
			f.same("events", len(f.events(after, storage.EventFilter{})), 1)
		}
		f.gone(1, x)
	}},
	{sentence: "the log keeps its newest events across gaps, and drops the oldest", options: Options{Events: retained}, needs: needsRestorer, check: func(f *fixture) {
		var all []storage.Cursor
		for n := range 11 * retained {
			if n%(retained/3) == 0 {
				f.restored()
				all = append(all, f.log().Newest)
			}
			all = append(all, f.marked("a", 1))
			x := f.log()
			if first := all[max(0, len(all)-retained)]; x.Oldest > first {
				f.Fatalf("of %d events the log begins with %d, want %d or earlier", len(all), x.Oldest, first)
			}
		}
		left := f.events(f.log().Oldest-1, storage.EventFilter{})
		if len(left) >= 10*retained {
			f.Fatalf("the log still holds %d events, want at least %d and not ten times as many", len(left), retained)
		}
		for i, e := range left {
			f.same("sequence", e.Sequence, all[len(all)-len(left)+i])
		}
	}},
}

func needsSave(h *Harness) bool { return h.Save != nil }

func needsRestorer(h *Harness) bool {
	_, is := h.Store.(storage.Restorer)
	return is
}

func (f *fixture) restored() {
	f.Helper()
	f.must(storage.Restored(f.ctx, f.Store))
}

// marked commits events one by one, which say what they are, and returns the
// number of the last.
func (f *fixture) marked(what string, n int) (last storage.Cursor) {
	f.Helper()
	for i := range n {
		e := created(unclaimed("p", 0))
		e.LRP.Cause = lrp.Cause{Command: "Test", Detail: fmt.Sprint(what, " ", i)}
		last = f.commit(storage.Batch{Events: []storage.Event{e}})
	}
	return last
}

// gone wants the list after a position to be one *GoneError.
func (f *fixture) gone(after storage.Cursor, extent storage.Extent) *storage.GoneError {
	f.Helper()
	n := 0
	var gone *storage.GoneError
	for _, err := range f.Store.Events(f.ctx, after, storage.EventFilter{}) {
		n++
		if !errors.As(err, &gone) || gone.After != after || gone.Extent != extent || !errors.Is(err, storage.ErrGone) {
			f.Fatalf("after %d: %v, want a *GoneError with %+v", after, err, extent)
		}
	}
	f.same("errors", n, 1)
	return gone
}
