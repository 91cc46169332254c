//go:build cgo

package sqlstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// One cluster serves all that is tested of it, as it takes a while to start.
func TestAGaleraClusterIsWrittenThroughOneNode(t *testing.T) {
	nodes := testdb.StartGalera(t, 3)
	first := nodes[0].Database(t)
	second := nodes[1].SameDatabase(t, first)

	t.Run("without the word that one node takes all writes it is refused", func(t *testing.T) {
		_, err := Open(t.Context(), "mysql:"+first, nil)
		for _, want := range []string{"Galera", "wsrep_on is ON", "one_node=true", "Options.OneNode"} {
			wantError(t, err, want)
		}
		if !errors.Is(err, ErrSeveralNodes) {
			t.Errorf("%v is not ErrSeveralNodes", err)
		}
		if _, err := New(openDB(t, MySQL, first), MySQL, nil); !errors.Is(err, ErrSeveralNodes) {
			t.Errorf("New: %v", err)
		}
		var tables int
		if err := openDB(t, MySQL, first).QueryRow("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables); err != nil || tables != 0 {
			t.Errorf("the refused store has made %d tables: %v", tables, err)
		}
	})

	t.Run("sessions of the caller's that may miss commits are refused", func(t *testing.T) {
		_, err := New(openDB(t, MySQL, first), MySQL, &Options{OneNode: true})
		wantError(t, err, "wsrep_sync_wait is 0")
		wantError(t, err, "add wsrep_sync_wait=7 to the DSN")
		s, err := New(openDB(t, MySQL, withParameter(first, "wsrep_sync_wait=7")), MySQL, &Options{OneNode: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})

	leader := mustOpen(t, "mysql:"+withParameter(first, "one_node=true"), Options{})
	standby := mustOpen(t, "mysql:"+second, Options{OneNode: true})

	t.Run("a server that has become one of several since it was opened is refused", func(t *testing.T) {
		s := mustOpen(t, "mysql:"+first, Options{OneNode: true, Prefix: newPrefix()})
		s.options.OneNode = false
		s.batches.Store(true)
		s.server.identity, s.server.connections = "one that was alone", nil
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); !errors.Is(err, ErrSeveralNodes) {
			t.Errorf("a commit: %v", err)
		}
		if _, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "one"}, time.Minute); !errors.Is(err, ErrSeveralNodes) {
			t.Errorf("a lease: %v", err)
		}
		s.options.OneNode = true
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil || s.batches.Load() {
			t.Errorf("with one node for all writes: %v, batches %v", err, s.batches.Load())
		}
	})

	t.Run("another node shows what was acknowledged, or nothing", func(t *testing.T) {
		// The other node applies nothing for a while.
		c, err := openDB(t, MySQL, second).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
			t.Fatal(err)
		}
		cursor, err := leader.Commit(t.Context(), creation(unclaimed("p", 0)))
		if err != nil {
			t.Fatal(err)
		}
		var stale int64
		if err := c.QueryRowContext(t.Context(), "SELECT newest FROM diego_log").Scan(&stale); err != nil || stale >= int64(cursor) {
			t.Fatalf("the other node has event %d already: %v", stale, err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if log, err := standby.Log(soon); err == nil {
			t.Errorf("the standby reads %+v while event %d is not there yet", log, cursor)
		}
		if _, err := c.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Fatal(err)
		}
		if log, err := standby.Log(t.Context()); err != nil || log.Newest != cursor {
			t.Errorf("the standby reads %+v, want event %d: %v", log, cursor, err)
		}
	})

	t.Run("two nodes that take writes for a moment corrupt nothing", func(t *testing.T) {
		const lives, indices = 40, 4
		if _, err := leader.Commit(t.Context(), storage.Batch{Deployments: []storage.DeploymentWrite{{After: desired("r", 100)}}}); err != nil {
			t.Fatal(err)
		}
		all(t, scanTogether, func(i int) error {
			s := []*Store{leader, standby}[i%2]
			for n := range lives {
				// Each takes what another has under way for its own.
				if err := live(t.Context(), s, "r", n%indices); err != nil && !isIllegal(err) {
					return err
				}
			}
			return nil
		})
		checkVersions(t, leader, standby)
	})

	t.Run("a standby on another node goes on after the last acknowledged commit", func(t *testing.T) {
		const commits = 50
		var last storage.Cursor
		lease, err := leader.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "one"}, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i := range commits {
			b := creation(unclaimed("q", i))
			b.Fence = lease.Fence()
			if last, err = leader.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		nodes[0].Kill(t)
		var taken storage.Lease
		for deadline := time.Now().Add(time.Minute); ; {
			taken, err = standby.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "two"}, time.Minute)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond) // the lease of the lost leader runs out by the server's clock
		}
		if taken.Epoch <= lease.Epoch {
			t.Errorf("epoch %d comes after %d", taken.Epoch, lease.Epoch)
		}
		if n := count(t, standby, "q"); n != commits {
			t.Errorf("the standby has %d of %d records", n, commits)
		}
		b := storage.Batch{Fence: taken.Fence()}
		for r, err := range standby.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{"q"}}) {
			if err != nil {
				t.Fatal(err)
			}
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: &r})
			b.Events = append(b.Events, storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceRemoved, Before: &r}})
		}
		if cursor, err := standby.Commit(t.Context(), b); err != nil || cursor <= last {
			t.Errorf("the first commit of the standby has event %d, want one after %d: %v", cursor, last, err)
		}
		checkVersions(t, standby, standby)
	})
}

func isIllegal(err error) bool { return errors.As(err, new(*lrp.TransitionError)) }

// checkVersions checks that each event of a log begins with the version that the
// one before has left, and that the records are what the events have made.
func checkVersions(t *testing.T, log, records storage.Reader) {
	t.Helper()
	type id struct {
		lrp.Key
		presence lrp.Presence
	}
	at := func(r *lrp.ActualLRP) id { return id{r.Key, r.Presence} }
	versions := make(map[id]lrp.ModificationTag)
	extent, err := log.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	position := extent.Oldest - 1
	for e, err := range log.Events(t.Context(), position, storage.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Sequence != position+1 && (e.Gap == nil || e.Gap.After != position) {
			t.Fatalf("event %d comes after event %d", e.Sequence, position)
		}
		position = e.Sequence
		if e.LRP == nil || e.LRP.Kind > lrp.InstanceRemoved {
			continue
		}
		if r := e.LRP.Before; r != nil {
			if versions[at(r)] != r.ModificationTag {
				t.Errorf("event %d is about version %v of %+v, which is at %v", e.Sequence, r.ModificationTag, r.Key, versions[at(r)])
			}
			delete(versions, at(r))
		}
		if r := e.LRP.After; r != nil {
			if tag, there := versions[at(r)]; there {
				t.Errorf("event %d makes %+v, which is at %v", e.Sequence, r.Key, tag)
			}
			versions[at(r)] = r.ModificationTag
		}
	}
	for r, err := range records.ActualLRPs(t.Context(), storage.ActualLRPFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if versions[at(&r)] != r.ModificationTag {
			t.Errorf("%+v has version %v, and the events say %v", r.Key, r.ModificationTag, versions[at(&r)])
		}
		delete(versions, at(&r))
	}
	if len(versions) > 0 {
		t.Errorf("the events have made %d records that are not there", len(versions))
	}
}

// A server that stands alone takes the parameter too, and one that is not a cluster
// needs none.
func TestOneNodeIsNoHarmWhereThereIsOne(t *testing.T) {
	dsn := testdb.MySQL(t)
	mustOpen(t, "mysql:"+withParameter(dsn, "one_node=true"), Options{}).Close()
	_, err := Open(t.Context(), "mysql:"+withParameter(dsn, "one_node=perhaps"), nil)
	wantError(t, err, `one_node is "perhaps"; want true or false`)
}
