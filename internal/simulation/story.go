package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// tells adds a line to the story, if there is one.
func (w *World) tells(format string, args ...any) {
	if w.tell == nil {
		return
	}
	if w.random.step != w.told {
		w.told = w.random.step
		w.tell(fmt.Sprintf("step %d, %s", w.random.step, w.Clock.Now().UTC().Format(time.TimeOnly)))
	}
	w.tell("  " + fmt.Sprintf(format, args...))
}

// A call is who calls whom and about what, as a story names it. about is the guid
// of a process or a task.
type call struct {
	from, to, verb, about string
	index                 int
}

func (c call) String() string {
	text := c.verb + " from " + c.from + " to " + c.to
	if c.about == "" {
		return text
	}
	return fmt.Sprintf("%s about %s/%d", text, c.about, c.index)
}

// brief is the first line of an error, or what stands for none.
func brief(err error) string {
	if err == nil {
		return "done"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// tellCommit tells which records a commit changes, and why.
func (w *World) tellCommit(plane string, b *storage.Batch) {
	if w.tell == nil {
		return
	}
	by := plane
	if s := w.speaking; s != nil && s.instance.CellID != "" {
		by += " for " + s.instance.CellID
	}
	if id := operationOf(b.RequestID); id != "" {
		by += " for " + id
	}
	for i := range b.Domains {
		w.tells("%s makes domain %s fresh for %s", by, b.Domains[i].Name, b.Domains[i].TTL)
	}
	for i := range b.Events {
		switch e := &b.Events[i]; {
		case e.LRP != nil && e.LRP.Kind >= lrp.GroupCreated && e.LRP.Kind <= lrp.GroupRemoved:
		case e.LRP != nil:
			w.tells("%s commits %s: %s %s", by, e.LRP.Cause.Command, nameOf(e.LRP), e.LRP.Explain())
		case e.Task != nil:
			w.tells("%s commits %s: task %s %s", by, e.Task.Cause.Command, guidOf(e), e.Task.Explain())
		}
	}
	for i := range b.ActualLRPs {
		if c := &b.ActualLRPs[i]; !storage.IsCheck(c) {
			w.tells("    %s -> %s", recordText(c.Before), recordText(c.After))
		}
	}
}

// nameOf is the process, or the index, that an event is about.
func nameOf(e *lrp.Event) string {
	switch {
	case e.After != nil:
		return fmt.Sprintf("%s/%d", e.After.ProcessGUID, e.After.Index)
	case e.Before != nil:
		return fmt.Sprintf("%s/%d", e.Before.ProcessGUID, e.Before.Index)
	case e.DeploymentAfter != nil:
		return e.DeploymentAfter.ProcessGUID
	case e.DeploymentBefore != nil:
		return e.DeploymentBefore.ProcessGUID
	}
	return ""
}

func guidOf(e *storage.Event) string {
	if e.Task.After != nil {
		return e.Task.After.GUID
	}
	return e.Task.Before.GUID
}

// recordText is a record in a few words.
func recordText(r *lrp.ActualLRP) string {
	if r == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%d %s %s of %s", r.ProcessGUID, r.Index, r.Presence, r.State, r.DefinitionID)
	if !r.InstanceKey.IsZero() {
		fmt.Fprintf(&b, " as %s on %s", r.InstanceGUID, r.CellID)
	}
	if r.CrashCount > 0 {
		fmt.Fprintf(&b, ", crashed %d times", r.CrashCount)
	}
	if !r.PlacementError.IsZero() {
		fmt.Fprintf(&b, ", not placed: %s", r.PlacementError)
	}
	return b.String()
}
