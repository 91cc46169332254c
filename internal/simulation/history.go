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
	// Turns change the seed on the way, in the order of their steps: up to a turn,
	// two histories that differ in it alone are the same.
	Turns []Turn
}

// A Turn lets chance fall by another seed from a step on.
type Turn struct {
	Step int
	Seed uint64
}

// FormatTurns writes turns as ParseTurns reads them: "60:17,200:3" is the seed 17
// from step 60 on and 3 from step 200 on.
func FormatTurns(turns []Turn) string {
	var list []string
	for _, t := range turns {
		list = append(list, fmt.Sprintf("%d:%d", t.Step, t.Seed))
	}
	return strings.Join(list, ",")
}

// ParseTurns is the opposite of FormatTurns.
func ParseTurns(text string) (turns []Turn, err error) {
	if text == "" {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		var t Turn
		if n, err := fmt.Sscanf(item, "%d:%d", &t.Step, &t.Seed); n != 2 || err != nil {
			return nil, fmt.Errorf("turns %q: %q is not a turn; write STEP:SEED, such as 60:17", text, item)
		}
		turns = append(turns, t)
	}
	return turns, nil
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

// Kinds is a set of kinds of faults.
type Kinds uint16

// Without are the names of the kinds that the set does not have.
func (s Kinds) Without() (names []string) {
	for k := range kinds {
		if !s.Has(k) {
			names = append(names, k.String())
		}
	}
	return names
}

// Has reports whether the set has a kind.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

func (k Kind) String() string { return kindNames[k] }

// ParseKind returns the kind of this name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kindNames[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("%q is not a kind of faults; the kinds are %s", name, strings.Join(kindNames[:], ", "))
}

// chance draws what happens in a world.
type chance struct {
	*rand.Rand // of the step, or of the fault that is striking
	source     *rand.PCG
	seed       uint64
	step       int
	only       map[Point]bool // nil: all
	skip       map[int]bool
	turns      []Turn     // those to come
	passed     [kinds]int // the points of this step so far
	struck     []Point
	last       [kinds]int // the step at which a fault of each kind struck last, or 0
}

func newChance(h History) *chance {
	source := rand.NewPCG(h.Seed, 0)
	c := &chance{Rand: rand.New(source), source: source, seed: h.Seed, skip: map[int]bool{}, turns: h.Turns}
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
	for len(c.turns) > 0 && c.turns[0].Step <= c.step {
		c.seed, c.turns = c.turns[0].Seed, c.turns[1:]
	}
	c.source.Seed(c.seed, uint64(c.step))
}

// skips reports whether the step that comes next does not take place.
func (c *chance) skips() bool { return c.skip[c.step+1] }

// whole reports whether nothing is left out.
func (c *chance) whole() bool { return c.only == nil && len(c.skip) == 0 }

// strikes draws whether a fault of this probability happens here. If so, it
// returns the random numbers that draw what the fault does, and otherwise nil.
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
	c.last[kind] = c.step
	return rand.New(rand.NewPCG(own, 1))
}

// lately are the kinds of the faults that have struck in this step and the few
// before it.
func (c *chance) lately() (set Kinds) {
	const few = 3
	for kind, step := range c.last {
		if step > 0 && c.step-step <= few {
			set |= 1 << kind
		}
	}
	return set
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
