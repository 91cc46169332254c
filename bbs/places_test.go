package bbs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A freshLog is a store that makes the events of its log anew for each reader, as a
// database does, and knows how many of the large ones are still held. Every third event
// is small.
type freshLog struct {
	storage.Store
	mu                sync.Mutex
	newest            storage.Cursor
	made              []weak.Pointer[task.Event]
	reading, mostRead int
}

func isLarge(n storage.Cursor) bool { return n%3 != 0 }

func (l *freshLog) Log(context.Context) (storage.Extent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return storage.Extent{Oldest: 1, Newest: l.newest}, nil
}

func (l *freshLog) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest++
}

func (l *freshLog) Events(_ context.Context, after storage.Cursor, _ storage.EventFilter) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		l.read(1)
		defer l.read(-1)
		time.Sleep(time.Millisecond)
		log, _ := l.Log(context.Background())
		for n := after + 1; n <= log.Newest; n++ {
			e := &task.Event{Kind: task.Created, After: &task.Task{GUID: "guid", Domain: "domain", State: task.Pending}}
			if isLarge(n) {
				e.After.Definition.Annotation = strings.Repeat("x", pageBytes+1)
				l.mu.Lock()
				l.made = append(l.made, weak.Make(e))
				l.mu.Unlock()
			}
			if !yield(storage.Event{Sequence: n, Task: e}, nil) {
				return
			}
		}
	}
}

func (l *freshLog) read(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading += n
	l.mostRead = max(l.mostRead, l.reading)
}

// held is how many large events are still held.
func (l *freshLog) held() (n int) {
	runtime.GC()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.made {
		if e.Value() != nil {
			n++
		}
	}
	return n
}

// Readers are slow: they take each event when they are let.
type readers struct {
	t    *testing.T
	b    *BBS
	wg   sync.WaitGroup
	next chan struct{}

	mu    sync.Mutex
	busy  map[string]int // readers of each caller that have a large event
	taken int
}

func (r *readers) begin(ctx context.Context, caller string, after, last storage.Cursor) {
	r.t.Helper()
	events, _, err := r.b.SubscribeWithPosition(storage.WithCaller(ctx, caller), after, storage.EventFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	count := func(n storage.Cursor, by int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if isLarge(n) {
			r.busy[caller] += by
		}
		r.taken += max(0, by)
	}
	r.wg.Go(func() {
		want := max(0, after) + 1
		for e, err := range events {
			if err != nil {
				if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
					r.t.Errorf("a reader of %s got %v", caller, err)
				}
				return
			}
			if e.Sequence != want {
				r.t.Errorf("a reader of %s got event %d, want %d", caller, e.Sequence, want)
			}
			count(e.Sequence, 1)
			select {
			case <-r.next:
			case <-ctx.Done():
			}
			count(e.Sequence, -1)
			if want++; want > last {
				return
			}
		}
	})
}

// have waits until no reader can go on, and returns how many readers of a caller have a
// large event.
func (r *readers) have(caller string) int {
	time.Sleep(time.Second)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[caller]
}

func newReaders(t *testing.T, store storage.Store) *readers {
	t.Helper()
	b, err := New(Options{Store: store, EventTail: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &readers{t: t, b: b, next: make(chan struct{}), busy: map[string]int{}}
}

func TestFewSlowReadersOfTheLogHoldALargeEvent(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := &freshLog{Store: memstore.New(nil), newest: 7}
		r := newReaders(t, store)
		const many = 30
		for range many {
			r.begin(t.Context(), "slow", 0, 7)
		}
		if n := r.have("slow"); n != placesEach-1 {
			t.Errorf("%d readers of one caller have a large event, want %d", n, placesEach-1)
		}
		r.begin(t.Context(), "other", 0, 7)
		if n := r.have("other"); n != 1 {
			t.Errorf("%d readers of another caller have a large event, want 1", n)
		}
		if n := store.held(); n > placesEach {
			t.Errorf("%d large events are held, want at most %d", n, placesEach)
		}
		if store.mostRead > placesEach {
			t.Errorf("%d readers read at a time, want at most %d", store.mostRead, placesEach)
		}
		close(r.next)
		r.wg.Wait()
		if want := (many + 1) * 7; r.taken != want {
			t.Errorf("the readers took %d events, want %d", r.taken, want)
		}
		if r.b.large.taken != 0 || r.b.reading.taken != 0 || len(r.b.large.of) != 0 {
			t.Errorf("at the end %d and %d places are taken", r.b.large.taken, r.b.reading.taken)
		}
	})
}

// Each reader begins at another event, which the tail has dropped since.
func TestFewSlowReadersOfTheTailHoldALargeEvent(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := &freshLog{Store: memstore.New(nil), newest: 3}
		r := newReaders(t, store)
		const many = 30
		want := 0
		for n := storage.Cursor(3); n < 3+many; n++ {
			r.begin(t.Context(), "slow", n, 3+many)
			r.have("slow") // it waits for the next event
			store.add()
			want += int(3 + many - n)
		}
		if n := r.have("slow"); n != placesEach-1 {
			t.Errorf("%d readers of one caller have a large event, want %d", n, placesEach-1)
		}
		if n, most := store.held(), placesEach+2*r.b.tail.size; n > most {
			t.Errorf("%d large events are held, want at most %d", n, most)
		}
		close(r.next)
		r.wg.Wait()
		if r.taken != want {
			t.Errorf("the readers took %d events, want %d", r.taken, want)
		}
		if r.b.large.taken != 0 || r.b.reading.taken != 0 {
			t.Errorf("at the end %d and %d places are taken", r.b.large.taken, r.b.reading.taken)
		}
	})
}

func TestAReaderThatEndsGivesItsPlaceBack(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := &freshLog{Store: memstore.New(nil), newest: 1}
		r := newReaders(t, store)
		gone, cancel := context.WithCancel(t.Context())
		for range 2 * placesEach { // some have a place, and some wait
			r.begin(gone, "slow", 0, 9)
		}
		if n := r.have("slow"); n != placesEach-1 {
			t.Errorf("%d readers have a large event, want %d", n, placesEach-1)
		}
		cancel()
		r.wg.Wait()
		r.begin(t.Context(), "slow", 0, 1)
		if n := r.have("slow"); n != 1 || len(r.b.large.waiting) != 0 {
			t.Errorf("%d readers have a large event and %d wait, want 1 and none", n, len(r.b.large.waiting))
		}
		close(r.next)
		r.wg.Wait()
	})
}

// A reader that is slow with small events keeps no place for the large one behind them.
func TestALargeEventIsAPageOfItsOwn(t *testing.T) {
	store := &freshLog{Store: memstore.New(nil), newest: 4}
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	share := b.newShare(t.Context(), storage.EventFilter{})
	for position, want := range map[storage.Cursor]storage.Cursor{0: 1, 1: 2, 2: 3, 3: 4} {
		page, _, _ := b.page(t.Context(), position, 4, storage.EventFilter{}, share)
		if len(page) != 1 || page[0].number != want || share.holds != isLarge(want) {
			t.Errorf("after %d: a page of %d events, with a place: %v", position, len(page), share.holds)
		}
		share.done()
	}
	tail := []tailEntry{{number: 3}, {number: 4, bytes: pageBytes + 1}}
	if got := share.part(tail); len(got) != 1 || tail[1].bytes != 0 || share.holds {
		t.Errorf("got %d events of the tail, with a place: %v", len(got), share.holds)
	}
	for range placesEach {
		b.large.tryEnter(fmt.Sprint(len(b.large.of)))
	}
	large := func() []tailEntry { return []tailEntry{{number: 4, bytes: pageBytes + 1}} }
	if got := share.part(large()); len(got) != 0 {
		t.Errorf("got a large event without a place")
	}
	choosy := b.newShare(t.Context(), storage.EventFilter{Kinds: []string{lrp.InstanceCrashed.String()}})
	if got := choosy.part(large()); len(got) != 1 || choosy.holds {
		t.Errorf("a reader waits for a place for an event that it does not want")
	}
}

// A subscriber with a selector reads all events, because labels change by some that it
// does not want.
func TestASubscriberDoesNotWaitForPlacesForEventsThatItDoesNotWant(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := &freshLog{Store: memstore.New(nil), newest: 7}
		r := newReaders(t, store)
		for i := range placesEach {
			r.begin(t.Context(), fmt.Sprint("slow", i), 0, 7)
		}
		r.have("slow0")
		if r.b.large.taken != placesEach {
			t.Fatalf("%d places are taken, want all %d", r.b.large.taken, placesEach)
		}
		selector, err := executor.ParseSelector("team=blog")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := storage.EventFilter{Selector: selector, Kinds: []string{lrp.InstanceCrashed.String()}}
		events, position, err := r.b.SubscribeWithPosition(ctx, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range events {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got event %d, %v", e.Sequence, err)
			}
		}
		if got := position(); got != 7 {
			t.Errorf("the subscriber came to event %d, want 7", got)
		}
		close(r.next)
		r.wg.Wait()
	})
}

// A reader in the same process may have any number of lists at a time.
func TestASubscriptionInTheProcessNeedsNoPlace(t *testing.T) {
	b, err := New(Options{Store: &freshLog{Store: memstore.New(nil), newest: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * placesEach {
		events, err := b.Subscribe(t.Context(), FromStart, storage.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(events)
		t.Cleanup(stop)
		if e, err, _ := next(); err != nil || e.Sequence != 1 {
			t.Fatalf("got event %d, %v", e.Sequence, err)
		}
	}
}

func TestTheCallerWithTheFewestPlacesComesFirst(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		var q queue
		var got []string
		for _, caller := range []string{"a", "a", "a", "b"} {
			if err := q.enter(t.Context(), caller); err != nil {
				t.Fatal(err)
			}
		}
		for i, caller := range []string{"a", "b", "c", "b", "a"} {
			go func() {
				if err := q.enter(t.Context(), caller); err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprint(caller, i))
			}()
			synctest.Wait()
		}
		for _, caller := range []string{"a", "a", "b", "c", "b"} {
			q.leave(caller)
			synctest.Wait()
		}
		if want := []string{"c2", "a0", "b1", "b3", "a4"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
