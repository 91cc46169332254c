package converge_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

func at(instance, cell string) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: instance, CellID: cell}
}

func TestEachDutyOfConvergenceIsPlannedWithItsReason(t *testing.T) {
	tests := []struct {
		name  string
		setup func(w *world)
		want  []string
	}{
		{"a healthy fleet needs nothing", func(w *world) {
			w.desire("web", 2)
			w.run("web", 0, "i-0", "cell-1")
			w.run("web", 1, "i-1", "cell-2")
		}, []string{}},
		{"a new deployment's indices are all missing", func(w *world) {
			w.desire("web", 2)
		}, []string{
			"web/0 CreateMissing{}: no instance at a desired index",
			"web/1 CreateMissing{}: no instance at a desired index",
		}},
		{"a hole is filled though the count is right", func(w *world) {
			w.desire("web", 4)
			w.run("web", 0, "i-0", "cell-1")
			w.run("web", 3, "i-3", "cell-2")
			w.desire("web", 2)
		}, []string{
			"web/1 CreateMissing{}: no instance at a desired index",
			"web/3 StopExtra{MissingCells:[]}: an instance that is not desired",
		}},
		{"an orphan is stopped while its domain is fresh", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			delete(w.deployments, "web")
		}, []string{"web/0 StopExtra{MissingCells:[]}: an instance that is not desired"}},
		{"an orphan in two domains is left alone while the later of them is not fresh", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			d := *w.deployments["web"]
			d.Domain = "others"
			w.deployments["web"] = &d
			w.define("web", "v2")
			w.do("web", 0, lrp.AdvanceRollout{})
			delete(w.deployments, "web")
		}, []string{}},
		{"an orphan in two domains is left alone while the earlier of them is not fresh", func(w *world) {
			w.desire("web", 1)
			d := *w.deployments["web"]
			d.Domain = "others"
			w.deployments["web"] = &d
			w.run("web", 0, "i-0", "cell-1")
			back := d
			back.Domain = "apps"
			w.deployments["web"] = &back
			w.define("web", "v2")
			w.do("web", 0, lrp.AdvanceRollout{})
			delete(w.deployments, "web")
		}, []string{}},
		{"an orphan is left alone once its domain is not fresh", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			delete(w.deployments, "web")
			w.domains[0].ExpiresAt = w.now
		}, []string{}},
		{"an orphan is left alone if nobody knows its domain", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.desire("web", 0)
			w.domains = nil
		}, []string{}},
		{"an extra instance on a missing cell needs nobody to stop it", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.desire("web", 0)
		}, []string{"web/0 StopExtra{MissingCells:[cell-9]}: an instance that is not desired"}},
		{"an instance on a missing cell becomes suspect", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
		}, []string{"web/0 MarkSuspect{CellID:cell-9}: the cell is missing"}},
		{"an instance that is not desired by a domain that is not fresh becomes suspect too", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.desire("web", 0)
			w.domains = nil
		}, []string{"web/0 MarkSuspect{CellID:cell-9}: the cell is missing"}},
		{"a suspect waits while its cell is missing", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.do("web", 0, lrp.MarkSuspect{CellID: "cell-9"})
		}, []string{}},
		{"a suspect recovers when its cell is back", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.do("web", 0, lrp.MarkSuspect{CellID: "cell-1"})
		}, []string{"web/0 Recover{CellID:cell-1}: the cell is back"}},
		{"a replacement on a missing cell is unclaimed while the suspect stays", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.do("web", 0, lrp.MarkSuspect{CellID: "cell-9"}, lrp.Claim{Instance: at("i-1", "cell-8")})
		}, []string{"web/0 MarkSuspect{CellID:cell-8}: the cell is missing"}},
		{"a suspect that lost its replacement gets another", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.desire("web", 0)
			w.do("web", 0, lrp.MarkSuspect{CellID: "cell-9"})
			w.desire("web", 1)
		}, []string{"web/0 CreateMissing{}: no instance at a desired index"}},
		{"a crashed instance waits", func(w *world) {
			w.desire("web", 1)
			crash(w, 4)
			w.now = w.now.Add(59 * time.Second)
		}, []string{}},
		{"a crashed instance restarts when its wait is over", func(w *world) {
			w.desire("web", 1)
			crash(w, 4)
			w.now = w.now.Add(60 * time.Second)
		}, []string{"web/0 Restart{DefinitionID:v1}: a crashed instance is due to restart"}},
		{"a start is requested again when it is overdue", func(w *world) {
			w.desire("web", 1)
			w.do("web", 0, lrp.CreateMissing{})
			w.now = w.now.Add(30 * time.Second)
		}, []string{"web/0 start v1: the start is overdue"}},
		{"a start is not requested again before", func(w *world) {
			w.desire("web", 1)
			w.do("web", 0, lrp.CreateMissing{})
			w.now = w.now.Add(30*time.Second - 1)
		}, []string{}},
		{"an evacuating record ends with its cell", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-9")
			w.do("web", 0, lrp.EvacuateRunning{Instance: at("i-0", "cell-9")})
		}, []string{"web/0 Prune{MissingCells:[cell-9]}: the evacuation is over"}},
		{"an evacuating record ends with its time", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.do("web", 0, lrp.EvacuateRunning{Instance: at("i-0", "cell-1")}, lrp.Claim{Instance: at("i-1", "cell-2")})
			w.now = w.now.Add(10 * time.Minute)
		}, []string{"web/0 Prune{MissingCells:[]}: the evacuation is over"}},
		{"an evacuating record is otherwise paid no attention", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.do("web", 0, lrp.EvacuateRunning{Instance: at("i-0", "cell-1")}, lrp.Claim{Instance: at("i-1", "cell-2")})
			w.now = w.now.Add(10*time.Minute - 1)
		}, []string{}},
		{"an evacuating record alone does not fill its index, nor is it extra", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.do("web", 0, lrp.EvacuateRunning{Instance: at("i-0", "cell-1")})
			w.desire("web", 0)
			w.do("web", 0, lrp.StopExtra{})
		}, []string{}},
		{"a rollout moves one index at a time", func(w *world) {
			w.desire("web", 2)
			w.run("web", 0, "i-0", "cell-1")
			w.run("web", 1, "i-1", "cell-2")
			w.define("web", "v2")
		}, []string{"web/0 AdvanceRollout{DefinitionID:v2}: the next step of the rollout"}},
		{"a definition that nothing uses is pruned, the healthy and the active one stay", func(w *world) {
			w.desire("web", 1)
			w.run("web", 0, "i-0", "cell-1")
			w.define("web", "v2")
			w.define("web", "v3")
			w.do("web", 0, lrp.AdvanceRollout{})
		}, []string{"web keep [v1 v3]: a definition that nothing uses"}},
		{"an unused definition of a process without records is pruned", func(w *world) {
			w.desire("web", 0)
			w.define("web", "v2")
		}, []string{"web keep []: a definition that nothing uses"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.setup(w)
			if diff := gocmp.Diff(tt.want, w.plan()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// crash makes web/0 crash n times.
func crash(w *world, n int) {
	w.do("web", 0, lrp.CreateMissing{})
	for range n {
		w.do("web", 0, lrp.Claim{Instance: at("i-0", "cell-1")}, lrp.Crash{Instance: at("i-0", "cell-1")})
	}
}

func TestNoCellIsMissingFromAListThatIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	w.desire("web", 3)
	w.run("web", 0, "i-0", "cell-1")
	w.run("web", 1, "i-1", "cell-2")
	w.do("web", 1, lrp.EvacuateRunning{Instance: at("i-1", "cell-2")})
	w.run("web", 2, "i-2", "cell-3")
	w.desire("web", 2)
	w.cells = nil
	want := []string{"web/2 StopExtra{MissingCells:[]}: an instance that is not desired"}
	if diff := gocmp.Diff(want, w.plan()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestWhatMayHaveBeenAboutAnUnreadableRecordIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	for _, guid := range []string{"a", "b", "c"} {
		w.desire(guid, 3)
		for i := range 3 {
			w.run(guid, i, fmt.Sprint(guid, i), "cell-1")
		}
	}
	all := w.sortedActuals() // a/0 a/1 a/2 b/0 b/1 b/2 c/0 c/1 c/2
	drop := func(i int) []lrp.ActualLRP { return append(append([]lrp.ActualLRP{}, all[:i]...), all[i+1:]...) }

	for i := range all {
		t.Run(fmt.Sprintf("actual LRP %s/%d", all[i].ProcessGUID, all[i].Index), func(t *testing.T) {
			in := w.snapshot()
			in.ActualLRPs = recordsWithErrors(drop(i), i)
			if diff := gocmp.Diff([]string{"error: unreadable"}, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
	deployments := w.sortedDeployments()
	for i := range deployments {
		t.Run("deployment "+deployments[i].ProcessGUID, func(t *testing.T) {
			in := w.snapshot()
			rest := append(append([]lrp.Deployment{}, deployments[:i]...), deployments[i+1:]...)
			in.Deployments = withErrors(rest, i)
			if diff := gocmp.Diff([]string{"error: unreadable"}, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a broken slot hides no other slot's trouble", func(t *testing.T) {
		in := w.snapshot()
		in.ActualLRPs = recordsWithErrors(all[:7], 1) // a/0's neighbourhood is unsure; c/1 and c/2 are missing
		want := []string{
			"error: unreadable",
			"c/1 CreateMissing{}: no instance at a desired index",
			"c/2 CreateMissing{}: no instance at a desired index",
		}
		if diff := gocmp.Diff(want, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
	})
	t.Run("deployments after a lost last record may be its own", func(t *testing.T) {
		in := w.snapshot()
		in.ActualLRPs = recordsWithErrors(all[:3], 3)
		if diff := gocmp.Diff([]string{"error: unreadable"}, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
	})
	t.Run("a slot is left alone if a record before or after those that were read may be its own", func(t *testing.T) {
		w := newWorld(t)
		w.desire("web", 1)
		w.run("web", 0, "i-0", "cell-9")
		w.do("web", 0, lrp.MarkSuspect{CellID: "cell-9"})
		w.now = w.now.Add(time.Minute) // the replacement's start is overdue
		two := w.sortedActuals()
		for i, lost := range []int{1, 0} {
			in := w.snapshot()
			in.ActualLRPs = recordsWithErrors(two[i:i+1], lost)
			if diff := gocmp.Diff([]string{"error: unreadable"}, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
				t.Errorf("%v alone: plan (-want +got):\n%s", two[i].Presence, diff)
			}
		}
	})
	t.Run("definitions are kept while a record may be theirs", func(t *testing.T) {
		w := newWorld(t)
		w.desire("web", 2)
		w.run("web", 0, "i-0", "cell-1")
		w.run("web", 1, "i-1", "cell-1")
		for _, definition := range []string{"v2", "v3"} {
			w.define("web", definition)
		}
		active := w.deployments["web"]
		active.ActiveDefinitionID = "v1"
		kept := []string{"web keep [v1]: a definition that nothing uses"}
		if diff := gocmp.Diff(kept, w.plan()); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
		for lost := range 2 {
			in := w.snapshot()
			in.ActualLRPs = recordsWithErrors(w.sortedActuals()[lost:lost+1], 1-lost)
			if diff := gocmp.Diff([]string{"error: unreadable"}, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("all that follows is unsure when a sequence breaks off", func(t *testing.T) {
		in := w.snapshot()
		in.Deployments = withErrors(deployments[:1], 1)
		in.ActualLRPs = recordsWithErrors(all[:5], 5)
		want := []string{"error: unreadable", "error: unreadable"}
		if diff := gocmp.Diff(want, describe(converge.PlanLRPs(in, w.now, w.policy))); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
	})
}

func TestSequencesOutOfOrderEndThePlan(t *testing.T) {
	w := newWorld(t)
	for _, guid := range []string{"a", "b"} {
		w.desire(guid, 1)
		w.run(guid, 0, guid, "cell-1")
	}
	actuals, deployments := w.sortedActuals(), w.sortedDeployments()
	for name, change := range map[string]func(in *converge.LRPs){
		"actual LRPs": func(in *converge.LRPs) {
			in.ActualLRPs = records([]lrp.ActualLRP{actuals[1], actuals[0]})
		},
		"the same actual LRP twice": func(in *converge.LRPs) {
			in.ActualLRPs = records([]lrp.ActualLRP{actuals[0], actuals[0], actuals[1]})
		},
		"deployments": func(in *converge.LRPs) {
			in.Deployments = values([]lrp.Deployment{deployments[1], deployments[0]})
		},
		"the same deployment twice": func(in *converge.LRPs) {
			in.Deployments = values([]lrp.Deployment{deployments[0], deployments[0], deployments[1]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := w.snapshot()
			change(&in)
			var last error
			for _, err := range converge.PlanLRPs(in, w.now, w.policy) {
				if last != nil {
					t.Errorf("the plan goes on after %v", last)
				}
				last = err
			}
			if !errors.Is(last, converge.ErrOrder) {
				t.Errorf("got %v, want an ErrOrder", last)
			}
		})
	}
}

func TestAPlanMayBeAbandonedAnywhere(t *testing.T) {
	w := newWorld(t)
	w.desire("a", 3)
	w.desire("b", 2)
	w.desire("c", 1)
	w.run("b", 0, "i", "cell-9")
	w.run("b", 1, "j", "cell-9")
	all := w.plan()
	in := w.snapshot()
	in.Deployments = withErrors(w.sortedDeployments(), 1)
	for n := range all {
		var got []string
		for a, err := range converge.PlanLRPs(w.snapshot(), w.now, w.policy) {
			if got = append(got, describeOne(a, err)); len(got) == n+1 {
				break
			}
		}
		if diff := gocmp.Diff(all[:n+1], got); diff != "" {
			t.Errorf("the first %d (-want +got):\n%s", n+1, diff)
		}
		seen := 0
		for range converge.PlanLRPs(in, w.now, w.policy) {
			if seen++; seen == n+1 {
				break
			}
		}
	}
}

// seeds is the number n, or a tenth of it under the race detector.
func seeds(n uint64) uint64 {
	if testenv.Race {
		return n / 10
	}
	return n
}

// scramble makes a random cluster by random commands, most of which are legal.
func scramble(t testing.TB, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	guids := []string{"a", "b", "c", "d"}
	for _, guid := range guids {
		if r.IntN(4) > 0 {
			w.desire(guid, r.IntN(4))
		}
	}
	for range 20 + r.IntN(120) {
		guid, index := guids[r.IntN(len(guids))], r.IntN(4)
		me := at(fmt.Sprint("i-", r.IntN(3)), fmt.Sprint("cell-", 1+r.IntN(4)))
		definition := []string{"", "v1", "v2"}[r.IntN(3)]
		w.now = w.now.Add(time.Duration(r.IntN(40)) * time.Second)
		var c lrp.Command
		switch r.IntN(15) {
		case 0:
			w.desire(guid, r.IntN(4))
			continue
		case 1:
			if d := w.deployments[guid]; d != nil && r.IntN(2) == 0 {
				w.define(guid, []string{"v1", "v2", "v3"}[r.IntN(3)])
			} else if r.IntN(3) == 0 {
				delete(w.deployments, guid)
			}
			continue
		case 2, 3:
			c = lrp.CreateMissing{}
		case 4, 5, 6:
			c = lrp.Claim{Instance: me, DefinitionID: definition}
		case 7, 8:
			c = lrp.Start{Instance: me, DefinitionID: definition, Domain: "apps"}
		case 9:
			c = lrp.Crash{Instance: me}
		case 10:
			c = lrp.Remove{Instance: me}
		case 11:
			c = lrp.MarkSuspect{CellID: me.CellID}
		case 12:
			c = lrp.EvacuateRunning{Instance: me}
		case 13:
			c = lrp.AdvanceRollout{}
		case 14:
			c = lrp.Recover{CellID: me.CellID}
		}
		_ = w.try(guid, index, c) // a refusal is as good as another command
	}
	if r.IntN(4) == 0 {
		w.domains = nil
	}
	return w
}

func TestThePlanIsThatOfThePlainImplementationOnRandomClusters(t *testing.T) {
	for seed := range seeds(3000) {
		w := scramble(t, seed)
		if diff := gocmp.Diff(plainPlan(w), w.plan()); diff != "" {
			t.Fatalf("seed %d (-plain +streaming):\n%s", seed, diff)
		}
	}
}

// want gives the processes random policies, and rollouts that stand anywhere.
func (w *world) want(r *rand.Rand) {
	pick := func(of ...time.Duration) time.Duration { return of[r.IntN(len(of))] }
	for _, d := range w.sortedDeployments() {
		w.define(d.ProcessGUID, []string{"v2", "v3"}[r.IntN(2)])
		d = *w.deployments[d.ProcessGUID]
		ids := d.DefinitionIDs()
		d.HealthyDefinitionID = append(ids, "")[r.IntN(len(ids)+1)]
		if from := ids[r.IntN(len(ids))]; from != d.ActiveDefinitionID && r.IntN(4) > 0 {
			d.RolloutState = lrp.RolloutState{From: from, Paused: lrp.PausedBy(max(0, r.IntN(5)-2)), Proved: r.IntN(2) == 0, Confirmed: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				d.RolloutState.ResumedAt = w.now.Add(-pick(time.Second, time.Minute, 12*time.Minute))
			}
		}
		if r.IntN(4) > 0 {
			d.Rollout = &lrp.RolloutPolicy{
				MinHealthy: pick(0, 30*time.Second, 5*time.Minute), MaxInFlight: r.IntN(4), Canary: r.IntN(3), OnFailure: lrp.OnFailure(r.IntN(3)),
			}
			if r.IntN(2) == 0 {
				d.Rollout.Deadline = d.Rollout.MinHealthy + time.Minute
			}
		}
		if r.IntN(2) == 0 {
			d.Restart = &lrp.RestartPolicy{MinBackoff: pick(0, time.Minute, 20*time.Minute), MaxBackoff: pick(0, 30*time.Minute), MaxRestarts: r.IntN(3)}
		}
		if r.IntN(2) == 0 {
			d.Disruption = &lrp.Disruption{MaxUnavailable: r.IntN(2)}
		}
		w.deployments[d.ProcessGUID] = &d
		w.roll(r, d.ProcessGUID)
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.slots), func(a, b slotKey) int {
		return cmp.Or(strings.Compare(a.guid, b.guid), a.index-b.index)
	}) {
		for i := range w.slots[key].Records {
			if a := &w.slots[key].Records[i]; a.State == lrp.Running {
				a.Routable = r.IntN(2) == 0
			}
		}
	}
}

// roll brings some indices of a process nearer to its active definition.
func (w *world) roll(r *rand.Rand, guid string) {
	active := w.deployments[guid].ActiveDefinitionID
	for index := range 4 {
		w.now = w.now.Add(time.Duration(r.IntN(4)) * time.Minute)
		me := at(fmt.Sprint("new-", index), fmt.Sprint("cell-", 1+r.IntN(3)))
		lost := lrp.MarkSuspect{}
		if s := w.slots[slotKey{guid, index}]; len(s.Records) > 0 {
			lost.CellID = s.Records[0].CellID
		}
		commands := []lrp.Command{
			lost, lrp.CreateMissing{}, lrp.AdvanceRollout{DefinitionID: active}, lrp.Claim{DefinitionID: active, Instance: me}, lrp.Start{DefinitionID: active, Instance: me},
			lrp.Crash{DefinitionID: active, Instance: me},
		}
		for _, c := range commands[:r.IntN(len(commands)+1)] {
			if _, crashes := c.(lrp.Crash); crashes {
				for i := range w.slots[slotKey{guid, index}].Records {
					w.slots[slotKey{guid, index}].Records[i].CrashCount = 10
				}
			}
			_ = w.try(guid, index, c)
		}
	}
}

func TestThePlanIsThatOfThePlainImplementationForEveryPolicy(t *testing.T) {
	said := map[string]int{}
	for seed := range seeds(1500) {
		w := scramble(t, seed)
		w.want(rand.New(rand.NewPCG(seed, 3)))
		plan := w.plan()
		if diff := gocmp.Diff(plainPlan(w), plan); diff != "" {
			t.Fatalf("seed %d (-plain +streaming):\n%s", seed, diff)
		}
		for _, a := range plan {
			for _, what := range []string{"FailRollout", "AdvanceRollout", "StopOvertaken", "RemoveSuspect", fmt.Sprint(converge.RolloutOver)} {
				if strings.Contains(a, what) {
					said[what]++
				}
			}
		}
	}
	if len(said) != 5 {
		t.Errorf("the plans contain only %v", said)
	}
}

// TestPassesBringEveryClusterToRest runs passes with perfectly working cells
// and an auctioneer that always places, and wants every desired index RUNNING
// with the active definition, and nothing else, after a bounded number of
// passes.
func TestPassesBringEveryClusterToRest(t *testing.T) {
	for seed := range seeds(500) {
		w := scramble(t, seed)
		w.domains = []lrp.Domain{{Name: "apps"}}
		r := rand.New(rand.NewPCG(seed, 2))
		passes := 0
		for ; passes < 60; passes++ {
			w.now = w.now.Add(20 * time.Minute)
			if w.apply() == 0 {
				break
			}
			w.obey(r)
		}
		if passes == 60 {
			t.Fatalf("seed %d: still busy: %v", seed, w.plan())
		}
		for _, d := range w.sortedDeployments() {
			for i := range d.Instances {
				s := w.slots[slotKey{d.ProcessGUID, i}]
				if len(s.Records) != 1 || s.Records[0].State != lrp.Running || s.Records[0].DefinitionID != d.ActiveDefinitionID {
					t.Fatalf("seed %d: %s/%d of %s is %+v", seed, d.ProcessGUID, i, d.ActiveDefinitionID, s.Records)
				}
			}
		}
		for key := range w.slots {
			if !w.deployments[key.guid].Desires(key.index) {
				t.Fatalf("seed %d: %v is still there", seed, key)
			}
		}
	}
}

// obey is what the cells and the auctioneer do between two passes: place what
// is UNCLAIMED, start what is CLAIMED, and stop what should not be there.
func (w *world) obey(r *rand.Rand) {
	keys := slices.SortedFunc(maps.Keys(w.slots), func(a, b slotKey) int {
		return cmp.Or(strings.Compare(a.guid, b.guid), a.index-b.index)
	})
	for _, key := range keys {
		d := w.deployments[key.guid]
		for _, rec := range w.slots[key].Records {
			switch {
			case rec.Presence == lrp.Suspect && slices.Contains(w.cells, rec.CellID) && !d.Desires(key.index):
				w.do(key.guid, key.index, lrp.Remove{Instance: rec.InstanceKey})
			case rec.Presence != lrp.Ordinary:
			case rec.State == lrp.Unclaimed:
				me := at(fmt.Sprint("new-", r.Uint32()), fmt.Sprint("cell-", 1+r.IntN(3)))
				if w.try(key.guid, key.index, lrp.Claim{DefinitionID: rec.DefinitionID, Instance: me}) == nil {
					w.do(key.guid, key.index, lrp.Start{Instance: me})
				} // else what started here just now has replaced it
			case rec.State == lrp.Claimed && d.Desires(key.index):
				if w.try(key.guid, key.index, lrp.Start{Instance: rec.InstanceKey}) == nil {
					continue
				}
				fallthrough // refused: the cell stops it
			case rec.State == lrp.Claimed, rec.State == lrp.Running && (!d.Desires(key.index) || superseded(d, w.slots[key], rec)):
				w.do(key.guid, key.index, lrp.Remove{Instance: rec.InstanceKey})
			}
		}
	}
}

// superseded reports whether rec was told to stop, as the active definition
// runs at its index.
func superseded(d *lrp.Deployment, s lrp.Slot, rec lrp.ActualLRP) bool {
	for _, other := range s.Records {
		if other.DefinitionID == d.ActiveDefinitionID && other.State == lrp.Running && other.Presence == lrp.Ordinary {
			return rec.DefinitionID != d.ActiveDefinitionID
		}
	}
	return false
}

func TestThereIsNothingToDoWithoutSequences(t *testing.T) {
	for action, err := range converge.PlanLRPs(converge.LRPs{}, time.Unix(1, 0), lrp.Policy{}) {
		t.Errorf("planned %v, %v", action, err)
	}
	for action, err := range converge.PlanTasks(nil, converge.Cells{}, time.Unix(1, 0), task.Policy{}) {
		t.Errorf("planned %v, %v", action, err)
	}
}
