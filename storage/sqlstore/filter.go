package sqlstore

import (
	"strings"
	"unicode/utf8"
)

// A where collects conditions and their arguments.
type where struct {
	d          *dialect
	conditions []string
	args       []any
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
	w.conditions = append(w.conditions, "("+column+") IN "+w.d.inList([]kind{k}, len(rows)))
	w.args = append(w.args, w.d.listArgs(rows, 1)...)
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

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// isImpossible says that no identifier is that text. PostgreSQL does not take
// such text at all, and it must not fail what shares its statement.
func isImpossible(argument any) bool {
	s, is := argument.(string)
	return is && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s))
}

func textArg(s string) any { return s }

func intArg[T ~int | ~uint8](n T) any { return int64(n) }
