// Package spelling guesses what people meant to type.
package spelling

import (
	"regexp"
	"slices"
)

// YAML matches the beginning of what people write in YAML: a comment, the mark
// of a document, or a member without quotes.
var YAML = regexp.MustCompile(`^\s*(#|---|[A-Za-z_][\w-]*:(\s|$))`)

// Nearest is the first of the known words that is most like word, or empty if
// none is like enough: a third of its letters, and one in short words, may be
// missing, too many, different or in the wrong order.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the least number of bytes to insert, delete, change or swap with
// their neighbours to make b of a.
func distance(a, b string) int {
	// Each row is for one more byte of a.
	var beforeLast, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		beforeLast, last = last, slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
