package sqlstore

import (
	"fmt"
	"slices"
	"strings"
)

// mysqlStatements are a statement for each part, between one that locks the log
// and one that adds to it. None of them has a result: each that has is one more
// answer to send and to wait for.
type mysqlStatements struct {
	countEvents                   string
	insertEvents, insertIfChanged string
	parts                         [len(parts)]mysqlPart
}

func newMysqlStatements(d *dialect, table func(string) string) *mysqlStatements {
	insert := func(sequence string) string {
		return "INSERT INTO " + table("events") + " (seq, n, at, token, data) VALUES (" + sequence + ", ?, " + d.clock + ", ?, ?)"
	}
	m := &mysqlStatements{
		// The connection remembers the number until it has committed.
		countEvents:     "UPDATE " + table("log") + " SET newest = LAST_INSERT_ID(newest + ? + " + zero("newest NOT BETWEEN ? AND ?") + ") WHERE id = 1",
		insertEvents:    insert("LAST_INSERT_ID()"),
		insertIfChanged: insert("LAST_INSERT_ID() + " + zero("ROW_COUNT() <> ?")),
	}
	for i := range parts {
		m.parts[i] = newMysqlPart(d, parts[i], table(parts[i].name))
	}
	return m
}

// nextOnly implements guessStatements: see ifNext.
func (*mysqlStatements) nextOnly() bool { return true }

// calls implements guessStatements.
func (m *mysqlStatements) calls(g *guess, newest func(int64)) []call {
	calls := []call{{query: m.countEvents, args: []any{g.events, g.least, g.most}, id: newest}}
	for i := range parts {
		calls = m.parts[i].calls(calls, g.rows[i])
	}
	row := []any{g.events, g.token, g.data}
	if last := calls[len(calls)-1]; last.query == rowsChanged {
		calls[len(calls)-1] = call{query: m.insertIfChanged, args: append(last.args, row...)}
		return calls
	}
	return append(calls, call{query: m.insertEvents, args: row})
}

// A mysqlPart is a part of a guess as statements.
type mysqlPart struct {
	part
	multi
	// each is what ROW_COUNT says for each row, if it is to be looked at.
	each int64
	// alone changes one row, with much less to parse and to compute.
	alone string
}

func newMysqlPart(d *dialect, p part, name string) mysqlPart {
	columns, kinds := p.keyVersion()
	switch p.verb {
	case creates: // fails if a row is there
		return mysqlPart{part: p, multi: d.insert(name, p.columns(), p.kinds, "")}
	case changes: // a row counts for one if it is inserted, for none if it has another version
		alone := "UPDATE " + name + " SET " + assign(p.rest, func(string) string { return "?" }) + " WHERE " + strings.Join(columns, " = ? AND ") + " = ?"
		return mysqlPart{part: p, multi: d.insert(name, p.columns(), p.kinds, ifNext(p.rest)), each: 2, alone: alone}
	case removes:
		return mysqlPart{part: p, multi: d.among("DELETE FROM "+name, columns, kinds), each: 1}
	case drops:
		return mysqlPart{part: p, multi: d.among("DELETE FROM "+name, p.key, p.kinds[:len(p.key)])}
	default: // keeps
		m := d.among("SET @diego = (SELECT "+zero("COUNT(*) <> ?")+" FROM "+name, columns, kinds)
		if p.present != "" {
			// Leases change without the lock of the log.
			m.head, m.tail = m.head+p.present+" AND ", d.share
		}
		m.tail += ")"
		return mysqlPart{part: p, multi: m}
	}
}

// ifNext replaces a row by the next version of it, and leaves it alone if it has
// another. Assignments are made one after the other, so the version's is last.
func ifNext(columns []string) string {
	const epoch, index = "tag_epoch", "tag_index"
	columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == index })
	return " ON DUPLICATE KEY UPDATE " + assign(append(columns, index), func(c string) string {
		return fmt.Sprintf("IF(%s = VALUES(%s) AND %s = VALUES(%s) - 1, VALUES(%s), %s)", epoch, epoch, index, index, c, c)
	})
}

// zero is 0, or an error if a condition holds: the exponent is out of range.
func zero(failure string) string { return "(EXP(1000 * (" + failure + ")) > 0) - 1" }

// rowsChanged fails unless the statement before has changed as many rows as its
// argument says.
var rowsChanged = "SET @diego = " + zero("ROW_COUNT() <> ?")

// calls are the statements for a list of rows.
func (p *mysqlPart) calls(dst []call, rows []any) []call {
	if p.verb == changes && len(rows) == p.width() {
		n := len(p.key)
		args := slices.Concat(rows[n:len(p.kinds)], rows[:n], rows[len(p.kinds):])
		return append(dst, call{query: p.alone, args: args}, call{query: rowsChanged, args: []any{int64(1)}})
	}
	if p.verb == changes {
		rows = p.withoutVersion(rows)
	}
	for _, c := range p.multi.calls(nil, rows, nil) {
		n := int64(len(c.args) / len(p.multi.kinds))
		if p.verb == keeps {
			c.args = append([]any{n}, c.args...)
		}
		dst = append(dst, c)
		if p.each > 0 {
			dst = append(dst, call{query: rowsChanged, args: []any{n * p.each}})
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
