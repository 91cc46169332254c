package lrp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// This file is the history of a deployment: which definitions were active, and
// what became of them. Record is the only function that writes it, and RollBack
// goes back by it.

// A Revision is a time during which one definition of a deployment was active.
// Once its deployment is committed, nobody may change it, so goroutines may
// share it.
type Revision struct {
	// Number counts the revisions of a deployment from 1 on.
	Number       int    `json:"number"`
	DefinitionID string `json:"definition_id"`
	// Definition is the definition of that id. It stays with the revision when the
	// deployment drops it. It is nil in the newest revision of a Deployment,
	// because the deployment's Definitions have it, and if a process of an earlier
	// release has dropped it.
	Definition *Definition `json:"definition,omitempty"`
	// Began says how the definition became active.
	Began   RevisionBegin `json:"began"`
	BeganAt time.Time     `json:"began_at,omitzero"` // zero if nobody knows
	// By is who made the definition active: the common name of the caller's
	// certificate. It is empty if the caller had none, and if the control plane
	// rolled back by itself.
	By string `json:"by,omitempty"`
	// End says what ended the revision.
	End     RevisionEnd `json:"end,omitempty"`
	EndedAt time.Time   `json:"ended_at,omitzero"`
	// Done is the number of the Desired indices at which, at the end, only this
	// definition ran and had proved healthy. bbs.BBS.Revisions also counts it for
	// the newest revision.
	Done    int `json:"done"`
	Desired int `json:"desired"`
	// Healthy is true if the definition was the healthy one at the end.
	Healthy bool `json:"healthy,omitempty"`
	// Failure is why the rollout was given up, or which failure had paused it when it
	// was superseded; nil if neither is the case. bbs.BBS.Revisions also says which
	// failure has paused the newest revision.
	Failure *RolloutFailure `json:"failure,omitempty"`
}

// A RevisionBegin says how a definition became active.
type RevisionBegin uint8

// How a definition may become active.
const (
	// BeganUnknown: a process of an earlier release began the revision.
	BeganUnknown RevisionBegin = iota
	BeganCreated
	BeganUpdated
	BeganActivated
	// BeganRolledBack: a call or a failure led back to an earlier definition.
	BeganRolledBack
	// BeganRestarted: the definition equals the one before.
	BeganRestarted
)

var revisionBegins = enum.Names[RevisionBegin]{
	BeganUnknown: "UNKNOWN", BeganCreated: "CREATED", BeganUpdated: "UPDATED", BeganActivated: "ACTIVATED",
	BeganRolledBack: "ROLLED_BACK", BeganRestarted: "RESTARTED",
}

// String is a word such as "UPDATED".
func (b RevisionBegin) String() string { return revisionBegins.Of(b) }

// MarshalText fails on a value that is none of the constants.
func (b RevisionBegin) MarshalText() ([]byte, error) { return revisionBegins.Marshal("began", b) }

// UnmarshalText accepts only the words of the constants, upper case.
func (b *RevisionBegin) UnmarshalText(text []byte) error {
	return revisionBegins.Unmarshal("began", b, text)
}

// A RevisionEnd says what ended a revision.
type RevisionEnd uint8

// What may end a revision.
const (
	// RevisionActive is the newest revision, which has not ended.
	RevisionActive RevisionEnd = iota
	// RevisionReplaced was rolled out when another definition became active.
	RevisionReplaced
	// RevisionSuperseded was still being rolled out then.
	RevisionSuperseded
	// RevisionGivenUp was aborted by a call, or rolled back after a failure.
	RevisionGivenUp
	// RevisionLost was ended by a process of an earlier release.
	RevisionLost
)

var revisionEnds = enum.Names[RevisionEnd]{
	RevisionActive: "ACTIVE", RevisionReplaced: "REPLACED", RevisionSuperseded: "SUPERSEDED", RevisionGivenUp: "GIVEN_UP", RevisionLost: "LOST",
}

// String is a word such as "REPLACED".
func (e RevisionEnd) String() string { return revisionEnds.Of(e) }

// MarshalText fails on a value that is none of the constants.
func (e RevisionEnd) MarshalText() ([]byte, error) { return revisionEnds.Marshal("end", e) }

// UnmarshalText accepts only the words of the constants, upper case.
func (e *RevisionEnd) UnmarshalText(text []byte) error { return revisionEnds.Unmarshal("end", e, text) }

// begins says how the commands that make another definition active do so.
var begins = map[string]RevisionBegin{
	"Create": BeganCreated, "Desire": BeganCreated, "Update": BeganUpdated, "Activate": BeganActivated, "RestartAll": BeganRestarted,
	"RollBack": BeganRolledBack, "AbortRollout": BeganRolledBack,
	Crash{}.Name(): BeganRolledBack, EvacuateCrashed{}.Name(): BeganRolledBack, FailRollout{}.Name(): BeganRolledBack,
}

// MaxHistory limits Policy.History, because each revision has a whole
// definition, and every change of the deployment writes all of them.
const MaxHistory = 10

// maxHistoryBytes is how long the definitions of a history may be together, in
// JSON. A store keeps a history as one value, which must fit into a statement: by
// default 16 MiB with MariaDB. Otherwise a failed rollout could not be rolled back.
const maxHistoryBytes = 4 << 20

const defaultHistory = 5

// Record returns c with the history of c.After brought up to date: if c makes
// another definition active, it ends one revision and begins the next. by is
// who makes the change, or empty; at most executor.MaxReasonBytes of it are
// kept. [Step] records what it decides.
func (p Policy) Record(c Change, by string, now time.Time) Change {
	if c.After == nil {
		return c
	}
	after := *c.After
	p.record(c.Before, &after, c.Events[0].Cause.Command, by, now)
	c.After = &after
	return c
}

// record writes the history of after, which is not committed yet.
func (p Policy) record(before, after *Deployment, command, by string, now time.Time) {
	if before != nil && before.ActiveDefinitionID == after.ActiveDefinitionID {
		return
	}
	now = now.UTC().Round(0)
	begun := Revision{
		Number: 1, DefinitionID: after.ActiveDefinitionID, Began: begins[command], BeganAt: now, By: executor.CutReason(by),
	}
	after.Revisions = nil
	if before != nil {
		after.Revisions = slices.Clone(before.History())
		last := &after.Revisions[len(after.Revisions)-1]
		last.end(before, after, now)
		begun.Number = last.Number + 1
	}
	after.Revisions = append(after.Revisions, begun)
	keep := max(0, cmp.Or(p.History, defaultHistory))
	for n := len(after.Revisions) - 1; n > keep || n > 0 && after.historyBytes() > maxHistoryBytes; n-- {
		i := after.leastWanted()
		after.Revisions = slices.Delete(after.Revisions, i, i+1)
	}
}

// historyBytes is the length of the definitions in d.Revisions.
func (d *Deployment) historyBytes() (n int) {
	for i := range d.Revisions {
		if r := &d.Revisions[i]; r.Definition != nil {
			text, _ := json.Marshal(r.Definition) // it came from JSON, or will go there
			n += len(text)
		}
	}
	return n
}

// leastWanted is the place in d.Revisions of the oldest revision, apart from
// those to which a rollback goes back: from the active definition, and, once
// that was given up, from the healthy one. So attempts that fail do not crowd out
// what worked.
func (d *Deployment) leastWanted() int {
	back, further := d.goesBackTo(""), d.goesBackTo(d.HealthyDefinitionID)
	for i := range len(d.Revisions) - 1 {
		if i != back && i != further {
			return i
		}
	}
	return max(further, 0)
}

// end ends the revision about the active definition of before. Reached says
// later how far it came.
func (r *Revision) end(before, after *Deployment, now time.Time) {
	definition := before.Definitions[r.DefinitionID]
	r.Definition, r.EndedAt, r.Desired = &definition, now, before.Instances
	r.Healthy = before.HealthyDefinitionID == r.DefinitionID
	switch f := after.RolloutState.Failure; {
	case f != nil:
		r.End, r.Failure = RevisionGivenUp, f
	case r.Healthy && before.RolloutState.From == "" && len(before.Definitions) == 1:
		r.End = RevisionReplaced
	default:
		r.End = RevisionSuperseded
		if before.RolloutState.Paused == PausedByFailure {
			r.Failure = before.RolloutState.Failure
		}
	}
}

// Ended returns the revision that the change from before to after ends, or nil
// if it ends none. Call its Reached before you commit after.
func Ended(before, after *Deployment) *Revision {
	if before == nil || after == nil || before.ActiveDefinitionID == after.ActiveDefinitionID || len(after.Revisions) < 2 {
		return nil
	}
	history := before.History()
	ended := history[len(history)-1].Number
	// If nobody has recorded the change, both share their revisions.
	if r := &after.Revisions[len(after.Revisions)-2]; r.Number == ended && r.End != RevisionActive {
		return r
	}
	return nil
}

// Reached notes in r, which [Ended] returned, how far its rollout had come.
// done is the RolloutStatus.Done of the deployment before the change.
func (r *Revision) Reached(done int) {
	r.Done = done
	if r.End == RevisionSuperseded && r.Healthy && done == r.Desired {
		r.End = RevisionReplaced // its end had only not been noted yet
	}
}

// History returns the revisions of d, the oldest first. The last one is about
// the active definition, even if there is no record of it: a process of an
// earlier release writes no history, and a store leaves out what it cannot
// decode. Callers must not change the result.
func (d *Deployment) History() []Revision {
	number := 1
	list := d.Revisions
	if n := len(list); n > 0 {
		last := list[n-1]
		if last.DefinitionID == d.ActiveDefinitionID {
			return list
		}
		if last.End == RevisionActive { // otherwise a store could not decode the next ones
			last.End = RevisionLost
			last.Healthy = d.HealthyDefinitionID == last.DefinitionID
			if definition, has := d.Definitions[last.DefinitionID]; has {
				last.Definition = &definition
			}
			list = append(slices.Clone(list[:n-1]), last)
		}
		number = last.Number + 1
	}
	return append(list, Revision{Number: number, DefinitionID: d.ActiveDefinitionID})
}

// goesBackTo is the place in d.Revisions to which a rollback goes back unless it
// is told otherwise, or none: the newest revision before the active one that
// proved healthy, was not given up, and has a definition that is neither the
// active one, nor equals it, nor is except.
func (d *Deployment) goesBackTo(except string) int {
	active := d.Definitions[d.ActiveDefinitionID]
	for i := len(d.Revisions) - 2; i >= 0; i-- {
		r := &d.Revisions[i]
		if r.Healthy && r.End != RevisionGivenUp && r.Definition != nil &&
			r.DefinitionID != d.ActiveDefinitionID && r.DefinitionID != except && !reflect.DeepEqual(*r.Definition, active) {
			return i
		}
	}
	return none
}

// RollBack begins a rollout to the definition of an earlier revision. It is
// a no-op if that definition is active. Revision 0 stands for the newest one
// before the active one that proved healthy, was not given up, and has another
// definition. The error wraps ErrRefused. d needs its definitions and
// revisions, so read it with storage.Reader.Deployment.
func (d *Deployment) RollBack(revision int, now time.Time) (Change, error) {
	past := *d
	past.Revisions = d.History()
	at := past.goesBackTo("")
	if revision != 0 {
		at = slices.IndexFunc(past.Revisions, func(r Revision) bool { return r.Number == revision })
	}
	switch {
	case at == none && revision == 0 && len(past.Revisions) == 1:
		return Change{}, d.refuse("it has had no other definition, so there is none to go back to")
	case at == none && revision == 0:
		return Change{}, d.refuse("no revision before the active one has proved healthy with another definition, so there is none to go back to; name a revision")
	case at == none:
		return Change{}, d.refuse(fmt.Sprintf("it has no revision %d; it has %s", revision, numbers(past.Revisions)))
	}
	r := &past.Revisions[at]
	if r.Definition == nil && r.DefinitionID != d.ActiveDefinitionID {
		return Change{}, d.refuse(fmt.Sprintf("the definition %q of revision %d is gone: a process of an earlier release has dropped it", r.DefinitionID, r.Number))
	}
	return d.goTo(r.DefinitionID, r.Definition, now, "RollBack")
}

// numbers are those of the revisions, such as "1, 7 and 8": there may be gaps.
func numbers(list []Revision) string {
	if len(list) == 1 {
		return fmt.Sprintf("only %d", list[0].Number)
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = strconv.Itoa(list[i].Number)
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// goTo begins a rollout to a definition that the deployment has, or had.
func (d *Deployment) goTo(id string, definition *Definition, now time.Time, command string) (Change, error) {
	if id == d.ActiveDefinitionID {
		return Change{}, nil
	}
	next := *d
	switch have, has := d.Definitions[id]; {
	case !has:
		if err := next.define(id, *definition); err != nil {
			return Change{}, err
		}
	case definition != nil && !reflect.DeepEqual(have, *definition):
		return Change{}, d.refuse(fmt.Sprintf("definition id %q is in use for another definition by now; update the deployment to the old one under a new id", id))
	}
	if next.lead(id); next.RolloutState.From != "" {
		next.RolloutState.ResumedAt = now.UTC().Round(0)
	}
	return d.changed(next, command)
}

// RestartAll begins a rollout to the active definition under a new id, so that
// every instance is replaced as the policies of the process say. The new id is
// the old one with "-restart-" and the number of the revision that begins, or
// the next number that gives a free id.
func (d *Deployment) RestartAll() (Change, error) {
	history := d.History()
	number := history[len(history)-1].Number + 1
	for d.has(restartID(d.ActiveDefinitionID, number)) {
		number++
	}
	next, id := *d, restartID(d.ActiveDefinitionID, number)
	if err := next.define(id, d.Definitions[d.ActiveDefinitionID]); err != nil {
		return Change{}, err
	}
	next.lead(id)
	return d.changed(next, "RestartAll")
}

var restartSuffix = regexp.MustCompile("-restart-[0-9]+$")

func restartID(of string, revision int) string {
	suffix := fmt.Sprintf("-restart-%d", revision)
	of = of[:len(of)-len(restartSuffix.FindString(of))]
	return strings.ToValidUTF8(of[:min(len(of), MaxNameBytes-len(suffix))], "") + suffix
}
