// Package account turns the event stream of a control plane into lines for
// people: one line for each thing that happened, in the words of the events. It
// adds why a cell was chosen, where to reach what runs, and until when a crashed
// instance waits.
//
// An event stream reports most things more than once, for different kinds of
// consumers. An Account has one line for each.
package account

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An Account remembers what later lines need. Its methods may be called at the
// same time.
type Account struct {
	restart lrp.RestartPolicy

	mu sync.Mutex
	// placed is where tasks are about to go, until their cells say that they have
	// them.
	placed map[auction.Key]auction.Placement
	// crashed are the instances that have not run since their last crash, by
	// process guid and index.
	crashed map[slot]bool
	// restarts are the processes that have a policy of their own.
	restarts map[string]*lrp.RestartPolicy
}

type slot struct {
	processGUID string
	index       int
}

// New makes an account of a control plane with this policy.
func New(restart lrp.RestartPolicy) *Account {
	return &Account{restart: restart, placed: map[auction.Key]auction.Placement{}, crashed: map[slot]bool{}, restarts: map[string]*lrp.RestartPolicy{}}
}

// Placed notes why cells were chosen for tasks. It is meant for
// [auction.RunnerOptions].Placed.
func (a *Account) Placed(r auction.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range r.Placements {
		if p.Item.Kind == auction.Task { // the event of an instance says it
			a.placed[p.Item.Key] = p
		}
	}
}

// A Line is one thing that happened.
type Line struct {
	At time.Time
	// Subject is what it happened to: "web", "web/0", "task backup".
	Subject string
	Text    string
}

// String is the line with its time of day in the time zone of At. Control
// characters, which could come from a spec or a crash and change what a
// terminal shows, are written as in Go: "\x1b".
func (l Line) String() string {
	return fmt.Sprintf("%s  %-14s %s", l.At.Format("15:04:05.000"), visible(l.Subject), visible(l.Text))
}

func visible(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if quoted := strconv.QuoteRune(r); unicode.IsControl(r) {
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line returns the line for an event, and false if another event has it.
func (a *Account) Line(e storage.Event) (Line, bool) {
	line := Line{At: e.At}
	switch {
	case e.LRP != nil && (e.LRP.Before != nil || e.LRP.After != nil):
		r := e.LRP.After
		if r == nil {
			r = e.LRP.Before
		}
		line.Subject = r.ProcessGUID + "/" + strconv.Itoa(r.Index)
		line.Text = a.instance(*e.LRP, e.At)
	case e.LRP != nil:
		line.Subject = e.Subject().ProcessGUID
		a.noteRestarts(line.Subject, e.LRP.DeploymentAfter)
		line.Text = deployment(*e.LRP)
	case e.Task != nil:
		line.Subject = "task " + e.Subject().TaskGUID
		line.Text = a.task(*e.Task)
	case e.Quarantine != nil:
		line.Subject = e.Quarantine.Key.String()
		line.Text = "cannot be read and was put aside: " + e.Quarantine.Reason
	case e.Session != nil:
		line.Subject = "task " + e.Session.TaskGUID
		if e.Session.Index != nil {
			line.Subject = e.Session.ProcessGUID + "/" + strconv.Itoa(*e.Session.Index)
		}
		line.Text = e.Session.Explain()
	case e.Gap != nil:
		line.Subject = "the store"
		line.Text = "may have gone back: what followed event " + strconv.FormatInt(int64(e.Gap.After), 10) + " may be lost"
	}
	return line, line.Text != ""
}

func deployment(e lrp.Event) string {
	switch e.Kind {
	case lrp.DeploymentCreated, lrp.DeploymentChanged, lrp.DeploymentRemoved:
		return e.Explain()
	}
	return ""
}

// instance returns the text for an event of an instance. It is empty if another
// event of the same commit has it.
func (a *Account) instance(e lrp.Event, at time.Time) string {
	switch e.Kind {
	case lrp.InstanceCrashed:
		a.noteCrash(e)
		if e.After != nil && e.After.State == lrp.Crashed {
			return fmt.Sprintf("crashed: %s (crash %d); %s", e.After.CrashReason, e.After.CrashCount, a.backoff(e.After, at))
		}
	case lrp.InstanceCreated:
		switch e.Cause.Command {
		case lrp.CreateMissing{}.Name(), // it was desired
			lrp.Crash{}.Name(), lrp.EvacuateCrashed{}.Name(), // it crashed
			lrp.Remove{}.Name(), lrp.EvacuateStopped{}.Name(): // it ended
			if e.After.State == lrp.Unclaimed || e.After.State == lrp.Crashed {
				return ""
			}
		}
	case lrp.InstanceRemoved:
		switch e.Cause.Command {
		case lrp.Crash{}.Name(), lrp.EvacuateCrashed{}.Name(), // it crashed
			lrp.Restart{}.Name(): // it waits for a cell again
			return ""
		}
	case lrp.InstanceChanged:
		if e.After.State == lrp.Crashed { // it crashed
			return ""
		}
	default: // groups are for routers
		return ""
	}
	text := e.Explain()
	switch r := e.After; {
	case r == nil || e.Before != nil && e.Before.State == r.State:
	case r.State == lrp.Claimed:
		text = auction.WithoutParts(text) // a line is short; the timeline has the parts
	case r.State == lrp.Running:
		text += addresses(r.NetInfo)
		if a.hadCrashed(r) {
			text = fmt.Sprintf("restarted after crash %d: %s", r.CrashCount, text)
		}
	}
	return text
}

func (a *Account) noteCrash(e lrp.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := e.After; r != nil {
		a.crashed[slot{r.ProcessGUID, r.Index}] = true
	}
}

// hadCrashed reports whether an instance that runs now ends the time after a
// crash.
func (a *Account) hadCrashed(r *lrp.ActualLRP) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := slot{r.ProcessGUID, r.Index}
	had := a.crashed[s]
	delete(a.crashed, s)
	return had
}

// noteRestarts notes the policy of a process, if it has its own.
func (a *Account) noteRestarts(guid string, d *lrp.Deployment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d == nil || d.Restart == nil {
		delete(a.restarts, guid)
	} else {
		a.restarts[guid] = d.Restart
	}
}

// backoff says when an instance that waits starts again.
func (a *Account) backoff(r *lrp.ActualLRP, at time.Time) string {
	a.mu.Lock()
	policy := a.restarts[r.ProcessGUID].Within(a.restart)
	a.mu.Unlock()
	next := policy.Next(r.CrashCount, r.Since)
	if next.Never {
		return "given up: it has crashed too often"
	}
	return fmt.Sprintf("back-off until %s, for %v", next.At.In(at.Location()).Format(time.TimeOnly), next.At.Sub(r.Since))
}

// why says what decided for a cell, if that was this control plane.
func (a *Account) why(key auction.Key, cellID string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, known := a.placed[key]
	delete(a.placed, key)
	if !known || p.CellID != cellID {
		return ""
	}
	return ": " + p.Why()
}

// addresses returns URLs, because most of what listens speaks HTTP.
func addresses(n lrp.NetInfo) string {
	var urls []string
	for _, p := range n.Ports {
		urls = append(urls, "http://"+net.JoinHostPort(n.Address, strconv.Itoa(int(p.HostPort))))
	}
	if urls == nil {
		return ""
	}
	return " at " + strings.Join(urls, " and ")
}

func (a *Account) task(e task.Event) string {
	text := e.Explain()
	if t := e.After; t != nil && t.State == task.Running && e.Before.State != task.Running {
		text += a.why(auction.Key{Kind: auction.Task, GUID: t.GUID, Domain: t.Domain}, t.CellID)
	}
	return text
}
