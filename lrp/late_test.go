package lrp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

// A commit looks at the records that its decision was made from: each must be
// what it was, and none may be where one is created. It does not see that the
// slot has got another record since. The slots here are all that two walks
// reach, and each decision is made from a part of one and committed on the
// whole.
//
// Such a decision leads to a proper slot, and mostly to what it would have led
// to on the whole. Otherwise it may leave what nobody wants: a SUSPECT or
// EVACUATING record beside the RUNNING one that ends it, or two records of an
// instance whose cell started and evacuated it at once. Then what cells and
// convergence repeat anyway puts it right.
func TestARecordThatCameSinceTheSlotWasReadDoesNoLastingHarm(t *testing.T) {
	for _, s := range []space{
		{[]string{"v1"}, 3, 0, true, false, false},
		{[]string{"v1", "v2"}, 2, 0, false, false, false},
	} {
		known, worlds := s.reach()
		unmarked := make(map[string]bool, len(known))
		for key := range known {
			unmarked[withoutMarks(key)] = true
		}
		if testenv.Race {
			worlds = worlds[:min(len(worlds), 1000)]
		}
		commands := s.commands()
		committed, alike, mended := 0, 0, 0
		for _, whole := range worlds {
			for _, part := range s.parts(whole, known) {
				for _, c := range commands {
					if hasOtherDefinition(whole.slot, c) {
						continue
					}
					decision, err := lrp.Step(part, whole.deployment, c, whole.now, policy)
					if err != nil || len(decision.Writes) == 0 || collides(whole.slot, decision) {
						continue
					}
					committed++
					late := world{whole.slot.Apply(decision), deploymentAfter(whole.deployment, decision), whole.now.Add(time.Microsecond)}
					tell := func() string {
						return fmt.Sprintf("%#v\ndecided in %q\ncommitted in %q\nleads to %q", c,
							world{part, whole.deployment, whole.now}.key(s.crashes), whole.key(s.crashes), late.key(s.crashes))
					}
					if err := late.slot.Validate(); err != nil {
						t.Fatal(err, tell())
					}
					if whole.after(c).key(s.crashes) == late.key(s.crashes) {
						alike++
						continue
					}
					if late.doubles() == nil && known[late.key(s.crashes)] {
						continue
					}
					// Retire stops what it sees, so of two instances one may be without the mark.
					if after := late.repeat(); after.doubles() != nil || !unmarked[withoutMarks(after.key(s.crashes))] {
						t.Fatalf("%s\nand after all is repeated to %q", tell(), after.key(s.crashes))
					}
					mended++
				}
			}
		}
		t.Logf("of %d commits %d lead where they should, %d need mending", committed, alike, mended)
	}
}

// withoutMarks is the key of a world whose records do not say what is to stop.
func withoutMarks(key string) string { return strings.ReplaceAll(key, "s|", "|") }

// reach walks through the whole space.
func (s space) reach() (known map[string]bool, worlds []world) {
	start := world{slot: lrp.Slot{ProcessGUID: "p"}, now: epoch}
	known, worlds = map[string]bool{start.key(s.crashes): true}, []world{start}
	commands := s.commands()
	for i := 0; i < len(worlds); i++ {
		w := worlds[i]
		next := s.changes(w)
		for _, c := range commands {
			after := w.after(c)
			next = append(next, after)
		}
		for _, n := range next {
			if k := n.key(s.crashes); !known[k] {
				known[k] = true
				worlds = append(worlds, n)
			}
		}
	}
	return known, worlds
}

// parts are the slots with some but not all of the records that w may have had
// before.
func (s space) parts(w world, known map[string]bool) (out []lrp.Slot) {
	for set := range 1<<len(w.slot.Records) - 1 {
		part := lrp.Slot{ProcessGUID: w.slot.ProcessGUID, Index: w.slot.Index}
		for i := range w.slot.Records {
			if set>>i&1 == 1 {
				part.Records = append(part.Records, w.slot.Records[i])
			}
		}
		if known[world{part, w.deployment, w.now}.key(s.crashes)] {
			out = append(out, part)
		}
	}
	return out
}

// collides reports whether the decision creates a record that is there.
func collides(s lrp.Slot, d lrp.Decision) bool {
	return slices.ContainsFunc(d.Writes, func(w lrp.Write) bool {
		return w.Before == nil && slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return lrp.CompareRecords(&r, w.After) == 0 })
	})
}

// hasOtherDefinition reports whether the command's instance is recorded with
// another definition than it says: no container is of two.
func hasOtherDefinition(s lrp.Slot, c lrp.Command) bool {
	var me lrp.InstanceKey
	var definition string
	switch c := c.(type) {
	case lrp.Claim:
		me, definition = c.Instance, c.DefinitionID
	case lrp.Start:
		me, definition = c.Instance, c.DefinitionID
	case lrp.EvacuateRunning:
		me, definition = c.Instance, c.DefinitionID
	}
	return slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool {
		return !me.IsZero() && r.InstanceKey == me && r.DefinitionID != definition
	})
}

// doubles are the instances that hold more than one record.
func (w world) doubles() (out []lrp.InstanceKey) {
	seen := map[lrp.InstanceKey]bool{}
	for i := range w.slot.Records {
		key := w.slot.Records[i].InstanceKey
		if seen[key] && !key.IsZero() {
			out = append(out, key)
		}
		seen[key] = true
	}
	return out
}

// repeat is what becomes of w when cells that evacuate ask again, what was told to
// stop ends, convergence makes its pass, and the evacuation's time is over.
func (w world) repeat() world {
	now := w.now
	for _, key := range w.doubles() {
		w = w.after(lrp.EvacuateRunning{Instance: key})
		if slices.ContainsFunc(w.slot.Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == key && !r.Stopping.IsZero() }) {
			w = w.after(lrp.EvacuateStopped{Instance: key})
		}
	}
	w = w.after(lrp.RemoveSuspect{})
	if w.deployment != nil {
		if c := lrp.NewRollout(w.deployment, w.now, policy).Visit(w.slot); c != nil {
			w = w.after(c)
		}
	}
	w.now = w.now.Add(long)
	w = w.after(lrp.Prune{})
	w.now = now
	return w
}

// after is the world after a command, or w if it is refused.
func (w world) after(c lrp.Command) world {
	decision, err := lrp.Step(w.slot, w.deployment, c, w.now, policy)
	if err != nil {
		return w
	}
	return world{w.slot.Apply(decision), deploymentAfter(w.deployment, decision), w.now.Add(time.Microsecond)}
}

// An instance outlives its deployment, which is made again in another domain.
func TestARecordCanPassToAnInstanceOfAnotherDomain(t *testing.T) {
	record := func(domain string, key lrp.InstanceKey, presence lrp.Presence, tag int64) lrp.ActualLRP {
		r := lrp.ActualLRP{
			Key:         lrp.Key{ProcessGUID: "p", DefinitionID: "v1", Domain: domain},
			InstanceKey: key, Presence: presence, State: lrp.Running, Since: epoch, RunningSince: epoch,
			ModificationTag: lrp.ModificationTag{Epoch: tag},
		}
		if presence == lrp.Evacuating {
			r.ExpiresAt = epoch.Add(time.Hour)
		}
		return r
	}
	slot := lrp.Slot{ProcessGUID: "p", Records: []lrp.ActualLRP{
		record("new", omega, lrp.Evacuating, 1),
		record("old", alpha, lrp.Suspect, 2),
	}}
	after, _, refused, broken := stepped(slot, nil, lrp.EvacuateRunning{DefinitionID: "v1", Instance: alpha}, epoch, lrp.Policy{})
	if refused != nil || broken != nil {
		t.Fatal(refused, broken)
	}
	if len(after.Records) != 1 || after.Records[0].InstanceKey != alpha || after.Records[0].Domain != "old" {
		t.Errorf("got %+v", after.Records)
	}
}
