package bbs

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// Where a subscription may begin, besides after a storage.Cursor.
const (
	// FromNow begins after the newest event.
	FromNow storage.Cursor = -1
	// FromStart begins with the oldest event in the log.
	FromStart storage.Cursor = -2
)

// Log is the extent of the log of events.
func (b *BBS) Log(ctx context.Context) (storage.Extent, error) { return b.o.Store.Log(ctx) }

// PositionOf returns the number of the event after which a subscription begins,
// if the arguments are valid.
func PositionOf(ctx context.Context, after storage.Cursor, f storage.EventFilter, log func(context.Context) (storage.Extent, error)) (storage.Cursor, error) {
	var v executor.Validator
	f.Validate(v.In("filter"))
	v.Check(after >= 0 || after == FromNow || after == FromStart, "after", int64(after), "the number of an event, FromNow (-1) or FromStart (-2)")
	if err := v.Err(); err != nil || after >= 0 {
		return after, err
	}
	extent, err := log(ctx)
	if after == FromStart {
		return extent.Oldest - 1, err
	}
	return extent.Newest, err
}

// Subscribe lists the events after a position that f wants, and continues with
// new ones until ctx ends. They come in the order of commits, each once. A
// subscriber that continues after the Sequence of the last event that it has
// seen misses nothing, even after a restart or with another process. It may be
// as slow as it likes and holds nobody up.
//
// The position is fixed when Subscribe returns. Subscribe fails with an
// *executor.ValidationError if the position is neither the number of an event
// nor FromNow nor FromStart, or if f names an unknown kind of event. The list
// ends with an error, either ctx's or the store's. If that error wraps
// storage.ErrGone, the position has left the log, or the store has lost events
// that the subscriber has seen: begin another subscription with FromNow, and
// then read all records again. An event that cannot be decoded comes as an
// error that wraps storage.ErrCorrupt, and the list goes on.
func (b *BBS) Subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter) (iter.Seq2[storage.Event, error], error) {
	events, _, err := b.subscribe(ctx, after, f, false)
	return events, err
}

// A PositionSubscriber is an [API] that knows how far a subscription has come
// while no event is wanted. [BBS] is one. Without it, as in a wrapper that hides
// it, a subscriber over HTTP that waits long and is cut off may find that its
// position has left the log. There is also no bound then on how many slow
// subscribers over HTTP hold a large event, so they may take all memory. Its methods
// may be called at the same time.
type PositionSubscriber interface {
	// SubscribeWithPosition is Subscribe, and also returns the position that the
	// list has reached: the reader has taken every event up to there that f wants.
	// It is for readers that take each event within some time. Few of them hold a
	// large event at a time, and the others wait for that; [storage.WithCaller] says
	// to whom a subscription belongs, so that callers take turns. So one goroutine
	// must not read several of these lists by turns.
	SubscribeWithPosition(ctx context.Context, after storage.Cursor, f storage.EventFilter) (events iter.Seq2[storage.Event, error], position func() storage.Cursor, err error)
}

var _ PositionSubscriber = (*BBS)(nil)

// SubscribeWithPosition implements [PositionSubscriber].
func (b *BBS) SubscribeWithPosition(ctx context.Context, after storage.Cursor, f storage.EventFilter) (events iter.Seq2[storage.Event, error], position func() storage.Cursor, err error) {
	return b.subscribe(ctx, after, f, true)
}

// subscribe makes a subscription. shares says that its list needs a share of the
// places.
func (b *BBS) subscribe(ctx context.Context, after storage.Cursor, f storage.EventFilter, shares bool) (events iter.Seq2[storage.Event, error], position func() storage.Cursor, err error) {
	after, err = PositionOf(ctx, after, f, b.Log)
	if err != nil {
		return nil, nil, err
	}
	var reached atomic.Int64
	reached.Store(int64(after))
	return func(taken func(storage.Event, error) bool) {
		var share *share
		if shares {
			share = b.newShare(ctx, f)
		}
		defer share.done()
		wants, err := b.wants(ctx, after, f, share)
		if err != nil {
			taken(storage.Event{}, err)
			return
		}
		yield := func(e *tailEntry, label func(*storage.Event)) bool {
			b.believe(ctx, e.err)
			if e.err == nil && !wants(&e.event) {
				return true
			}
			event := e.event
			label(&event)
			return taken(event, e.err)
		}
		at, ok := after, true
		for ok {
			if at, ok = b.catchUp(ctx, at, f, share, yield); ok {
				reached.Store(int64(at))
				at, ok = b.keepUp(ctx, at, f, share, &reached, yield)
			}
		}
	}, func() storage.Cursor { return storage.Cursor(reached.Load()) }, nil
}

// catchUp yields the events of the log after a position, at least those that f
// wants, and returns the position that it reached. ok is false if the list is
// over. It reads in pages, so a slow subscriber keeps nothing of the store busy.
func (b *BBS) catchUp(ctx context.Context, position storage.Cursor, f storage.EventFilter, share *share, yield func(*tailEntry, func(*storage.Event)) bool) (reached storage.Cursor, ok bool) {
	read := f
	if !f.Selector.IsZero() {
		read = storage.EventFilter{} // labels change by events of which f may want none
	}
	for {
		// Once the list is read, everything up to here has been seen, even if f wants
		// none of it.
		log, err := b.o.Store.Log(ctx)
		if err != nil {
			yield(&tailEntry{err: err}, unlabelled)
			return position, false
		}
		more := false
		if position, more, ok = b.yieldPage(ctx, position, log.Newest, f, read, share, yield); !ok {
			return position, false
		}
		if !more {
			return max(position, log.Newest), true
		}
	}
}

// yieldPage yields one page, and reports whether the log has more. If there is no
// place for the first event, which is large, it yields nothing and waits for a place.
func (b *BBS) yieldPage(ctx context.Context, position, newest storage.Cursor, f, read storage.EventFilter, share *share, yield func(*tailEntry, func(*storage.Event)) bool) (reached storage.Cursor, more, ok bool) {
	page, bytes, more := b.page(ctx, position, newest, read, share)
	if more && len(page) == 0 {
		if err := share.wait(ctx); err != nil {
			yield(&tailEntry{err: err}, unlabelled)
			return position, false, false
		}
		return position, true, true
	}
	defer share.done()
	defer func() { b.paged.Add(-bytes) }()
	b.o.Metrics.Observe("subscriber_lag_events", float64(len(page)))
	ok, err := b.labelledEvents(ctx, f, page, func(e *tailEntry, label func(*storage.Event)) bool {
		if !yield(e, label) || e.err != nil && !isCorrupt(e.err) {
			return false
		}
		position = max(position, e.number)
		return true
	})
	if err != nil {
		yield(&tailEntry{err: err}, unlabelled)
	}
	return position, more, ok && err == nil
}

// A wentBack remembers when a reader's claim that the log was longer was last
// believed.
type wentBack struct {
	mu sync.Mutex
	at time.Time
}

// believeAgain is the time between two such claims that are believed. One is
// enough: the events that others have seen lie in the same gap.
const believeAgain = time.Hour

// believe lets the store leave a gap if err says that a reader has seen more of
// the log than there is, because then the store has lost events. A number that
// cannot have been given yet is not believed.
func (b *BBS) believe(ctx context.Context, err error) {
	if err == nil {
		return
	}
	var gone *storage.GoneError
	now := b.o.Now()
	if !errors.As(err, &gone) || gone.After <= gone.Extent.Newest || gone.After > storage.Cursor(now.UnixMicro()) {
		return
	}
	b.back.mu.Lock()
	age := now.Sub(b.back.at)
	again := age >= 0 && age < believeAgain
	if !again {
		b.back.at = now
	}
	b.back.mu.Unlock()
	if again {
		return
	}
	b.o.Logger.Warn("a subscriber has seen more of the log of events than there is, so the store may have gone back to an earlier moment",
		"seen", gone.After, "newest", gone.Extent.Newest)
	if err := storage.Restored(ctx, b.o.Store); err != nil {
		b.o.Logger.Error("no gap could be left in the log of events: numbers that the subscriber has seen may come again; restart this process when the store works",
			"seen", gone.After, "newest", gone.Extent.Newest, "err", err)
	}
}

// A subscriber that reads from the store gets pages of so many events or bytes,
// and all such subscribers together hold allPagesBytes. Slow subscribers hold
// their pages for long. If nothing is left for a page, it still has leastPageBytes,
// so that one caller's subscriptions do not make each event a read for all others. An
// event above pageBytes is a page of its own for a subscriber over a network, which
// needs a place for it.
const (
	pageSize       = 500
	pageBytes      = 256 << 10
	leastPageBytes = 16 << 10
	allPagesBytes  = 64 << 20
)

// page reads some events after a position; newest is a position that the log has
// reached. An error that ends the list is its last entry. The caller subtracts bytes
// from b.paged when it is done with the page. more is true if the page is full. It is
// empty then if the share has no place for the first event.
func (b *BBS) page(ctx context.Context, position, newest storage.Cursor, f storage.EventFilter, share *share) (list []tailEntry, bytes int64, more bool) {
	const first = 64 // room for as many at first, since f may want few
	list = make([]tailEntry, 0, max(0, min(first, newest-position)))
	err := share.read(ctx, func() error {
		for e, err := range b.o.Store.Events(ctx, position, f) {
			entry := entryOf(e, err)
			if more = !share.mayHold(&entry, len(list) == 0); more {
				return nil
			}
			list = append(list, entry)
			bytes += int64(entry.bytes)
			held := b.paged.Add(int64(entry.bytes))
			if more = len(list) == pageSize || bytes >= pageBytes || held >= allPagesBytes && bytes >= leastPageBytes; more {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		list = append(list, tailEntry{err: err})
	}
	return list, bytes, more
}

// keepUp yields all events after a position, until the subscriber has fallen
// behind what others read together. ok is false if the list is over. The tail may drop
// a large event while the subscriber waits for a place, or while others hold it.
func (b *BBS) keepUp(ctx context.Context, position storage.Cursor, f storage.EventFilter, share *share, seen *atomic.Int64, yield func(*tailEntry, func(*storage.Event)) bool) (reached storage.Cursor, ok bool) {
	for {
		entries, err := b.tail.after(ctx, position)
		if err == nil && len(entries) > 0 {
			if entries = share.part(entries); len(entries) == 0 {
				if err = share.wait(ctx); err == nil {
					continue
				}
			}
		}
		if err != nil {
			yield(&tailEntry{err: err}, unlabelled)
			return position, false
		}
		if len(entries) == 0 {
			return position, true
		}
		b.o.Metrics.Observe("subscriber_lag_events", float64(len(entries)))
		ok, err := b.labelledEvents(ctx, f, entries, func(e *tailEntry, label func(*storage.Event)) bool {
			position = e.number
			return yield(e, label)
		})
		if err != nil {
			yield(&tailEntry{err: err}, unlabelled)
		}
		share.done()
		if !ok || err != nil {
			return position, false
		}
		seen.Store(int64(position))
	}
}

// A TimelineEntry is one thing that happened to an instance.
type TimelineEntry struct {
	At       time.Time      `json:"at"`
	Sequence storage.Cursor `json:"sequence"`
	// Text says what happened and why, for example "crashed: exit status 137".
	Text string `json:"text"`
	// Event is the change of a record or of the deployment, or zero if Session is
	// set: somebody has worked in the instance's container, or was not let in.
	Event   lrp.Event             `json:"event,omitzero"`
	Session *storage.SessionEvent `json:"session,omitempty"`
}

// timelineKinds leaves out kinds that repeat others.
var timelineKinds = []string{
	lrp.InstanceCreated.String(), lrp.InstanceChanged.String(), lrp.InstanceRemoved.String(), lrp.InstanceCrashed.String(),
	lrp.DeploymentCreated.String(), lrp.DeploymentChanged.String(), lrp.DeploymentRemoved.String(),
	storage.KindSessionBegan, storage.KindSessionEnded, storage.KindSessionRefused,
}

// timelineBytes is about how much memory the events of a timeline may take.
const timelineBytes = 16 << 20

// Timeline reports what happened at an index of a process, and to its
// deployment, as far back as the log of events goes. It leaves out the oldest
// events if all take more than about 16 MiB.
func (b *BBS) Timeline(ctx context.Context, processGUID string, index int) ([]TimelineEntry, error) {
	if err := checkIndex(index); err != nil {
		return nil, err
	}
	log, err := b.o.Store.Log(ctx)
	if err != nil {
		return nil, err
	}
	const deployment = -1 // the index of events about the process itself
	var list []TimelineEntry
	var sizes []int
	bytes := 0
	for e, err := range b.o.Store.Events(ctx, log.Oldest-1, storage.EventFilter{
		ProcessGUIDs: []string{processGUID}, Indices: []int{index, deployment}, Kinds: timelineKinds,
	}) {
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return list, err
		}
		entry := TimelineEntry{At: e.At, Sequence: e.Sequence}
		if s := e.Session; s != nil {
			entry.Text, entry.Session = s.Explain(), s
		} else {
			entry.Text, entry.Event = e.LRP.Explain(), *e.LRP
		}
		list, sizes = append(list, entry), append(sizes, bytesOf(&e))
		bytes += sizes[len(sizes)-1]
		for bytes > timelineBytes && len(list) > 1 {
			bytes -= sizes[0]
			list[0] = TimelineEntry{} // the array keeps it
			list, sizes = list[1:], sizes[1:]
		}
	}
	return list, nil
}
