package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Commits take turns by a lock on the one row of the log. In a cluster of
// servers that all take writes, no lock reaches the other nodes. Galera then
// ends one of two conflicting transactions at an arbitrary moment. A node that
// does so within a text of several statements runs the rest of the text outside
// the transaction: records, events and numbers silently diverge. So such a
// server is refused, unless the caller vouches for one node that takes all
// writes. When that node is gone, another one takes its place and must first
// catch up with what was acknowledged; its sessions wait for that. Two nodes
// may take writes for a moment then, so statements go one by one: a transaction
// that was ended is an error, and is tried again.

// ErrSeveralNodes is the error for such a server, unless one node takes all
// writes.
var ErrSeveralNodes = errors.New("commits on two nodes would corrupt the records")

const (
	oneNodeParameter = "one_node"

	// causalReads are the bits of wsrep_sync_wait that make a node wait, before
	// it reads (1), updates (2) or inserts (4), until it has applied what the
	// cluster had committed by then.
	causalReads    = 7
	setCausalReads = "SET SESSION wsrep_sync_wait = 7"

	adviceOneNode = "let all processes write through one node, by an address or a proxy that leads to one at a time, and say so with one_node=true in the DSN or Options.OneNode"
)

// mysqlTopology knows Galera and the group replication of MySQL. It reports
// whether transactions may be ended by other nodes.
func mysqlTopology(ctx context.Context, q Querier, oneNode bool) (several bool, err error) {
	galera, err := variable(ctx, q, "@@wsrep_on")
	if err != nil {
		return false, err
	}
	if galera == 1 {
		if !oneNode {
			return false, fmt.Errorf("%w: the server is a node of a Galera cluster in which every node takes writes (wsrep_on is ON); %s", ErrSeveralNodes, adviceOneNode)
		}
		wait, err := variable(ctx, q, "@@wsrep_sync_wait")
		if err == nil && wait&causalReads != causalReads {
			err = fmt.Errorf("the server is a node of a Galera cluster, and wsrep_sync_wait is %d: a node that takes over would miss commits; add wsrep_sync_wait=%d to the DSN of the driver", wait, causalReads)
		}
		return true, err
	}
	single, err := variable(ctx, q, "@@group_replication_single_primary_mode")
	if err == nil && single == 0 && !oneNode {
		err = fmt.Errorf("%w: the server is in a replication group with several primaries (group_replication_single_primary_mode is OFF); switch the group to one primary, or %s", ErrSeveralNodes, adviceOneNode)
	}
	return single == 0, err
}

// variable is the value of a system variable, or -1 if the server does not have
// it.
func variable(ctx context.Context, q Querier, name string) (value int64, err error) {
	err = QueryRow(ctx, q, "SELECT "+name, &value)
	if isUnknownVariable(err) {
		return -1, nil
	}
	return value, err
}

func isUnknownVariable(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1193
}

// A mysqlConnector makes connections with settings that the driver has no
// parameters for. If the server does not know one of them, it is left out.
type mysqlConnector struct {
	driver.Connector
	settings []string
	// timeout bounds the whole of Connect. The driver's bounds only a part.
	timeout time.Duration
}

// NewMySQLConnector makes connections of one kind.
func NewMySQLConnector(config *mysql.Config, a Access, oneNode bool) (driver.Connector, error) {
	config = boundMySQL(config, a)
	c, err := mysql.NewConnector(config)
	return &mysqlConnector{c, mysqlSession(a, oneNode), config.Timeout}, err
}

// Connect implements driver.Connector.
func (c *mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.connect(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &net.OpError{Op: "connect", Net: "MySQL", Err: err}
	}
	return conn, err
}

func (c *mysqlConnector) connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, setting := range c.settings {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, setting, nil); err != nil && !isUnknownVariable(err) {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}
