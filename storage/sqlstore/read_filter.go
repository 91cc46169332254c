package sqlstore

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A where collects conditions and their arguments.
//
// A page of a list either looks up the values of one column in an index, or
// walks the table in the order of its key and keeps what fits. Looking up sorts
// all results again for each page, so it pays only while there are few. A walk
// costs one pass over the table for all pages together. So no list costs more
// than its rows a fixed number of times and the table once.
type where struct {
	d          *dialect.Dialect
	conditions []string
	args       []any
	// apart is how many conditions leave few rows. Those rows are found first.
	apart int
	// walk: the page walks the table.
	walk bool
}

const (
	// maxPushed is the longest list of values in a query. With more, the database
	// returns more than is wanted, and the reader selects.
	maxPushed = 1000
	// fewValues is the largest number of values that are looked up.
	fewValues = 64
	// cellPages and domainPages are the numbers of pages that look up cells, or
	// domains, before the list walks.
	cellPages, domainPages = 8, 1
)

// looksUp reports whether page number n of a list, from 0 on, looks up a column.
func looksUp[T any](values []T, n, pages int) bool {
	return len(values) > 0 && len(values) <= fewValues && n < pages
}

// lookUp requires that an indexed column has one of the values. It comes before
// all other conditions.
func lookUp[T any](w *where, column string, k dialect.Kind, values []T, argument func(T) any) {
	w.oneOf(column, k, possible(values, argument))
	if k == dialect.Text && !slices.ContainsFunc(values, func(v T) bool { return argument(v) == "" }) {
		// The indexes by cell contain only rows with a cell. A query must say
		// so to use them.
		w.add(column + " <> ''")
	}
	w.apart = len(w.conditions)
}

// oneOf requires that a column has one of the values. It uses an index.
func (w *where) oneOf(column string, k dialect.Kind, values []any) {
	if len(values) == 0 {
		w.add("1 = 0")
		return
	}
	condition := "(" + column + ") IN " + w.d.InList([]dialect.Kind{k}, len(values))
	if w.d.Arrays { // which finds its place in an index, where a join may not
		condition = column + " = ANY (?::" + string(k) + "[])"
	}
	w.add(condition, w.d.ListArgs(values, 1)...)
}

// keep drops rows whose column has none of the values, if there are any. It
// uses no index, and costs about the same for each row however many values
// there are.
func keep[T any](w *where, column string, k dialect.Kind, values []T, argument func(T) any) {
	if len(values) == 0 || len(values) > maxPushed {
		return
	}
	rows := possible(values, argument)
	if len(rows) == 0 {
		w.add("1 = 0")
		return
	}
	w.add(w.d.Chosen(column, k, len(rows)), w.d.ListArgs(rows, 1)...)
}

// possible returns the arguments for those values that can occur.
func possible[T any](values []T, argument func(T) any) []any {
	rows := make([]any, 0, len(values))
	for _, v := range values {
		if a := argument(v); !isImpossible(a) {
			rows = append(rows, a)
		}
	}
	return rows
}

func (w *where) add(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

// after requires rows behind the key, if there is one.
func (w *where) after(columns []string, key []any) {
	if key != nil {
		w.add(w.d.After(columns...), w.d.AfterArgs(key...)...)
	}
}

func (w *where) String() string { return conjunction(w.conditions) }

func conjunction(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// page is the statement for the next n rows in an order.
func (w *where) page(columns, table string, order []string, n int) string {
	if w.walk {
		table += w.d.ByKey
	}
	from := table + conjunction(w.conditions)
	if w.apart > 0 && w.d.Fence != "" {
		from = "(SELECT * FROM " + table + conjunction(w.conditions[:w.apart]) + w.d.Fence + ") AS found" + conjunction(w.conditions[w.apart:])
	}
	return w.d.Rebind("SELECT " + columns + " FROM " + from + " ORDER BY " + strings.Join(order, ", ") + " LIMIT " + strconv.Itoa(n))
}

// isImpossible reports that a text cannot be an identifier. PostgreSQL refuses
// such a text, and it must not make the other requests of the statement fail.
func isImpossible(argument any) bool {
	s, is := argument.(string)
	return is && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s))
}

func textArg(s string) any { return s }

func intArg[T ~int | ~uint8](n T) any { return int64(n) }

// names are the values of a filter for the first column of a key, in the order
// of the list. A page looks up the next few of them, or continues in the one in
// which the page before ended.
type names struct {
	rest []string
	// within is the name with more rows, behind the rest of the key.
	within string
	behind []any
}

// namesTogether is the largest number of names that a page looks up.
const namesTogether = 256

func newNames(values []string) *names {
	rest := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return isImpossible(v) })
	slices.Sort(rest)
	return &names{rest: slices.Compact(rest)}
}

// want adds the condition for the next page, of a table with that key. It
// returns the columns by which to order the page. (MariaDB would sort rows that
// are in order already if one of these columns is the same in all rows.)
func (x *names) want(w *where, key []string) (order []string) {
	w.walk = true
	if x.behind != nil {
		w.add(key[0]+" = ?", x.within)
		w.after(key[1:], x.behind)
		return key[1:]
	}
	w.oneOf(key[0], dialect.Text, possible(x.rest[:min(len(x.rest), namesTogether)], textArg))
	return key
}

// seen notes the key at which a page ended; full says that there may be more
// rows. It reports whether that was the last page.
func (x *names) seen(key []any, full bool) (last bool) {
	if x.behind == nil && !full {
		x.rest = x.rest[min(len(x.rest), namesTogether):]
	}
	x.behind = nil
	if full {
		x.within = key[0].(string)
		if len(key) > 1 {
			x.behind = key[1:]
		}
		for len(x.rest) > 0 && x.rest[0] <= x.within {
			x.rest = x.rest[1:]
		}
	}
	return len(x.rest) == 0 && x.behind == nil
}
