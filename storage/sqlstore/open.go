package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// Options of [Open] and [New]. Nil means the zero value, which has the
// documented defaults. Options are a plain value: any number of goroutines may use
// one while none changes it.
type Options struct {
	// Prefix begins the name of every table and index: at most 32 lower-case
	// letters, digits and underscores, a letter first (default "diego_").
	Prefix string
	// NoMigrations leaves the schema to the caller. A schema that is too old is
	// then a *SchemaError. See [Migrations].
	NoMigrations bool
	// Events is how many of the newest events the log holds (default 100,000).
	// Their rows are deleted some time later, many at once.
	Events int
	// EventBytes is about how many bytes the newest events may have together, as
	// the database holds them (default 256 MiB). The log drops the oldest of more,
	// but never the newest.
	EventBytes int64
	// Requests is how long request ids are remembered, at least (default 1 h,
	// which is also the minimum).
	Requests time.Duration
	// RetryFor is how long a read or a commit keeps trying while the database is
	// busy, restarts or cannot be reached (default 15 s).
	RetryFor time.Duration
	// Keys encrypt the secret parts of the tables. Nil encrypts nothing.
	Keys *Keys
	// Remember is how many slots and deployments are kept in memory so that a
	// step need not read them (default 65,536, of less than 1 KiB each; none if
	// negative). It helps while one process does most of the commits, as a
	// leader does.
	Remember int
	// OneByOne sends one statement at a time, for poolers between the store and a
	// PostgreSQL server that do not support SQL's PREPARE.
	OneByOne bool
	// OneNode says that all processes with this database write through one and the
	// same node of a Galera cluster, or of a MySQL group with several primaries,
	// until that node is gone. Without it such a server is refused with
	// [ErrSeveralNodes], because commits on two nodes corrupt the records. In a
	// DSN it is one_node=true.
	OneNode bool

	// MaxConns is the number of connections that Open may make, at least 2
	// (default 16). One of them is for commits and, on a server, one for leases.
	MaxConns int
	// FullSync makes SQLite flush each commit to the disk. Without it a commit
	// survives any end of the process, but a power cut may undo the newest
	// commits, in order. In a DSN _synchronous, which is NORMAL, FULL or EXTRA,
	// replaces it.
	FullSync bool
	// BusyTimeout is how long SQLite waits for other processes in one
	// statement (default 5 s).
	BusyTimeout time.Duration
	// Now replaces the clock of a SQLite database, which is the machine's, for tests
	// and simulations in virtual time. Every process with the database needs the
	// same clock. It is called from several goroutines. [Open] refuses it for a
	// server and New for any database, because their clock is the one that counts.
	Now func() time.Time
	// Logger gets a line for each file of a SQLite database that Open has made
	// private or could not make private, and for each deployment that is read and
	// whose history cannot be decoded in part (default none).
	Logger *slog.Logger

	// clock, in tests, is a format for the dialect's clock: %s stands for it.
	clock string
}

// ErrSeveralNodes says that the server is one of several nodes that take
// writes, and that OneNode is not set.
var ErrSeveralNodes = dialect.ErrSeveralNodes

// DefaultRetryFor is the default of Options.RetryFor.
const DefaultRetryFor = 15 * time.Second

var errNow = errors.New("sqlstore: Options.Now is for SQLite files that Open opens; leave it nil for a server or a database of your own, whose clock is the one that counts")

const (
	defaultPrefix   = "diego_"
	defaultEvents   = 100_000
	defaultBytes    = 256 << 20
	defaultRequests = time.Hour
	defaultMaxConns = 16
	defaultRemember = 1 << 16
	defaultBusy     = 5 * time.Second
)

func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var err error
	if out.Prefix, err = checkPrefix(out.Prefix); err != nil {
		return out, err
	}
	if out.Events <= 0 {
		out.Events = defaultEvents
	}
	if out.EventBytes <= 0 {
		out.EventBytes = defaultBytes
	}
	out.Requests = max(out.Requests, defaultRequests)
	if out.RetryFor <= 0 {
		out.RetryFor = DefaultRetryFor
	}
	out.Remember = cmp.Or(out.Remember, defaultRemember)
	if out.MaxConns <= 0 {
		out.MaxConns = defaultMaxConns
	}
	if out.BusyTimeout <= 0 {
		out.BusyTimeout = defaultBusy
	}
	out.Logger = cmp.Or(out.Logger, slog.New(slog.DiscardHandler))
	return out, nil
}

func checkPrefix(prefix string) (string, error) {
	if prefix == "" {
		return defaultPrefix, nil
	}
	for i, c := range prefix {
		if !(c >= 'a' && c <= 'z' || i > 0 && (c == '_' || c >= '0' && c <= '9')) || i >= 32 {
			return "", fmt.Errorf("sqlstore: prefix %q: want at most 32 lower-case letters, digits and underscores, a letter first", prefix)
		}
	}
	return prefix, nil
}

// Open opens the store that a data source name leads to, and makes or migrates
// its tables. The scheme says which database it is:
//
//	sqlite:/var/lib/diego/diego.db     a file, which is made if need be, for its owner
//	                                   alone; with the parameters mode and _synchronous
//	:memory:                           a SQLite database of the Store's own
//	postgres://user:password@host/db   what lib/pq takes, or postgresql://
//	mysql://user:password@host/db      with the parameters of the driver, and one_node
//	mysql:user:password@tcp(host)/db   what go-sql-driver/mysql takes
//
// ctx bounds the opening only. A parameter that neither the store nor the server
// knows is an error. The error says what to do about it; it never has the
// password.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	open, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	return open(ctx, opts)
}

// CheckDSN checks that Open understands a data source name. It opens nothing.
// The error says what would be right; it never contains the password.
func CheckDSN(dsn string) error {
	_, err := parse(dsn)
	return err
}

// parse returns a function that opens the store of a data source name.
func parse(dsn string) (open func(context.Context, Options) (*Store, error), err error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch {
	case dsn == ":memory:" || dsn == "sqlite::memory:":
		return openMemory, nil
	case scheme == "sqlite":
		file, err := dialect.ParseSQLite(strings.TrimPrefix(rest, "//"))
		if err != nil {
			return nil, errDSN("SQLite", "sqlite:/var/lib/diego/diego.db", dsn, err)
		}
		return func(ctx context.Context, opts Options) (*Store, error) { return openFile(ctx, file, opts, nil) }, nil
	case scheme == "postgres" || scheme == "postgresql":
		connect := func(a dialect.Access) (*pq.Connector, error) { return dialect.NewPostgresConnector(dsn, a) }
		if _, err := connect(dialect.Reads); err != nil {
			return nil, errDSN("PostgreSQL", "postgres://user:password@host:5432/database", dsn, err)
		}
		return server(&dialect.PostgreSQL, connect), nil
	case scheme == "mysql":
		config, oneNode, err := dialect.ParseMySQL(rest)
		if err != nil {
			return nil, errDSN("MySQL", "mysql://user:password@host:3306/database", dsn, err)
		}
		if _, err := dialect.NewMySQLConnector(config, dialect.Reads, oneNode); err != nil {
			return nil, errDSN("MySQL", "mysql://user:password@host:3306/database", dsn, err)
		}
		return func(ctx context.Context, opts Options) (*Store, error) {
			opts.OneNode = opts.OneNode || oneNode
			return server(&dialect.MySQL, func(a dialect.Access) (driver.Connector, error) {
				return dialect.NewMySQLConnector(config, a, opts.OneNode)
			})(ctx, opts)
		}, nil
	}
	return nil, errors.New("sqlstore: the data source name begins with none of sqlite:, postgres:// and mysql: as it should; a file is sqlite:/var/lib/diego/diego.db")
}

// server opens a store on a server, with the connectors that connect makes.
func server[C driver.Connector](d *dialect.Dialect, connect func(dialect.Access) (C, error)) func(context.Context, Options) (*Store, error) {
	return func(ctx context.Context, opts Options) (*Store, error) {
		if opts.Now != nil {
			return nil, errNow
		}
		var p pools
		for a, db := range map[dialect.Access]**sql.DB{dialect.Reads: &p.read, dialect.Commits: &p.write, dialect.Leases: &p.lease, dialect.Migrates: &p.schema} {
			connector, err := connect(a)
			if err != nil {
				return nil, errors.Join(err, p.close())
			}
			*db = sql.OpenDB(connector)
		}
		return opened(ctx, d, p, opts)
	}
}

// errDSN gives the driver's reason without the data source name, which contains
// a password.
func errDSN(database, want, dsn string, err error) error {
	reason := ""
	var whole *url.Error
	if err != nil && !errors.As(err, &whole) {
		user, _, _ := cutLast(dsn, "@")
		if _, password, found := cutLast(user, ":"); !found || password == "" || !strings.Contains(err.Error(), password) {
			reason = " (" + err.Error() + ")"
		}
	}
	return fmt.Errorf("sqlstore: the data source name of %s cannot be read%s; want one like %s", database, reason, want)
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// opened opens a store on a server.
func opened(ctx context.Context, d *dialect.Dialect, p pools, opts Options) (*Store, error) {
	p.write.SetMaxOpenConns(1)
	p.lease.SetMaxOpenConns(1)
	p.idle = max(1, opts.MaxConns-2)
	p.read.SetMaxOpenConns(p.idle)
	p.read.SetMaxIdleConns(p.idle)
	for _, db := range []*sql.DB{p.write, p.lease, p.read} {
		db.SetConnMaxIdleTime(dialect.MaxIdle / 2)
	}
	s, err := build(ctx, d, p, opts, p.close)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return s, p.schema.Close()
}

// New makes a store of a database that the caller has opened, and migrates its
// tables. Close leaves db open.
//
// A View or a list takes a connection of db while it lasts, and a commit takes
// another: a caller that commits while it ranges over a list needs two
// connections. If db may have only one, the Store reads its lists to their end
// before it yields them. A commit within a View then waits until its context
// ends, or fails after about Options.RetryFor.
//
// [Dialect] lists the drivers; New refuses a database with another one. On
// PostgreSQL a commit takes fewer round trips through github.com/lib/pq than
// through pgx; on MySQL it takes fewer with
// interpolateParams=true&multiStatements=true, which Open sets. On SQLite set
// the journal to WAL, or readers and writers will wait for one another.
func New(db *sql.DB, d Dialect, o *Options) (*Store, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Now != nil {
		return nil, errNow
	}
	f := d.fragments()
	if f == nil {
		return nil, fmt.Errorf("sqlstore: %v is none of SQLite, MySQL and PostgreSQL", d)
	}
	if db == nil {
		return nil, errors.New("sqlstore: the *sql.DB is nil; open one, or let Open do it")
	}
	if err := checkDriver(f, db, opts.Prefix); err != nil {
		return nil, err
	}
	if f.Severals != "" && !opts.OneByOne {
		joined, err := joins(f, db)
		if err != nil {
			return nil, explain(f, "opening", err)
		}
		opts.OneByOne = !joined
	}
	return build(context.Background(), f, pools{write: db, lease: db, read: db, schema: db}, opts, nil)
}

// driverTimeout limits New's questions to the database about its driver.
const driverTimeout = 10 * time.Second

// checkDriver refuses a driver whose errors the dialect cannot read, because
// the store could not distinguish a conflict from a lost connection. It reads a
// table that does not exist, for which every driver must return an error.
func checkDriver(d *dialect.Dialect, db *sql.DB, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), driverTimeout)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		return explain(d, "opening", err)
	}
	err := dialect.QueryRow(ctx, db, "SELECT 1 FROM "+prefix+"no_such_table")
	if class, _ := d.ClassOf(err); err == nil || d.FromHere(err) || class == dialect.Lost || ctx.Err() != nil {
		return nil // opening the store will say what is wrong
	}
	return fmt.Errorf("sqlstore: the driver %T is not supported for %s, because its errors cannot be distinguished; open the database with %s (the driver said: %w)",
		db.Driver(), d.Name, d.Drivers, err)
}

// joins reports whether the driver takes several statements at once and returns
// all their results. If the connection is lost meanwhile, it returns an error.
func joins(d *dialect.Dialect, db *sql.DB) (joined bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), driverTimeout)
	defer cancel()
	var args []any
	if strings.Contains(d.Severals, "?") {
		args = append(args, int64(1))
	}
	rows, err := db.QueryContext(ctx, d.Severals, args...)
	if err == nil {
		joined = rows.NextResultSet()
		err = errors.Join(rows.Err(), rows.Close())
	}
	if class, _ := d.ClassOf(err); class == dialect.Lost || ctx.Err() != nil {
		return false, errors.Join(ctx.Err(), err)
	}
	return joined, nil // what else is wrong is that the driver takes one statement only
}

// openMemory opens a file that only this Store uses, in memory if the system
// has a place for that. In SQLite's own databases in memory, readers and
// writers wait for one another.
func openMemory(ctx context.Context, opts Options) (*Store, error) {
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "diego-sqlite-")
	if err != nil {
		if dir, err = os.MkdirTemp("", "diego-sqlite-"); err != nil {
			return nil, fmt.Errorf("sqlstore: :memory: needs a temporary directory: %w", err)
		}
	}
	remove := func() error { return os.RemoveAll(dir) }
	s, err := openFile(ctx, dialect.SQLiteFile{Path: filepath.Join(dir, "memory.db")}, opts, remove)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return s, nil
}

// openFile opens a SQLite file: one connection writes, and others read. after
// is called when the store is closed.
func openFile(ctx context.Context, file dialect.SQLiteFile, opts Options, after func() error) (*Store, error) {
	dialect.KeepPrivate(file.Path, file.Mode, opts.Logger)
	writer, reader := file.Connectors(opts.BusyTimeout, opts.FullSync, opts.Now)
	write, read := sql.OpenDB(writer), sql.OpenDB(reader)
	write.SetMaxOpenConns(1)
	read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0), opts.MaxConns))
	read.SetMaxIdleConns(max(4, runtime.GOMAXPROCS(0)))
	closeAll := func() error {
		// The writer is the last, because it tidies the log up.
		err := errors.Join(read.Close(), write.Close())
		if after != nil {
			err = errors.Join(err, after())
		}
		return err
	}
	s, err := build(ctx, &dialect.SQLite, pools{write: write, lease: write, read: read, schema: write}, opts, closeAll)
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	return s, nil
}
