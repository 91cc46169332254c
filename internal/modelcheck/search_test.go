package modelcheck

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

func TestEveryHistoryOfASmallWorldKeepsThePromisesOfARollout(t *testing.T) {
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			mostStates := 0 // no limit
			if testenv.Race {
				mostStates = 1000
			}
			found, err := Search{World: &w, Rules: RealRules(), MaxStates: mostStates}.Run()
			if err != nil {
				t.Fatal(err)
			}
			t.Log(found)
			if found.Violation != "" {
				t.Fatal(found.Story)
			}
			if found.Complete != (mostStates == 0) {
				t.Errorf("the walk is complete: %v", found.Complete)
			}
		})
	}
}

// worldOf is the world with this name, with these disturbances in place of its own.
func worldOf(t *testing.T, name string, n int, kinds ...Disturbance) *World {
	all := Worlds()
	i := slices.IndexFunc(all, func(w World) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("there is no world %s", name)
	}
	w := all[i]
	w.Disturbances, w.Without = n, but(kinds...)
	return &w
}

func oneIndex(w *World) *World {
	w.Indices = 1
	return w
}

// A step is lrp.Step or a variant.
type step = func(lrp.Slot, *lrp.Deployment, lrp.Command, time.Time, lrp.Policy) (lrp.Decision, error)

func TestEachPropertyFindsWhatIsWrong(t *testing.T) {
	stepping := func(f step) func(*Rules) { return func(r *Rules) { r.Step = f } }
	for _, tt := range []struct {
		bug   string
		world *World
		put   func(*Rules)
		want  Property
		tells string // a part of the story's last moves
	}{
		{"a drain that recreates instances does not ask the budget", worldOf(t, "recreate", 1, Drain), stepping(func(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Decision, error) {
			if e, ok := c.(lrp.EvacuateRunning); ok {
				e.RunningInstances = d.Instances
				c = e
			}
			return lrp.Step(s, d, c, now, p)
		}), Budget, "by EvacuateRunning"},
		{"a rollout stops the old instance when it makes the new one", worldOf(t, "plain", 0), stepping(func(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Decision, error) {
			decision, err := lrp.Step(s, d, c, now, p)
			if _, ok := c.(lrp.AdvanceRollout); ok {
				for _, r := range s.Records {
					if r.State == lrp.Running && r.DefinitionID != d.ActiveDefinitionID {
						stops := r
						stops.Stopping, stops.ModificationTag = now, r.ModificationTag.Next()
						decision.Writes = append(decision.Writes, lrp.Write{Before: &r, After: &stops})
						decision.Effects = append(decision.Effects, lrp.Effect{Kind: lrp.StopInstance, Key: r.Key, Instance: r.InstanceKey})
					}
				}
			}
			return decision, err
		}), Budget, "AdvanceRollout at web/0"},
		{"a start that comes late is never refused", oneIndex(worldOf(t, "plain", 2, Crash, Late)), stepping(func(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Decision, error) {
			decision, err := lrp.Step(s, d, c, now, p)
			if begun, ok := c.(lrp.Start); ok && errors.Is(err, lrp.ErrCannotBeStarted) && !slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return r.DefinitionID == begun.DefinitionID }) {
				return lrp.Step(lrp.Slot{ProcessGUID: s.ProcessGUID, Index: s.Index}, d, c, now, p)
			}
			return decision, err
		}), OneDefinition, "late: web/0 v1"},
		{"convergence never begins with index 1", worldOf(t, "plain", 0), func(r *Rules) {
			r.Plan = func(in converge.LRPs, now time.Time, p lrp.Policy) iter.Seq2[converge.LRPAction, error] {
				return func(yield func(converge.LRPAction, error) bool) {
					for a, err := range converge.PlanLRPs(in, now, p) {
						if a.Index != 1 || a.Reason != converge.RolloutStep {
							if !yield(a, err) {
								return
							}
						}
					}
				}
			}
		}, Ends, "that is all"},
		{"an aborted rollout keeps the new definition as the healthy one", worldOf(t, "plain", 0), func(r *Rules) {
			r.Abort = func(d *lrp.Deployment) (lrp.Change, error) {
				c, err := d.AbortRollout()
				if err == nil && c.After != nil {
					c.After.HealthyDefinitionID = d.ActiveDefinitionID
				}
				return c, err
			}
		}, AbortEnds, "the consumer aborts"},
		{"an aborted rollout stays paused", worldOf(t, "plain", 0), func(r *Rules) {
			r.Abort = func(d *lrp.Deployment) (lrp.Change, error) {
				c, err := d.AbortRollout()
				if err == nil && c.After != nil {
					c.After.RolloutState = lrp.RolloutState{Paused: lrp.PausedByOperator, Failure: c.After.RolloutState.Failure}
				}
				return c, err
			}
		}, AbortEnds, ""},
		{"a rollout does not say what it waits for", worldOf(t, "plain", 0), func(r *Rules) {
			r.Status = func(x *lrp.Rollout) lrp.RolloutStatus {
				s := x.Status()
				s.WaitsFor = lrp.WaitNothing
				return s
			}
		}, NextStep, ""},
		{"an order to stop is sent once", worldOf(t, "lost", 2, Abort, LostStop), func(r *Rules) {
			r.Plan = func(in converge.LRPs, now time.Time, p lrp.Policy) iter.Seq2[converge.LRPAction, error] {
				return func(yield func(converge.LRPAction, error) bool) {
					for a, err := range converge.PlanLRPs(in, now, p) {
						if a.Reason != converge.StopOverdue && !yield(a, err) {
							return
						}
					}
				}
			}
		}, AbortEnds, "is lost"},
		{"records do not say that an instance is to stop", worldOf(t, "plain", 0), stepping(func(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Decision, error) {
			decision, err := lrp.Step(s, d, c, now, p)
			for i := range decision.Writes {
				if w := &decision.Writes[i]; w.After != nil {
					w.After.Stopping = time.Time{}
				}
			}
			return decision, err
		}), Invariants, "is told to stop"},
		{"a claim forgets its cell", worldOf(t, "plain", 0), stepping(func(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Decision, error) {
			decision, err := lrp.Step(s, d, c, now, p)
			if _, ok := c.(lrp.Claim); ok && len(decision.Writes) == 1 {
				decision.Writes[0].After.InstanceKey = lrp.InstanceKey{}
			}
			return decision, err
		}), Invariants, "by Claim"},
	} {
		t.Run(tt.bug, func(t *testing.T) {
			rules := RealRules()
			tt.put(&rules)
			found, err := Search{World: tt.world, Rules: rules}.Run()
			if err != nil {
				t.Fatal(err)
			}
			if found.Violation != tt.want || !strings.Contains(found.Story, tt.tells) {
				t.Errorf("%v violates %q, want %q and a story that tells %q\n%s", found, found.Violation, tt.want, tt.tells, found.Story)
			}
		})
	}
}

// Bytes and records must lose nothing that a decision looks at, or the walk joins
// states that are different.
func TestAStateIsReadBackAsItWasWritten(t *testing.T) {
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			m, seen := newModel(&w, RealRules()), newTable()
			first := m.first()
			seen.add(&first)
			for id := uint32(0); int(id) < seen.len() && id < 200; id++ {
				s := decode(seen.key(id))
				if again := decode(s.encode(nil)); again != s {
					t.Fatalf("%+v became %+v", s, again)
				}
				other := s
				other.swapCells()
				if string(other.canonical(nil)) != string(s.canonical(nil)) {
					t.Fatalf("with its cells exchanged it is another state: %+v", s)
				}
				for i := range s.slots {
					for _, r := range s.slots[i].real(i, s.deployment).Records {
						if back := m.modelRecord(&r, s.deployment.resumedAt()); !slices.Contains(s.slots[i].records[:s.slots[i].n], back) {
							t.Fatalf("%+v became %+v", s.slots[i].records[:s.slots[i].n], back)
						}
					}
				}
				if d := modelDeployment(m.deployment(s.deployment)); d != s.deployment {
					t.Fatalf("%+v became %+v", s.deployment, d)
				}
				m.moves(&s, true, func(_ move, next *state) { seen.add(next) })
			}
		})
	}
}

func TestAWalkFindsTheSameEveryTime(t *testing.T) {
	walk := func() Found {
		found, err := Search{World: worldOf(t, "canary", 0), Rules: RealRules()}.Run()
		if err != nil {
			t.Fatal(err)
		}
		found.World = nil
		return found
	}
	if a, b := walk(), walk(); a != b {
		t.Errorf("%+v and then %+v", a, b)
	}
}
