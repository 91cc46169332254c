package modelcheck

import "fmt"

// A Search is a walk through all states of a world. It belongs to one goroutine.
type Search struct {
	World *World
	Rules Rules
	// MaxStates ends the walk early; 0 means no limit.
	MaxStates int
	// Say, unless it is nil, hears now and then how far the walk is.
	Say func(Found)
}

// Found is what a search has found.
type Found struct {
	World *World
	// States and Transitions are how many there are; a transition that changes
	// nothing does not count. Futures are the states on the ways to the ends.
	States, Transitions, Futures int
	// Depth is the number of moves to the state that needs most.
	Depth int
	// Disturbances is with how many disturbances all histories have been followed to
	// their end; −1 if with none. Complete is true if that is as many as the world has.
	Disturbances int
	Complete     bool
	// Violation is "" or the property that does not hold, and Story the history
	// with the fewest disturbances that shows it.
	Violation Property
	Story     string
}

// String is one line. Where not all histories with as many disturbances as the
// world has were followed, it ends with their number.
func (f Found) String() string {
	text := fmt.Sprintf("world=%s disturbances=%d states=%d transitions=%d depth=%d futures=%d",
		f.World.Name, f.Disturbances, f.States, f.Transitions, f.Depth, f.Futures)
	if !f.Complete {
		text += fmt.Sprintf(" incomplete=%d", f.World.Disturbances)
	}
	return text
}

type walk struct {
	m       *model
	states  *table
	came    []uint32 // from which state
	used    []uint8  // disturbances
	depth   []uint16
	all     *future
	only    []*future // by the definition that works
	found   Found
	said    int
	stopped bool
}

// Run walks until something is violated or there is no state left. A history with
// few disturbances comes before one with more, so the first violation has the
// fewest.
func (s Search) Run() (Found, error) {
	w := &walk{m: newModel(s.World, s.Rules), states: newTable(), all: newFuture(0xff), found: Found{World: s.World, Disturbances: -1}}
	for i := range maxDefinitions + 1 {
		w.only = append(w.only, newFuture(1<<i))
	}
	first := w.m.first()
	w.m.edge(&move{}, &first, &first)
	w.states.add(&first)
	w.came, w.used, w.depth = append(w.came, 0), append(w.used, 0), append(w.depth, 0)
	now, later := []uint32{0}, []uint32(nil)
	for level := 0; level <= s.World.Disturbances && len(now) > 0 && !w.stopped; level++ {
		for i := 0; i < len(now) && !w.stopped; i++ {
			now, later = w.expand(now[i], uint8(level), now, later)
			if s.Say != nil && w.states.len() >= w.said+1<<16 {
				w.said = w.states.len()
				s.Say(w.tally())
			}
			if s.MaxStates > 0 && w.states.len() >= s.MaxStates {
				return w.tally(), nil
			}
			if w.m.limit != "" {
				return w.tally(), fmt.Errorf("world %s: %s", s.World.Name, w.m.limit)
			}
		}
		now, later = later, now[:0]
		w.found.Disturbances = level
	}
	w.found.Complete = !w.stopped
	return w.tally(), nil
}

func (w *walk) tally() Found {
	f := w.found
	f.States, f.Futures = w.states.len(), w.all.states.len()
	for _, o := range w.only {
		f.Futures += o.states.len()
	}
	return f
}

// expand follows every move from a state that was first reached with this many
// disturbances. Free moves lead to states of now, others to states of later.
func (w *walk) expand(id uint32, level uint8, now, later []uint32) ([]uint32, []uint32) {
	if w.used[id] != level {
		return now, later // it was reached with fewer
	}
	s := decode(w.states.key(id))
	if v := w.judge(&s); v != nil {
		w.violate(v, id, nil, &s)
		return now, later
	}
	w.m.moves(&s, int(level) < w.m.world.Disturbances, func(v move, next *state) {
		if w.stopped || *next == s && w.m.fault == "" {
			return
		}
		if found := w.m.edge(&v, &s, next); found != nil {
			w.violate(found, id, &v, next)
			return
		}
		w.found.Transitions++
		cost := level
		if v.disturbance != 0 {
			cost++
		}
		to, isNew := w.states.add(next)
		switch {
		case isNew:
			w.came, w.used, w.depth = append(w.came, id), append(w.used, cost), append(w.depth, w.depth[id]+1)
			w.found.Depth = max(w.found.Depth, int(w.depth[to]))
		case cost < w.used[to]:
			w.came[to], w.used[to], w.depth[to] = id, cost, w.depth[id]+1
		default:
			return
		}
		if cost == level {
			now = append(now, to)
		} else {
			later = append(later, to)
		}
	})
	return now, later
}

// judge looks at a state by itself and at where it leads.
func (w *walk) judge(s *state) *violation {
	if v := w.m.stuck(s); v != nil {
		return v
	}
	if v := w.m.calmEnd(w.all, s); v != nil {
		return v
	}
	return w.m.abortEnd(w.only, s)
}

func (w *walk) violate(v *violation, id uint32, last *move, after *state) {
	w.stopped = true
	w.found.Violation = v.property
	w.found.Story = w.story(v, id, last, after)
}
