package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Limits bound how long [Scenario.Reduce] looks. Zero values mean the defaults.
type Limits struct {
	// Plays is how many histories it plays at most (default 2000), and For how
	// long it looks (default 5 min).
	Plays int
	For   time.Duration
	// Progress, if it is not nil, gets a line now and then.
	Progress func(line string)
}

// A Reduced history fails at the same checker as the one that it came from, with
// fewer cells, faults and steps, and with its records in memory if that does.
type Reduced struct {
	History
	// Err is how it fails, and Played how it went.
	Err    error
	Played Played
	// Plays is how many histories were played to find it.
	Plays int
}

// Reduce plays a history that fails and leaves out cells, faults and steps for as
// long as the same checker objects. The result depends on h and on the source
// only, unless a limit ends the search; then it is what was found until then. A
// history that does not fail is an error.
func (s Scenario) Reduce(ctx context.Context, h History, l Limits) (Reduced, error) {
	return reduce(ctx, h, l, func(ctx context.Context, h History) (Played, error) { return s.Play(ctx, h, nil) })
}

func reduce(ctx context.Context, h History, l Limits, play func(context.Context, History) (Played, error)) (Reduced, error) {
	if l.Plays <= 0 {
		l.Plays = 2000
	}
	if l.For <= 0 {
		l.For = 5 * time.Minute
	}
	r := &reducer{limits: l, until: time.Now().Add(l.For), play: play}
	r.best.History = h
	r.best.Played, r.best.Err = play(ctx, h)
	if r.best.Plays = 1; r.best.Err == nil {
		return r.best, fmt.Errorf("seed %d does not fail, so there is nothing to reduce", h.Seed)
	}
	r.checker = CheckerOf(r.best.Err)
	if h.SQLite {
		h.SQLite = false
		if !r.fails(ctx, h) {
			h.SQLite = true
		}
	}
	for cells := 1; cells < h.cells(); cells++ {
		fewer := h
		fewer.Cells = cells
		if r.fails(ctx, fewer) {
			break
		}
	}
	for before := math.MaxInt; r.size() < before; {
		before = r.size()
		r.say("faults")
		leaveOut(r.best.Played.Struck, func(faults []Point) bool {
			fewer := r.best.History
			fewer.Only = append([]Point{}, faults...)
			return r.fails(ctx, fewer)
		}, func() []Point { return r.best.Played.Struck })
		r.say("steps")
		leaveOut(r.idle(), func(steps []int) bool {
			fewer := r.best.History
			fewer.Skip = r.others(steps)
			return r.fails(ctx, fewer)
		}, r.idle)
	}
	if r.best.Only == nil { // name them, so that the history survives more changes
		named := r.best.History
		named.Only = r.best.Played.Struck
		r.best.History = named
	}
	r.say("done")
	return r.best, ctx.Err()
}

// CheckerOf is the name of the checker that an error is from, or "history" for
// another error.
func CheckerOf(err error) string {
	if v := (*Violation)(nil); errors.As(err, &v) {
		return v.Checker
	}
	return "history"
}

type reducer struct {
	limits  Limits
	until   time.Time
	play    func(context.Context, History) (Played, error)
	checker string
	best    Reduced
}

// fails plays a history, and takes it if the same checker objects.
func (r *reducer) fails(ctx context.Context, h History) bool {
	if r.best.Plays >= r.limits.Plays || time.Now().After(r.until) || ctx.Err() != nil {
		return false
	}
	played, err := r.play(ctx, h)
	r.best.Plays++
	if err == nil || CheckerOf(err) != r.checker {
		return false
	}
	h.Skip = slices.DeleteFunc(slices.Clone(h.Skip), func(step int) bool { return step > played.Steps })
	taken := func(h History, p Played) int { return p.Steps - len(h.Skip) }
	if b := r.best; h.cells() == b.cells() && h.SQLite == b.SQLite && (len(played.Struck) > len(b.Played.Struck) ||
		len(played.Struck) == len(b.Played.Struck) && taken(h, played) >= taken(b.History, b.Played)) {
		return false // it is another one, and no shorter
	}
	r.best.History, r.best.Played, r.best.Err = h, played, err
	return true
}

// size is how many faults strike and how many steps take place.
func (r *reducer) size() int {
	return len(r.best.Played.Struck) + r.best.Played.Steps - len(r.best.Skip)
}

func (r *reducer) say(next string) {
	if r.limits.Progress != nil {
		r.limits.Progress(fmt.Sprintf("%d histories played: %d cells, %d faults, %d of %d steps; %s",
			r.best.Plays, r.best.cells(), len(r.best.Played.Struck), r.best.Played.Steps-len(r.best.Skip), r.best.Played.Steps, next))
	}
}

// idle are the steps that take place and in which no fault strikes, but for those after
// all faults: the world takes that time to come right.
func (r *reducer) idle() (steps []int) {
	busy := map[int]bool{}
	for _, p := range r.best.Played.Struck {
		busy[p.Step], busy[p.Step+1] = true, true // mischief comes before the step after it
	}
	for _, step := range r.best.Skip {
		busy[step] = true
	}
	for step := settled + 1; step <= cmp.Or(r.best.Played.Healed, r.best.Played.Steps); step++ {
		if !busy[step] {
			steps = append(steps, step)
		}
	}
	return steps
}

// others are the steps to skip if, of the idle ones, only these take place.
func (r *reducer) others(keep []int) []int {
	kept := map[int]bool{}
	for _, step := range keep {
		kept[step] = true
	}
	skip := append([]int{}, r.best.Skip...)
	for _, step := range r.idle() {
		if !kept[step] {
			skip = append(skip, step)
		}
	}
	return skip
}

// leaveOut leaves out parts of a list, large ones first, while the rest fails.
// again is the list after a success, which may have become shorter still.
func leaveOut[T any](list []T, fails func([]T) bool, again func() []T) {
	for size := (len(list) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(list); {
			rest := append(append([]T{}, list[:from]...), list[min(from+size, len(list)):]...)
			if fails(rest) {
				list = again()
			} else {
				from += size
			}
		}
	}
}
