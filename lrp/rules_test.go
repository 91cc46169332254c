package lrp_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// This file holds what must be true of every decision, for any slot and
// command. The scenarios, the walk through the whole state space, the
// random walks and the fuzz test all check it.

// idempotent reports whether a command that is given again at once, and then
// makes the decision again, may change no record. Retire asks for a new start
// each time. EvacuateRunning may find out only the second time, when its own
// record no longer counts, that something else serves the index or that nobody
// wants it any more; it ends the evacuation then.
func idempotent(c lrp.Command, again lrp.Decision) bool {
	switch c.(type) {
	case lrp.Retire:
		return false
	case lrp.EvacuateRunning:
		return again.KeepContainer
	}
	return true
}

func ofCell(c lrp.Command) bool {
	switch c.(type) {
	case lrp.Claim, lrp.Start, lrp.Crash, lrp.Remove, lrp.EvacuateClaimed, lrp.EvacuateRunning,
		lrp.EvacuateStopped, lrp.EvacuateCrashed, lrp.RemoveEvacuating:
		return true
	}
	return false
}

// stepped applies a command and returns an error that names every rule that
// the outcome breaks.
func stepped(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, p lrp.Policy) (lrp.Slot, lrp.Decision, error, error) {
	before := lrp.Slot{ProcessGUID: s.ProcessGUID, Index: s.Index, Records: slices.Clone(s.Records)}
	var tag lrp.ModificationTag
	if d != nil {
		tag = d.ModificationTag
	}
	decision, err := lrp.Step(s, d, c, now, p)
	var broken brokenRules
	broken.check(sameRecords(before.Records, s.Records) && (d == nil || d.ModificationTag == tag), "the input is not changed")
	if err != nil {
		var transition *lrp.TransitionError
		var invalid *executor.ValidationError
		var invariant *lrp.InvariantError
		broken.check(errors.As(err, &transition) || errors.As(err, &invalid) || errors.As(err, &invariant), "an error is typed")
		broken.check(isZero(decision), "a refused command decides nothing")
		return s, decision, err, broken.err()
	}
	if len(decision.Writes)+len(decision.Events)+len(decision.Effects) == 0 {
		return s, decision, nil, broken.err()
	}
	after := s.Apply(decision)
	broken.records(s, after, now)
	broken.writes(s, after, decision)
	broken.events(s, after, decision)
	broken.effects(s, after, d, decision)
	broken.meaning(s, after, d, c, decision, now)
	broken.budget(s, after, d, c, decision)
	if again, err := lrp.Step(after, deploymentAfter(d, decision), c, now, p); err == nil {
		if idempotent(c, again) {
			broken.check(len(again.Writes) == 0 && again.Deployment == nil || isRecreate(d, c), "the same command again writes nothing")
		}
		broken.check(!slices.ContainsFunc(again.Events, func(e lrp.Event) bool { return e.Kind == lrp.InstanceCrashed }),
			"a crash is counted once")
	}
	return after, decision, nil, broken.err()
}

// isRecreate reports whether c is the one command that rewrites the deployment
// only to make two cells conflict.
func isRecreate(d *lrp.Deployment, c lrp.Command) bool {
	_, ok := c.(lrp.EvacuateRunning)
	return ok && d != nil && d.UpdateStrategy == lrp.Recreate
}

func deploymentAfter(d *lrp.Deployment, decision lrp.Decision) *lrp.Deployment {
	if decision.Deployment != nil {
		return decision.Deployment
	}
	return d
}

type brokenRules []error

func (b *brokenRules) check(holds bool, rule string, args ...any) {
	if !holds {
		*b = append(*b, fmt.Errorf("broken rule: "+rule, args...))
	}
}

func (b brokenRules) err() error { return errors.Join(b...) }

func isZero(d lrp.Decision) bool {
	return d.Writes == nil && d.Events == nil && d.Effects == nil && d.Deployment == nil && !d.KeepContainer
}

func sameRecords(a, b []lrp.ActualLRP) bool {
	return slices.EqualFunc(a, b, func(x, y lrp.ActualLRP) bool { return x.Equal(&y) })
}

func byEpoch(s lrp.Slot, epoch int64) *lrp.ActualLRP {
	for i := range s.Records {
		if s.Records[i].ModificationTag.Epoch == epoch {
			return &s.Records[i]
		}
	}
	return nil
}

// records checks the slot that a decision leads to.
func (b *brokenRules) records(before, after lrp.Slot, now time.Time) {
	if err := after.Validate(); err != nil {
		*b = append(*b, err)
	}
	holders := map[lrp.InstanceKey]int{}
	newest := int64(0)
	for _, r := range before.Records {
		newest = max(newest, r.ModificationTag.Epoch)
	}
	for i := range after.Records {
		r := &after.Records[i]
		if !r.InstanceKey.IsZero() {
			holders[r.InstanceKey]++
			b.check(holders[r.InstanceKey] == 1, "an instance holds one record")
		}
		b.check(r.Presence != lrp.Evacuating || r.State == lrp.Running && r.ExpiresAt.After(r.Since), "an EVACUATING record is RUNNING and expires")
		old := byEpoch(before, r.ModificationTag.Epoch)
		if old == nil {
			b.check(r.ModificationTag.Index == 0 && r.ModificationTag.Epoch > newest && r.ModificationTag.Epoch >= now.UnixNano(),
				"a new record has an epoch of its own")
			b.check(r.Since.Equal(now), "a new record is in its state from now on")
			continue
		}
		changed := !r.Equal(old)
		b.check(!changed || r.ModificationTag == old.ModificationTag.Next(), "every change raises the tag by one")
		b.check(r.State == old.State || r.Since.Equal(now), "Since is when the state changed")
		b.check(r.State != lrp.Running || old.State != lrp.Running || r.RunningSince.Equal(old.RunningSince),
			"an instance that goes on running keeps RunningSince")
	}
}

// writes checks that the writes say what Apply did, and no more.
func (b *brokenRules) writes(before, after lrp.Slot, d lrp.Decision) {
	type key struct {
		definition string
		presence   lrp.Presence
	}
	seen := map[key]bool{}
	for _, w := range d.Writes {
		r := w.After
		if r == nil {
			r = w.Before
		}
		k := key{r.DefinitionID, r.Presence}
		b.check(!seen[k], "one write per record")
		seen[k] = true
		if w.Before != nil {
			b.check(slices.ContainsFunc(before.Records, func(r lrp.ActualLRP) bool { return r.Equal(w.Before) }), "Before is what was read")
		}
		if w.Before != nil && w.After != nil {
			key := w.After.Key
			key.Domain = w.Before.Domain
			b.check(w.Before.Key == key && w.Before.Presence == w.After.Presence, "a write keeps the key")
			b.check(w.Before.ModificationTag.SucceededBy(w.After.ModificationTag), "a write leads to a newer tag")
		}
	}
	b.check(len(d.Writes) > 0 || sameRecords(before.Records, after.Records), "without writes nothing changes")
}

// events checks that a follower of the events knows the slot.
func (b *brokenRules) events(before, after lrp.Slot, d lrp.Decision) {
	folded := slices.Clone(before.Records)
	find := func(r *lrp.ActualLRP) int {
		return slices.IndexFunc(folded, func(f lrp.ActualLRP) bool { return f.ModificationTag.Epoch == r.ModificationTag.Epoch })
	}
	type place struct {
		definition string
		evacuating bool
	}
	of := func(r *lrp.ActualLRP) place { return place{r.DefinitionID, r.Presence == lrp.Evacuating} }
	routes := map[place]lrp.ActualLRP{}
	definitions := map[string]bool{}
	for _, s := range []lrp.Slot{before, after} {
		for _, r := range s.Records {
			definitions[r.DefinitionID] = true
		}
	}
	for definition := range definitions {
		g := before.Group(definition)
		for _, r := range []*lrp.ActualLRP{g.Instance, g.Evacuating} {
			if r != nil {
				routes[of(r)] = *r
			}
		}
	}
	deployments := 0
	for _, e := range d.Events {
		b.check(e.Cause.Command != "", "an event names its cause")
		switch e.Kind {
		case lrp.InstanceCreated:
			b.check(e.Before == nil && e.After != nil && find(e.After) < 0, "a created event adds a record")
			folded = append(folded, *e.After)
		case lrp.InstanceChanged:
			i := find(e.After)
			b.check(i >= 0 && folded[i].Equal(e.Before), "a changed event changes the record it tells of")
			if i >= 0 {
				folded[i] = *e.After
			}
		case lrp.InstanceRemoved:
			i := find(e.Before)
			b.check(e.After == nil && i >= 0 && folded[i].Equal(e.Before), "a removed event removes the record it tells of")
			if i >= 0 {
				folded = slices.Delete(folded, i, i+1)
			}
		case lrp.GroupCreated, lrp.GroupChanged:
			routes[of(e.After)] = *e.After
		case lrp.GroupRemoved:
			if at, ok := routes[of(e.Before)]; ok && at.InstanceKey == e.Before.InstanceKey {
				delete(routes, of(e.Before))
			}
		case lrp.DeploymentChanged:
			deployments++
			told := e.DeploymentAfter != nil && d.Deployment != nil && e.DeploymentAfter.ModificationTag == d.Deployment.ModificationTag &&
				e.DeploymentAfter.ActiveDefinitionID == d.Deployment.ActiveDefinitionID && e.DeploymentAfter.Revisions == nil
			b.check(told, "the deployment's event tells of its new version, without its history")
		}
	}
	lrp.SortRecords(folded)
	b.check(sameRecords(folded, after.Records), "the instance events rebuild the slot")
	b.check(deployments == 0 == (d.Deployment == nil), "a new version of the deployment makes an event")
	want := 0
	for definition := range definitions {
		g := after.Group(definition)
		for _, r := range []*lrp.ActualLRP{g.Instance, g.Evacuating} {
			if r == nil {
				continue
			}
			want++
			got := routes[of(r)]
			b.check(got.InstanceKey == r.InstanceKey && got.State == r.State && got.NetInfo.Equal(&r.NetInfo) && got.Routable == r.Routable &&
				got.CrashCount == r.CrashCount && got.PlacementError == r.PlacementError, "the group events rebuild the groups")
		}
	}
	b.check(len(routes) == want, "the group events leave no route behind")
}

// effects checks that what is to be done follows from what is written.
func (b *brokenRules) effects(before, after lrp.Slot, d *lrp.Deployment, decision lrp.Decision) {
	requested, stopped := map[string]bool{}, map[lrp.InstanceKey]bool{}
	for _, e := range decision.Effects {
		b.check(e.Key.ProcessGUID == after.ProcessGUID && e.Key.Index == after.Index, "an effect is about this index")
		switch e.Kind {
		case lrp.RequestStart:
			b.check(!requested[e.Key.DefinitionID], "a start is requested once")
			requested[e.Key.DefinitionID] = true
			g := slices.IndexFunc(after.Records, func(r lrp.ActualLRP) bool { return r.Key == e.Key && r.State == lrp.Unclaimed })
			b.check(g >= 0, "a start is requested for an UNCLAIMED record")
		case lrp.StopInstance:
			b.check(slices.ContainsFunc(before.Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == e.Instance }),
				"a holder is told to stop")
			b.check(e.Instance.CellID != "", "a stop names its cell")
			b.check(!stopped[e.Instance], "an instance is told to stop once")
			stopped[e.Instance] = true
		case lrp.ContinueRollout:
			b.check(d != nil && (len(d.Definitions) > 1 || d.Rollout != nil || d.Disruption != nil), "a rollout has two definitions, or one that has still to prove healthy")
		}
	}
	for i := range after.Records {
		r := &after.Records[i]
		if r.State == lrp.Unclaimed && r.Since.After(sinceOf(before, r)) {
			b.check(requested[r.DefinitionID], "a record that becomes UNCLAIMED is to be started")
		}
	}
}

func sinceOf(s lrp.Slot, r *lrp.ActualLRP) time.Time {
	if old := byEpoch(s, r.ModificationTag.Epoch); old != nil {
		return old.Since
	}
	return time.Time{}
}

// meaning checks what the commands promise.
func (b *brokenRules) meaning(before, after lrp.Slot, d *lrp.Deployment, c lrp.Command, decision lrp.Decision, now time.Time) {
	ordinary := func(r lrp.ActualLRP) bool { return r.Presence == lrp.Ordinary }
	if ofCell(c) && d.Desires(before.Index) && slices.ContainsFunc(before.Records, ordinary) {
		b.check(slices.ContainsFunc(after.Records, ordinary), "a cell leaves no desired index without an ORDINARY record")
	}
	_, evacuates := c.(lrp.EvacuateRunning)
	b.check(evacuates || !decision.KeepContainer, "only EvacuateRunning keeps a container")
	switch c := c.(type) {
	case lrp.MarkSuspect, lrp.Recover, lrp.RemoveSuspect:
		old, _ := lrp.Resolve(before)
		r, _ := lrp.Resolve(after)
		unready := r.State == lrp.Running && !r.Routable // as its own cell has said
		stops := slices.ContainsFunc(before.Records, func(r lrp.ActualLRP) bool { return !r.Stopping.IsZero() })
		b.check(!old.Routable || stops || r.Routable || unready, "a route is not lost by what is known of a cell")
	case lrp.Start:
		r, ok := lrp.Resolve(after)
		suspect := slices.ContainsFunc(after.Records, func(r lrp.ActualLRP) bool {
			return r.InstanceKey == c.Instance && r.Presence == lrp.Suspect
		})
		b.check(suspect || ok && r.State == lrp.Running && r.Presence == lrp.Ordinary, "a started instance serves the index")
		stops := slices.ContainsFunc(after.Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == c.Instance && !r.Stopping.IsZero() })
		for _, o := range after.Records {
			serves := c.Unready && d != nil && d.Disruption != nil && (o.Presence == lrp.Evacuating || o.DefinitionID != r.DefinitionID)
			if d != nil && o.Presence == lrp.Evacuating && o.DefinitionID == d.ActiveDefinitionID && o.DefinitionID != r.DefinitionID {
				serves = true // r has to stop, since o has taken its place
			}
			b.check(suspect || stops || o.Presence == lrp.Ordinary || serves, "a start removes SUSPECT and EVACUATING records")
		}
		if runs := running(after); d != nil && len(runs) > len(running(before)) && len(runs) > 1 {
			b.check(slices.Contains(runs, d.ActiveDefinitionID), "a second instance starts only in a rollout")
		}
	case lrp.Crash:
		b.gone(after, c.Instance)
	case lrp.Remove:
		b.gone(after, c.Instance)
	case lrp.EvacuateClaimed:
		b.gone(after, c.Instance)
	case lrp.EvacuateStopped:
		b.gone(after, c.Instance)
	case lrp.EvacuateCrashed:
		b.gone(after, c.Instance)
	case lrp.EvacuateRunning:
		if !decision.KeepContainer {
			for _, r := range after.Records {
				b.check(r.InstanceKey != c.Instance || r.Presence != lrp.Evacuating, "a record is not kept without its container")
			}
			recorded := slices.IndexFunc(before.Records, func(r lrp.ActualLRP) bool { return r.InstanceKey == c.Instance })
			if recorded >= 0 && d.Desires(before.Index) && d.UpdateStrategy != lrp.Recreate {
				// One of another definition stops when an instance of the active one starts,
				// or with a budget when that one is ready.
				active := before.Records[recorded].DefinitionID == d.ActiveDefinitionID && before.Records[recorded].Stopping.IsZero() &&
					(before.Records[recorded].Routable || d.Disruption == nil)
				b.check(slices.ContainsFunc(after.Records, func(r lrp.ActualLRP) bool {
					return r.State == lrp.Crashed || r.State == lrp.Running && r.Presence == lrp.Ordinary && (!active || r.DefinitionID == d.ActiveDefinitionID)
				}), "an evacuated instance at a desired index is kept until another one serves it or has crashed")
			}
		}
	}
	crashes := slices.ContainsFunc(decision.Events, func(e lrp.Event) bool { return e.Kind == lrp.InstanceCrashed })
	switch c.(type) {
	case lrp.Crash, lrp.EvacuateCrashed:
	default:
		b.check(!crashes, "only a crash crashes")
	}
	if crashes {
		e := decision.Events[0]
		b.check(e.Kind == lrp.InstanceCrashed, "the crash comes first")
		if e.After != nil {
			b.check(e.After.CrashCount >= 1 && e.After.CrashReason != "", "a crash counts and has a reason")
		}
	}
	for _, r := range after.Records {
		if old := byEpoch(before, r.ModificationTag.Epoch); old != nil && !crashes {
			_, retired := c.(lrp.Retire)
			b.check(r.CrashCount == old.CrashCount || retired, "only crashes count")
		}
	}
}

// budget checks that, where a process has one and its instances are not
// recreated, nothing but a loss and the consumer leaves a desired index without a
// ready instance.
func (b *brokenRules) budget(before, after lrp.Slot, d *lrp.Deployment, c lrp.Command, decision lrp.Decision) {
	if d == nil || d.Disruption == nil || d.UpdateStrategy == lrp.Recreate || !d.Desires(before.Index) {
		return
	}
	var speaks, ended lrp.InstanceKey
	switch c := c.(type) {
	case lrp.Start:
		speaks = c.Instance // it may say that it is not ready
	case lrp.EvacuateRunning:
		if speaks = c.Instance; !decision.KeepContainer {
			ended = c.Instance
		}
	case lrp.Claim:
		speaks = c.Instance // it may say that it does not run
	case lrp.Fail, lrp.CreateMissing, lrp.Restart, lrp.AdvanceRollout, lrp.StopOvertaken, lrp.RemoveSuspect:
	default:
		return
	}
	ready := func(r lrp.ActualLRP) bool {
		return r.State == lrp.Running && r.Stopping.IsZero() && r.Routable && r.Presence != lrp.Suspect
	}
	had := slices.ContainsFunc(before.Records, func(r lrp.ActualLRP) bool {
		return ready(r) && (r.InstanceKey != speaks || r.InstanceKey == ended)
	})
	has := slices.ContainsFunc(after.Records, func(r lrp.ActualLRP) bool {
		stops := slices.ContainsFunc(decision.Effects, func(e lrp.Effect) bool {
			return e.Kind == lrp.StopInstance && e.Instance == r.InstanceKey
		})
		return ready(r) && !stops && r.InstanceKey != ended
	})
	b.check(!had || has, "a desired index is not left without a ready instance")
}

// running are the definitions of which an ORDINARY record is RUNNING.
func running(s lrp.Slot) (definitions []string) {
	for _, r := range s.Records {
		if r.Presence == lrp.Ordinary && r.State == lrp.Running && r.Stopping.IsZero() {
			definitions = append(definitions, r.DefinitionID)
		}
	}
	return definitions
}

// gone checks that an instance that has ended holds nothing any more.
func (b *brokenRules) gone(after lrp.Slot, key lrp.InstanceKey) {
	for _, r := range after.Records {
		b.check(r.InstanceKey != key, "an instance that has ended holds no record")
	}
}
