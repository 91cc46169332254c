package converge_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

// lookAgain is what a plan says of when to look at which process again, as the
// time from now.
func (w *world) lookAgain() map[string]time.Duration {
	w.t.Helper()
	again := map[string]time.Duration{}
	in := w.snapshot()
	in.Again = func(guid string, at time.Time) {
		if _, twice := again[guid]; twice {
			w.t.Errorf("%s is named twice", guid)
		}
		again[guid] = at.Sub(w.now)
	}
	describe(converge.PlanLRPs(in, w.now, w.policy))
	return again
}

func TestAProcessIsLookedAtAgainWhenTimeAloneMayCallForSomething(t *testing.T) {
	tests := []struct {
		name  string
		setup func(w *world)
		want  map[string]time.Duration
	}{
		{"never, if it is well", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
		}, map[string]time.Duration{}},
		{"at once, if there is something to do", func(w *world) {
			w.desire("web", 1)
		}, map[string]time.Duration{"web": 0}},
		{"when a start is overdue", func(w *world) {
			w.desire("web", 1)
			w.do("web", 0, lrp.CreateMissing{})
			w.now = w.now.Add(10 * time.Second)
		}, map[string]time.Duration{"web": 20 * time.Second}},
		{"when a crashed instance restarts", func(w *world) {
			w.desire("web", 1)
			crash(w, 4)
		}, map[string]time.Duration{"web": time.Minute}},
		{"not for an instance that never restarts", func(w *world) {
			w.desire("web", 1)
			w.policy.Restart.MaxRestarts = 1
			crash(w, 4)
		}, map[string]time.Duration{}},
		{"when an evacuation is over", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.do("web", 0, lrp.EvacuateRunning{Instance: at("i-0", "cell-1")}, lrp.Claim{Instance: at("i-1", "cell-2")})
		}, map[string]time.Duration{"web": 10 * time.Minute}},
		{"when the first of several things is due", func(w *world) {
			w.desire("web", 2)
			crash(w, 4)
			w.do("web", 1, lrp.CreateMissing{})
		}, map[string]time.Duration{"web": 30 * time.Second}},
		{"in every pass while an instance waits for its domain", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.desire("web", 0)
			w.domains = nil
		}, map[string]time.Duration{"web": 0}},
		{"when a rollout gives an index up", func(w *world) {
			w.desire("web", 2)
			w.run("web", 0, "i-0", "cell-1")
			w.run("web", 1, "i-1", "cell-1")
			w.define("web", "v2")
			w.do("web", 1, lrp.AdvanceRollout{}, lrp.Start{DefinitionID: "v2", Instance: at("i-2", "cell-2")},
				lrp.Remove{DefinitionID: "v1", Instance: at("i-1", "cell-1")})
			w.now = w.now.Add(time.Minute)
			w.do("web", 0, lrp.AdvanceRollout{}, lrp.Claim{DefinitionID: "v2", Instance: at("i-3", "cell-2")})
		}, map[string]time.Duration{"web": 10 * time.Minute}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.setup(w)
			if diff := gocmp.Diff(tt.want, w.lookAgain()); diff != "" {
				t.Errorf("again (-want +got):\n%s\nthe plan is %v", diff, w.plan())
			}
		})
	}
}

// Until a process is to be looked at again its plan stays empty, even if
// domains change.
func TestNothingIsDueBeforeTheNextLook(t *testing.T) {
	quiet := 0
	for seed := range seeds(3000) {
		w := scramble(t, seed)
		again, began := w.lookAgain(), w.now
		for _, domains := range [][]lrp.Domain{{{Name: "apps"}}, nil} {
			w.domains = domains
			moments := []time.Duration{0, time.Second, time.Minute, 1000 * time.Hour}
			for _, at := range again {
				moments = append(moments, max(at-1, 0), at)
			}
			for _, moment := range moments {
				w.now = began.Add(moment)
				for a, err := range converge.PlanLRPs(w.snapshot(), w.now, w.policy) {
					if err != nil {
						t.Fatal(err)
					}
					if at, named := again[a.ProcessGUID]; !named || moment < at {
						t.Fatalf("seed %d: after %s: %s; the next look at it is after %s (%t)", seed, moment, describeOne(a, nil), at, named)
					}
				}
				quiet++
			}
		}
	}
	if quiet < 10_000 && !testenv.Race {
		t.Errorf("only %d moments were tried", quiet)
	}
}
