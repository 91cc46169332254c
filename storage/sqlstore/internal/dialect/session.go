package dialect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// These limits free the locks of a process that stops, and keep a client from
// waiting for a server that it cannot reach. Package sqlstore has constants
// with the same names.
const (
	MaxSilence  = 4 * time.Second
	MaxLockWait = 3 * time.Second
	MaxAnswer   = 10 * time.Second
)

const (
	// MaxIdle is how long a MySQL server keeps an idle session. The store
	// keeps one for half as long.
	MaxIdle = 10 * time.Minute
	// maxConnect limits how long it takes to make a connection.
	maxConnect = 5 * time.Second
)

// ErrUnanswered means that a server has said nothing for MaxAnswer, or that a
// connection is dead. The operation may have happened.
var ErrUnanswered = errors.New("the server has not answered for " + MaxAnswer.String())

// An Access is what the connections of a pool are for.
type Access uint8

const (
	Reads Access = iota
	Commits
	Leases
	// Migrates: statements may take long, and processes wait for each other.
	Migrates
)

// locks reports whether such a connection locks rows that others wait for.
func (a Access) locks() bool { return a == Commits || a == Leases }

// patience is how long such a connection waits for the next bytes from the
// server; 0 means for ever. A list may take longer, because its pages keep bytes
// coming.
func (a Access) patience() time.Duration {
	if a == Migrates {
		return 0
	}
	return MaxAnswer
}

// PostgresSettings make the plans of prepared statements once, for any present
// size of the tables, so that they use the keys: a page must not read and sort
// everything behind it.
var PostgresSettings = map[string]string{
	"plan_cache_mode": "force_generic_plan", "jit": "off",
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
}

// postgresNetwork lets the server notice soon that a host is gone.
var postgresNetwork = map[string]string{
	"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "30000",
}

// postgresBounds are settings of sessions and transactions that commit.
var postgresBounds = map[string]string{
	"idle_in_transaction_session_timeout": Milliseconds(MaxSilence),
	"lock_timeout":                        Milliseconds(MaxLockWait),
}

// mysqlBounds are the same for a connection of the caller. MySQL has no such
// settings for one transaction, and no timeout for transactions. Settings that
// the caller has chosen stay. Only MariaDB reads the part in the comment.
var mysqlBounds = fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = LEAST(@@innodb_lock_wait_timeout, %d) "+
	"/*M! , idle_transaction_timeout = IF(@@idle_transaction_timeout = 0, %d, @@idle_transaction_timeout) */",
	int(MaxLockWait.Seconds()), int(MaxSilence.Seconds()))

// Milliseconds is a timeout in the form that PostgreSQL accepts.
func Milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// NewPostgresConnector makes connections of one kind.
func NewPostgresConnector(dsn string, a Access) (*pq.Connector, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.BinaryParameters = true
	if config.Runtime == nil {
		config.Runtime = make(map[string]string)
	}
	for _, settings := range []map[string]string{PostgresSettings, postgresNetwork} {
		for name, value := range settings {
			if _, set := config.Runtime[name]; !set {
				config.Runtime[name] = value
			}
		}
	}
	if a.locks() {
		maps.Copy(config.Runtime, postgresBounds)
	}
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = maxConnect
	}
	connector, err := pq.NewConnectorConfig(config)
	if err == nil {
		connector.Dialer(&dialer{answer: a.patience()})
	}
	return connector, err
}

// boundMySQL prepares a configuration for connections of one kind. Timeouts of
// the network that the data source name sets stay.
func boundMySQL(config *mysql.Config, a Access) *mysql.Config {
	config = config.Clone()
	config.Timeout = cmp.Or(config.Timeout, maxConnect)
	if config.ReadTimeout == 0 {
		config.ReadTimeout = a.patience()
	}
	config.WriteTimeout = cmp.Or(config.WriteTimeout, a.patience())
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	idle := strconv.Itoa(int(MaxIdle.Seconds()))
	if !a.locks() {
		config.Params["wait_timeout"] = idle
		return config
	}
	silence := strconv.Itoa(int(MaxSilence.Seconds()))
	config.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(MaxLockWait.Seconds()))
	// MySQL has no timeout for transactions. Only MariaDB reads what follows
	// the value.
	config.Params["wait_timeout"] = silence + " /*M! * 0 + " + idle + ", idle_transaction_timeout = " + silence + " */"
	return config
}

// mysqlSession are settings of connections of one kind that are not parameters of
// the driver: the servers have different names for the level of isolation.
func mysqlSession(a Access, oneNode bool) (statements []string) {
	if a.locks() {
		statements = append(statements, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	}
	if oneNode {
		statements = append(statements, setCausalReads)
	}
	return statements
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
	// until is the deadline that the driver has set.
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
