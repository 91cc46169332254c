package system_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A goesBack is a store that is put back to an earlier moment while processes
// have it open, and what they did with it.
type goesBack struct {
	*testing.T
	store *memstore.Store
	now   time.Time
}

func newGoesBack(t *testing.T) *goesBack {
	g := &goesBack{T: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { g.now = g.now.Add(time.Millisecond); return g.now }
	g.store = memstore.New(&memstore.Options{Now: clock})
	return g
}

func (g *goesBack) process() *bbs.BBS {
	g.Helper()
	b, err := bbs.New(bbs.Options{Store: g.store, Effects: nothing{}, EventTail: 4, Now: func() time.Time { return g.now }})
	if err != nil {
		g.Fatal(err)
	}
	return b
}

func (g *goesBack) write(what string, n int) {
	g.Helper()
	for i := range n {
		b := storage.Batch{}
		b.AddDomain(fmt.Sprint(what, i), time.Minute)
		if _, err := g.store.Commit(g.Context(), b); err != nil {
			g.Fatal(err)
		}
	}
}

// gone wants a subscription to end with ErrGone at once.
func (g *goesBack) gone(b *bbs.BBS, after storage.Cursor) (gone *storage.GoneError) {
	g.Helper()
	events, err := b.Subscribe(g.Context(), after, storage.EventFilter{})
	if err != nil {
		g.Fatal(err)
	}
	for e, err := range events {
		if !errors.As(err, &gone) {
			g.Fatalf("after %d: event %d, %v; want ErrGone", after, e.Sequence, err)
		}
	}
	return gone
}

func (g *goesBack) newest() storage.Cursor {
	g.Helper()
	log, err := g.store.Log(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	return log.Newest
}

func TestASubscriberOfAStoreThatWentBackNeverSeesAnotherEventUnderANumber(t *testing.T) {
	g := newGoesBack(t)
	old := g.process()
	g.write("shared", 3)
	fallBack := g.store.Save()
	g.write("lost", 4)
	events, err := old.Subscribe(t.Context(), 0, storage.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	seen := 0
	other := g.process()
	for e, err := range events {
		if last = err; err != nil {
			continue
		}
		if seen++; e.Sequence == 7 {
			fallBack()
			// Somebody else who has seen as much resumes with another process.
			if gone := g.gone(other, 7); gone.Extent.Newest != 3 {
				t.Errorf("got %v", gone)
			}
			g.write("new", 10)
		}
	}
	if !errors.Is(last, storage.ErrGone) || seen != 7 {
		t.Errorf("the subscriber has seen %d events, and the end was %v", seen, last)
	}
	for _, b := range []*bbs.BBS{old, other, g.process()} {
		for after := storage.Cursor(4); after <= 7; after++ {
			if gone := g.gone(b, after); gone.Gap == nil {
				t.Errorf("after %d: %v, want an error that names the gap", after, gone)
			}
		}
		for after := range storage.Cursor(4) {
			list := take(t, b, after, storage.EventFilter{}, 3-int(after)+1+10)
			gap := list[3-after]
			if gap.Gap == nil || gap.Gap.After != 3 || list[len(list)-1].Sequence != g.newest() || list[len(list)-1].Domain.Domain != "new9" {
				t.Errorf("after %d: %+v", after, list)
			}
		}
		take(t, b, 3, storage.EventFilter{Kinds: []string{storage.KindLogGap}}, 1)
	}
}

func TestASubscriberIsBelievedOnceAndOnlyWhatCanBeTrue(t *testing.T) {
	g := newGoesBack(t)
	b := g.process()
	g.write("a", 3)
	g.gone(b, 1<<62)
	g.gone(b, storage.Cursor(g.now.Add(time.Hour).UnixMicro()))
	if n := g.newest(); n != 3 {
		t.Fatalf("a number that was never given has left a gap, and the log ends with %d", n)
	}
	g.gone(b, 4)
	first := g.newest()
	if first == 3 {
		t.Fatal("no gap was left")
	}
	for range 59 { // who makes positions up leaves no gap each time
		g.now = g.now.Add(time.Minute)
		g.gone(b, first+1)
	}
	if n := g.newest(); n != first {
		t.Errorf("a second gap was left within an hour: %d after %d", n, first)
	}
	g.now = g.now.Add(time.Minute)
	g.gone(b, first+1)
	if n := g.newest(); n == first {
		t.Error("no gap was left an hour later")
	}
}
