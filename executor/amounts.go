package executor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Amounts are amounts of further resources by name, such as 2 of "gpu": what a
// container takes, or what a cell has. Names and units are the operator's. Cells
// count the amounts and give no more than they have; no backend attaches or
// limits anything by them.
//
// A missing name is an amount of 0. Amounts are a value: nobody changes a map
// that others may hold.
type Amounts map[string]int64

// Limits of Amounts.
const (
	// MaxAmounts is how many resources Amounts may name.
	MaxAmounts = 16
	// MaxAmount is the largest single amount.
	MaxAmount = 1 << 40
)

// ownResources are the names of what Resources and Capacity have fields for. As
// names of further resources they would mean two things.
var ownResources = []string{"memory", "memory_mb", "disk", "disk_mb", "containers", "pids", "max_pids"}

// Names returns the names, sorted.
func (a Amounts) Names() []string {
	if len(a) == 0 {
		return nil // without any allocation
	}
	return slices.Sorted(maps.Keys(a))
}

// String returns a text such as "1 fpga, 2 gpu", in the order of the names and
// without amounts of 0.
func (a Amounts) String() string {
	var parts []string
	for _, name := range a.Names() {
		if a[name] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", a[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// IsZero reports whether every amount is 0.
func (a Amounts) IsZero() bool {
	for _, n := range a {
		if n != 0 {
			return false
		}
	}
	return true
}

// Plus returns the sum of a and b.
func (a Amounts) Plus(b Amounts) Amounts {
	if b.IsZero() {
		return a
	}
	sum := a.clone(b)
	for name, n := range b {
		sum[name] = a[name] + n
	}
	return sum
}

// Minus returns a less b; amounts may be negative.
func (a Amounts) Minus(b Amounts) Amounts {
	if b.IsZero() {
		return a
	}
	rest := a.clone(b)
	for name, n := range b {
		rest[name] = a[name] - n
	}
	return rest
}

// Lacks returns how much is missing from a to cover need.
func (a Amounts) Lacks(need Amounts) Amounts {
	var lacks Amounts
	for _, name := range need.Names() {
		if more := need[name] - a[name]; more > 0 {
			if lacks == nil {
				lacks = Amounts{}
			}
			lacks[name] = more
		}
	}
	return lacks
}

// clone is a copy of a with room for b.
func (a Amounts) clone(b Amounts) Amounts {
	c := make(Amounts, max(len(a), len(b)))
	maps.Copy(c, a)
	return c
}

// Validate checks what the named field holds: at most MaxAmounts names of one
// line, none of them that of another field of Resources or Capacity, and amounts
// of 0 to MaxAmount.
func (a Amounts) Validate(v *Validator, field string) {
	if len(a) == 0 {
		return
	}
	if len(a) > MaxAmounts {
		v.Check(false, field, fmt.Sprintf("%d names", len(a)), fmt.Sprintf("at most %d", MaxAmounts))
		return
	}
	for _, name := range a.Names() {
		switch {
		case !IsName(name):
			v.Name(field, name)
		case strings.ContainsFunc(name, unicode.IsControl):
			v.OneLine(field, name)
		case slices.Contains(ownResources, strings.ToLower(name)):
			v.Check(false, field, name, "a name other than "+strings.Join(ownResources, ", "))
		default:
			v.size(field+"."+name, a[name], MaxAmount)
		}
	}
}
