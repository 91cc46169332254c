package diego

import (
	"fmt"
	"strings"

	"github.com/diegosdk/diego/storage"
)

// Figures are the rows of the table in docs/operations.md.
func Figures() (rows []string) {
	for _, f := range figures {
		labels := make([]string, len(f.labels))
		for i, l := range f.labels {
			labels[i] = "`" + l + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", f.name, f.kind, strings.Join(labels, ", "), f.help))
	}
	return rows
}

// Gaps are the numbers from first to last that are not among those added, each
// a range of both ends included.
func Gaps(added [][2]int64, first, last int64) (list [][2]int64) {
	var s spans
	for _, a := range added {
		s = s.add(span{storage.Cursor(a[0]), storage.Cursor(a[1])})
	}
	for _, gap := range s.gaps(span{storage.Cursor(first), storage.Cursor(last)}) {
		list = append(list, [2]int64{int64(gap.first), int64(gap.last)})
	}
	return list
}
