package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// A process may stop, and a host or a network may vanish, between any two
// statements. These bounds keep what such a client holds from anyone else, and
// keep a client from waiting for a server that it cannot hear.
const (
	// MaxSilence is how long the server waits for the next statement of a
	// transaction that may hold locks, before it ends the session.
	MaxSilence = 4 * time.Second
	// MaxLockWait is how long a statement waits for one lock. It is less than
	// MaxSilence: the statements of clients that are gone leave the queue before
	// the lock comes free, so they do not hold it one after another.
	MaxLockWait = 3 * time.Second
	// MaxAnswer is how long a commit or the change of a lease waits for the
	// server: on a connection of Open's to read or write the next bytes, on one of
	// the caller's altogether. Then it gives the connection up, and finds out on
	// another one what came of it.
	MaxAnswer = 10 * time.Second
)

const (
	// maxIdle is how long a MySQL server keeps an idle session; half of it is
	// how long the store does.
	maxIdle = 10 * time.Minute
	// maxConnect bounds the making of a connection.
	maxConnect = 5 * time.Second
	// maxReadAnswer is how long a client that reads waits to read or write the
	// next bytes.
	maxReadAnswer = time.Minute
)

// errUnanswered is a server that has said nothing for MaxAnswer, or a connection
// that is dead. What it was doing may have happened.
var errUnanswered = errors.New("the server has not answered for " + MaxAnswer.String())

// unanswered marks an error that came because ctx, which is one of onConn's, has
// ended.
func unanswered(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, errUnanswered) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnanswered, err)
}

// onConn calls f with a connection of db. Open's connections bound each wait for
// an answer themselves. Nothing need bound those of the caller's, so there f's
// context does, and what does not heed it loses its connection.
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
		timer, err := s.cutAfter(MaxAnswer+time.Second, c)
		if err != nil {
			return err
		}
		defer timer.Stop()
	}
	return unanswered(ctx, f(ctx, c))
}

// cutAfter closes the driver's connection after a while: lib/pq goes on reading
// when a context has ended.
func (s *Store) cutAfter(d time.Duration, c *sql.Conn) (timer *time.Timer, err error) {
	err = c.Raw(func(conn any) error {
		timer = time.AfterFunc(d, func() { _ = conn.(driver.Conn).Close() })
		return nil
	})
	return timer, err
}

// An access is what the connections of a pool are for.
type access uint8

const (
	reads access = iota
	commits
	leases
	// migrates: statements may take long, and processes wait for one another.
	migrates
)

// locks reports whether such a connection locks what others wait for.
func (a access) locks() bool { return a == commits || a == leases }

// pools are the connections of a store. On a server, commits and leases have
// one each, so that it stays warm, and that neither lists nor a commit which
// waits keep a lease from being renewed.
type pools struct {
	write, lease, read *sql.DB
	// schema is for migrations.
	schema *sql.DB
}

func (p pools) close() (err error) {
	for _, db := range []*sql.DB{p.read, p.lease, p.write, p.schema} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// maxAnswer is how long such a connection waits for the server, 0 for any time.
func (a access) maxAnswer() time.Duration {
	switch a {
	case commits, leases:
		return MaxAnswer
	case reads:
		return maxReadAnswer
	}
	return 0
}

// postgresSettings make the plans of prepared statements once, whatever the
// size of the tables at that time, so that they go by the keys: a page must not
// read and sort all that is behind it.
var postgresSettings = map[string]string{
	"plan_cache_mode": "force_generic_plan", "jit": "off",
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
}

// postgresNetwork lets the server find out soon that a host is gone.
var postgresNetwork = map[string]string{
	"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "30000",
}

// postgresBounds are settings of sessions and transactions that commit.
var postgresBounds = map[string]string{
	"idle_in_transaction_session_timeout": milliseconds(MaxSilence),
	"lock_timeout":                        milliseconds(MaxLockWait),
}

// mysqlBounds are the same for a connection of the caller's. There are none of
// one transaction only, and MySQL has no timeout for transactions. What the
// caller has chosen holds. What is in the comment is read by MariaDB only.
var mysqlBounds = fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = LEAST(@@innodb_lock_wait_timeout, %d) "+
	"/*M! , idle_transaction_timeout = IF(@@idle_transaction_timeout = 0, %d, @@idle_transaction_timeout) */",
	int(MaxLockWait.Seconds()), int(MaxSilence.Seconds()))

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// postgresConnector makes connections of one kind.
func postgresConnector(dsn string, a access) (*pq.Connector, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.BinaryParameters = true
	if config.Runtime == nil {
		config.Runtime = make(map[string]string)
	}
	for _, settings := range []map[string]string{postgresSettings, postgresNetwork} {
		for name, value := range settings {
			if _, set := config.Runtime[name]; !set {
				config.Runtime[name] = value
			}
		}
	}
	if a.locks() {
		for name, value := range postgresBounds {
			config.Runtime[name] = value
		}
	}
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = maxConnect
	}
	connector, err := pq.NewConnectorConfig(config)
	if err == nil {
		connector.Dialer(&dialer{answer: a.maxAnswer()})
	}
	return connector, err
}

// boundMySQL sets a configuration up for connections of one kind. What the data
// source name says about timeouts of the network holds.
func boundMySQL(config *mysql.Config, a access) *mysql.Config {
	config = config.Clone()
	if config.Timeout == 0 {
		config.Timeout = maxConnect
	}
	if config.ReadTimeout == 0 {
		config.ReadTimeout = a.maxAnswer()
	}
	if config.WriteTimeout == 0 {
		config.WriteTimeout = a.maxAnswer()
	}
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	idle := strconv.Itoa(int(maxIdle.Seconds()))
	if !a.locks() {
		config.Params["wait_timeout"] = idle
		return config
	}
	silence := strconv.Itoa(int(MaxSilence.Seconds()))
	config.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(MaxLockWait.Seconds()))
	// MySQL has no timeout of its own for transactions. What follows the value
	// is read by MariaDB only.
	config.Params["wait_timeout"] = silence + " /*M! * 0 + " + idle + ", idle_transaction_timeout = " + silence + " */"
	return config
}

// mysqlSession are settings of connections of one kind that are no parameters of
// the driver: the servers have different names for the level of isolation.
func mysqlSession(a access, oneNode bool) (statements []string) {
	if a.locks() {
		statements = append(statements, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	}
	if oneNode {
		statements = append(statements, setCausalReads)
	}
	return statements
}

// checkBounds makes sure that the connections which commit have the settings
// that Open asked for: something between the store and the server may drop them.
func (s *Store) checkBounds(ctx context.Context) error {
	var got, want [3]string
	switch s.d.dir {
	case "postgres": // a transaction names its level of isolation
		want = [...]string{milliseconds(MaxSilence), milliseconds(MaxLockWait), ""}
		err := queryRow(ctx, s.write, "SELECT (SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'), "+
			"(SELECT setting FROM pg_settings WHERE name = 'lock_timeout')", &got[0], &got[1])
		if err != nil {
			return err
		}
	case "mysql":
		var version string
		if err := queryRow(ctx, s.write, "SELECT VERSION()", &version); err != nil {
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
		if err := queryRow(ctx, s.write, "SELECT @@SESSION."+silence+", @@SESSION.innodb_lock_wait_timeout, @@SESSION."+isolation, &got[0], &got[1], &got[2]); err != nil {
			return err
		}
	}
	if got != want {
		return unbounded(s.d, got, want)
	}
	return nil
}

// unbounded is the error for a session that has not got what the store has set.
func unbounded(d *dialect, got, want [3]string) error {
	advice := "connect to the server itself, or through a proxy that keeps the settings of a session"
	if d.dir == "postgres" {
		advice = fmt.Sprintf("connect to the server itself or, behind PgBouncer, which drops them, give them to the user on the server: "+
			"ALTER ROLE … SET idle_in_transaction_session_timeout = %s; ALTER ROLE … SET lock_timeout = %s", want[0], want[1])
	}
	settings := func(s [3]string) string { return strings.TrimSpace(strings.Join(s[:], " ")) }
	return fmt.Errorf("sqlstore: a session that commits has the settings %q where the store has made them %q (timeouts for silence in a transaction and for locks, then the isolation if that is a setting); "+
		"without them a client that stops keeps all others waiting; %s", settings(got), settings(want), advice)
}

// A dialer makes connections that give up if nothing comes or goes for too long.
type dialer struct {
	net    net.Dialer
	answer time.Duration
}

// Dial implements pq.Dialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.net.DialContext(ctx, network, address)
	if err != nil || d.answer == 0 {
		return c, err
	}
	return &boundedConn{Conn: c, answer: d.answer}, nil
}

// A boundedConn fails with a timeout if a read or a write takes too long.
type boundedConn struct {
	net.Conn
	answer time.Duration
	// until is a deadline that the driver has set.
	until time.Time
}

func (c *boundedConn) deadline() time.Time {
	if !c.until.IsZero() {
		return c.until
	}
	return time.Now().Add(c.answer)
}

// Read implements net.Conn.
func (c *boundedConn) Read(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(c.deadline()); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *boundedConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(c.deadline()); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn: the driver's deadline holds while it is set.
func (c *boundedConn) SetDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetDeadline(t)
}
