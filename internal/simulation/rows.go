package simulation

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

// A Row is a row of a table of docs/tables, named by the table and by the
// situation that it is for.
type Row struct{ Table, Of, With string }

func (r Row) String() string { return r.Table + ": " + r.Of + " × " + r.With }

// The tables whose rows a world notes.
const (
	tableLRP        = "rep-lrp"
	tableEvacuation = "rep-evacuation"
	tableTask       = "rep-task"
	tableRunning    = "evacuation-running"
	tableCommands   = "task"
	tableSlots      = "slot" // of no document: the changes of a slot, by command
)

// What comes of a command to a task.
const (
	acts    = "acts"
	refused = "is refused"
	without = "changes nothing"
)

// Rows are all rows of the tables of situations, with their odds. A row of the
// table of task commands has none.
func Rows() map[Row]lrp.Odds {
	rows := map[Row]lrp.Odds{}
	for c := range rep.ContainerSituation(rep.ContainerSituations) {
		for l := range rep.LRPSituation(rep.LRPSituations) {
			rows[lrpRow(false, c, l)] = rep.DecideLRP(c, l).Odds
			rows[lrpRow(true, c, l)] = rep.DecideEvacuation(c, l).Odds
		}
	}
	for c := range rep.TaskContainer(rep.TaskContainers) {
		for t := range rep.TaskSituation(rep.TaskSituations) {
			rows[Row{tableTask, c.String(), t.String()}] = rep.DecideTask(c, t).Odds
		}
	}
	for o := range lrp.OrdinarySituation(lrp.OrdinarySituations) {
		for e := range lrp.EvacuatingSituation(lrp.EvacuatingSituations) {
			rows[Row{tableRunning, o.String(), e.String()}] = lrp.EvacuationRule(o, e).Odds
		}
	}
	for _, r := range task.Table() {
		outcome := acts
		switch {
		case r.Err != nil:
			outcome = refused
		case r.Next == r.State && r.LastNext == r.State && len(r.Effects) == 0:
			outcome = without
		}
		rows[commandRow(r.State, r.Command, outcome)] = lrp.Unstated
	}
	return rows
}

// lrpRow is the row of an instance on a cell that evacuates or does not.
func lrpRow(evacuates bool, c rep.ContainerSituation, l rep.LRPSituation) Row {
	switch {
	case !evacuates:
		return Row{tableLRP, c.String(), l.String()}
	case c == rep.NoContainer:
		return Row{tableEvacuation, c.String(), l.String()}
	}
	return Row{tableEvacuation, c.String(), "any"}
}

func commandRow(s task.State, command, outcome string) Row {
	return Row{tableCommands, s.String(), command + " " + outcome}
}

// odds are those of all rows.
var odds = Rows()

// A Met is what a history has met: rows of tables, and changes of slots. Each comes
// with the kinds of the faults that had struck shortly before, at any of the times
// when it was met.
type Met map[Row]Kinds

// meets notes a row. In a history without faults no row is inconceivable.
func (w *World) meets(r Row) {
	_, known := w.met[r]
	if w.met[r] |= w.random.lately(); known {
		return
	}
	if w.faultless && odds[r] == lrp.Inconceivable {
		w.object(checkOdds.violated("without a fault there is a row that is called inconceivable: %s", r))
	}
}

// A place is where a cell had an instance of an index or of a task. The index of a
// task is -1.
type place struct {
	cell, guid string
	index      int
}

// looksAtIndex notes the rows of a cell that has just read an index: those of its
// containers there or, without any, of the instance that it had there last.
func (w *World) looksAtIndex(cellID string, s lrp.Slot) {
	m, index := w.machine(cellID), strconv.Itoa(s.Index)
	at := place{cellID, s.ProcessGUID, s.Index}
	had := false
	for _, c := range m.holds() {
		if c.Tags[executor.TagProcessGUID] != s.ProcessGUID || c.Tags[executor.TagProcessIndex] != index {
			continue
		}
		had = true
		w.had[at] = c
		w.object(w.finds(m, &c, s))
		w.doomsReplaced(cellID, &c, s)
		if container, err := rep.SituateContainer(c.State, c.RunResult); err == nil {
			w.meets(lrpRow(m.evacuates(), container, situate(s, cellID, &c)))
		}
	}
	if c, known := w.had[at]; known && !had {
		w.meets(lrpRow(m.evacuates(), rep.NoContainer, situate(s, cellID, &c)))
	}
	if had {
		return
	}
	for i := range s.Records {
		if r := &s.Records[i]; r.CellID == cellID {
			w.meets(lrpRow(m.evacuates(), rep.NoContainer, rep.SituateLRP(s, r.InstanceKey, r.DefinitionID)))
		}
	}
}

func situate(s lrp.Slot, cellID string, c *executor.Container) rep.LRPSituation {
	return rep.SituateLRP(s, lrp.InstanceKey{InstanceGUID: c.GUID, CellID: cellID}, c.Tags[executor.TagDefinitionID])
}

// looksAtTask is looksAtIndex for a task. t is nil if the task has no record.
func (w *World) looksAtTask(cellID, guid string, t *task.Task) {
	at := place{cellID, guid, -1}
	had := false
	for _, c := range w.machine(cellID).holds() {
		if c.Tags[executor.TagTaskGUID] != guid {
			continue
		}
		had = true
		w.had[at] = c
		if container, err := rep.SituateTaskContainer(c.State, c.RunResult); err == nil {
			w.meets(Row{tableTask, container.String(), rep.SituateTask(t, cellID, c.GUID).String()})
		}
	}
	if c, known := w.had[at]; known && !had {
		w.meets(Row{tableTask, rep.TaskContainerNone.String(), rep.SituateTask(t, cellID, c.GUID).String()})
	} else if t != nil && t.CellID == cellID && !had {
		w.meets(Row{tableTask, rep.TaskContainerNone.String(), rep.SituateTask(t, cellID, t.InstanceGUID).String()})
	}
}

func (w *World) machine(cellID string) machine {
	i := slices.IndexFunc(w.cells, func(m machine) bool { return m.presence().CellID == cellID })
	return w.cells[i]
}

// evacuatesRunning notes the row for a cell that has asked what becomes of its
// RUNNING container, when there were these records. It is a second implementation
// of the table's situations.
func (w *World) evacuatesRunning(key slotKey, records []lrp.ActualLRP, me lrp.InstanceKey, definitionID string) {
	if w.ledger.closed || w.ledger.recreates(key.guid) || slices.ContainsFunc(records, func(r lrp.ActualLRP) bool { return r.InstanceKey == me && !r.Stopping.IsZero() }) {
		return // by another rule
	}
	var ordinary, evacuating *lrp.ActualLRP
	active := activeOf(w.ledger.deployments[key.guid])
	own := find(records, me)
	leads := own != nil && own.DefinitionID == active && !w.ledger.proves(own, w.Clock.Now())
	worth := func(r *lrp.ActualLRP) int {
		n := map[lrp.State]int{lrp.Unclaimed: 1, lrp.Claimed: 2, lrp.Running: 3}[r.State] * 2
		switch {
		case r.InstanceKey == me:
			n = 100
		case r.DefinitionID == definitionID:
			n++
		}
		return n
	}
	better := func(r, than *lrp.ActualLRP) bool { return than == nil || worth(r) > worth(than) }
	for i := range records {
		switch r := &records[i]; {
		case r.Presence == lrp.Suspect && r.InstanceKey == me:
			return // by another rule
		case leads && r.Presence == lrp.Ordinary && r.State == lrp.Running && r.DefinitionID != active:
			// it is to stop, and replaces nothing
		case own != nil && r.Presence == lrp.Ordinary && r.State == lrp.Running && r.InstanceKey != me && !w.ledger.replaces(r, own, w.Clock.Now()):
			// it has still to prove healthy or to become ready, and replaces nothing
		case r.Presence == lrp.Ordinary && better(r, ordinary):
			ordinary = r
		case r.Presence == lrp.Evacuating && better(r, evacuating):
			evacuating = r
		}
	}
	holder := func(r *lrp.ActualLRP, other string) string {
		if r.InstanceKey == me {
			return r.State.String() + " α"
		}
		return r.State.String() + " " + other
	}
	of, with := "none", "none"
	switch {
	case ordinary == nil && evacuating != nil && evacuating.InstanceKey == me && w.ledger.desires(key):
		of = "UNCLAIMED" // its record is made first
	case ordinary == nil:
	case ordinary.State == lrp.Unclaimed && !ordinary.PlacementError.IsZero():
		of = "UNCLAIMED+ε"
	case ordinary.State == lrp.Unclaimed || ordinary.State == lrp.Crashed:
		of = ordinary.State.String()
	default:
		of = holder(ordinary, "ω")
	}
	if evacuating != nil {
		with = holder(evacuating, "β")
	}
	w.meets(Row{tableRunning, of, with})
}

// commands makes a call that gives a command to a task, and notes its row.
func (w *World) commands(c task.Command, guid string, call func() error) error {
	before, commits := stateOf(w.ledger.tasks[guid]), w.ledger.commits
	err := call()
	if err == nil && commits == w.ledger.commits && !w.ledger.closed {
		w.meets(commandRow(before, c.Name(), without))
	}
	w.refuses(err)
	return err
}

// asks notes the rows of commands that only ask for something, which no commit shows.
func (w *World) asks(actions []converge.TaskAction) {
	for _, a := range actions {
		switch a.Command.(type) {
		case task.RequestAgain, task.RequestCallback:
			w.meets(commandRow(stateOf(w.ledger.tasks[a.GUID]), a.Command.Name(), acts))
		}
	}
}

// refuses notes the row of a command to a task that is refused.
func (w *World) refuses(err error) {
	var refusal *task.TransitionError
	if errors.As(err, &refusal) {
		w.meets(commandRow(refusal.State, refusal.Command, refused))
	}
}

// Rows are the rows of the tables that were met, in order.
func (m Met) Rows() (list []Row) {
	for r := range m {
		if _, of := odds[r]; of {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, compareRows)
	return list
}

// Missing are the rows that were not met and should be: those that are neither
// inconceivable nor shown by another test.
func (m Met) Missing() (list []Row) {
	for _, r := range m.Unmet() {
		if odds[r] != lrp.Inconceivable && Elsewhere(r) == "" {
			list = append(list, r)
		}
	}
	return list
}

// Elsewhere says why no history can show a row, and which test shows it; "" for a
// row that histories show.
func Elsewhere(r Row) string {
	command, changesNothing := strings.CutSuffix(r.With, " "+without)
	if r.Table == tableCommands && changesNothing && slices.Contains(ofConvergence, command) {
		return "convergence plans this command where it acts, and nobody sees that it comes too late; task.TestEveryDecisionIsWhatTheTableSays shows that it changes nothing then"
	}
	return elsewhere[r]
}

// ofConvergence are the commands to tasks that convergence plans.
var ofConvergence = []string{"CellMissing", "DemoteResolving", "ExpireCompleted", "ExpirePending", "RequestAgain", "RequestCallback"}

const twoRecords = "an instance becomes EVACUATING in one commit, so none has two records; lrp.TestNoCommandInAnyReachableStateBreaksARule walks all states that commands lead to and meets it in none, and lrp's unreachable_test.go shows what the row does"

var elsewhere = map[Row]string{
	{tableRunning, "CLAIMED α", "RUNNING α"}: twoRecords,
	{tableRunning, "RUNNING α", "RUNNING α"}: twoRecords,
}

// Unmet are the rows of the tables that are not among those that were met, in
// order.
func (m Met) Unmet() (list []Row) {
	for r := range odds {
		if _, met := m[r]; !met {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, compareRows)
	return list
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Of, b.Of), cmp.Compare(a.With, b.With))
}

// changes notes what a command makes of a slot.
func (w *World) changes(c *slotChange) {
	w.meets(Row{tableSlots, outline(c.before), c.command + " to " + outline(c.after)})
}

// outline is what kinds of records there are.
func outline(records []lrp.ActualLRP) string {
	if len(records) == 0 {
		return "nothing"
	}
	list := make([]string, len(records))
	for i := range records {
		list[i] = records[i].Presence.String() + " " + records[i].State.String()
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
