package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A History names one of all the histories that a [Scenario] can have. The same
// History and the same source give the same events.
//
// Chance falls by Seed and by the step, and at each fault by its [Point]. So a
// fault that is left out changes what the world does, but no other draw.
type History struct {
	Seed uint64
	// Real makes the cells reps over managers over scripted backends, in place of
	// models.
	Real bool
	// SQLite keeps the records in a file that each process opens for itself, in place
	// of one store in memory for all.
	SQLite bool
	// Cells is how many there are (default 4).
	Cells int
	// Subject is what somebody has brought, or nil.
	Subject *Subject
	// Only are the faults that may strike; nil means all that are drawn.
	Only []Point
	// Skip are steps that do not take place: no time passes, and nobody acts. A
	// fault in one of them does not strike.
	Skip []int
}

func (h History) cells() int {
	if h.Subject != nil && len(h.Subject.Cells) > 0 {
		return len(h.Subject.Cells)
	}
	return cmp.Or(h.Cells, usualCells)
}

// Drawn is the history of a seed in which nothing is left out. Every twelfth seed
// has its records on SQLite.
func Drawn(seed uint64, real bool) History {
	return History{Seed: seed, Real: real, SQLite: seed%12 == 0}
}

// A Point is where a fault may strike: the n-th place of a kind within a step,
// counted from 0.
type Point struct {
	Step int
	Kind Kind
	N    int
}

// A Kind is what a fault does, or which place it strikes.
type Kind uint8

// The kinds of faults.
const (
	// Call loses, repeats or delays a call between a cell, a control plane and a
	// consumer.
	Call Kind = iota
	// Commit makes a commit fail, before or after it was carried out.
	Commit
	// Interrupt lets another actor act between a read and a commit.
	Interrupt
	// Backend makes a cell's backend fail.
	Backend
	// Callback makes a consumer refuse a completion.
	Callback
	// Mischief is one act of [World.Mischief] or of a scenario: something fails,
	// vanishes or is paused, or a consumer wants something.
	Mischief
	kinds
)

var kindNames = [kinds]string{"call", "commit", "interrupt", "backend", "callback", "mischief"}

func (k Kind) String() string { return kindNames[k] }

// ParseKind returns the kind of this name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kindNames[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("%q is no kind of faults; the kinds are %s", name, strings.Join(kindNames[:], ", "))
}

// chance draws what happens in a world.
type chance struct {
	*rand.Rand // of the step, or of the fault that is striking
	source     *rand.PCG
	seed       uint64
	step       int
	only       map[Point]bool // nil: all
	skip       map[int]bool
	passed     [kinds]int // the points of this step so far
	struck     []Point
}

func newChance(h History) *chance {
	source := rand.NewPCG(h.Seed, 0)
	c := &chance{Rand: rand.New(source), source: source, seed: h.Seed, skip: map[int]bool{}}
	for _, step := range h.Skip {
		c.skip[step] = true
	}
	if h.Only != nil {
		c.only = map[Point]bool{}
		for _, p := range h.Only {
			c.only[p] = true
		}
	}
	return c
}

// next begins a step.
func (c *chance) next() {
	c.step++
	c.passed = [kinds]int{}
	c.source.Seed(c.seed, uint64(c.step))
}

// skips reports whether the step that comes next does not take place.
func (c *chance) skips() bool { return c.skip[c.step+1] }

// whole reports whether nothing is left out.
func (c *chance) whole() bool { return c.only == nil && len(c.skip) == 0 }

// strikes draws whether a fault that strikes with this probability does so here.
// It returns the numbers that draw what the fault does, or nil.
func (c *chance) strikes(kind Kind, share float64) *rand.Rand {
	p := Point{c.step, kind, c.passed[kind]}
	c.passed[kind]++
	if share <= 0 || c.only != nil && !c.only[p] {
		return nil
	}
	own := mix(c.seed ^ mix(uint64(p.Step)<<32|uint64(p.Kind)<<24|uint64(p.N)))
	if c.only == nil && float64(own>>11)/(1<<53) >= share {
		return nil
	}
	c.struck = append(c.struck, p)
	return rand.New(rand.NewPCG(own, 1))
}

// as makes numbers those that everything is drawn from until the returned func is
// called.
func (c *chance) as(numbers *rand.Rand) (back func()) {
	before := c.Rand
	c.Rand = numbers
	return func() { c.Rand = before }
}

// mix spreads the bits of x (the last steps of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
