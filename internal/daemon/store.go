package daemon

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/diegosdk/diego/storage/sqlstore"
)

// Store are the settings of the database, for embedding.
type Store struct {
	StoreDSN    string        `name:"store" required:"true" secret:"true" help:"the database: sqlite:/path/to/file.db, postgres://user:password@host/db or mysql://user:password@host/db; rather in the file than as a flag, which everybody on the host can read"`
	StoreWait   time.Duration `name:"store_wait" default:"1m" range:"0s..1h" help:"how long to wait at the start for a database that cannot be reached"`
	StoreEvents int           `name:"store_events" default:"100000" range:"1000..100000000" help:"how many of the newest events are kept for subscribers"`
	StoreConns  int           `name:"store_conns" default:"16" range:"2..1000" help:"connections to PostgreSQL or MySQL"`
	StoreSync   string        `name:"store_sync" oneof:"full normal" help:"what SQLite does for a power cut: full, the default, flushes each commit to the disk; with normal the newest commits may be undone, in order"`
}

// CheckStore is for the Check method of settings that embed Store.
func (s *Store) CheckStore(report func(name, want string)) {
	if err := sqlstore.CheckDSN(s.StoreDSN); err != nil {
		report("store", strings.TrimPrefix(err.Error(), "sqlstore: "))
	}
	if scheme, _, _ := strings.Cut(s.StoreDSN, ":"); s.StoreSync != "" && (strings.HasPrefix(scheme, "postgres") || scheme == "mysql") {
		report("store_sync", "no such setting, as it is for SQLite only: what a server does for a power cut is a setting of its own "+
			"(synchronous_commit of PostgreSQL, innodb_flush_log_at_trx_commit of MySQL)")
	}
}

// Open opens the store. keys may be nil. If the database cannot be reached,
// Open waits up to StoreWait and logs each attempt. It returns any other error
// at once, because waiting does not help.
func (s *Store) Open(ctx context.Context, keys *sqlstore.Keys, log *slog.Logger) (*sqlstore.Store, error) {
	end := time.Now().Add(s.StoreWait)
	pause := 250 * time.Millisecond
	for {
		store, err := s.attempt(ctx, keys, log)
		if err == nil {
			log.Info("store", "database", s.database())
			return store, nil
		}
		left := time.Until(end)
		if ctx.Err() != nil || !outOfReach(err) {
			return nil, fmt.Errorf("the store (%s): %w", s.database(), err)
		}
		if left <= 0 {
			return nil, fmt.Errorf("the store (%s) could not be reached for %v: %w; start the database, or mend the setting store (--store)", s.database(), s.StoreWait, err)
		}
		log.Warn("the store cannot be reached; trying again", "database", s.database(), "err", err, "for_another", left.Round(time.Second))
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// attemptTime limits one attempt: a host that is down may not even refuse a
// connection.
const attemptTime = 10 * time.Second

func (s *Store) attempt(ctx context.Context, keys *sqlstore.Keys, log *slog.Logger) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	return sqlstore.Open(ctx, s.StoreDSN, &sqlstore.Options{Events: s.StoreEvents, MaxConns: s.StoreConns, FullSync: s.StoreSync != "normal", Keys: keys, Logger: log})
}

// outOfReach reports whether err says that the server does not answer, or not
// yet.
func outOfReach(err error) bool {
	var network *net.OpError
	var state interface{ SQLState() string } // of PostgreSQL
	switch {
	case errors.As(err, &network), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &state):
		s := state.SQLState() // starting up or shutting down; no connection free
		return strings.HasPrefix(s, "57P") || s == "53300"
	}
	return false
}

// database is the part of the data source name that messages may show.
func (s *Store) database() string {
	scheme, rest, _ := strings.Cut(s.StoreDSN, ":")
	if scheme == "sqlite" {
		return s.StoreDSN
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest, _, _ = strings.Cut(rest, "?")
	return strings.TrimSpace(scheme + " " + strings.TrimPrefix(rest, "//"))
}
