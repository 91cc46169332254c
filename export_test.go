package diego

import (
	"fmt"
	"strings"
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
