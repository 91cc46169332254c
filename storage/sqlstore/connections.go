package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A process may stop between any two statements, and a host or a network may
// vanish. These limits free the locks of a client that is gone, and keep a
// client from waiting for a server that it cannot reach.
const (
	// MaxSilence is how long the server waits for the next statement of a
	// transaction that may hold locks, before it ends the session: 4 s.
	MaxSilence = dialect.MaxSilence
	// MaxLockWait is how long a statement waits for one lock: 3 s. It is less than
	// MaxSilence, so that the statements of clients that are gone leave the queue
	// before the lock comes free and do not take it one after another.
	MaxLockWait = dialect.MaxLockWait
	// MaxAnswer is how long a commit, the change of a lease or a read waits for
	// the server: 10 s. On a connection of Open it limits each wait for the next
	// bytes, on one of the caller the whole operation, or one page of a list.
	// After that the store gives the connection up, and checks on another one what
	// happened, or reads again.
	MaxAnswer = dialect.MaxAnswer
)

// pools are the connections of a store. On a server, commits and leases have a
// connection each. So it stays warm, and neither lists nor a waiting commit
// delay the renewal of a lease.
type pools struct {
	write, lease, read *sql.DB
	// schema is for migrations.
	schema *sql.DB
	// idle is how many connections of read may stay idle; 0 if that is not the
	// store's to say.
	idle int
}

func (p pools) close() (err error) {
	for _, db := range []*sql.DB{p.read, p.lease, p.write, p.schema} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// unanswered marks an error that came because ctx, a context of onConn, ended.
func unanswered(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, dialect.ErrUnanswered) {
		return err
	}
	return fmt.Errorf("%w: %w", dialect.ErrUnanswered, err)
}

// onConn calls f with a connection of db. Open's connections limit each wait
// for an answer themselves. The caller's may have no limit, so there f's
// context has one, and an operation that ignores it loses its connection.
func (s *Store) onConn(db *sql.DB, f func(ctx context.Context, c *sql.Conn) error) error {
	ctx := background
	if s.foreign {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, MaxAnswer)
		defer cancel()
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return unanswered(ctx, errNoConn(err))
	}
	defer c.Close() // returns it to the pool
	if s.foreign {
		stop, err := cutAfter(MaxAnswer+time.Second, c)
		if err != nil {
			return err
		}
		defer stop()
	}
	return unanswered(ctx, f(ctx, c))
}

// ask calls f with any free connection, and again if that may help.
func (s *Store) ask(ctx context.Context, op string, f func(ctx context.Context, q dialect.Querier) error) error {
	return s.retry(ctx, op, func() error {
		return s.answered(ctx, func(ctx context.Context) error { return f(ctx, s.pool) })
	})
}

// answered calls f, which reads. The caller's connections may have no limit for
// an answer, so there f's context has one.
func (s *Store) answered(ctx context.Context, f func(ctx context.Context) error) error {
	if !s.foreign {
		err := f(ctx)
		if class, _ := s.d.ClassOf(err); class == dialect.Lost {
			s.dropIdle()
		}
		return err
	}
	limited, cancel := context.WithTimeout(ctx, MaxAnswer)
	defer cancel()
	err := f(limited)
	if ctx.Err() != nil {
		return err
	}
	return unanswered(limited, err)
}

// dropIdle closes the idle connections that read. When one is lost the others
// usually are, too, and the next reads would wait for each of them in turn.
//
// Closing takes a while: lib/pq waits for the answer of a dead server, once for
// each connection with a prepared statement. Nobody gets those meanwhile.
func (s *Store) dropIdle() {
	if s.idle == 0 || s.read.Stats().Idle == 0 {
		return
	}
	began := make(chan struct{})
	go func() {
		close(began)
		s.read.SetMaxIdleConns(0)
		s.read.SetMaxIdleConns(s.idle)
	}()
	<-began
}

// cutAfter closes a connection of lib/pq after d, because lib/pq goes on reading
// when its context has ended. Other drivers stop by themselves, and must not be
// closed while they are in use.
func cutAfter(d time.Duration, c *sql.Conn) (stop func(), err error) {
	stop = func() {}
	err = c.Raw(func(conn any) error {
		t := reflect.TypeOf(conn)
		if t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "github.com/lib/pq" {
			timer := time.AfterFunc(d, func() { _ = conn.(driver.Conn).Close() })
			stop = func() { timer.Stop() }
		}
		return nil
	})
	return stop, err
}

// run runs the calls in their order, in one round trip if the store can.
func (s *Store) run(ctx context.Context, c *sql.Conn, calls []dialect.Call) error {
	if s.d.Batch != nil && s.batches.Load() {
		return unanswered(ctx, s.d.Batch(ctx, c, calls, s.q.common))
	}
	return unanswered(ctx, dialect.RunEach(ctx, c, calls))
}

// A pool runs reads on any free connection, and prepares their statements if
// that pays.
type pool struct {
	db      *sql.DB
	prepare bool

	mu    sync.RWMutex
	known map[string]*sql.Stmt
}

// maxPrepared limits the statements that a pool keeps prepared.
const maxPrepared = 256

func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return p.db.QueryContext(ctx, query, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

func (p *pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.db.ExecContext(ctx, query, args...)
}

// stmt returns the prepared statement, or nil if it should not be prepared.
func (p *pool) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if !p.prepare {
		return nil, nil
	}
	p.mu.RLock()
	stmt := p.known[query]
	full := len(p.known) >= maxPrepared
	p.mu.RUnlock()
	if stmt != nil || full {
		return stmt, nil
	}
	stmt, err := p.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.known[query]; other != nil {
		return other, stmt.Close()
	}
	if p.known == nil {
		p.known = make(map[string]*sql.Stmt)
	}
	p.known[query] = stmt
	return stmt, nil
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stmt := range p.known {
		_ = stmt.Close() // the connections close too
	}
	p.known = nil
}

// checkBounds checks that the connections for commits have the settings that
// Open asked for. A pooler between the store and the server may drop them.
func (s *Store) checkBounds(ctx context.Context) error {
	var got, want [3]string
	switch s.d.Dir {
	case "postgres": // a transaction names its level of isolation
		want = [...]string{dialect.Milliseconds(MaxSilence), dialect.Milliseconds(MaxLockWait), ""}
		err := dialect.QueryRow(ctx, s.write, "SELECT (SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'), "+
			"(SELECT setting FROM pg_settings WHERE name = 'lock_timeout')", &got[0], &got[1])
		if err != nil {
			return err
		}
	case "mysql":
		var version string
		if err := dialect.QueryRow(ctx, s.write, "SELECT VERSION()", &version); err != nil {
			return err
		}
		silence, isolation := "idle_transaction_timeout", "tx_isolation"
		if !strings.Contains(version, "MariaDB") {
			silence, isolation = "wait_timeout", "transaction_isolation"
			for _, db := range []*sql.DB{s.write, s.lease} {
				db.SetConnMaxIdleTime(MaxSilence / 2) // before the server ends it
			}
		}
		want = [...]string{strconv.Itoa(int(MaxSilence.Seconds())), strconv.Itoa(int(MaxLockWait.Seconds())), "READ-COMMITTED"}
		if err := dialect.QueryRow(ctx, s.write, "SELECT @@SESSION."+silence+", @@SESSION.innodb_lock_wait_timeout, @@SESSION."+isolation, &got[0], &got[1], &got[2]); err != nil {
			return err
		}
	}
	if got != want {
		return unbounded(s.d, got, want)
	}
	return nil
}

// unbounded is the error for a session without the settings that Open asked
// for.
func unbounded(d *dialect.Dialect, got, want [3]string) error {
	advice := "connect to the server itself, or through a proxy that keeps the settings of a session"
	if d.Dir == "postgres" {
		advice = fmt.Sprintf("connect to the server itself or, behind PgBouncer, which drops them, give them to the user on the server: "+
			"ALTER ROLE … SET idle_in_transaction_session_timeout = %s; ALTER ROLE … SET lock_timeout = %s", want[0], want[1])
	}
	settings := func(s [3]string) string { return strings.TrimSpace(strings.Join(s[:], " ")) }
	return fmt.Errorf("sqlstore: a session that commits has the settings %q, but the store set %q (timeouts for silence in a transaction and for locks, then the isolation if that is a setting); "+
		"without them a client that stops keeps all others waiting; %s", settings(got), settings(want), advice)
}

// errNoConn is the error of a caller that got no connection of the pool.
func errNoConn(err error) error {
	return fmt.Errorf("waiting for a connection: %w", err)
}

// beginCalls are the statements that begin a transaction that commits.
func (s *Store) beginCalls() []dialect.Call {
	calls := make([]dialect.Call, 0, 16)
	for _, statement := range s.beginWrite {
		calls = append(calls, dialect.Call{Query: statement})
	}
	return calls
}

// rollBack makes a connection ready for the next transaction after an error. It
// discards one that cannot be used again, or leads to a server that only reads.
func (s *Store) rollBack(ctx context.Context, c *sql.Conn, err error) {
	if _, rollbackErr := c.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil && !isNoTransaction(rollbackErr) || s.d.IsReadOnly(err) {
		dialect.Discard(c)
	}
}

// isNoTransaction reports whether a ROLLBACK failed because the transaction
// was over already, as it is after some errors of SQLite.
func isNoTransaction(err error) bool {
	return err != nil && err.Error() == "cannot rollback - no transaction is active"
}
