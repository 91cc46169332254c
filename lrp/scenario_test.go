package lrp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// Scenarios are in testdata/*.scenario, written by hand from the
// specification. A line "== title" begins one, "> command" gives a command,
// and the lines below it say what must come of it:
//
//	records     all records of the slot, separated by ";"
//	instance    the instance events, in order
//	group       the group events, in order
//	crashed     the crashed event
//	effects     what is to be done, in order
//	events      the kinds of all events, in order
//	explain     what the events mean, group events left out
//	resolve     the record that a consumer sees
//	status      how far the rollout is
//	waits       what the rollout waits for, and at which index
//	rollout     what the deployment remembers of the rollout
//	deployment  the deployment afterwards
//	error       a part of the error's text; without it the command succeeds
//	keep        whether the cell keeps the container
//
// What no line tells of is not compared, and "-" is nothing. Every step is
// checked against the rules of every decision as well.
//
// A record is written "[v2] STATE [PRESENCE] [instance] [xCrashes] [ε]":
// definition v1 and presence ORDINARY are left out. Instance i1 is on cell-1,
// i2 on cell-2 and so on. A changed event is "before → after". A command may
// begin with the index it is for, "2: claim i1"; otherwise it is index 0.
type scenario struct {
	slots      map[int]lrp.Slot
	deployment *lrp.Deployment
	now        time.Time

	// What the last command led to.
	index    int
	decision lrp.Decision
	change   lrp.Change
	err      error
}

func TestTheSpecificationsScenarios(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.scenario")
	if len(files) == 0 {
		t.Fatal("no scenarios")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n== ")[1:] {
			title, body, _ := strings.Cut(part, "\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario")+"/"+title, func(t *testing.T) {
				x := &scenario{slots: map[int]lrp.Slot{}, now: epoch}
				x.run(t, body)
			})
		}
	}
}

func (x *scenario) run(t *testing.T, body string) {
	last, excused := "", true
	for _, line := range strings.Split(body, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if command, ok := strings.CutPrefix(line, "> "); ok {
			if !excused && x.err != nil {
				t.Fatalf("%s: %v", last, x.err)
			}
			last, excused = command, false
			if broken := x.do(command); broken != nil {
				t.Fatalf("%s: %v", command, broken)
			}
			continue
		}
		field, want, _ := strings.Cut(line, " ")
		if field == "error" {
			excused = true
			if x.err == nil || !strings.Contains(x.err.Error(), strings.TrimSpace(want)) {
				t.Errorf("> %s\n   got error %v\n  want %s", last, x.err, want)
			}
			continue
		}
		want = strings.TrimSpace(want)
		if got := x.got(field); got != want {
			t.Errorf("> %s\n  %s\n   got %s\n  want %s", last, field, got, want)
		}
	}
	if !excused && x.err != nil {
		t.Fatalf("%s: %v", last, x.err)
	}
}

func (x *scenario) slot() lrp.Slot {
	if s, ok := x.slots[x.index]; ok {
		return s
	}
	return lrp.Slot{ProcessGUID: "p", Index: x.index}
}

// do carries out one line of a scenario. It returns broken rules only.
func (x *scenario) do(line string) error {
	x.index, x.decision, x.change, x.err = 0, lrp.Decision{}, lrp.Change{}, nil
	x.now = x.now.Add(time.Microsecond)
	if index, rest, ok := strings.Cut(line, ": "); ok {
		x.index, _ = strconv.Atoi(index)
		line = rest
	}
	words := strings.Fields(line)
	if x.consumer(words[0], words[1:]) {
		if x.err == nil && !x.change.IsZero() {
			x.deployment = x.change.After
		}
		return nil
	}
	command := parseCommand(words[0], words[1:])
	if words[0] == "roll" {
		command = x.visit()
	}
	if command == nil {
		return nil
	}
	slot, decision, err, broken := stepped(x.slot(), x.deployment, command, x.now, lrp.Policy{})
	x.slots[x.index], x.decision, x.err = slot, decision, err
	if err == nil {
		x.deployment = deploymentAfter(x.deployment, decision)
	}
	return broken
}

// visit looks at all indices and returns what is due at this one.
func (x *scenario) visit() (due lrp.Command) {
	rollout := lrp.NewRollout(x.deployment, x.now, lrp.Policy{})
	for i := range x.deployment.Instances {
		if s, ok := x.slots[i]; ok {
			if c := rollout.Visit(s); i == x.index {
				due = c
			}
		}
	}
	return due
}

// consumer does what concerns the deployment and the time.
func (x *scenario) consumer(name string, args []string) bool {
	definition := runnable()
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	switch name {
	case "wait":
		d, err := time.ParseDuration(args[0])
		x.now, x.err = x.now.Add(d), err
	case "create": // create v1 3
		x.change, x.err = lrp.Create(lrp.DeploymentDefinition{
			ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: number(args[1])},
			DefinitionID: args[0], Definition: definition,
		}, x.now)
	case "desire":
		x.change, x.err = lrp.CreateFrom(lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: number(args[0])}, Definition: definition}, x.now)
	case "update":
		x.change, x.err = x.deployment.Update(lrp.Update{DefinitionID: &args[0], Definition: &definition})
	case "scale":
		n := number(args[0])
		x.change, x.err = x.deployment.Update(lrp.Update{Instances: &n})
	case "annotate":
		x.change, x.err = x.deployment.Update(lrp.Update{Annotation: &args[0]})
	case "activate":
		x.change, x.err = x.deployment.Activate(args[0], x.now)
	case "policy": // policy {"canary":1}
		var p lrp.RolloutPolicy
		if x.err = json.Unmarshal([]byte(args[0]), &p); x.err == nil {
			x.change, x.err = x.deployment.Update(lrp.Update{Rollout: &p})
		}
	case "pause":
		x.change, x.err = x.deployment.PauseRollout()
	case "resume":
		x.change, x.err = x.deployment.ResumeRollout(x.now)
	case "confirm":
		x.change, x.err = x.deployment.ConfirmRollout()
	case "abort":
		x.change, x.err = x.deployment.AbortRollout()
	case "end-rollout":
		x.change = x.deployment.EndRollout(x.uses)
	case "delete":
		x.change = x.deployment.Delete()
	case "prune-definitions":
		x.change = x.deployment.PruneDefinitions(x.uses)
	case "recreate":
		d := *x.deployment
		d.UpdateStrategy = lrp.Recreate
		x.deployment = &d
	default:
		return false
	}
	return true
}

// uses reports whether a record names the definition.
func (x *scenario) uses(id string) bool {
	for _, s := range x.slots {
		if (world{slot: s}).uses(id) {
			return true
		}
	}
	return false
}

func instance(word string) lrp.InstanceKey {
	guid, cell, ok := strings.Cut(word, "@")
	if !ok {
		cell = "cell-" + guid[1:]
	}
	return lrp.InstanceKey{InstanceGUID: guid, CellID: cell}
}

// parseCommand reads "name instance [definition]".
func parseCommand(name string, args []string) lrp.Command {
	var key lrp.InstanceKey
	definition, word := "", ""
	for _, a := range args {
		switch a[0] {
		case 'i':
			key = instance(a)
		case 'v':
			definition = a
		default:
			word = a
		}
	}
	net := lrp.NetInfo{Address: "10.0.0." + strings.TrimPrefix(key.CellID, "cell-")}
	var missing []string
	if word != "" {
		missing = []string{word}
	}
	switch name {
	case "claim":
		return lrp.Claim{DefinitionID: definition, Instance: key}
	case "start":
		return lrp.Start{DefinitionID: definition, Domain: "d", Instance: key, NetInfo: net, Unready: word == "unready"}
	case "crash":
		return lrp.Crash{DefinitionID: definition, Instance: key, Reason: "exit status 1"}
	case "remove":
		return lrp.Remove{DefinitionID: definition, Instance: key}
	case "evacuate-claimed":
		return lrp.EvacuateClaimed{DefinitionID: definition, Instance: key}
	case "evacuate-running":
		n, _ := strconv.Atoi(word)
		return lrp.EvacuateRunning{DefinitionID: definition, Instance: key, NetInfo: net, RunningInstances: n}
	case "evacuate-stopped":
		return lrp.EvacuateStopped{DefinitionID: definition, Instance: key}
	case "evacuate-crashed":
		return lrp.EvacuateCrashed{DefinitionID: definition, Instance: key, Reason: "exit status 1"}
	case "remove-evacuating":
		return lrp.RemoveEvacuating{DefinitionID: definition, Instance: key}
	case "fail":
		return lrp.Fail{DefinitionID: definition, Error: lrp.PlacementError{Reason: lrp.InsufficientResources}}
	case "retire":
		return lrp.Retire{DefinitionID: definition, MissingCell: word}
	case "missing":
		return lrp.CreateMissing{}
	case "stop-extra":
		return lrp.StopExtra{MissingCells: missing}
	case "restart":
		return lrp.Restart{DefinitionID: definition}
	case "suspect":
		return lrp.MarkSuspect{CellID: word}
	case "recover":
		return lrp.Recover{CellID: word}
	case "remove-suspect":
		return lrp.RemoveSuspect{}
	case "prune":
		return lrp.Prune{MissingCells: missing}
	case "roll": // see visit
		return nil
	}
	panic("unknown command " + name)
}

// got writes what the last command led to.
func (x *scenario) got(field string) string {
	var parts []string
	switch field {
	case "records":
		for i := range x.slot().Records {
			parts = append(parts, record(&x.slot().Records[i]))
		}
		return orDash(strings.Join(parts, "; "))
	case "instance":
		return events(x.decision.Events, map[lrp.EventKind]string{lrp.InstanceCreated: "+", lrp.InstanceChanged: "~", lrp.InstanceRemoved: "-"})
	case "group":
		return events(x.decision.Events, map[lrp.EventKind]string{lrp.GroupCreated: "+", lrp.GroupChanged: "~", lrp.GroupRemoved: "-"})
	case "crashed":
		return events(x.decision.Events, map[lrp.EventKind]string{lrp.InstanceCrashed: ""})
	case "effects":
		for _, e := range x.decision.Effects {
			switch e.Kind {
			case lrp.RequestStart:
				parts = append(parts, "request "+e.Key.DefinitionID)
			case lrp.StopInstance:
				parts = append(parts, "stop "+e.Instance.InstanceGUID)
			case lrp.ContinueRollout:
				parts = append(parts, "continue")
			}
		}
	case "events":
		for _, e := range slices.Concat(x.decision.Events, x.change.Events) {
			parts = append(parts, e.Kind.String())
		}
	case "explain", "routes":
		for _, e := range slices.Concat(x.decision.Events, x.change.Events) {
			if group := e.Kind >= lrp.GroupCreated && e.Kind <= lrp.GroupRemoved; group == (field == "routes") {
				parts = append(parts, e.Explain())
			}
		}
		return orDash(strings.Join(parts, " | "))
	case "keep":
		return fmt.Sprint(x.decision.KeepContainer)
	case "deployment":
		if x.deployment == nil {
			return "-"
		}
		return fmt.Sprintf("n=%d %s active=%s healthy=%s", x.deployment.Instances,
			strings.Join(x.deployment.DefinitionIDs(), "+"), x.deployment.ActiveDefinitionID, x.deployment.HealthyDefinitionID)
	case "rollout":
		s := x.deployment.RolloutState
		parts = append(parts, "from="+s.From)
		for word, is := range map[string]bool{"paused by " + s.Paused.String(): s.Paused != lrp.NotPaused, "proved": s.Proved, "confirmed": s.Confirmed, "resumed": !s.ResumedAt.IsZero()} {
			if is {
				parts = append(parts, word)
			}
		}
		slices.Sort(parts[1:])
		if s.Failure != nil {
			parts = append(parts, s.Failure.DefinitionID+": "+s.Failure.String())
		}
	case "status", "waits":
		rollout := lrp.NewRollout(x.deployment, x.now, lrp.Policy{})
		for i := range x.deployment.Instances {
			if s, ok := x.slots[i]; ok {
				rollout.Visit(s)
			}
		}
		s := rollout.Status()
		if field == "waits" {
			return fmt.Sprintf("%v at %d", s.WaitsFor, s.HeldBy)
		}
		return fmt.Sprintf("done=%d stalled=%d pending=%d held=%d", s.Done, s.Stalled, s.Pending, s.HeldBy)
	case "resolve":
		r, ok := lrp.Resolve(x.slot())
		if !ok {
			return "-"
		}
		return record(&r)
	default:
		return "an unknown field"
	}
	return orDash(strings.Join(parts, ", "))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func record(r *lrp.ActualLRP) string {
	var words []string
	if r.DefinitionID != "v1" {
		words = append(words, r.DefinitionID)
	}
	words = append(words, r.State.String())
	if r.Presence != lrp.Ordinary {
		words = append(words, r.Presence.String())
	}
	if !r.InstanceKey.IsZero() {
		words = append(words, r.InstanceGUID)
		if instance(r.InstanceGUID).CellID != r.CellID {
			words = append(words, "on "+r.CellID)
		}
	}
	if r.CrashCount > 0 {
		words = append(words, fmt.Sprintf("x%d", r.CrashCount))
	}
	if !r.PlacementError.IsZero() {
		words = append(words, "ε")
	}
	return strings.Join(words, " ")
}

func events(all []lrp.Event, signs map[lrp.EventKind]string) string {
	var parts []string
	for _, e := range all {
		sign, ok := signs[e.Kind]
		if !ok {
			continue
		}
		var sides []string
		for _, r := range []*lrp.ActualLRP{e.Before, e.After} {
			if r != nil {
				sides = append(sides, record(r))
			} else if e.Kind == lrp.InstanceCrashed {
				sides = append(sides, "nothing")
			}
		}
		parts = append(parts, sign+strings.Join(sides, " → "))
	}
	return orDash(strings.Join(parts, ", "))
}
