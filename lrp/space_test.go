package lrp_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

// crashes > 0 walks the larger space of two definitions: with 1 it takes about
// a minute.
var crashes = flag.Int("crashes", 0, "tell crash counts apart up to this one, let time pass and placements fail")

// A world is one slot, what is desired of it, and the time.
type world struct {
	slot       lrp.Slot
	deployment *lrp.Deployment
	now        time.Time
}

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// long is longer than every wait of the policy.
const long = 20 * time.Minute

// policy makes the crash rule small: one immediate restart, and none at all
// above one crash.
var policy = lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: 1, MaxRestarts: 1}}

// key is all of a world that decides about what may happen next. Times count
// as fresh or long ago, crashes up to a number. Cells are numbered as they come,
// since they are all alike.
func (w world) key(crashes int) string {
	var b strings.Builder
	var cells []string
	if d := w.deployment; d != nil {
		b.WriteString(strconv.Itoa(d.Instances))
		for _, id := range d.DefinitionIDs() {
			b.WriteString("+" + id)
		}
		b.WriteString(" " + d.ActiveDefinitionID + " " + d.HealthyDefinitionID + "|")
	}
	for i := range w.slot.Records {
		r := &w.slot.Records[i]
		ago := w.now.Sub(r.Since) >= long
		if r.State == lrp.Running {
			ago = w.now.Sub(r.RunningSince) >= long
		}
		if r.State == lrp.Unclaimed || r.State == lrp.Claimed {
			ago = false
		}
		expired := r.Presence == lrp.Evacuating && !w.now.Before(r.ExpiresAt)
		b.WriteString(r.DefinitionID)
		b.WriteByte(byte('0' + r.State))
		b.WriteByte(byte('0' + r.Presence))
		if r.CellID != "" {
			if !slices.Contains(cells, r.CellID) {
				cells = append(cells, r.CellID)
			}
			b.WriteByte(byte('a' + slices.Index(cells, r.CellID)))
		}
		b.WriteByte(byte('0' + min(r.CrashCount, crashes)))
		if ago {
			b.WriteByte('a')
		}
		if r.State == lrp.Running && !r.Routable {
			b.WriteByte('u')
		}
		if expired {
			b.WriteByte('x')
		}
		if !r.Stopping.IsZero() {
			b.WriteByte('s')
		}
		if !r.PlacementError.IsZero() {
			b.WriteByte('e')
		}
		b.WriteByte('|')
	}
	return b.String()
}

// A space is what the walks may do.
type space struct {
	definitions []string
	cells       int
	crashes     int // told apart up to this count
	// full has time pass, placements fail and indices scaled away.
	full bool
	// shared has the first cell run two instances.
	shared bool
	// budget has the deployment limit disruptions, and instances that are not
	// ready.
	budget bool
}

func (s space) instances() []lrp.InstanceKey {
	var keys []lrp.InstanceKey
	for i := range s.cells {
		keys = append(keys, lrp.InstanceKey{InstanceGUID: fmt.Sprintf("i%d", i+1), CellID: fmt.Sprintf("c%d", i+1)})
	}
	if s.shared {
		keys = append(keys, lrp.InstanceKey{InstanceGUID: "another", CellID: "c1"})
	}
	return keys
}

func (s space) commands() []lrp.Command {
	out := []lrp.Command{
		lrp.CreateMissing{}, lrp.StopExtra{}, lrp.RemoveSuspect{}, lrp.Prune{}, lrp.StopOvertaken{},
		lrp.AdvanceRollout{}, lrp.StopAgain{}, lrp.Retire{},
	}
	net := lrp.NetInfo{Address: "10.0.0.1", InstanceAddress: "10.1.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 60000}}}
	for _, definition := range s.definitions {
		out = append(out, lrp.Restart{DefinitionID: definition})
		if s.full {
			out = append(out, lrp.Fail{DefinitionID: definition, Error: lrp.PlacementError{Reason: lrp.InsufficientResources}})
		}
		for _, key := range s.instances() {
			out = append(out,
				lrp.Claim{DefinitionID: definition, Instance: key},
				lrp.Start{DefinitionID: definition, Domain: "d", Instance: key, NetInfo: net, Zone: "z"})
			if s.budget {
				out = append(out, lrp.Start{DefinitionID: definition, Domain: "d", Instance: key, NetInfo: net, Zone: "z", Unready: true})
			}
			out = append(out,
				lrp.EvacuateRunning{DefinitionID: definition, Instance: key, NetInfo: net, Zone: "z"})
		}
	}
	for _, key := range s.instances() {
		out = append(out,
			lrp.Crash{Instance: key, Reason: "r"}, lrp.Remove{Instance: key}, lrp.EvacuateClaimed{Instance: key},
			lrp.EvacuateStopped{Instance: key}, lrp.EvacuateCrashed{Instance: key, Reason: "r"}, lrp.RemoveEvacuating{Instance: key},
			lrp.MarkSuspect{CellID: key.CellID}, lrp.Recover{CellID: key.CellID},
			lrp.Retire{MissingCell: key.CellID}, lrp.StopExtra{MissingCells: []string{key.CellID}}, lrp.Prune{MissingCells: []string{key.CellID}})
	}
	return out
}

// changes are the worlds that the consumer and time make of w.
func (s space) changes(w world) []world {
	var out []world
	add := func(d *lrp.Deployment, later time.Duration) {
		out = append(out, world{w.slot, d, w.now.Add(later + time.Microsecond)})
	}
	if s.full {
		add(w.deployment, long)
	}
	d := w.deployment
	if d == nil {
		var policies lrp.Policies
		if s.budget {
			policies.Disruption = &lrp.Disruption{MaxUnavailable: 1}
		}
		c, err := lrp.Create(lrp.DeploymentDefinition{
			ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 1, Policies: policies},
			DefinitionID: s.definitions[0], Definition: runnable(),
		}, w.now)
		if err != nil {
			panic(err)
		}
		add(c.After, 0)
		return out
	}
	add(d.Delete().After, 0)
	n := 1 - d.Instances
	if c, err := d.Update(lrp.Update{Instances: &n}); err == nil && s.full {
		add(c.After, 0)
	}
	for _, id := range s.definitions {
		definition := runnable()
		if c, err := d.Update(lrp.Update{DefinitionID: &id, Definition: &definition}); err == nil {
			add(c.After, 0)
		}
		if c, err := d.Activate(id, w.now); err == nil && !c.IsZero() {
			add(c.After, 0)
		}
	}
	if c := d.PruneDefinitions(w.uses); !c.IsZero() {
		add(c.After, 0)
	}
	return out
}

func (w world) uses(definitionID string) bool {
	return slices.ContainsFunc(w.slot.Records, func(r lrp.ActualLRP) bool { return r.DefinitionID == definitionID })
}

// step is the world after a command, and whether that is another one.
func (w world) step(c lrp.Command) (after world, changed bool, broken error) {
	slot, decision, refused, broken := stepped(w.slot, w.deployment, c, w.now, policy)
	if refused != nil {
		return w, false, broken
	}
	changed = len(decision.Writes) > 0 || decision.Deployment != nil
	return world{slot, deploymentAfter(w.deployment, decision), w.now.Add(time.Microsecond)}, changed, broken
}

func TestNoCommandInAnyReachableStateBreaksARule(t *testing.T) {
	for _, c := range []struct {
		name  string
		space space
	}{
		{"one definition on three cells", space{[]string{"v1"}, 3, 2, true, false, false}},
		{"two definitions on two cells", space{[]string{"v1", "v2"}, 2, *crashes, *crashes > 0, false, false}},
		{"two definitions and a budget", space{[]string{"v1", "v2"}, 2, 0, false, false, true}},
		{"a budget on three cells", space{[]string{"v1"}, 3, 0, true, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := world{slot: lrp.Slot{ProcessGUID: "p"}, now: epoch}
			type came struct {
				from string
				by   string
			}
			seen := map[string]came{start.key(c.space.crashes): {}}
			path := func(key string) string {
				var steps []string
				for seen[key].by != "" {
					steps = append(steps, seen[key].by)
					key = seen[key].from
				}
				slices.Reverse(steps)
				return strings.Join(steps, "\n  ")
			}
			commands, situations, transitions := c.space.commands(), map[string]bool{}, 0
			queue := []world{start}
			for len(queue) > 0 && (!testenv.Race || len(seen) < 1000) {
				w := queue[0]
				queue = queue[1:]
				from := w.key(c.space.crashes)
				visit := func(next world, by any) {
					if k := next.key(c.space.crashes); k != from {
						if _, ok := seen[k]; !ok {
							seen[k] = came{from, fmt.Sprintf("%#v", by)}
							queue = append(queue, next)
						}
					}
				}
				for _, command := range commands {
					next, changed, broken := w.step(command)
					transitions++
					if broken != nil {
						t.Fatalf("%v\nafter\n  %s\nthen %#v\nin %s", broken, path(from), command, from)
					}
					if changed {
						visit(next, command)
					}
				}
				for _, next := range c.space.changes(w) {
					visit(next, "deployment "+next.key(c.space.crashes))
				}
				for _, key := range c.space.instances() {
					situations[evacuation(w, key)] = true
				}
			}
			t.Logf("%d states, %d transitions", len(seen), transitions)
			if len(c.space.definitions) == 1 && !c.space.budget && !testenv.Race {
				checkSituations(t, situations)
			}
		})
	}
}

// evacuation is how an instance sees the slot: its row of the evacuation table.
func evacuation(w world, me lrp.InstanceKey) string {
	o, e := "none", "none"
	for _, r := range w.slot.Records {
		who := ""
		switch {
		case r.InstanceKey.IsZero():
		case r.InstanceKey == me:
			who = " α"
		case r.Presence == lrp.Evacuating:
			who = " β"
		default:
			who = " ω"
		}
		switch r.Presence {
		case lrp.Ordinary:
			o = r.State.String() + who
			if !r.PlacementError.IsZero() {
				o += "+ε"
			}
		case lrp.Evacuating:
			e = r.State.String() + who
		}
	}
	return o + " × " + e
}

// Two rows of the evacuation table tell of an instance that has both an
// ORDINARY and an EVACUATING record. A Start puts the one in place of the
// other, so Step never makes them; the rows are for records of other origin.
func checkSituations(t *testing.T, seen map[string]bool) {
	for o := range lrp.OrdinarySituation(lrp.OrdinarySituations) {
		for e := range lrp.EvacuatingSituation(lrp.EvacuatingSituations) {
			row := fmt.Sprintf("%v × %v", o, e)
			unreachable := row == "CLAIMED α × RUNNING α" || row == "RUNNING α × RUNNING α"
			if seen[row] == unreachable {
				t.Errorf("evacuation row %s: reached %v", row, seen[row])
			}
			delete(seen, row)
		}
	}
	if len(seen) > 0 {
		t.Errorf("situations that the table does not know: %q", slices.Sorted(maps.Keys(seen)))
	}
}

// A random walk goes where the abstraction of the state space does not: three
// definitions, four instances on three cells, real times and crash counts, and every tag that
// ever was.
func TestNoTagEverComesTwice(t *testing.T) {
	walks, steps := uint64(60), 400
	if testenv.Race {
		walks = 6
	}
	for seed := range walks {
		random := rand.New(rand.NewPCG(seed, 1))
		s := space{[]string{"v1", "v2", "v3"}, 3, 3, true, true, seed%3 == 0}
		commands := s.commands()
		w := world{slot: lrp.Slot{ProcessGUID: "p"}, now: epoch}
		type place struct {
			definition string
			presence   lrp.Presence
			tag        lrp.ModificationTag
		}
		used := map[place]bool{}
		for range steps {
			before := w
			if random.IntN(5) == 0 {
				changes := s.changes(w)
				w = changes[random.IntN(len(changes))]
				continue
			}
			command := commands[random.IntN(len(commands))]
			next, _, broken := w.step(command)
			if broken != nil {
				t.Fatalf("seed %d: %v\n%#v\nin %s", seed, broken, command, before.key(3))
			}
			for _, r := range next.slot.Records {
				p := place{r.DefinitionID, r.Presence, r.ModificationTag}
				same := slices.ContainsFunc(before.slot.Records, func(b lrp.ActualLRP) bool { return b.Equal(&r) })
				if used[p] && !same {
					t.Fatalf("seed %d: %v again after %#v", seed, p, command)
				}
				used[p] = true
			}
			w = next
		}
	}
}

// runnable is the smallest valid definition.
func runnable() lrp.Definition {
	return lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "preloaded:linux",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/app", User: "vcap"}},
	}}
}
