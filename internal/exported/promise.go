package exported

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Difference is what has changed between two descriptions of the module, as
// lines by the name of the package, such as "storage/memstore".
type Difference struct {
	// Added and Removed are lines with the package before them. A line that has
	// changed is in both.
	Added, Removed []string
	// Unnamed are those of Removed whose symbol the changelog does not name.
	Unnamed []string
}

// Compare compares the API as it was written down with the API as it is.
// unreleased is the part of the changelog about what is not released yet. It
// names a symbol as users write it: `lrp.Step`, `lrp.Slot.Records`. A type that
// is gone stands for its members, and the words "package `storage/old`" stand
// for a whole package. For a line of [Wire] it names the call,
// `/v1/bbs/claim_lrp`, the type, or the member, `cell_id`.
func Compare(before, now map[string][]string, unreleased string) Difference {
	var d Difference
	for _, p := range packages(before, now) {
		for _, line := range now[p] {
			if !slices.Contains(before[p], line) {
				d.Added = append(d.Added, p+": "+line)
			}
		}
		for _, line := range before[p] {
			if slices.Contains(now[p], line) {
				continue
			}
			d.Removed = append(d.Removed, p+": "+line)
			if !named(p, line, now[p], unreleased) {
				d.Unnamed = append(d.Unnamed, p+": "+line)
			}
		}
	}
	return d
}

// Next is what is to be written down: the API as it is, and what is gone without
// being named in the changelog. So generating it again hides nothing.
func Next(before, now map[string][]string, unreleased string) map[string][]string {
	next := map[string][]string{}
	for _, p := range packages(before, now) {
		next[p] = slices.Clone(now[p])
		for _, line := range before[p] {
			if !slices.Contains(now[p], line) && !named(p, line, now[p], unreleased) {
				next[p] = append(next[p], line)
			}
		}
		slices.Sort(next[p])
		if len(next[p]) == 0 {
			delete(next, p)
		}
	}
	return next
}

func packages(a, b map[string][]string) []string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

// subject finds the symbol in a line: "Step", "Slot.Records".
var subject = regexp.MustCompile(`^(?:const|var|func|type|field) ([\w.]+)|^method \(\*?(\w+)\) (\w+)`)

// named reports whether the changelog names the subject of a line. now are the
// lines that the package has.
func named(path, line string, now []string, unreleased string) bool {
	if strings.Contains(unreleased, "ackage `"+path+"`") {
		return true
	}
	if path == wireName {
		call, member, _ := strings.Cut(line, " ")
		member, _, _ = strings.Cut(member, " ")
		member = strings.TrimRight(member[strings.LastIndex(member, ".")+1:], "[]")
		return mentions(unreleased, call) || strings.Contains(unreleased, "`"+member+"`")
	}
	m := subject.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	symbol := cmp.Or(m[1], m[2]+"."+m[3])
	of, _, member := strings.Cut(symbol, ".")
	isThere := slices.ContainsFunc(now, func(l string) bool {
		return strings.HasPrefix(l, "type "+of+" ") || strings.HasPrefix(l, "type "+of+"[")
	})
	base := path[strings.LastIndex(path, "/")+1:]
	return mentions(unreleased, base+"."+symbol) || member && !isThere && mentions(unreleased, base+"."+of)
}

// mentions reports whether text has a name that is not part of a longer one.
func mentions(text, name string) bool {
	return regexp.MustCompile(`(^|[^\w./])` + regexp.QuoteMeta(name) + `($|[^\w.]|\.($|\W))`).MatchString(text)
}

// Unreleased is the part of a changelog about what is not released yet.
func Unreleased(changelog string) string {
	_, rest, _ := strings.Cut(changelog, "\n## [Unreleased]")
	section, _, _ := strings.Cut(rest, "\n## [")
	return section
}
