package sqlstore

import (
	"database/sql"
	"slices"
)

// mysqlGuess is a statement for each part, between one that locks the log and
// one that adds to it.
func mysqlGuess(s *Store, g *guess, newest func(*sql.Rows) error) []call {
	calls := s.beginCalls()
	// Assignments happen one after the other, so their order matters. The
	// number is remembered by the connection until it has committed.
	calls = append(calls, call{
		query: "UPDATE " + s.table("log") + " SET oldest = GREATEST(oldest, newest + ?), newest = LAST_INSERT_ID(newest + ?) WHERE id = 1",
		args:  []any{g.oldest, g.events.n},
	})
	for i := range parts {
		calls = s.q.parts[i].calls(calls, g.rows[i])
	}
	return append(calls, call{
		query: "INSERT INTO " + s.table("events") + " (seq, n, at, token, data) VALUES (LAST_INSERT_ID(), ?, " + s.d.clock + ", ?, ?)",
		args:  []any{g.events.n, g.token, g.events.data},
	}, call{query: "SELECT LAST_INSERT_ID()", scan: newest}, call{query: "COMMIT"})
}

// A mysqlPart is a part of a guess as one or two statements.
type mysqlPart struct {
	verb
	*table
	find, write multi
}

func (s *Store) mysqlPart(v verb, t *table) mysqlPart {
	d, name := s.d, s.table(t.name)
	p := mysqlPart{verb: v, table: t}
	columns, kinds := t.keyVersion()
	switch v {
	case creates: // a row that is there is an error
		p.write = d.insert(name, t.columns(), t.kinds, "")
	case changes:
		p.write = d.upsertRows(name, t.key, t.rest, t.kinds)
	case removes:
		p.write = d.among("DELETE FROM "+name, columns, kinds)
	case drops:
		p.write = d.among("DELETE FROM "+name, t.key, t.kinds[:len(t.key)])
	}
	if v == changes || v == keeps {
		// The exponent is out of range, and so an error, unless all are found.
		p.find = d.among("SELECT EXP(1000 * ABS(COUNT(*) - ?)) FROM "+name, columns, kinds)
		if t.present != "" {
			p.find.head += t.present + " AND "
		}
	}
	return p
}

// calls are the statements for a list of rows.
func (p *mysqlPart) calls(dst []call, rows []any) []call {
	if len(rows) == 0 {
		return dst
	}
	if p.verb == changes || p.verb == keeps {
		found := rows
		if p.verb == changes {
			found = p.versions(rows)
			rows = p.without(rows)
		}
		width := len(p.find.kinds)
		for _, c := range p.find.calls(nil, found, ignore) {
			n := int64(len(c.args) / width)
			c.args = append([]any{n}, c.args...)
			dst = append(dst, c)
		}
	}
	if p.verb == keeps {
		return dst
	}
	from := len(dst)
	dst = p.write.calls(dst, rows, nil)
	if p.verb != removes {
		return dst
	}
	writes := slices.Clone(dst[from:])
	dst = dst[:from]
	for _, c := range writes {
		n := int64(len(c.args) / len(p.write.kinds))
		dst = append(dst, c, call{query: "SELECT EXP(1000 * ABS(ROW_COUNT() - ?))", args: []any{n}, scan: ignore})
	}
	return dst
}

// versions are the keys and versions in rows of all columns and the version.
func (p *mysqlPart) versions(rows []any) (out []any) {
	all, version := len(p.kinds), len(p.version)
	for ; len(rows) > 0; rows = rows[all+version:] {
		out = append(append(out, rows[:len(p.key)]...), rows[all:all+version]...)
	}
	return out
}

// without are the rows without the version.
func (p *mysqlPart) without(rows []any) (out []any) {
	all, version := len(p.kinds), len(p.version)
	for ; len(rows) > 0; rows = rows[all+version:] {
		out = append(out, rows[:all]...)
	}
	return out
}

func ignore(r *sql.Rows) error {
	var result float64
	return r.Scan(&result)
}
