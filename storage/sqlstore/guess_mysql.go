package sqlstore

import (
	"database/sql"
	"fmt"
	"slices"
)

// mysqlGuess is a statement for each part, between one that locks the log and
// one that adds to it.
func mysqlGuess(s *Store, g *guess, newest func(*sql.Rows) error) []call {
	calls := s.beginCalls()
	// The number is remembered by the connection until it has committed.
	calls = append(calls, call{
		query: "UPDATE " + s.table("log") + " SET newest = LAST_INSERT_ID(newest + ?) WHERE id = 1 AND newest BETWEEN ? AND ?",
		args:  []any{g.events.n, g.least, g.most},
	}, rowsChanged(1))
	for i := range parts {
		calls = s.q.parts[i].calls(calls, g.rows[i])
	}
	return append(calls, call{
		query: "INSERT INTO " + s.table("events") + " (seq, n, at, token, data) VALUES (LAST_INSERT_ID(), ?, " + s.d.clock + ", ?, ?)",
		args:  []any{g.events.n, g.token, g.events.data},
	}, call{query: "SELECT LAST_INSERT_ID()", scan: newest}, call{query: "COMMIT"})
}

// A mysqlPart is a part of a guess as statements.
type mysqlPart struct {
	part
	multi
	// each is what ROW_COUNT says for each row, if it is to be looked at.
	each int64
}

func (s *Store) mysqlPart(p part) mysqlPart {
	d, name := s.d, s.table(p.name)
	columns, kinds := p.keyVersion()
	switch p.verb {
	case creates: // fails if a row is there
		return mysqlPart{p, d.insert(name, p.columns(), p.kinds, ""), 0}
	case changes: // a row counts for one if it is inserted, for none if it has another version
		return mysqlPart{p, d.insert(name, p.columns(), p.kinds, ifNext(p.rest)), 2}
	case removes:
		return mysqlPart{p, d.among("DELETE FROM "+name, columns, kinds), 1}
	case drops:
		return mysqlPart{p, d.among("DELETE FROM "+name, p.key, p.kinds[:len(p.key)]), 0}
	default: // keeps
		m := d.among("SELECT "+overflow("COUNT(*)")+" FROM "+name, columns, kinds)
		if p.present != "" {
			// Leases change without the lock of the log.
			m.head, m.tail = m.head+p.present+" AND ", d.share
		}
		return mysqlPart{p, m, 0}
	}
}

// ifNext replaces a row by the next version of it, and leaves it alone if it has
// another. Assignments are made one after the other, so the version's is last.
func ifNext(columns []string) string {
	epoch, index := tagColumns[0], tagColumns[1]
	columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == index })
	return " ON DUPLICATE KEY UPDATE " + assign(append(columns, index), func(c string) string {
		return fmt.Sprintf("IF(%s = VALUES(%s) AND %s = VALUES(%s) - 1, VALUES(%s), %s)", epoch, epoch, index, index, c, c)
	})
}

// overflow is an expression that is out of range, which is an error, unless n
// is its argument.
func overflow(n string) string { return "EXP(1000 * ABS(" + n + " - ?))" }

// rowsChanged fails unless the statement before has changed n rows.
func rowsChanged(n int64) call {
	return call{query: "SELECT " + overflow("ROW_COUNT()"), args: []any{n}, scan: ignore}
}

// calls are the statements for a list of rows.
func (p *mysqlPart) calls(dst []call, rows []any) []call {
	if p.verb == changes {
		rows = p.withoutVersion(rows)
	}
	for _, c := range p.multi.calls(nil, rows, nil) {
		n := int64(len(c.args) / len(p.multi.kinds))
		if p.verb == keeps {
			c.args, c.scan = append([]any{n}, c.args...), ignore
		}
		dst = append(dst, c)
		if p.each > 0 {
			dst = append(dst, rowsChanged(n*p.each))
		}
	}
	return dst
}

// withoutVersion are the rows without the version, which is the one before.
func (p *part) withoutVersion(rows []any) (out []any) {
	for ; len(rows) > 0; rows = rows[p.width():] {
		out = append(out, rows[:len(p.kinds)]...)
	}
	return out
}

func ignore(r *sql.Rows) error {
	var result float64
	return r.Scan(&result)
}
