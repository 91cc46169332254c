package bbs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A follower carries out the effects of what others have committed: a consumer in
// a transaction of its own, or a leader that ended too soon. It finds these commits
// in the log of events by their numbers, so it does not read what this process has
// committed.
//
// It also brings instances up to date with their deployment if that has failed
// before. Convergence does not do that in a domain that is not fresh.
type follower struct {
	store  storage.Store
	follow func(ctx context.Context, processGUID string) error
	carry  func([]lrp.Effect, []task.Effect)
	now    func() time.Time
	logger *slog.Logger

	mu sync.Mutex
	// own are the events of this process's commits beyond position.
	own spans
	// due are the processes whose instances are not up to date, and when to try
	// again. waiting are those whose rollout waits for a time.
	due, waiting map[string]time.Time

	// These belong to the caller of tick. Everything up to position is done. seen
	// is the end of the log at the last tick: an older event that is not in own is
	// another's. begun is false until the log was searched for what an earlier
	// leader has left.
	position, seen storage.Cursor
	begun          bool
	// mark is a position from which the next leader is to search. It is stored in
	// a lease once it is followKeep old.
	mark   storage.Cursor
	marked time.Time
}

const (
	// followPause is the least time between two looks at the log, and followTick
	// the longest.
	followPause = 100 * time.Millisecond
	followTick  = time.Second
	// followAgain is the wait before a process that failed is tried again.
	followAgain = 30 * time.Second
	// followKeep is how often the leader stores the position that it had reached a
	// while ago.
	followKeep = 10 * time.Second
)

// followedLease is the kind of the lease whose value is the position up to
// which the log was followed. It ends when nobody has led for a month: then the
// log is searched from its beginning.
const (
	followedLease = "followed"
	followedTTL   = 30 * 24 * time.Hour
)

// An ownStore reports its commits to its follower.
type ownStore struct {
	storage.Passthrough
	follower *follower
}

// Commit implements [storage.Store].
func (s ownStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	events := len(b.Events)
	last, err := s.Store.Commit(ctx, b)
	if err == nil && events > 0 {
		s.follower.mu.Lock()
		s.follower.own = s.follower.own.add(span{last - storage.Cursor(events) + 1, last})
		s.follower.mu.Unlock()
	}
	return last, err
}

// later schedules an update of a process's instances after wait.
func (f *follower) later(processGUID string, wait time.Duration) {
	f.note(f.due, processGUID, f.now().Add(wait))
}

func (f *follower) note(list map[string]time.Time, processGUID string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := list[processGUID]; !known || at.Before(before) {
		list[processGUID] = at
	}
}

// begin is called when this process becomes the leader.
func (f *follower) begin() { f.begun = false }

// tick looks at the log once, and does what is due.
func (f *follower) tick(ctx context.Context) error {
	err := f.look(ctx)
	if errors.Is(err, storage.ErrGone) {
		f.begun, err = false, nil // the next tick begins with what is there
	}
	return errors.Join(err, f.doDue(ctx), f.keep(ctx))
}

// look reads the commits of others.
func (f *follower) look(ctx context.Context) error {
	log, err := f.store.Log(ctx)
	switch {
	case err != nil:
		return err
	case !f.begun || log.Newest < f.seen:
		return f.search(ctx, log)
	}
	until := f.seen
	f.mu.Lock()
	gaps := f.own.gaps(span{f.position + 1, until})
	f.mu.Unlock()
	for _, gap := range gaps {
		if err := f.read(ctx, gap); err != nil {
			return err
		}
	}
	f.position, f.seen = until, log.Newest
	f.mu.Lock()
	f.own = f.own.after(until)
	f.mu.Unlock()
	return nil
}

// search looks for work that an earlier leader has left and convergence would
// not do: instances that are not desired any more, in a domain that is not
// fresh. It begins at that leader's position, or reads the whole log.
func (f *follower) search(ctx context.Context, log storage.Extent) error {
	from, err := f.kept(ctx)
	if err != nil {
		return err
	}
	if err = f.searchFrom(ctx, log, from); errors.Is(err, storage.ErrGone) {
		err = f.searchFrom(ctx, log, log.Oldest-1)
	}
	return err
}

func (f *follower) searchFrom(ctx context.Context, log storage.Extent, from storage.Cursor) error {
	for e, err := range f.store.Events(ctx, from, storage.EventFilter{
		Kinds: []string{lrp.DeploymentChanged.String(), lrp.DeploymentRemoved.String()},
	}) {
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return err
		}
		if d := e.LRP; d.DeploymentAfter == nil || d.DeploymentAfter.Instances < d.DeploymentBefore.Instances {
			f.later(e.Subject().ProcessGUID, 0)
		}
	}
	f.position, f.seen, f.begun = log.Newest, log.Newest, true
	f.mark, f.marked = from, f.now()
	return nil
}

// kept returns the stored position of the last leader, if it is known.
func (f *follower) kept(ctx context.Context) (position storage.Cursor, err error) {
	for l, err := range f.store.Leases(ctx, followedLease) {
		if err != nil {
			return 0, err
		}
		if n, err := strconv.ParseInt(string(l.Value), 10, 64); err == nil {
			position = storage.Cursor(n)
		}
	}
	return position, nil
}

// keep stores for the next leader the position that was reached a while ago,
// unless something is still due.
func (f *follower) keep(ctx context.Context) error {
	f.mu.Lock()
	idle := len(f.due) == 0
	f.mu.Unlock()
	now := f.now()
	if !f.begun || !idle || f.position == f.mark || now.Sub(f.marked) < followKeep {
		return nil
	}
	_, err := f.store.Acquire(ctx, storage.Lease{
		Kind: followedLease, Name: "bbs", Owner: "bbs", Value: strconv.AppendInt(nil, int64(f.mark), 10),
	}, followedTTL)
	if err == nil {
		f.mark, f.marked = f.position, now
	}
	return err
}

// read carries out what the events of others require.
func (f *follower) read(ctx context.Context, gap span) error {
	for event, err := range f.store.Events(ctx, gap.first-1, storage.EventFilter{}) {
		e := entryOf(event, err)
		switch {
		case err != nil && !isCorrupt(err):
			return err
		case e.number > gap.last:
			return nil
		case err != nil:
		case e.event.LRP != nil && (e.event.LRP.DeploymentBefore != nil || e.event.LRP.DeploymentAfter != nil):
			f.later(e.event.Subject().ProcessGUID, 0)
		case e.event.Task != nil:
			f.carry(nil, e.event.Task.Effects())
		}
		if e.number == gap.last {
			return nil
		}
	}
	return nil
}

// doDue brings the instances of the due processes up to date. A process that
// fails is tried again later.
func (f *follower) doDue(ctx context.Context) (err error) {
	now := f.now()
	f.mu.Lock()
	var guids []string
	for _, list := range []map[string]time.Time{f.due, f.waiting} {
		for guid, at := range list {
			if !now.Before(at) {
				guids = append(guids, guid)
				delete(list, guid)
			}
		}
	}
	f.mu.Unlock()
	slices.Sort(guids)
	for _, guid := range slices.Compact(guids) {
		if followErr := f.follow(ctx, guid); followErr != nil {
			f.later(guid, followAgain)
			f.logger.Warn("the instances do not follow their deployment yet; it is tried again", "process", guid, "err", followErr)
			err = errors.Join(err, followErr)
		}
	}
	return err
}

// run ticks when the log has grown, and at least once a second, until ctx ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := followPause
		if f.tick(ctx) != nil {
			pause = followTick
		} else if f.position == f.seen {
			f.wait(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// wait returns when the log has grown, or when it is time to check what is due.
// The next look reports errors of the store.
func (f *follower) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, followTick)
	defer cancel()
	_ = storage.Wait(ctx, f.store, f.seen, 0)
}

// A span is a range of events, both ends included; it is empty if last is below
// first.
type span struct{ first, last storage.Cursor }

// spans are in ascending order and do not touch.
type spans []span

// add returns s with x added.
func (s spans) add(x span) spans {
	i, _ := slices.BinarySearchFunc(s, x, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	s = slices.Insert(s, i, x)
	joined := s[:1]
	for _, next := range s[1:] {
		if last := &joined[len(joined)-1]; next.first <= last.last+1 {
			last.last = max(last.last, next.last)
		} else {
			joined = append(joined, next)
		}
	}
	return joined
}

// gaps are the parts of x that are in none of s.
func (s spans) gaps(x span) (list spans) {
	for _, own := range s {
		if own.last < x.first {
			continue
		}
		if own.first > x.last {
			break
		}
		if own.first > x.first {
			list = append(list, span{x.first, own.first - 1})
		}
		x.first = own.last + 1
	}
	if x.first <= x.last {
		list = append(list, x)
	}
	return list
}

// after returns the part of s beyond a position.
func (s spans) after(position storage.Cursor) spans {
	for len(s) > 0 && s[0].last <= position {
		s = s[1:]
	}
	return slices.Clone(s)
}
