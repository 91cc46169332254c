package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A wire is a proxy between a store and its server. From some request on it
// loses what one side or both send, and closes nothing.
type wire struct {
	listener net.Listener
	target   string

	mu       sync.Mutex
	armed    bool
	before   int // requests that still pass
	loses    cut
	heals    bool // for new connections
	cutting  bool
	happened chan struct{} // closed when the cut begins
	conns    []net.Conn
}

// A cut says which direction is lost.
type cut string

const (
	// frozen is a client that stops before it sends a request, or a host that
	// is gone.
	frozen cut = "both directions"
	// deaf is a client whose request arrives, but not the answer.
	deaf cut = "the answer"
	// mute is a client whose request does not arrive, while it hears the server.
	mute cut = "the request"
)

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: target, happened: make(chan struct{})}
	go w.serve()
	return w
}

func (w *wire) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		whole := w.heals && w.cutting
		w.mu.Unlock()
		// A request is the first that a client sends after an answer.
		var mu sync.Mutex
		answered := true
		lost := func(c cut) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.cutting && !whole && (w.loses == frozen || w.loses == c)
		}
		go pipe(server, client, func() bool {
			mu.Lock()
			first := answered
			answered = false
			mu.Unlock()
			if first && !whole {
				w.request()
			}
			return lost(mute)
		})
		go pipe(client, server, func() bool {
			mu.Lock()
			answered = true
			mu.Unlock()
			return lost(deaf)
		})
	}
}

// pipe copies until either side ends, except for what is lost.
func pipe(to, from net.Conn, lost func() bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if lost() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// request counts a request.
func (w *wire) request() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed || w.cutting {
		return
	}
	if w.before--; w.before < 0 {
		w.cutting = true
		close(w.happened)
	}
}

// arm lets so many requests pass, and then cuts.
func (w *wire) arm(before int, loses cut, heals bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed, w.before, w.loses, w.heals = true, before, loses, heals
}

func (w *wire) close() {
	w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
}

// through is a data source name that goes through a wire to the same database.
func through(t *testing.T, dsn string) (string, *wire) {
	t.Helper()
	if rest, is := strings.CutPrefix(dsn, "mysql:"); is {
		config, err := mysql.ParseDSN(rest)
		if err != nil {
			t.Fatal(err)
		}
		w := newWire(t, config.Addr)
		config.Addr = w.listener.Addr().String()
		return "mysql:" + config.FormatDSN(), w
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, u.Host)
	u.Host = w.listener.Addr().String()
	return u.String(), w
}

// A changing is something that a process may be doing when it stops.
type changing struct {
	name string
	// begin is done before, in peace.
	begin func(ctx context.Context, s *Store) error
	do    func(ctx context.Context, s *Store) error
	// enough requests show all there is, as what follows is more of the same.
	enough int
}

func changings() []changing {
	commit := func(b storage.Batch) func(ctx context.Context, s *Store) error {
		return func(ctx context.Context, s *Store) error { _, err := s.Commit(ctx, b); return err }
	}
	withID := creation(unclaimed("p", 1))
	withID.RequestID = "id"
	lease := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "first", Epoch: 1}
	record := storage.ActualLRPKey(unclaimed("p", 0))
	var huge storage.Batch
	for i := range 12 {
		r := unclaimed("huge", i)
		huge.ActualLRPs = append(huge.ActualLRPs, lrp.Write{After: r})
		for range 1500 {
			huge.Events = append(huge.Events, storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: r}})
		}
	}
	return []changing{
		{name: "a commit", do: commit(creation(unclaimed("p", 1)))},
		{name: "a commit that conflicts", do: commit(creation(unclaimed("p", 0)))},
		{name: "a commit without events", do: commit(storage.Batch{ActualLRPs: creation(unclaimed("p", 1)).ActualLRPs})},
		{name: "a commit with a request id", do: commit(withID)},
		{name: "a commit of a domain", do: commit(storage.Batch{Domains: []storage.DomainWrite{{Name: "d"}}})},
		{name: "a commit with a great many events", do: commit(huge)},
		{name: "a commit that puts a record into quarantine", begin: func(_ context.Context, s *Store) error {
			_, err := s.write.Exec("UPDATE " + s.table("actual_lrps") + " SET data = '!'")
			return err
		}, do: commit(storage.Batch{Quarantine: []storage.Quarantine{{Key: record, Reason: "damaged"}}})},
		{name: "an acquisition", do: func(ctx context.Context, s *Store) error {
			_, err := s.Acquire(ctx, lease, time.Second)
			return err
		}},
		{name: "a renewal", do: func(ctx context.Context, s *Store) error {
			_, err := s.Renew(ctx, lease, time.Second)
			return err
		}},
		{name: "a release", do: func(ctx context.Context, s *Store) error { return s.Release(ctx, lease) }},
		{name: "a rotation of keys", enough: 5, do: func(ctx context.Context, s *Store) error { _, err := s.Rotate(ctx); return err }},
		{name: "a transaction of the caller's", do: func(ctx context.Context, s *Store) error {
			tx, err := s.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := s.WithTx(tx).Commit(ctx, creation(unclaimed("p", 1))); err != nil {
				return err
			}
			return tx.Commit()
		}},
	}
}

// leaderTTL is how long a leader that is not heard of leads, and grace how much
// later another one has committed.
const (
	leaderTTL = time.Second
	grace     = 5 * time.Second
)

// A process, its host or its network may stop at every request of all that it
// does: another one leads soon, and commits.
func TestAClientThatFallsSilentKeepsNobodyFromLeading(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			limit := make(chan struct{}, 16) // points at a time, so that the server has connections for all
			var wg sync.WaitGroup
			for _, c := range changings() {
				for before := range cmp.Or(c.enough, maxRequests) {
					wg.Go(func() {
						limit <- struct{}{}
						defer func() { <-limit }()
						cut := silenced(t, dsn, c, before, deaf, &wg)
						if cut && before == maxRequests-1 {
							t.Errorf("%s takes more than %d requests: look at all", c.name, maxRequests)
						}
					})
				}
			}
			wg.Wait()
		})
	}
}

// maxRequests is how many requests are looked at. A client that stops before a
// request is, for the server, one that has not heard the answer to the one
// before.
const maxRequests = 12

// silenced does something through a wire that is cut after so many requests, and
// reports whether it was. It wants another store to lead and to commit soon.
func silenced(t *testing.T, dsn string, c changing, before int, loses cut, closing *sync.WaitGroup) bool {
	point := fmt.Sprintf("%s loses %s of request %d", c.name, loses, before)
	prefix := newPrefix()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	openOne := func(dsn string, retryFor time.Duration) *Store {
		s, err := Open(ctx, dsn, &Options{Prefix: prefix, MaxConns: 3, RetryFor: retryFor})
		if err != nil {
			t.Errorf("%s: %v", point, err)
		}
		return s
	}
	other := openOne(dsn, 0)
	wired, w := through(t, dsn)
	first := openOne(wired, 3*time.Second) // it is not to be waited for
	if first == nil || other == nil {
		return false
	}
	defer other.Close()
	defer closing.Go(func() { first.Close() }) // after the wire, as it waits for what is under way
	defer w.close()
	_, err := first.Commit(ctx, creation(unclaimed("p", 0)))
	if err == nil {
		_, err = first.Acquire(ctx, storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "first"}, leaderTTL)
	}
	if err == nil && c.begin != nil {
		err = c.begin(ctx, first)
	}
	if err != nil {
		t.Errorf("%s: %v", point, err)
		return false
	}
	w.arm(before, loses, false)
	done := make(chan struct{})
	doing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(done)
		_ = c.do(doing, first) // that it fails is the point
	}()
	select {
	case <-done:
		return false
	case <-w.happened:
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, leaderTTL+grace)
	defer cancel()
	for {
		var held *storage.HeldError
		lease, err := other.Acquire(within, storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "other"}, time.Minute)
		if errors.As(err, &held) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err == nil {
			b := creation(unclaimed("other", 0))
			b.Fence = lease.Fence()
			_, err = other.Commit(within, b)
		}
		if err != nil {
			t.Errorf("%s: after %v nobody else leads and commits: %v", point, time.Since(began), err)
		}
		t.Logf("%s: another led and committed after %v", point, time.Since(began).Round(time.Millisecond))
		return true
	}
}

// A client whose answer is lost on one connection gives that up, and finds out on
// another one that it has committed.
func TestALostAnswerIsGivenUpAndLookedFor(t *testing.T) {
	var wg sync.WaitGroup
	for _, d := range servers {
		dsn := d.database(t)
		for _, loses := range []cut{deaf, mute, frozen} {
			for _, plain := range []bool{true, false} {
				wg.Go(func() {
					point := fmt.Sprintf("%s loses %s, plain=%v", d.name, loses, plain)
					wired, w := through(t, dsn)
					defer w.close()
					s, err := Open(context.Background(), wired, &Options{Prefix: newPrefix(), MaxConns: 3})
					if err != nil {
						t.Errorf("%s: %v", point, err)
						return
					}
					defer s.Close()
					if _, err := s.Commit(context.Background(), creation(unclaimed("p", 0))); err != nil {
						t.Errorf("%s: %v", point, err)
						return
					}
					b := creation(unclaimed("p", 1))
					if !plain {
						b.RequestID = "id"
					}
					w.arm(0, loses, true)
					began := time.Now()
					cursor, err := s.Commit(context.Background(), b)
					if err != nil || cursor != 2 {
						t.Errorf("%s: cursor %d, error %v", point, cursor, err)
					}
					if took := time.Since(began); took > 2*MaxAnswer {
						t.Errorf("%s: it took %v", point, took)
					}
					if n := count(t, s, "p"); n != 2 {
						t.Errorf("%s: %d records", point, n)
					}
				})
			}
		}
	}
	wg.Wait()
}

// Nothing bounds how long the connections of a database that the caller has
// opened wait for an answer.
func TestADeadConnectionOfTheCallersStopsNeitherCommitsNorLeases(t *testing.T) {
	var wg sync.WaitGroup
	lease := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "first"}
	for _, driver := range []string{"postgres", "pgx", "mysql"} {
		for _, loses := range []cut{deaf, mute} {
			for _, what := range []string{"a commit", "a lease"} {
				dsn := map[bool]string{true: databases[2].database(t), false: databases[1].database(t)}[driver == "mysql"]
				wg.Go(func() {
					point := fmt.Sprintf("%s, %s loses %s", driver, what, loses)
					wired, w := through(t, dsn)
					defer w.close()
					db, err := sql.Open(driver, driverDSN(wired))
					if err != nil {
						t.Errorf("%s: %v", point, err)
						return
					}
					defer db.Close()
					s, err := New(db, map[bool]Dialect{true: MySQL, false: PostgreSQL}[driver == "mysql"], nil)
					if err == nil {
						defer s.Close()
						_, err = s.Commit(context.Background(), creation(unclaimed("p", 0)))
					}
					if err == nil {
						_, err = s.Acquire(context.Background(), lease, time.Hour)
					}
					if err != nil {
						t.Errorf("%s: %v", point, err)
						return
					}
					w.arm(0, loses, true)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if what == "a commit" {
						cursor, err := s.Commit(ctx, creation(unclaimed("p", 1)))
						if err != nil || cursor != 2 || count(t, s, "p") != 2 {
							t.Errorf("%s: cursor %d with %d records, error %v", point, cursor, count(t, s, "p"), err)
						}
					} else if l, err := s.Acquire(ctx, lease, time.Hour); err != nil || l.Epoch < 2 {
						t.Errorf("%s: %+v, %v", point, l, err)
					}
					select {
					case <-w.happened:
					default:
						t.Errorf("%s: nothing was lost", point)
					}
				})
			}
		}
	}
	wg.Wait()
}

// A list may be long, but its server is never silent for long. When it is, its
// other connections are dead too.
func TestAReadOnDeadConnectionsIsGivenUpAndRepeated(t *testing.T) {
	const ttl = 15 * time.Second // the default of leader_ttl
	ended := func(list iter.Seq2[lrp.ActualLRP, error], want int) (err error) {
		n := 0
		for _, err = range list {
			n++
		}
		if err == nil && n != want {
			err = fmt.Errorf("%d records, want %d", n, want)
		}
		return err
	}
	reads := []struct {
		name string
		do   func(ctx context.Context, s *Store) error
	}{
		{"a list", func(ctx context.Context, s *Store) error {
			return ended(s.ActualLRPs(ctx, storage.ActualLRPFilter{Domains: []string{"apps"}}), 1)
		}},
		{"the instances of a process", func(ctx context.Context, s *Store) error {
			return ended(s.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"p"}}), 1)
		}},
		{"a slot", func(ctx context.Context, s *Store) error {
			slot, _, err := s.Slot(ctx, "p", 0)
			if err == nil && len(slot.Records) != 1 {
				err = fmt.Errorf("%d records", len(slot.Records))
			}
			return err
		}},
		{"a view", func(ctx context.Context, s *Store) error {
			return s.View(ctx, func(r storage.Reader) error {
				return ended(r.ActualLRPs(ctx, storage.ActualLRPFilter{}), 1)
			})
		}},
		{"the end of the log", func(ctx context.Context, s *Store) error { _, err := s.Log(ctx); return err }},
	}
	var wg sync.WaitGroup
	for _, d := range databases[1:] {
		dsn := d.database(t)
		for _, loses := range []cut{deaf, mute} {
			wired, w := through(t, strings.TrimPrefix(dsn, pgxScheme))
			defer w.close()
			if d.name == "pgx" {
				wired = pgxScheme + wired
			}
			s := mustOpen(t, wired, Options{Prefix: newPrefix()})
			_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
			if err == nil {
				err = openMore(s, len(reads)+2)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.arm(0, loses, true)
			for _, read := range reads {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), ttl+grace)
					defer cancel()
					if err := read.do(ctx, s); err != nil {
						t.Errorf("%s, %s loses %s: %v", d.name, read.name, loses, err)
					}
				})
			}
		}
	}
	wg.Wait()
}

// openMore leaves the store with n more idle connections, as each View has one. On
// all but one of them a statement is prepared.
func openMore(s *Store, n int) error {
	if n == 0 {
		return nil
	}
	return s.View(context.Background(), func(storage.Reader) error {
		if _, _, err := s.Slot(context.Background(), "p", 0); err != nil {
			return err
		}
		return openMore(s, n-1)
	})
}

// The caller's pool may have no connection for a commit.
func TestACommitThatGetsNoConnectionOfTheCallersSaysSo(t *testing.T) {
	db := openDB(t, PostgreSQL, databases[1].database(t))
	db.SetMaxOpenConns(1)
	s, err := New(db, PostgreSQL, &Options{RetryFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), func(storage.Reader) error {
		_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
		return err
	})
	wantError(t, err, "committing", "waiting for a connection")
	if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
		t.Error(err)
	}
}
