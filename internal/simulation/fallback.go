package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A moment is what the world was like, as far as the store and its checkers go.
type moment struct {
	fallBack func(context.Context) error
	seen     storage.Cursor
	records  map[recordKey]*lrp.ActualLRP
	crashes  map[string]int
}

// Save notes the moment to which FallBack puts the store back.
func (w *World) Save() error {
	fallBack, err := w.medium.save()
	w.saved = &moment{fallBack, w.seen, maps.Clone(w.records), maps.Clone(w.crashes)}
	return err
}

// FallBack puts the store back to the moment of the last Save, while planes,
// cells and subscribers go on with what they know. The store finds out and
// leaves a gap.
func (w *World) FallBack(ctx context.Context) error {
	m := w.saved
	if m == nil {
		return nil
	}
	w.Fallen++
	w.ledger.closed = true
	w.seen, w.records, w.crashes = m.seen, maps.Clone(m.records), maps.Clone(m.crashes)
	w.epoch = 0                                     // its replacement may be lost
	w.ranBefore, w.fell = w.counts(), w.Clock.Now() // what is lost is done again
	return m.fallBack(ctx)
}

// A subscriber follows the log by way of any plane, at its own pace.
type subscriber struct {
	at storage.Cursor
}

// A subscriber that lags behind by few events mostly lets them wait, and one that lags
// behind by far more hurries: each look reads a page of events, however few it wants.
const (
	few = 16
	far = 100
)

// follow lets the subscriber read some of what there is.
func (w *World) follow(ctx context.Context, s *subscriber) error {
	log, err := w.Store.Log(ctx)
	if err != nil || s.at == log.Newest || log.Newest-s.at < few && w.random.step%few != 0 {
		return err
	}
	b := w.Planes[w.random.IntN(len(w.Planes))].BBS
	events, err := b.Subscribe(ctx, s.at, storage.EventFilter{})
	if err != nil {
		return err
	}
	left := 1 + w.random.IntN(20)
	if log.Newest-s.at > far { // a page is read whole, however little of it is wanted
		left += far
	}
	for e, err := range events {
		if errors.Is(err, storage.ErrGone) {
			s.at = log.Newest // it has to read the records anew
			return nil
		}
		if err != nil {
			return fmt.Errorf("a subscriber at event %d: %w", s.at, err)
		}
		if g := e.Gap; e.Sequence != s.at+1 && (g == nil || g.After != s.at) {
			return checkLog.violated("a subscriber is shown event %d after event %d", e.Sequence, s.at)
		}
		s.at = e.Sequence
		if err := w.shown(e); err != nil {
			return err
		}
		if left--; left == 0 || s.at == log.Newest {
			return nil
		}
	}
	return nil
}

// shown makes sure that nobody ever sees two events under one number.
func (w *World) shown(e storage.Event) error {
	before, known := w.numbers[e.Sequence]
	if !known {
		w.numbers[e.Sequence] = e
		return nil
	}
	if before == e { // it is the same event, not only an equal one
		return nil
	}
	was, err := encoded(before)
	if err != nil {
		return err
	}
	is, err := encoded(e)
	if err != nil {
		return err
	}
	if !before.At.Equal(e.At) || !bytes.Equal(was, is) {
		return checkLog.violated("event %d is %s %s and was %s %s", e.Sequence, e.At, is, before.At, was)
	}
	return nil
}

func encoded(e storage.Event) ([]byte, error) { return storage.EncodeEvent(&e) }

// granted makes sure that no epoch is granted twice.
func (w *World) granted(l storage.Lease) {
	fence := l.Fence()
	if w.epochs[fence] {
		w.object(checkLeaders.violated("epoch %d of the %s lease %q was granted twice", l.Epoch, l.Kind, l.Name))
	}
	w.epochs[fence] = true
}

// counts is how often the work of each task has begun.
func (w *World) counts() map[string]int {
	runs := map[string]int{}
	for guid, a := range w.attempts {
		if n := a.cell.begun(guid); n > 0 {
			runs[a.name] += n
		}
	}
	return runs
}

// attempted notes what the container of a task is for.
func (w *World) attempted(cell machine, c *executor.Container) {
	if isTask(c) && w.attempts[c.GUID].cell == nil {
		epoch, _, _ := strings.Cut(c.Tags[executor.TagTaskAttempt], ".")
		w.attempts[c.GUID] = attempt{c.Tags[executor.TagTaskGUID] + "@" + epoch, cell}
	}
}

// startsTask notes the same, from what the cell says when it begins.
func (w *World) startsTask(guid string, c task.Start) {
	for _, m := range w.cells {
		if m.presence().CellID == c.CellID && w.attempts[c.InstanceGUID].cell == nil {
			w.attempts[c.InstanceGUID] = attempt{fmt.Sprintf("%s@%d", guid, c.Attempt.Epoch), m}
		}
	}
}
