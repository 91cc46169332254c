package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

//go:embed migrations
var migrationFiles embed.FS

// SchemaVersion is the version of the schema that this release makes. It works with
// the next version too, so that processes of this release and of the next one can
// share a database while one replaces the other: a migration only adds, and what
// this release does beside the next one stays right. A migration for which that does
// not hold takes two versions at once. See docs/compatibility.md.
const SchemaVersion = 4

// A Migration brings the schema from the version before to Version.
type Migration struct {
	Version int
	Name    string
	// SQL is a list of statements, each ended by a semicolon at the end of a
	// line. The last one notes the version. On SQLite and PostgreSQL all of
	// them belong into one transaction; on MySQL, where none can be rolled
	// back, they may be run again.
	SQL string
}

// Migrations lists all migrations in order, with the tables' prefix filled in
// (empty means the default), for operators who run migrations themselves. Open
// and New then find nothing to do.
func Migrations(d Dialect, prefix string) ([]Migration, error) {
	f := d.fragments()
	if f == nil {
		return nil, fmt.Errorf("sqlstore: %v is none of SQLite, MySQL and PostgreSQL", d)
	}
	prefix, err := checkPrefix(prefix)
	if err != nil {
		return nil, err
	}
	return migrations(f, prefix)
}

func migrations(d *dialect.Dialect, prefix string) ([]Migration, error) {
	dir := "migrations/" + d.Dir
	files, err := fs.ReadDir(migrationFiles, dir)
	if err != nil {
		return nil, err
	}
	var out []Migration
	for i, file := range files {
		body, err := fs.ReadFile(migrationFiles, dir+"/"+file.Name())
		if err != nil {
			return nil, err
		}
		m := Migration{Version: i + 1, Name: strings.TrimSuffix(file.Name(), ".sql")}
		table := prefix + "schema"
		var sql strings.Builder
		if m.Version == 1 {
			exists := ""
			if d.Dir == "mysql" {
				exists = "IF NOT EXISTS "
			}
			sql.WriteString("CREATE TABLE " + exists + table + " (version INTEGER NOT NULL PRIMARY KEY);\n\n")
		}
		sql.WriteString(strings.ReplaceAll(string(body), "{p}", prefix))
		fmt.Fprintf(&sql, "\nINSERT INTO %s (version) VALUES (%d);\n", table, m.Version)
		m.SQL = sql.String()
		out = append(out, m)
	}
	return out, nil
}

// statements splits the SQL, because some drivers take only one at a time.
func (m *Migration) statements() []string {
	var out []string
	for _, statement := range strings.Split(m.SQL, ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			out = append(out, statement)
		}
	}
	return out
}

// Every [SchemaError] wraps ErrSchema.
var ErrSchema = errors.New("the schema has another version")

// A SchemaError says that this release does not work with the database's
// schema.
type SchemaError struct {
	Found, Want int
}

func (e *SchemaError) Error() string {
	if e.Found > e.Want {
		return fmt.Sprintf("%v: it is %d, which a newer release made, and this one knows %d and works with %d; run the newer release", ErrSchema, e.Found, e.Want, e.Want+1)
	}
	return fmt.Sprintf("%v: it is %d and must be %d; run the SQL of Migrations, or open the store without NoMigrations", ErrSchema, e.Found, e.Want)
}

// Unwrap makes errors.Is(err, ErrSchema) true.
func (e *SchemaError) Unwrap() error { return ErrSchema }

// migrate brings the schema to SchemaVersion, and reports whether it has made
// the tables. Processes that start at the same time wait for one another.
func (s *Store) migrate(ctx context.Context) (made bool, err error) {
	version, err := s.schemaVersion(ctx, s.write)
	if err != nil {
		return false, err
	}
	if version == SchemaVersion || version == SchemaVersion+1 {
		return false, nil
	}
	if version > SchemaVersion || s.options.NoMigrations {
		return false, &SchemaError{version, SchemaVersion}
	}
	all, err := migrations(s.d, s.options.Prefix)
	if err != nil {
		return false, err
	}
	c, err := s.schema.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	err = s.d.Migrate(ctx, c, s.options.Prefix, func() error {
		version, err := s.lockedVersion(ctx, c)
		if err != nil {
			return err
		}
		made = version == 0
		if version > SchemaVersion+1 { // another process was faster
			return &SchemaError{version, SchemaVersion}
		}
		for _, m := range all[min(version, len(all)):] {
			for _, statement := range m.statements() {
				if _, err := c.ExecContext(ctx, statement); err != nil && (s.d.Done == nil || !s.d.Done(err)) {
					return fmt.Errorf("migration %s: %w", m.Name, err)
				}
			}
		}
		return nil
	})
	return made && err == nil, err
}

// schemaVersion is the version of the schema, 0 if there is none.
func (s *Store) schemaVersion(ctx context.Context, q dialect.Querier) (int, error) {
	var version sql.NullInt64
	err := dialect.QueryRow(ctx, q, "SELECT MAX(version) FROM "+s.table("schema"), &version)
	if c, _ := s.d.ClassOf(err); c == dialect.Absent {
		return 0, nil
	}
	return int(version.Int64), err
}

// lockedVersion is schemaVersion within a migration. There a failing statement
// would end PostgreSQL's transaction.
func (s *Store) lockedVersion(ctx context.Context, c *sql.Conn) (int, error) {
	if s.d.Dir != "postgres" {
		return s.schemaVersion(ctx, c)
	}
	var there bool
	if err := dialect.QueryRow(ctx, c, "SELECT to_regclass('"+s.table("schema")+"') IS NOT NULL", &there); err != nil || !there {
		return 0, err
	}
	return s.schemaVersion(ctx, c)
}
