package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/group"
)

// items are batches on their way through a group.
func items(t *testing.T, s *Store, batches ...storage.Batch) (out []*item) {
	t.Helper()
	for _, b := range batches {
		it, err := s.newItem(b)
		if err != nil {
			t.Fatal(err)
		}
		it.Take()
		out = append(out, it)
	}
	return out
}

func TestEachCommitIsAnsweredOnceWhenTheDatabaseStaysAway(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{RetryFor: 1}) // one attempt
			if _, err := s.Commit(t.Context(), creation(unclaimed("q", 0))); err != nil {
				t.Fatal(err)
			}
			own := *s.d
			own.Batch = func(context.Context, *sql.Conn, []dialect.Call, []string) error {
				return fmt.Errorf("away: %w", syscall.ECONNRESET)
			}
			s.d = &own
			group := items(t, s, creation(unclaimed("p", 0)), creation(unclaimed("p", 0)))
			s.commitGroup(group)
			for i, it := range group {
				if <-it.Finished(); it.err == nil {
					t.Errorf("commit %d succeeded", i)
				}
			}
		})
	}
}

// The only commit with events waits for one without, so the transaction has
// none, and still its fate can be found out.
func TestATransactionWhoseEventsWaitIsFoundAgain(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			if _, err := s.Commit(t.Context(), creation(unclaimed("q", 0))); err != nil {
				t.Fatal(err)
			}
			cutAnswer(t, s, true)
			r := unclaimed("p", 0)
			first := creation(r)
			first.Events = nil
			after := *r
			after.ModificationTag = r.ModificationTag.Next()
			second := storage.Batch{
				ActualLRPs: []lrp.Write{{Before: r, After: &after}},
				Events:     []storage.Event{{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: r}}},
			}
			group := items(t, s, first, second)
			s.commitGroup(group)
			for i, it := range group {
				if <-it.Finished(); it.err != nil {
					t.Errorf("commit %d: %v", i, it.err)
				}
			}
		})
	}
}

// Nothing is known of a commit whose answer was lost when the database then
// refuses for good: no single commit may be told that it conflicts with itself.
func TestACommitInDoubtIsNotTriedAlone(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			if _, err := s.Commit(t.Context(), creation(unclaimed("q", 0))); err != nil {
				t.Fatal(err)
			}
			cut, refusals := cutAnswer(t, s, true), 0
			run := s.d.Batch
			s.d.Batch = func(ctx context.Context, c *sql.Conn, calls []dialect.Call, common []string) error {
				if *cut && refusals == 0 {
					refusals++
					return errors.New("read-only for a moment")
				}
				return run(ctx, c, calls, common)
			}
			group := items(t, s, creation(unclaimed("p", 0)), creation(unclaimed("p", 1)))
			s.commitGroup(group)
			for i, it := range group {
				if <-it.Finished(); it.err == nil || errors.Is(it.err, storage.ErrConflict) {
					t.Errorf("commit %d: %v, want what the database said", i, it.err)
				}
			}
		})
	}
}

// By the time the connection is back, others have committed so much that the
// events which would tell have left the log.
func TestACommitInDoubtWhoseEventsAreGoneIsNotRepeated(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			s, other := mustOpen(t, dsn, Options{Events: 1}), mustOpen(t, dsn, Options{Events: 1})
			for i := range 3 { // the last of them has nothing to trim
				if _, err := s.Commit(t.Context(), creation(unclaimed("q", i))); err != nil {
					t.Fatal(err)
				}
			}
			cut, busy := cutAnswer(t, s, true), false
			run := s.d.Batch
			s.d.Batch = func(ctx context.Context, c *sql.Conn, calls []dialect.Call, common []string) error {
				if *cut && !busy {
					busy = true
					for i := range 40 {
						if _, err := other.Commit(ctx, creation(unclaimed("other", i))); err != nil {
							t.Error(err)
						}
					}
				}
				return run(ctx, c, calls, common)
			}
			_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
			if err == nil || errors.Is(err, storage.ErrConflict) {
				t.Errorf("%v, which nobody can know", err)
			}
			if n := count(t, s, "p"); n != 1 {
				t.Errorf("%d records", n)
			}
		})
	}
}

func TestAReasonOfAnyBytesCanBeKeptInQuarantine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		r := unclaimed("p", 0)
		if _, err := s.Commit(t.Context(), creation(r)); err != nil {
			t.Fatal(err)
		}
		key := storage.ActualLRPKey(r)
		corruptRecord(t, s, key)
		q := storage.Batch{Quarantine: []storage.Quarantine{{Key: key, Reason: "found \xff and \x00"}}}
		if _, err := s.Commit(t.Context(), q); err != nil {
			t.Error(err)
		}
	})
}

func TestATimeToLiveOfCenturiesDoesNotEndAtOnce(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	l, err := s.Acquire(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "o"}, 1<<63-1)
	if err != nil || l.ExpiresAt.Before(time.Now()) {
		t.Errorf("lease until %v, %v", l.ExpiresAt, err)
	}
	if _, err := s.Commit(t.Context(), storage.Batch{Domains: []storage.DomainWrite{{Name: "d", TTL: 1<<63 - 1}}}); err != nil {
		t.Fatal(err)
	}
	for d, err := range s.Domains(t.Context()) {
		if err != nil || d.ExpiresAt.Before(time.Now()) {
			t.Errorf("domain until %v, %v", d.ExpiresAt, err)
		}
	}
}

func TestAMissingKeyFailsOnlyTheReadsThatNeedIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		sealed := mustOpen(t, dsn, Options{Keys: testKeys("a")})
		if _, err := sealed.Commit(t.Context(), creation(unclaimed("sealed", 0))); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, dsn, Options{})
		if _, err := s.Commit(t.Context(), creation(unclaimed("clear", 0))); err != nil {
			t.Fatal(err)
		}
		slots := []*slotRead{{Ticket: group.NewTicket(), guid: "sealed"}, {Ticket: group.NewTicket(), guid: "clear"}}
		s.readSlots(slots)
		if slots[0].err == nil || slots[1].err != nil {
			t.Errorf("slots: %v, %v", slots[0].err, slots[1].err)
		}
		lists := []*listRead{{Ticket: group.NewTicket(), guid: "sealed"}, {Ticket: group.NewTicket(), guid: "clear"}}
		s.readLists(lists)
		if lists[0].err == nil || lists[1].err != nil {
			t.Errorf("lists: %v, %v", lists[0].err, lists[1].err)
		}
	})
}
