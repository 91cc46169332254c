package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// MySQL is MySQL and MariaDB.
var MySQL = Dialect{
	Name: "MySQL",
	Dir:  "mysql",
	Upsert: func(_, rest []string) string {
		return " ON DUPLICATE KEY UPDATE " + Assign(rest, func(c string) string { return "VALUES(" + c + ")" })
	},
	// Unlike NOW, this does not depend on the session's time zone.
	Clock: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 1000",
	Lock:  " FOR UPDATE",
	Share: " LOCK IN SHARE MODE",
	// MySQL and MariaDB each read their own part of the comment. The present
	// time minus the server's uptime is the time of its start.
	Identity: "SELECT CONCAT(@@hostname, ' ', @@port, ' ', @@server_id, ' ', UNIX_TIMESTAMP() - up.VARIABLE_VALUE, ' ', COALESCE(log.CREATE_TIME, '')) " +
		"FROM /*!80000 performance_schema */ /*M!100600 information_schema */ .GLOBAL_STATUS AS up, information_schema.TABLES AS log " +
		"WHERE up.VARIABLE_NAME = 'UPTIME' AND log.TABLE_SCHEMA = DATABASE() AND log.TABLE_NAME = '{log}'",
	Isolation: []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED"},
	Begin:     []string{"START TRANSACTION"},
	Bounds:    []string{mysqlBounds},
	BeginRead: []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"},
	Batch:     joined,
	Topology:  mysqlTopology,
	Severals:  "SELECT ?; SELECT 1",
	Drivers:   "github.com/go-sql-driver/mysql",
	FromHere:  func(err error) bool { return errors.As(err, new(*mysql.MySQLError)) },
	ByKey:     " FORCE INDEX (PRIMARY)",
	Done: func(err error) bool { // a column or an index is there, or the one to drop is not
		var e *mysql.MySQLError
		return errors.As(err, &e) && (e.Number == 1060 || e.Number == 1061 || e.Number == 1091)
	},
	Migrate: func(ctx context.Context, c *sql.Conn, prefix string, f func() error) (err error) {
		// Statements that change tables commit by themselves, so the lock
		// belongs to the connection.
		lock := fmt.Sprintf("diego migration %016x", hash(prefix))
		var got sql.NullInt64
		if err := c.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT(?, LEFT(MD5(DATABASE()), 16)), 60)", lock).Scan(&got); err != nil {
			return err
		}
		if got.Int64 != 1 {
			return errors.New("another process has been migrating the schema for a minute")
		}
		defer func() {
			_, unlockErr := c.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(CONCAT(?, LEFT(MD5(DATABASE()), 16)))", lock)
			err = errors.Join(err, unlockErr)
		}()
		return f()
	},
	classify: func(err error) (Class, string) {
		var e *mysql.MySQLError
		if !errors.As(err, &e) {
			if errors.Is(err, mysql.ErrPktTooLarge) {
				return Permanent, hintPacket
			}
			if errors.Is(err, mysql.ErrInvalidConn) {
				return Lost, hintAway
			}
			return Permanent, ""
		}
		switch e.Number {
		case 1205, 1213, 1020, 3572:
			return Transient, "other transactions keep rows locked"
		case 1040, 1203:
			return Lost, "raise max_connections of the server, or lower MaxConns"
		case 1047:
			return Lost, "the node is not in the primary component of its cluster: connect to one that is"
		case 1053, 1077, 1078, 1079, 1080, 1317, 1927, 3169:
			return Lost, "the server shuts down"
		case 4031:
			return Lost, "the process was silent for too long in the middle of a transaction"
		case 1044, 1045, 1142, 1143, 1227, 1698:
			return Permanent, "check the user's name and password, and grant it SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE, ALTER and INDEX to migrate"
		case 1046, 1049:
			return Permanent, "name a database that exists in the DSN"
		case 1062, 1690:
			return Guarded, ""
		case 1193:
			return Permanent, "mend the parameters of the DSN: what is none of the driver's is a variable of the server's"
		case 1146:
			return Absent, ""
		case 1021, 1114:
			return Permanent, "free space on the server's disk"
		case 1290, 1792, 1836:
			return Permanent, hintReadOnly
		case 1153:
			return Permanent, hintPacket
		}
		return Permanent, ""
	},
}

const hintPacket = "raise max_allowed_packet of the server"

// maxText is the approximate limit for a text of several statements. With its
// escapes it must fit into the server's max_allowed_packet, by default 16 MiB.
const maxText = 4 << 20

// joined runs the calls as one text, or as a few if they are long. The driver
// must allow that and fill in the arguments itself; Open sets both.
func joined(ctx context.Context, c *sql.Conn, calls []Call, _ []string) error {
	for len(calls) > 0 {
		n, size := 0, 0
		for n < len(calls) && (n == 0 || size+calls[n].size() <= maxText) {
			size += calls[n].size()
			n++
		}
		if err := join(ctx, c, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// size is the approximate length of the call's text.
func (c *Call) size() int {
	size := len(c.Query)
	for _, a := range c.Args {
		switch a := a.(type) {
		case string:
			size += len(a)
		case []byte:
			size += len(a)
		}
	}
	return size
}

func join(ctx context.Context, c *sql.Conn, calls []Call) error {
	var text strings.Builder
	var args []any
	scans := 0
	for i := range calls {
		if i > 0 {
			text.WriteByte(';')
		}
		text.WriteString(calls[i].Query)
		args = append(args, calls[i].Args...)
		if calls[i].Scan != nil {
			scans++
		}
	}
	if scans == 0 {
		return joinIDs(ctx, c, calls, text.String(), args)
	}
	rows, err := c.QueryContext(ctx, text.String(), args...)
	if err != nil {
		return err
	}
	return scanResults(rows, calls)
}

// joinIDs runs statements without results. The driver knows all their ids,
// database/sql only one.
func joinIDs(ctx context.Context, c *sql.Conn, calls []Call, text string, args []any) error {
	asked := slices.IndexFunc(calls, func(c Call) bool { return c.ID != nil })
	if asked < 0 {
		_, err := c.ExecContext(ctx, text, args...)
		return err
	}
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	known := false
	err := c.Raw(func(conn any) error {
		execer, is := conn.(driver.ExecerContext)
		if !is {
			return driver.ErrSkip
		}
		result, err := execer.ExecContext(ctx, text, named)
		if err != nil {
			return err
		}
		if result, is := result.(mysql.Result); is {
			calls[asked].ID(result.AllLastInsertIds()[asked])
			known = true
		}
		return nil
	})
	if errors.Is(err, driver.ErrSkip) {
		_, err = c.ExecContext(ctx, text, args...)
	}
	if err != nil || known {
		return err
	}
	// The driver is wrapped in another one. The connection remembers the id.
	var id int64
	if err := QueryRow(ctx, c, "SELECT LAST_INSERT_ID()", &id); err != nil {
		return err
	}
	calls[asked].ID(id)
	return nil
}
