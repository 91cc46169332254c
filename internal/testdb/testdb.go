// Package testdb gives tests real databases.
//
// [Postgres] and [MySQL] return the DSN of a fresh, empty database that is
// dropped when the test ends. The environment may name the server. Otherwise the
// first use starts a private one from the installed binaries, which all tests of
// the process share and [Main] stops. [StartPostgres] and [StartMySQL] give a test a server of its own,
// which it may stop, kill and start again; [StartPostgresOnSmallDisk] and
// [StartMySQLOnSmallDisk] one whose disk it may fill. A machine without the binaries
// skips the test, or fails it if the environment variable testenv.RequireAll is 1.
//
// A package that uses this one has
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq" // registers the driver "postgres"

	"github.com/diegosdk/diego/internal/testenv"
)

// Environment variables that name the user's own servers. The user in the DSN
// must be allowed to create and drop databases.
const (
	PostgresEnv = "DIEGO_TEST_POSTGRES" // such as postgres://user:password@host:5432/postgres
	MySQLEnv    = "DIEGO_TEST_MYSQL"    // such as user:password@tcp(host:3306)/
)

// DirEnv names the directory for the files of private servers. By default it is
// the one for temporary files. Other users must be able to search it, because
// the servers do not run as root.
const DirEnv = "DIEGO_TEST_DATABASES"

// Main runs the tests of a package, stops the shared servers and exits. m is a
// *testing.M or wraps one.
func Main(m interface{ Run() int }) {
	inMain = true
	code := m.Run()
	for _, e := range []*engine{&postgres, &mariadb} {
		if e.shared == nil {
			continue
		}
		if err := e.shared.close(); err != nil {
			fmt.Fprintln(os.Stderr, "testdb:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

var inMain bool

// Postgres returns the DSN of a fresh database on a PostgreSQL server.
func Postgres(t testing.TB) string {
	t.Helper()
	return postgres.database(t)
}

// MySQL returns the DSN of a fresh database on a MySQL or MariaDB server.
func MySQL(t testing.TB) string {
	t.Helper()
	return mariadb.database(t)
}

// StartPostgres starts a PostgreSQL server that belongs to this test alone. It
// is stopped and removed when the test ends.
func StartPostgres(t testing.TB) *Server {
	t.Helper()
	return postgres.own(t, 0)
}

// StartMySQL starts a MariaDB server that belongs to this test alone. It is
// stopped and removed when the test ends.
func StartMySQL(t testing.TB) *Server {
	t.Helper()
	return mariadb.own(t, 0)
}

// Database creates a database on s and returns its DSN. The database goes with
// the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	dsn, _, err := s.engine.create(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// database creates a database on the user's server or the shared one, and drops
// it at the end of the test.
func (e *engine) database(t testing.TB) string {
	t.Helper()
	admin := os.Getenv(e.env)
	if admin == "" {
		admin = e.sharedServer(t).dsn
	}
	dsn, drop, err := e.create(admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return dsn
}

func (e *engine) sharedServer(t testing.TB) *Server {
	t.Helper()
	if !inMain {
		t.Fatal("testdb: the package has no func TestMain(m *testing.M) { testdb.Main(m) }")
	}
	e.requireBinaries(t)
	e.once.Do(func() { e.shared, e.sharedErr = e.start(0) })
	if e.sharedErr != nil {
		t.Fatal(e.sharedErr)
	}
	return e.shared
}

func (e *engine) own(t testing.TB, diskBytes int64) *Server {
	t.Helper()
	e.requireBinaries(t)
	s, err := e.start(diskBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (e *engine) requireBinaries(t testing.TB) {
	t.Helper()
	if _, err := e.find(); err != nil {
		testenv.Missing(t, e.name, fmt.Sprintf("install the Debian package %s, or name a server in %s (%v)", e.debian, e.env, err))
	}
}

// create uses the admin DSN to create a database with a name of its own.
func (e *engine) create(admin string) (dsn string, drop func() error, err error) {
	name := "diego_" + strings.ToLower(rand.Text()[:12])
	if dsn, err = e.withDatabase(admin, name); err != nil {
		return "", nil, fmt.Errorf("%s: %w", e.env, err)
	}
	if err := e.exec(admin, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	return dsn, func() error { return e.exec(admin, fmt.Sprintf(e.drop, name)) }, nil
}

func (e *engine) exec(dsn, statement string) error {
	db, err := sql.Open(e.driver, dsn)
	if err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%s: %s: %w", e.name, statement, err)
	}
	return nil
}

// engine holds what PostgreSQL and MariaDB differ in.
type engine struct {
	name, driver, env string
	debian            string    // the package that has the binaries
	programs          []string  // server first, then what makes a data directory
	dirs              []string  // globs to look in besides PATH; the last match wins
	account           string    // the user that the package made for it
	drop              string    // statement, %s is the database
	stop              os.Signal // a clean stop that does not wait for clients to leave
	diskBytes         int64     // of a small disk of a server's own: room for an empty database and some more
	withDatabase      func(dsn, name string) (string, error)
	initialize        func(s *Server) error
	arguments         func(s *Server) []string
	dsn               func(s *Server) string

	once      sync.Once
	shared    *Server
	sharedErr error
}

var postgres = engine{
	name: "PostgreSQL", driver: "postgres", env: PostgresEnv,
	debian:   "postgresql",
	programs: []string{"postgres", "initdb"},
	dirs:     []string{"/usr/lib/postgresql/*/bin"},
	account:  "postgres",
	drop:     "DROP DATABASE IF EXISTS %s WITH (FORCE)",
	stop:     os.Interrupt,

	diskBytes: 128 << 20,
	withDatabase: func(dsn, name string) (string, error) {
		if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
			return dsn + " dbname=" + name, nil // key=value form: the last one counts
		}
		u, err := url.Parse(dsn)
		if err != nil {
			return "", err
		}
		u.Path = "/" + name
		return u.String(), nil
	},
	initialize: func(s *Server) error {
		passwords := s.path("password")
		if err := s.writeFile(passwords, s.password+"\n"); err != nil {
			return err
		}
		return s.run(s.bin["initdb"], "--pgdata="+s.path("data"), "--username=diego", "--pwfile="+passwords,
			"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-instructions")
	},
	arguments: func(s *Server) []string {
		return []string{"-D", s.path("data"), "-p", fmt.Sprint(s.port),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}
	},
	dsn: func(s *Server) string {
		return fmt.Sprintf("postgres://diego:%s@127.0.0.1:%d/postgres?sslmode=disable", s.password, s.port)
	},
}

var mariadb = engine{
	name: "MariaDB", driver: "mysql", env: MySQLEnv,
	debian:   "mariadb-server",
	programs: []string{"mariadbd", "mariadb-install-db"},
	dirs:     []string{"/usr/bin", "/usr/sbin"},
	account:  "mysql",
	drop:     "DROP DATABASE IF EXISTS %s",
	stop:     syscall.SIGTERM,

	diskBytes: 256 << 20,
	withDatabase: func(dsn, name string) (string, error) {
		config, err := mysql.ParseDSN(dsn)
		if err != nil {
			return "", err
		}
		config.DBName = name
		return config.FormatDSN(), nil
	},
	initialize: func(s *Server) error {
		err := s.writeFile(s.path("init.sql"), fmt.Sprintf(
			"CREATE USER IF NOT EXISTS diego@'127.0.0.1' IDENTIFIED BY '%s';\n"+
				"GRANT ALL ON *.* TO diego@'127.0.0.1' WITH GRANT OPTION;\n", s.password))
		if err != nil {
			return err
		}
		return s.run(s.bin["mariadb-install-db"], "--no-defaults", "--datadir="+s.path("data"),
			"--skip-test-db", "--skip-name-resolve")
	},
	arguments: func(s *Server) []string {
		// The socket's name is relative to the data directory: a path to it
		// may be longer than a socket's address can be. The character set is
		// what Debian's own configuration says.
		return []string{"--no-defaults", "--datadir=" + s.path("data"), "--init-file=" + s.path("init.sql"),
			"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", s.port), "--socket=server.sock",
			"--pid-file=" + s.path("pid"), "--skip-name-resolve", "--character-set-server=utf8mb4"}
	},
	dsn: func(s *Server) string {
		return fmt.Sprintf("diego:%s@tcp(127.0.0.1:%d)/", s.password, s.port)
	},
}
