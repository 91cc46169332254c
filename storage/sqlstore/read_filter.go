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
// walks along the table in the order of its key and keeps what fits. Looking up
// sorts all that was found for each page again, so it pays while that is
// little; a walk costs the table once, however many pages there are. No list
// costs more than its rows a fixed number of times and the table once.
type where struct {
	d          *dialect.Dialect
	conditions []string
	args       []any
	// apart is how many of the conditions leave few rows, which are found
	// before anything else is done with them.
	apart int
	// walk: the page walks.
	walk bool
}

const (
	// maxPushed is the longest list of values that goes into a query. With
	// more, the database returns more than is wanted, and the reader chooses.
	maxPushed = 1000
	// fewValues is how many values are looked up at most.
	fewValues = 64
	// cellPages and otherPages are how many pages look up what is on cells, and
	// what is in domains or states, before the list walks.
	cellPages, otherPages = 8, 1
)

// looksUp reports whether page number n of a list, from 0 on, looks up a column.
func looksUp[T any](values []T, n, pages int) bool {
	return len(values) > 0 && len(values) <= fewValues && n < pages
}

// lookUp wants an indexed column to be one of the values. It comes before all
// other conditions.
func lookUp[T any](w *where, column string, k dialect.Kind, values []T, argument func(T) any) {
	w.oneOf(column, k, possible(values, argument))
	if k == dialect.Text && !slices.ContainsFunc(values, func(v T) bool { return argument(v) == "" }) {
		// Of what is on cells the indexes have only that, so they are of use
		// only to who says it.
		w.add(column + " <> ''")
	}
	w.apart = len(w.conditions)
}

// oneOf wants a column to be one of the values, by an index.
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

// keep drops rows whose column is none of the values, if there are any. It costs
// about the same for each row however many values there are, and no index is
// used for it.
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

// possible are the arguments for the values that can be there.
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

// after wants rows behind the key, if there is one.
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

// isImpossible says that no identifier is that text. PostgreSQL does not take
// such text at all, and it must not fail what shares its statement.
func isImpossible(argument any) bool {
	s, is := argument.(string)
	return is && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s))
}

func textArg(s string) any { return s }

func intArg[T ~int | ~uint8](n T) any { return int64(n) }

// names are the values of a filter for the first column of a key, in the order
// of the list. A page of it looks up the next few of them, or goes on with the
// one that the page before has ended in.
type names struct {
	rest []string
	// within is the one that has more rows, behind the rest of the key.
	within string
	behind []any
}

// namesTogether is how many names a page looks up at most.
const namesTogether = 256

func newNames(values []string) *names {
	rest := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return isImpossible(v) })
	slices.Sort(rest)
	return &names{rest: slices.Compact(rest)}
}

// want adds the condition for the next page, of a table with that key. It
// returns the columns that the page is to be ordered by. MariaDB sorts what is
// in order already if one of them is the same in all rows.
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

// seen notes that a page has ended in a row with that key, and was full if
// there may be more. It reports whether it was the last.
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
