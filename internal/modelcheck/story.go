package modelcheck

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/lrp"
)

// story tells the history that leads to a violation: one line for each move, and
// what the records say after it. States have lost the names of their instances,
// so the moves are played again under the names of the beginning.
func (w *walk) story(v *violation, id uint32, last *move, after *state) string {
	var ids []uint32
	for ; id != 0; id = w.came[id] {
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	var b strings.Builder
	fmt.Fprintf(&b, "violated: %s: %s\n", v.property, v.why)
	cur, n := w.m.first(), 0
	w.m.edge(&move{}, &cur, &cur)
	say := func(v *move, s *state) {
		n++
		fmt.Fprintf(&b, "%3d  %s\n%s", n, w.m.tell(v), w.m.show(s))
	}
	fmt.Fprintf(&b, "  0  the world %s\n%s", w.m.world.Name, w.m.show(&cur))
	for _, id := range ids {
		v, next, ok := w.toward(&cur, w.states.key(id))
		if !ok {
			fmt.Fprintf(&b, "     (no move leads on from here)\n")
			return b.String()
		}
		say(&v, &next)
		cur = next
	}
	if last != nil {
		w.m.moves(&cur, true, func(v move, next *state) {
			if last != nil && v.what == last.what && v.call.kind == last.call.kind && w.m.edge(&v, &cur, next) != nil {
				say(&v, next)
				last = nil
			}
		})
		return b.String()
	}
	switch v.property {
	case Ends, Invariants:
		w.follow(&b, cur, 0xff, say)
	case AbortEnds:
		from := cur.deployment.from
		cur.setDeployment(w.m.change(wish{cur.deployment, Abort, 0}))
		say(&move{what: "the consumer aborts the rollout"}, &cur)
		w.follow(&b, cur, 1<<from, say)
	}
	return b.String()
}

// toward is the move that leads to the state with these bytes.
func (w *walk) toward(s *state, key []byte) (move, state, bool) {
	var v move
	var to state
	found := false
	w.m.moves(s, true, func(u move, next *state) {
		if found || w.m.edge(&u, s, next) != nil {
			return
		}
		if bytes.Equal(next.canonical(nil), key) {
			v, to, found = u, *next, true
		}
	})
	return v, to, found
}

// follow tells what happens when nothing disturbs the state any more.
func (w *walk) follow(b *strings.Builder, s state, working uint8, say func(*move, *state)) {
	b.WriteString("     and nothing disturbs it any more:\n")
	seen := newTable()
	for {
		if _, isNew := seen.add(&s); !isNew {
			b.WriteString("     and so on\n")
			return
		}
		v, next, goesOn := w.m.calm(&s, working)
		if !goesOn {
			b.WriteString("     that is all\n")
			return
		}
		say(&v, &next)
		if w.m.fault != "" {
			return
		}
		s = next
	}
}

// tell says what a move is.
func (m *model) tell(v *move) string {
	switch {
	case !strings.Contains(v.what, "%"):
		return v.what
	case v.call != (call{}):
		return fmt.Sprintf(v.what, m.describe(v.call))
	case v.wish:
		return fmt.Sprintf(v.what, v.number)
	}
	return fmt.Sprintf(v.what, cellNames[v.number])
}

func (m *model) describe(c call) string {
	place := fmt.Sprintf("%s/%d", processGUID, c.index)
	if c.definition != 0 {
		place += " " + definitionNames[c.definition]
	}
	who := ""
	switch {
	case c.kind == planned:
		return fmt.Sprintf("%s at %s", m.commands[c.holder].Name(), place)
	case c.kind.ofCells():
		return fmt.Sprintf("%s %v at %s", m.command(c).Name(), cellsOf(c.cell), place)
	case c.holder != 0:
		who = fmt.Sprintf(" %s on %s", instanceNames[c.holder], cellNames[c.cell])
	}
	if c.kind != noCall {
		return fmt.Sprintf("%s%s by %s", place, who, m.command(c).Name())
	}
	return place + who
}

// show is a state in a few lines.
func (m *model) show(s *state) string {
	var b strings.Builder
	d := s.deployment
	fmt.Fprintf(&b, "       active %s, healthy %s", definitionNames[d.active], definitionNames[d.healthy])
	if d.from != 0 {
		fmt.Fprintf(&b, ", rollout from %s", definitionNames[d.from])
	}
	if d.paused != lrp.NotPaused {
		fmt.Fprintf(&b, ", paused by %v", d.paused)
	}
	for _, f := range []struct {
		is   bool
		text string
	}{{d.proved, "proved"}, {d.confirmed, "confirmed"}, {d.failed, "failed"}} {
		if f.is {
			b.WriteString(", " + f.text)
		}
	}
	for i, c := range s.cells {
		if c != (cell{}) {
			fmt.Fprintf(&b, ", cell %s %s", cellNames[i], [...]string{"on", "evacuates", "has no more time", "is off"}[c.life])
			if c.absent {
				b.WriteString(" and is not seen")
			}
		}
	}
	b.WriteString("\n")
	for i := range s.slots {
		if s.slots[i].n == 0 && !d.desires(i) {
			continue
		}
		var parts []string
		for j := range s.slots[i].records[:s.slots[i].n] {
			parts = append(parts, s.slots[i].records[j].text())
		}
		for j, c := range s.boxes {
			if c.phase != noBox && int(c.index) == i {
				parts = append(parts, c.text(j))
			}
		}
		fmt.Fprintf(&b, "       %d: %s\n", i, strings.Join(parts, "; "))
	}
	return b.String()
}

func (r *record) text() string {
	text := fmt.Sprintf("%s %v", definitionNames[r.definition], r.state)
	if r.presence != lrp.Ordinary {
		text += " " + r.presence.String()
	}
	if r.holder != 0 {
		text += " " + instanceNames[r.holder]
	}
	if r.state == lrp.Running && !r.routable {
		text += " unready"
	}
	if r.state == lrp.Running {
		text += fmt.Sprintf(" for %d", r.ran)
	}
	if r.stopping {
		text += " and is to stop"
	}
	return text
}

func (b box) text(i int) string {
	text := fmt.Sprintf("[%s on %s %s %s", instanceNames[i+1], cellNames[b.cell], definitionNames[b.definition],
		[...]string{"", "reserved", "starts", "runs", "crashed", "has stopped"}[b.phase])
	if b.phase == running && !b.ready {
		text += " unready"
	}
	if b.stopping {
		text += ", is to stop"
	}
	return text + "]"
}
