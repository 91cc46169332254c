package modelcheck

import (
	"cmp"
	"maps"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// An Edge leads from what a rollout waits for to what it waits for next. From and
// To are words of lrp.RolloutWait, or "" where no rollout is under way. By is the
// command or the call that does it, or "time".
type Edge struct{ From, To, By string }

// Edges are those of a rollout with everything that a policy may have: two indices,
// the first of which is a canary, instances that must prove healthy, and a failure
// that pauses it. They are collected from histories in which the consumer pauses,
// resumes, confirms or aborts, or a container crashes.
func Edges() []Edge {
	w := World{
		Indices: 2, Definitions: 2, Room: 4, ImmediateRestarts: -1, Updated: true,
		Policies: lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: tick, Deadline: deadlineTicks * tick, Canary: 1, OnFailure: lrp.PauseOnFailure}},
		Without:  but(Pause, Resume, Confirm, Abort, Crash),
	}
	m := newModel(&w, RealRules())
	first := m.first()
	found := map[Edge]bool{{"", m.waits(&first), "Update"}: true, {"", m.waits(&first), "Activate"}: true}
	// One disturbance is enough from each of these, and from where one has crashed.
	paused, confirmed := first, first
	paused.setDeployment(m.change(wish{first.deployment, Pause, 0}))
	confirmed.setDeployment(m.change(wish{first.deployment, Confirm, 0}))
	begin := []state{first, paused, confirmed}
	for n := 0; n < len(begin); n++ {
		states, disturbed := newTable(), []bool{false}
		states.add(&begin[n])
		for id := uint32(0); int(id) < states.len(); id++ {
			s, before := decode(states.key(id)), disturbed[id]
			from := m.waits(&s)
			if from == "" {
				continue
			}
			if len(begin) == 3 && from == lrp.WaitRestart.String() {
				begin = append(begin, s)
			}
			m.moves(&s, !before, func(v move, next *state) {
				if _, isNew := states.add(next); isNew {
					disturbed = append(disturbed, before || v.disturbance != 0)
				}
				if to := m.waits(next); to != from {
					found[Edge{from, to, m.by(&v)}] = true
				}
			})
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.By, b.By))
	})
}

// waits is what the rollout waits for, or "" if none is under way.
func (m *model) waits(s *state) string {
	if s.deployment.from == 0 {
		return ""
	}
	return m.look(s).status.WaitsFor.String()
}

var wishNames = map[Disturbance]string{Pause: "PauseRollout", Resume: "ResumeRollout", Confirm: "ConfirmRollout", Abort: "AbortRollout"}

// by names what a move is to the control plane.
func (m *model) by(v *move) string {
	switch {
	case v.wish:
		return wishNames[v.disturbance]
	case v.call.kind != noCall:
		return m.command(v.call).Name()
	case v.what == tidiesUp:
		return "EndRollout"
	case v.call == call{}:
		return "time"
	}
	return v.what
}
