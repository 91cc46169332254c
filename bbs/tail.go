package bbs

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/lrp"
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
	bytes   int // of all entries
	// reading is closed when the read that is under way ends; nil if none is.
	reading chan struct{}
}

// tailBytes is how much memory the tail may take, besides the newest entry.
const tailBytes = 64 << 20

// A tailEntry is an event, or the error that stands in its place.
type tailEntry struct {
	number storage.Cursor
	event  storage.Event
	err    error
	bytes  int // about as much memory as the event takes
}

// large reports whether the event is more than a page may have.
func (e *tailEntry) large() bool { return e.bytes > pageBytes }

// entryOf is the entry for an element of a list of events. The number of an
// error is 0 unless it is about one event.
func entryOf(e storage.Event, err error) tailEntry {
	if err == nil {
		return tailEntry{number: e.Sequence, event: e, bytes: bytesOf(&e)}
	}
	var corrupt *storage.CorruptError
	if errors.As(err, &corrupt) {
		return tailEntry{number: corrupt.Key.Sequence, event: storage.Event{Sequence: corrupt.Key.Sequence}, err: err}
	}
	return tailEntry{err: err}
}

// bytesOf returns about how much memory an event takes.
func bytesOf(e *storage.Event) int {
	const instance = 512 // without texts and ports
	bytes := instance
	l := e.LRP
	if l == nil || l.DeploymentBefore != nil || l.DeploymentAfter != nil {
		return bytes + reached(reflect.ValueOf(e))
	}
	for _, r := range [...]*lrp.ActualLRP{l.Before, l.After} { // nearly all events are of this kind
		if r == nil {
			continue
		}
		bytes += instance + len(r.Ports)*int(reflect.TypeFor[lrp.PortMapping]().Size())
		for _, text := range [...]string{
			r.ProcessGUID, r.DefinitionID, r.Domain, r.InstanceGUID, r.CellID, r.Zone,
			r.Address, r.InstanceAddress, r.CrashReason, r.PlacementError.Detail,
		} {
			bytes += len(text)
		}
	}
	return bytes + len(l.Cause.Detail)
}

// reached returns how many bytes a value refers to, without the value itself.
func reached(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			bytes = int(v.Elem().Type().Size()) + reached(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // all refer to the same location
		}
		for i := range v.NumField() {
			bytes += reached(v.Field(i))
		}
	case reflect.Slice:
		bytes = v.Len() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 { // text may be long, and its bytes refer to nothing
			return bytes
		}
		for i := range v.Len() {
			bytes += reached(v.Index(i))
		}
	case reflect.Map:
		for k, x := range v.Seq2() {
			bytes += int(k.Type().Size()+x.Type().Size()) + reached(k) + reached(x)
		}
	}
	return bytes
}

// after waits until there are events after a position, and returns a page of
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
				entries := slices.Clone(some(behind(t.entries, position)))
				t.mu.Unlock()
				return entries, nil
			case position-last <= storage.Cursor(t.size):
				from = last
			default:
				t.drop() // nobody has followed for long
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

// some returns the first entries of a list, at most a page of them: a slow
// subscriber keeps them in memory when they have left the tail.
func some(list []tailEntry) []tailEntry {
	bytes := 0
	for i := range list {
		if bytes += list[i].bytes; bytes >= pageBytes || i+1 == pageSize {
			return list[:i+1]
		}
	}
	return list
}

// add appends entries, and drops the oldest if there are too many. Some room stays
// then, so that this is rare, and the newest entry stays in any case.
func (t *tail) add(more []tailEntry) {
	t.entries = append(t.entries, more...)
	for i := range more {
		t.bytes += more[i].bytes
	}
	if len(t.entries) <= 2*t.size && t.bytes <= tailBytes {
		return
	}
	first := len(t.entries) - 1
	bytes := t.entries[first].bytes
	for first > 0 && len(t.entries)-first < t.size && bytes+t.entries[first-1].bytes <= tailBytes/2 {
		first--
		bytes += t.entries[first].bytes
	}
	t.entries, t.bytes = slices.Clone(t.entries[first:]), bytes
}

// drop forgets all entries.
func (t *tail) drop() { t.entries, t.bytes = nil, 0 }

// read waits for events after a position, the end of the tail, and adds them.
func (t *tail) read(ctx context.Context, from storage.Cursor) (err error) {
	var more []tailEntry
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if errors.Is(err, storage.ErrGone) {
			t.drop()
		}
		if len(more) > 0 {
			t.add(more)
		}
		close(t.reading)
		t.reading = nil
	}()
	if err := storage.Wait(ctx, t.store, from, 0); err != nil {
		return err
	}
	bytes := 0
	for e, err := range t.store.Events(ctx, from, storage.EventFilter{}) {
		if err != nil && !isCorrupt(err) {
			return err
		}
		entry := entryOf(e, err)
		more = append(more, entry)
		if bytes += entry.bytes; len(more) == t.size || bytes >= tailBytes/2 {
			break
		}
	}
	return nil
}
