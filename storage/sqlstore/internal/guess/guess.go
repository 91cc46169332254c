// Package guess makes the statements of commits that are expected to succeed.
//
// Most groups of commits consist only of compare-and-swaps that all succeed.
// Such a group is written in a single round trip that reads nothing first. Its
// transaction fails if it does not find what it expects; then nothing is
// written, and the group takes the usual way.
package guess

import (
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// A Verb is what a guess does with the rows of a table.
type Verb uint8

// The verbs.
const (
	Creates Verb = iota // rows of all columns; none may be there
	Changes             // rows of all columns and the version before; all must be there
	Removes             // rows of the key and the version; all must be there
	Keeps               // the same, and they stay as they are
	Drops               // rows of the key; whether they are there does not matter
)

// AllDefinitions is that of the definitions, by their deployment.
var AllDefinitions = tables.Table{Name: tables.Definitions.Name, Key: tables.Deployments.Key, Kinds: tables.Deployments.KeyKinds()}

// A part is one of the things that a guess may do.
type part struct {
	Verb
	*tables.Table
}

// width is how many values a row has.
func (p *part) width() int {
	switch p.Verb {
	case Creates:
		return len(p.Kinds)
	case Changes:
		return len(p.Kinds) + len(p.Version)
	case Drops:
		return len(p.Key)
	default:
		return len(p.Key) + len(p.Version)
	}
}

// parts are all of them. The statements of MySQL have this order.
var parts = [...]part{
	{Keeps, &tables.Leases},
	{Keeps, &tables.LRPs}, {Keeps, &tables.Deployments},
	{Removes, &tables.LRPs}, {Changes, &tables.LRPs}, {Creates, &tables.LRPs},
	{Removes, &tables.Deployments}, {Drops, &AllDefinitions}, {Drops, &tables.Definitions},
	{Changes, &tables.Deployments}, {Creates, &tables.Deployments}, {Creates, &tables.Definitions},
	{Removes, &tables.Tasks}, {Changes, &tables.Tasks}, {Creates, &tables.Tasks},
}

// A Guess is a group of commits that are all expected to succeed.
type Guess struct {
	rows [len(parts)][]any // flat lists
	// Data is the row of the log, which has Events of them, and Token what finds it
	// again.
	Events int64
	Data   []byte
	Token  int64
	// Least and Most limit where the log may end before: not below the newest
	// event that was seen, and exactly where it ended if something comes from
	// memory.
	Least, Most int64
}

// Add adds one or more rows to the part of a verb and a table.
func (g *Guess) Add(v Verb, t *tables.Table, rows ...any) {
	for i := range parts {
		if parts[i].Verb == v && parts[i].Table == t {
			g.rows[i] = append(g.rows[i], rows...)
		}
	}
}

// Statements make the statements of guesses for the tables of one store. They may
// be used by several goroutines at once.
type Statements interface {
	// Calls are the statements between the beginning of a transaction and its
	// COMMIT; newest receives the end of the log at that moment. They fail with an
	// error of the class Guarded if something is not as guessed.
	Calls(g *Guess, newest func(int64)) []dialect.Call
	// NextOnly reports whether a row can be changed to its next version only.
	NextOnly() bool
}

// New returns nil for a database on which round trips cost nothing. table makes
// the name of a table from its name in package tables.
func New(d *dialect.Dialect, table func(name string) string) Statements {
	switch d.Dir {
	case "mysql":
		return newMysqlStatements(d, table)
	case "postgres":
		return &postgresStatements{d: d, table: table}
	}
	return nil
}
