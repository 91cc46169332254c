package guess

import (
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// mysqlStatements are a statement for each part, between one that locks the log
// and one that adds to it. None of them has a result: each that has is one more
// answer to send and to wait for.
type mysqlStatements struct {
	countEvents                   string
	insertEvents, insertIfChanged string
	parts                         [len(parts)]mysqlPart
}

func newMysqlStatements(d *dialect.Dialect, table func(string) string) *mysqlStatements {
	insert := func(sequence string) string {
		return "INSERT INTO " + table("events") + " (seq, n, at, token, data) VALUES (" + sequence + ", ?, " + d.Clock + ", ?, ?)"
	}
	m := &mysqlStatements{
		// The connection remembers the number until it has committed.
		countEvents:     "UPDATE " + table("log") + " SET newest = LAST_INSERT_ID(newest + ? + " + zero("newest NOT BETWEEN ? AND ?") + ") WHERE id = 1",
		insertEvents:    insert("LAST_INSERT_ID()"),
		insertIfChanged: insert("LAST_INSERT_ID() + " + zero("ROW_COUNT() <> ?")),
	}
	for i := range parts {
		m.parts[i] = newMysqlPart(d, parts[i], table(parts[i].Name))
	}
	return m
}

// NextOnly implements Statements: see ifNext.
func (*mysqlStatements) NextOnly() bool { return true }

// Calls implements Statements.
func (m *mysqlStatements) Calls(g *Guess, newest func(int64)) []dialect.Call {
	calls := []dialect.Call{{Query: m.countEvents, Args: []any{g.Events, g.Least, g.Most}, ID: newest}}
	for i := range parts {
		calls = m.parts[i].calls(calls, g.rows[i])
	}
	row := []any{g.Events, g.Token, g.Data}
	if last := calls[len(calls)-1]; last.Query == rowsChanged {
		calls[len(calls)-1] = dialect.Call{Query: m.insertIfChanged, Args: append(last.Args, row...)}
		return calls
	}
	return append(calls, dialect.Call{Query: m.insertEvents, Args: row})
}

// A mysqlPart is a part of a guess as statements.
type mysqlPart struct {
	part
	dialect.Multi
	// each is what ROW_COUNT says for each row, if it is to be looked at.
	each int64
	// alone changes one row, with much less to parse and to compute.
	alone string
}

func newMysqlPart(d *dialect.Dialect, p part, name string) mysqlPart {
	columns, kinds := p.KeyVersion()
	switch p.Verb {
	case Creates: // fails if a row is there
		return mysqlPart{part: p, Multi: d.Insert(name, p.Columns(), p.Kinds, "")}
	case Changes: // a row counts for one if it is inserted, for none if it has another version
		alone := "UPDATE " + name + " SET " + dialect.Assign(p.Rest, func(string) string { return "?" }) + " WHERE " + strings.Join(columns, " = ? AND ") + " = ?"
		return mysqlPart{part: p, Multi: d.Insert(name, p.Columns(), p.Kinds, ifNext(p.Rest)), each: 2, alone: alone}
	case Removes:
		return mysqlPart{part: p, Multi: d.Among("DELETE FROM "+name, columns, kinds), each: 1}
	case Drops:
		return mysqlPart{part: p, Multi: d.Among("DELETE FROM "+name, p.Key, p.Kinds[:len(p.Key)])}
	default: // keeps
		m := d.Among("SET @diego = (SELECT "+zero("COUNT(*) <> ?")+" FROM "+name, columns, kinds)
		if p.Present != "" {
			// Leases change without the lock of the log.
			m.Head, m.Tail = m.Head+p.Present+" AND ", d.Share
		}
		m.Tail += ")"
		return mysqlPart{part: p, Multi: m}
	}
}

// ifNext replaces a row by the next version of it, and leaves it alone if it has
// another. Assignments are made one after the other, so the version's is last.
func ifNext(columns []string) string {
	const epoch, index = "tag_epoch", "tag_index"
	columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == index })
	return " ON DUPLICATE KEY UPDATE " + dialect.Assign(append(columns, index), func(c string) string {
		return fmt.Sprintf("IF(%s = VALUES(%s) AND %s = VALUES(%s) - 1, VALUES(%s), %s)", epoch, epoch, index, index, c, c)
	})
}

// zero is 0, or an error if a condition holds: the exponent is out of range.
func zero(failure string) string { return "(EXP(1000 * (" + failure + ")) > 0) - 1" }

// rowsChanged fails unless the statement before has changed as many rows as its
// argument says.
var rowsChanged = "SET @diego = " + zero("ROW_COUNT() <> ?")

// calls are the statements for a list of rows.
func (p *mysqlPart) calls(dst []dialect.Call, rows []any) []dialect.Call {
	if p.Verb == Changes && len(rows) == p.width() {
		n := len(p.Key)
		args := slices.Concat(rows[n:len(p.Kinds)], rows[:n], rows[len(p.Kinds):])
		return append(dst, dialect.Call{Query: p.alone, Args: args}, dialect.Call{Query: rowsChanged, Args: []any{int64(1)}})
	}
	if p.Verb == Changes {
		rows = p.withoutVersion(rows)
	}
	for _, c := range p.Multi.Calls(nil, rows, nil) {
		n := int64(len(c.Args) / len(p.Multi.Kinds))
		if p.Verb == Keeps {
			c.Args = append([]any{n}, c.Args...)
		}
		dst = append(dst, c)
		if p.each > 0 {
			dst = append(dst, dialect.Call{Query: rowsChanged, Args: []any{n * p.each}})
		}
	}
	return dst
}

// withoutVersion are the rows without the version, which is the one before.
func (p *part) withoutVersion(rows []any) (out []any) {
	for ; len(rows) > 0; rows = rows[p.width():] {
		out = append(out, rows[:len(p.Kinds)]...)
	}
	return out
}
