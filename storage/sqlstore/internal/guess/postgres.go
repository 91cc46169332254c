package guess

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// postgresStatements are one statement: each part is a common table expression. The
// first one locks the log, and all others wait for its row, so that nothing
// happens before. What other processes have committed after the statement's
// snapshot and before the lock is found by the rows' own locks, which look at
// the newest version.
//
// Each statement is prepared on each connection that commits, so there are not
// too many: once there are maxShapes, one that has all parts does for the others.
type postgresStatements struct {
	d     *dialect.Dialect
	table func(string) string

	mu    sync.Mutex
	texts map[uint]string // by the parts that they have
}

const (
	maxShapes = 64
	allParts  = 1<<len(parts) - 1
)

// NextOnly implements Statements.
func (*postgresStatements) NextOnly() bool { return false }

// Calls implements Statements.
func (p *postgresStatements) Calls(g *Guess, newest func(int64)) []dialect.Call {
	shape, want := uint(0), int64(1)
	args := []any{g.Events, g.Least, g.Most, g.Events, g.Token, g.Data}
	for i := range parts {
		if len(g.rows[i]) > 0 {
			shape |= 1 << i
		}
	}
	text := p.text(&shape)
	for i := range parts {
		if shape&(1<<i) == 0 {
			continue
		}
		width := parts[i].width()
		args = dialect.AppendColumns(args, g.rows[i], width)
		if parts[i].Verb != Drops {
			want += int64(len(g.rows[i]) / width)
		}
	}
	args = append(args, want)
	return []dialect.Call{{Query: text, Args: args, Scan: func(r *sql.Rows) error {
		var n int64
		err := r.Scan(&n)
		newest(n)
		return err
	}}}
}

// text is the statement for a shape, which may become one with more parts.
func (p *postgresStatements) text(shape *uint) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.texts[*shape] == "" && len(p.texts) >= maxShapes {
		*shape = allParts
	}
	if text := p.texts[*shape]; text != "" {
		return text
	}
	if p.texts == nil {
		p.texts = make(map[uint]string)
	}
	p.texts[*shape] = p.statement(*shape)
	return p.texts[*shape]
}

// statement is the text for a shape.
func (p *postgresStatements) statement(shape uint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "WITH l AS (UPDATE %s SET newest = newest + ?::bigint WHERE id = 1 AND newest BETWEEN ?::bigint AND ?::bigint RETURNING newest), "+
		"e AS (INSERT INTO %s (seq, n, at, token, data) SELECT l.newest, ?::bigint, %s, ?::bigint, ?::bytea FROM l)",
		p.table("log"), p.table("events"), p.d.Clock)
	counts := []string{"(SELECT COUNT(*) FROM l)"}
	for i := range parts {
		if shape&(1<<i) == 0 {
			continue
		}
		fmt.Fprintf(&b, ", p%d AS (%s)", i, p.part(parts[i].Verb, parts[i].Table))
		if parts[i].Verb != Drops {
			counts = append(counts, fmt.Sprintf("(SELECT COUNT(*) FROM p%d)", i))
		}
	}
	// The exponent is out of range, and so an error, unless all rows are found.
	fmt.Fprintf(&b, " SELECT (SELECT newest FROM l) WHERE EXP(1000 * ABS(%s - ?::bigint)::float8) > 0", strings.Join(counts, " + "))
	return p.d.Rebind(b.String())
}

// part is the expression for one part. n are the rows of its list.
func (p *postgresStatements) part(v Verb, t *tables.Table) string {
	name, columns, kinds := p.table(t.Name), t.Columns(), t.Kinds
	list := func(columns []string, kinds []dialect.Kind) string {
		arrays := make([]string, len(kinds))
		for i, k := range kinds {
			arrays[i] = "?::" + string(k) + "[]"
		}
		return "l, unnest(" + strings.Join(arrays, ", ") + ") AS n (" + strings.Join(columns, ", ") + ")"
	}
	var where []string
	for _, c := range t.Key {
		where = append(where, "t."+c+" = n."+c)
	}
	if v == Creates {
		return "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") SELECT n.* FROM " + list(columns, kinds) +
			" ON CONFLICT DO NOTHING RETURNING 1"
	}
	if v == Drops {
		return "DELETE FROM " + name + " AS t USING " + list(t.Key, kinds[:len(t.Key)]) + " WHERE " + strings.Join(where, " AND ")
	}
	if v != Changes {
		columns, kinds = t.Key, kinds[:len(t.Key)]
	}
	for _, c := range t.Version {
		columns, kinds = append(columns[:len(columns):len(columns)], "was_"+c), append(kinds[:len(kinds):len(kinds)], dialect.Number)
		where = append(where, "t."+c+" = n.was_"+c)
	}
	if t.Present != "" {
		where = append(where, "t."+t.Present)
	}
	from, condition := list(columns, kinds), " WHERE "+strings.Join(where, " AND ")
	switch v {
	case Changes:
		return "UPDATE " + name + " AS t SET " + dialect.Assign(t.Rest, func(c string) string { return "n." + c }) + " FROM " + from + condition + " RETURNING 1"
	case Removes:
		return "DELETE FROM " + name + " AS t USING " + from + condition + " RETURNING 1"
	default: // keeps
		return "SELECT 1 FROM " + from + ", " + name + " AS t" + condition + " FOR SHARE OF t"
	}
}
