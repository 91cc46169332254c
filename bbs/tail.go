package bbs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/diegosdk/diego/storage"
)

// A tail is the end of the log in memory. All subscribers that keep up share it,
// so a thousand of them cost the store as much as one. It has no goroutine of its
// own: a caller that needs newer events reads them from the store for all callers.
// If that caller gives up, the next one reads.
type tail struct {
	store storage.Store
	size  int

	mu sync.Mutex
	// entries have consecutive numbers. They are never changed, so slices of
	// them may be kept.
	entries []tailEntry
	// reading is closed when the read that is under way ends; nil if none is.
	reading chan struct{}
}

// A tailEntry is an event, or the error that stands in its place.
type tailEntry struct {
	number storage.Cursor
	event  storage.Event
	err    error
}

// entryOf is the entry for an element of a list of events. The number of an
// error is 0 unless it is about one event.
func entryOf(e storage.Event, err error) tailEntry {
	if err == nil {
		return tailEntry{number: e.Sequence, event: e}
	}
	var corrupt *storage.CorruptError
	if errors.As(err, &corrupt) {
		return tailEntry{number: corrupt.Key.Sequence, event: storage.Event{Sequence: corrupt.Key.Sequence}, err: err}
	}
	return tailEntry{err: err}
}

// after waits until there are events after a position, and returns some of
// them. It returns neither events nor an error if the tail cannot tell whether the
// position is in the log. The caller then asks the store, which has the events or
// says that they are gone.
func (t *tail) after(ctx context.Context, position storage.Cursor) ([]tailEntry, error) {
	for {
		t.mu.Lock()
		from := position
		if n := len(t.entries); n > 0 {
			last := t.entries[n-1].number
			switch {
			case position < last:
				entries := behind(t.entries, position)
				t.mu.Unlock()
				return entries, nil
			case position-last <= storage.Cursor(t.size):
				from = last
			default:
				t.entries = nil // nobody has followed for long
			}
		}
		if under := t.reading; under != nil {
			t.mu.Unlock()
			select {
			case <-under:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		t.reading = make(chan struct{})
		t.mu.Unlock()
		if err := t.read(ctx, from); err != nil && !(errors.Is(err, storage.ErrGone) && from != position) {
			return nil, err
		}
	}
}

// behind returns the entries after a position, or none if the one before them
// is missing.
func behind(entries []tailEntry, position storage.Cursor) []tailEntry {
	i, _ := slices.BinarySearchFunc(entries, position+1, func(e tailEntry, n storage.Cursor) int { return cmp.Compare(e.number, n) })
	if entries[i].number == position+1 || i > 0 && entries[i-1].number == position {
		return entries[i:]
	}
	return nil
}

// read waits for events after a position, the end of the tail, and adds them.
func (t *tail) read(ctx context.Context, from storage.Cursor) (err error) {
	var more []tailEntry
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if errors.Is(err, storage.ErrGone) {
			t.entries = nil
		}
		if t.entries = append(t.entries, more...); len(t.entries) > 2*t.size {
			t.entries = append([]tailEntry(nil), t.entries[len(t.entries)-t.size:]...)
		}
		close(t.reading)
		t.reading = nil
	}()
	if err := storage.Wait(ctx, t.store, from, 0); err != nil {
		return err
	}
	for e, err := range t.store.Events(ctx, from, storage.EventFilter{}) {
		if err != nil && !isCorrupt(err) {
			return err
		}
		if more = append(more, entryOf(e, err)); len(more) == t.size {
			break
		}
	}
	return nil
}
