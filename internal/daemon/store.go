package daemon

import (
	"cmp"
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
	StoreDSN        string        `name:"store" required:"true" secret:"true" help:"the database: sqlite:/path/to/file.db, postgres://user:password@host/db or mysql://user:password@host/db; set it in the file, because everybody on the host can read flags"`
	StoreWait       time.Duration `name:"store_wait" default:"1m" range:"0s..1h" help:"how long to wait at the start for a database that cannot be reached"`
	StoreEvents     int           `name:"store_events" option:"sqlstore.Options.Events" default:"100000" range:"1000..100000000" help:"how many of the newest events are kept for subscribers"`
	StoreEventBytes int64         `name:"store_event_bytes" option:"sqlstore.Options.EventBytes" default:"268435456" range:"16777216..1099511627776" unit:"bytes" help:"how large the newest events may be together that are kept for subscribers; the oldest of more are dropped, even if there are fewer than store_events"`
	StoreConns      int           `name:"store_conns" option:"sqlstore.Options.MaxConns" default:"16" range:"2..1000" help:"connections to PostgreSQL or MySQL"`
	StoreSync       string        `name:"store_sync" option:"sqlstore.Options.FullSync,by hand" oneof:"full normal" help:"what SQLite does for a power cut: full, the default, flushes each commit to the disk; with normal the newest commits may be undone, in order"`

	StoreRemember     int  `name:"store_remember" option:"sqlstore.Options.Remember,by hand" default:"65536" range:"0..100000000" help:"how many instances and deployments, of less than 1 KiB each, a leader keeps in memory so that it need not read them for each step"`
	StoreOneByOne     bool `name:"store_one_by_one" option:"sqlstore.Options.OneByOne" help:"send one statement at a time, for a pooler in front of the server that takes no more, such as PgBouncer in transaction mode"`
	StoreNoMigrations bool `name:"store_no_migrations" option:"sqlstore.Options.NoMigrations" help:"refuse a database with an older schema instead of migrating it"`
}

// CheckStore is for the Check method of settings that embed Store.
func (s *Store) CheckStore(report func(name, want string)) {
	if err := sqlstore.CheckDSN(s.StoreDSN); err != nil {
		report("store", strings.TrimPrefix(err.Error(), "sqlstore: "))
	}
	scheme, _, _ := strings.Cut(s.StoreDSN, ":")
	if s.StoreSync != "" && (strings.HasPrefix(scheme, "postgres") || scheme == "mysql") {
		report("store_sync", "no such setting, as it is for SQLite only: what a server does for a power cut is a setting of its own "+
			"(synchronous_commit of PostgreSQL, innodb_flush_log_at_trx_commit of MySQL)")
	}
	if scheme == "sqlite" && s.StoreOneByOne {
		report("store_one_by_one", "no such setting for SQLite, which has no pooler; leave it out")
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
	store, err := sqlstore.Open(ctx, s.StoreDSN, s.options(keys, log))
	if old := (*sqlstore.SchemaError)(nil); s.StoreNoMigrations && errors.As(err, &old) && old.Found < old.Want {
		err = fmt.Errorf("%w; a start without the setting store_no_migrations does that", err)
	}
	return store, err
}

// options are those of the store that the settings describe.
func (s *Store) options(keys *sqlstore.Keys, log *slog.Logger) *sqlstore.Options {
	o := &sqlstore.Options{Keys: keys, Logger: log, FullSync: s.StoreSync != "normal"}
	apply(s, o)
	o.Remember = cmp.Or(s.StoreRemember, -1) // 0 would be the default
	return o
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
