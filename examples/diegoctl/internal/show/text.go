package show

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Count is such as "1 instance" and "2 instances".
func Count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// OrDash is a text, or "-" if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Cut shortens a text to so many characters.
func Cut(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// Some is how many of many things are shown.
const Some = 5

// Names are some of many names, and how many more there are.
func Names(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > Some:
		names = append(slices.Clone(names[:Some]), fmt.Sprintf("%d more", n-Some))
	}
	return strings.Join(names, ", ")
}

// Clock is a time of day, in UTC as all of Diego's times.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
