package sqlstore

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A where collects conditions and their arguments.
type where struct {
	d          *dialect
	conditions []string
	args       []any
	// apart is how many of the conditions leave few rows, which are found
	// before anything else is done with them.
	apart int
}

// maxPushed is the longest list of values that goes into a query. The database
// then returns more than is wanted, and the reader chooses.
const maxPushed = 5000

// in wants the column to be one of the values, or anything if there are none.
func in[T any](w *where, column string, k kind, values []T, argument func(T) any) {
	if len(values) == 0 || len(values) > maxPushed {
		return
	}
	rows := make([]any, 0, len(values))
	for _, v := range values {
		if a := argument(v); !isImpossible(a) {
			rows = append(rows, a)
		}
	}
	if len(rows) == 0 {
		w.add("1 = 0")
		return
	}
	condition := "(" + column + ") IN " + w.d.inList([]kind{k}, len(rows))
	if w.d.arrays { // which finds its place in an index, where a join may not
		condition = column + " = ANY (?::" + string(k) + "[])"
	}
	w.add(condition, w.d.listArgs(rows, 1)...)
}

// fewCells is how many cells at most are looked up in their index, and what is
// on them sorted for each page. For more, the whole table is read in its order.
const fewCells = 64

// onCells wants what is on one of the cells. It comes before all others.
func (w *where) onCells(ids []string) {
	in(w, "cell_id", text, ids, textArg)
	if len(ids) > 0 && len(ids) <= fewCells && !slices.Contains(ids, "") {
		// The indexes have only what is on a cell, so they are of use only to
		// who says that.
		w.add("cell_id <> ''")
		w.apart = len(w.conditions)
	}
}

func (w *where) add(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

// after wants rows behind the key, if there is one.
func (w *where) after(columns []string, key []any) {
	if key != nil {
		w.add(w.d.after(columns...), w.d.afterArgs(key...)...)
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
func (w *where) page(columns, table, order string, n int) string {
	from := table + conjunction(w.conditions)
	if w.apart > 0 && w.d.fence != "" {
		from = "(SELECT * FROM " + table + conjunction(w.conditions[:w.apart]) + w.d.fence + ") AS found" + conjunction(w.conditions[w.apart:])
	}
	return w.d.rebind("SELECT " + columns + " FROM " + from + " ORDER BY " + order + " LIMIT " + strconv.Itoa(n))
}

// isImpossible says that no identifier is that text. PostgreSQL does not take
// such text at all, and it must not fail what shares its statement.
func isImpossible(argument any) bool {
	s, is := argument.(string)
	return is && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s))
}

func textArg(s string) any { return s }

func intArg[T ~int | ~uint8](n T) any { return int64(n) }
