package bbs

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A largeLog is a store whose log has events of largeEvent bytes and more. It
// counts the events that were read.
type largeLog struct {
	storage.Store
	newest storage.Cursor
	small  bool // without large texts
	// session says that the events are of sessions.
	session bool
	read    int
}

const largeEvent = 10 << 10

func (l *largeLog) Log(context.Context) (storage.Extent, error) {
	return storage.Extent{Oldest: 1, Newest: l.newest}, nil
}

func (l *largeLog) Events(_ context.Context, after storage.Cursor, _ storage.EventFilter) iter.Seq2[storage.Event, error] {
	large := &task.Event{Kind: task.Created, After: &task.Task{GUID: "guid", Domain: "domain", State: task.Pending,
		Definition: task.Definition{Annotation: strings.Repeat("x", largeEvent)}}}
	if l.small {
		large = &task.Event{Kind: task.Removed}
	}
	return func(yield func(storage.Event, error) bool) {
		for n := after + 1; n <= l.newest; n++ {
			l.read++
			e := storage.Event{Sequence: n, Task: large}
			if l.session {
				e = storage.Event{Sequence: n, Session: &storage.SessionEvent{Command: []string{strings.Repeat("x", largeEvent)}}}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestSlowSubscribersTogetherHoldFewBytes(t *testing.T) {
	store := &largeLog{Store: memstore.New(nil), newest: 2000}
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	const subscribers = 600
	var first func() (storage.Event, error, bool)
	for i := range subscribers {
		before := store.read
		events, err := b.Subscribe(t.Context(), FromStart, storage.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(events)
		t.Cleanup(stop)
		if e, err, _ := next(); err != nil || e.Sequence != 1 {
			t.Fatalf("got event %d, %v", e.Sequence, err)
		}
		if page := store.read - before; page*largeEvent > pageBytes+largeEvent {
			t.Fatalf("one page has %d events of %d bytes", page, largeEvent)
		}
		if i == 0 {
			first = next
		}
	}
	if store.read*largeEvent > allPagesBytes+subscribers*(leastPageBytes+largeEvent) {
		t.Errorf("%d subscribers hold %d events of %d bytes", subscribers, store.read, largeEvent)
	}
	for want := storage.Cursor(2); want <= store.newest; want++ {
		if e, err, _ := first(); err != nil || e.Sequence != want {
			t.Fatalf("got event %d, %v; want %d", e.Sequence, err, want)
		}
	}
}

func TestASubscriberGetsAPageAlthoughOthersHoldAllBytes(t *testing.T) {
	store := &largeLog{Store: memstore.New(nil), newest: 2000, small: true}
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	b.paged.Store(allPagesBytes)
	page, bytes, more := b.page(t.Context(), 0, store.newest, storage.EventFilter{}, nil)
	if len(page) < 5 || bytes < leastPageBytes || bytes > 2*leastPageBytes || !more {
		t.Errorf("got a page of %d events and %d bytes, more: %v", len(page), bytes, more)
	}
}

// An event counts with all that it refers to, however it is stored.
func TestTheBytesOfAnEventAreThoseOfItsTexts(t *testing.T) {
	long := strings.Repeat("x", 200)
	instance := &lrp.ActualLRP{
		Key: lrp.Key{ProcessGUID: long, DefinitionID: long, Domain: long}, InstanceKey: lrp.InstanceKey{InstanceGUID: long, CellID: long},
		NetInfo: lrp.NetInfo{Ports: make([]lrp.PortMapping, 100)}, CrashReason: long, PlacementError: lrp.PlacementError{Detail: long}, Zone: long,
	}
	ports := 100 * int(reflect.TypeFor[lrp.PortMapping]().Size())
	routes := lrp.Routes{"r": make(json.RawMessage, 128<<10)}
	for name, test := range map[string]struct {
		event *lrp.Event
		least int
	}{
		"instance":   {&lrp.Event{Before: instance, After: instance, Cause: lrp.Cause{Detail: long}}, 17*len(long) + 2*ports},
		"deployment": {&lrp.Event{DeploymentAfter: &lrp.Deployment{Settings: lrp.Settings{Routes: routes}}}, 128 << 10},
	} {
		if got := bytesOf(&storage.Event{LRP: test.event}); got < test.least || got > test.least+10<<10 {
			t.Errorf("%s: %d bytes, want %d and some for the rest", name, got, test.least)
		}
	}
}

func BenchmarkBytesOf(b *testing.B) {
	for name, e := range map[string]*lrp.Event{
		"instance":   {Before: new(lrp.ActualLRP), After: new(lrp.ActualLRP)},
		"deployment": {DeploymentAfter: &lrp.Deployment{Settings: lrp.Settings{Routes: lrp.Routes{"r": make(json.RawMessage, 128<<10)}}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bytesOf(&storage.Event{LRP: e})
			}
		})
	}
}

func TestATimelineLeavesOutTheOldestOfTooManyBytes(t *testing.T) {
	store := &largeLog{Store: memstore.New(nil), newest: 3 * timelineBytes / largeEvent, session: true}
	b, err := New(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	list, err := b.Timeline(t.Context(), "web", 0)
	if err != nil || len(list)*largeEvent > timelineBytes || len(list)*largeEvent < timelineBytes*9/10 {
		t.Fatalf("got %d entries of %d bytes, %v", len(list), largeEvent, err)
	}
	for i, e := range list {
		if want := store.newest - storage.Cursor(len(list)-1-i); e.Sequence != want {
			t.Fatalf("entry %d is event %d, want %d", i, e.Sequence, want)
		}
	}
}

func TestPagesAreNoLongerCountedOnceTheirSubscribersHaveLeft(t *testing.T) {
	b, err := New(Options{Store: &largeLog{Store: memstore.New(nil), newest: 200}})
	if err != nil {
		t.Fatal(err)
	}
	for _, taken := range []int{1, 30, 199} {
		events, err := b.Subscribe(t.Context(), FromStart, storage.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if e.Sequence == storage.Cursor(taken) {
				break
			}
		}
		if left := b.paged.Load(); left != 0 {
			t.Errorf("after %d events, %d bytes are counted", taken, left)
		}
	}
}

func TestTheTailHoldsFewBytes(t *testing.T) {
	store := &largeLog{Store: memstore.New(nil), newest: 20_000}
	shared := &tail{store: store, size: 10_000}
	for at := storage.Cursor(0); at < store.newest; {
		shared.reading = make(chan struct{})
		if err := shared.read(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if shared.bytes > tailBytes || len(shared.entries)*largeEvent > tailBytes {
			t.Fatalf("the tail has %d events of %d bytes, and counts %d bytes", len(shared.entries), largeEvent, shared.bytes)
		}
		at = shared.entries[len(shared.entries)-1].number
	}
	// A subscriber gets a page at a time, of which nothing else hangs.
	for at := shared.entries[0].number; at < store.newest; {
		page, err := shared.after(t.Context(), at)
		if err != nil || len(page) == 0 || page[0].number != at+1 {
			t.Fatalf("after %d: %d events, %v", at, len(page), err)
		}
		if cap(page)*largeEvent > pageBytes+2*largeEvent {
			t.Fatalf("a page has %d events of %d bytes, and room for %d", len(page), largeEvent, cap(page))
		}
		at += storage.Cursor(len(page))
	}
}

func TestTheTailKeepsAnEventHoweverLargeItIs(t *testing.T) {
	shared := new(tail)
	shared.size = 10
	for n := range storage.Cursor(5) {
		shared.add([]tailEntry{{number: n, bytes: 2 * tailBytes}})
		if len(shared.entries) != 1 || shared.entries[0].number != n {
			t.Fatalf("after event %d the tail has %+v", n, shared.entries)
		}
	}
}
