package rep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
)

// A cell is one row of a table with the names of its situations.
type cell struct {
	container, record string
	row               Row
}

func lrpCells() (cells []cell) {
	for c := range ContainerSituation(ContainerSituations) {
		for l := range LRPSituation(LRPSituations) {
			cells = append(cells, cell{c.String(), l.String(), DecideLRP(c, l)})
		}
	}
	return cells
}

func taskCells() (cells []cell) {
	for c := range TaskContainer(TaskContainers) {
		for s := range TaskSituation(TaskSituations) {
			cells = append(cells, cell{c.String(), s.String(), DecideTask(c, s)})
		}
	}
	return cells
}

func evacuationCells() (cells []cell) {
	for c := range ContainerSituation(ContainerSituations) {
		for l := range LRPSituation(LRPSituations) {
			cells = append(cells, cell{c.String(), l.String(), DecideEvacuation(c, l)})
		}
	}
	return cells
}

// transcription reads a hand-written table: fields between bars, # for
// comments.
func transcription(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		rows = append(rows, fields)
	}
	return rows
}

// notation is what the transcriptions call the steps.
var notation = map[string]Step{
	"C": ClaimLRP, "S": StartLRP, "X": CrashLRP, "R": RemoveLRP, "V": RemoveEvacuatingLRP,
	"EC": EvacuateClaimedLRP, "ER": EvacuateRunningLRP, "ES": EvacuateStoppedLRP, "EX": EvacuateCrashedLRP,
	"T": StartTask, "E": CompleteTask, "F": FailTask, "J": RejectTask,
	"run": RunContainer, "D": DeleteContainer, "D?": DeleteContainerUnlessKept,
}

func steps(t *testing.T, text string) (steps []Step) {
	t.Helper()
	if text == "-" {
		return nil
	}
	for _, word := range strings.Fields(text) {
		s, ok := notation[word]
		if !ok {
			t.Fatalf("no step is called %q", word)
		}
		steps = append(steps, s)
	}
	return steps
}

func TestTheLongTablesAreTheSpecifications(t *testing.T) {
	for _, table := range []struct {
		name  string
		rows  int
		cells []cell
	}{{"lrp.txt", 37, lrpCells()}, {"task.txt", 27, taskCells()}} {
		t.Run(table.name, func(t *testing.T) {
			want := map[[2]string][]string{}
			for _, f := range transcription(t, table.name) {
				want[[2]string{f[0], f[1]}] = f[2:]
			}
			if len(want) != table.rows {
				t.Fatalf("the transcription has %d rows, want %d", len(want), table.rows)
			}
			for _, c := range table.cells {
				f, ok := want[[2]string{c.container, c.record}]
				if ok == c.row.Added {
					t.Errorf("%s × %s: Added = %v, and in the specification = %v", c.container, c.record, c.row.Added, ok)
				}
				if !ok {
					continue
				}
				delete(want, [2]string{c.container, c.record})
				if !slices.Equal(c.row.Steps, steps(t, f[0])) || c.row.Odds.String() != f[1] {
					t.Errorf("%s × %s: got %s (%v), want %s (%s)", c.container, c.record, c.row.Action(), c.row.Odds, f[0], f[1])
				}
			}
			for pair := range want {
				t.Errorf("%v is in no table", pair)
			}
		})
	}
}

func TestThePairsThatTheSpecificationLeavesOutAreAsDecided(t *testing.T) {
	want := map[[3]string][]string{} // the steps and the odds
	for _, f := range transcription(t, "ruled.txt") {
		want[[3]string{f[0], f[1], f[2]}] = f[3:]
	}
	found := 0
	for table, cells := range map[string][]cell{"lrp": lrpCells(), "task": taskCells()} {
		for _, c := range cells {
			if !c.row.Added {
				continue
			}
			found++
			decided, ok := want[[3]string{table, c.container, c.record}]
			if !ok {
				t.Errorf("%s: %s × %s is added, but was never decided", table, c.container, c.record)
			} else if !slices.Equal(c.row.Steps, steps(t, decided[0])) || c.row.Odds.String() != decided[1] {
				t.Errorf("%s: %s × %s: got %s, %v, want %s", table, c.container, c.record, c.row.Action(), c.row.Odds, decided)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d rows are added, want %d", found, len(want))
	}
}

// What 000 says of failures outside its tables (§Starting ActualLRPs 4, §Task
// Lifecycle 6), and what no table looks at.
func TestTheRowsBesideTheTablesAreAsDecided(t *testing.T) {
	for _, c := range []struct {
		name   string
		row    Row
		action string
		odds   lrp.Odds
		added  bool
	}{
		{"an LRP's container that cannot run", LRPRunFailed(), "remove LRP, then delete container", lrp.Conceivable, false},
		{"a task's container that cannot run", TaskRunFailed(), "fail task, then delete container", lrp.Conceivable, false},
		{"a record with other addresses", LRPOutdated(), "start LRP", lrp.Expected, true},
	} {
		if got := c.row; got.Action() != c.action || got.Odds != c.odds || got.Added != c.added || got.Reason == "" {
			t.Errorf("%s: got %s, %v, added %t, because %q", c.name, got.Action(), got.Odds, got.Added, got.Reason)
		}
	}
}

func TestAnEvacuatingCellDecidesByTheContainerAlone(t *testing.T) {
	want := map[string][]string{} // the steps and the odds
	for _, f := range transcription(t, "evacuation.txt") {
		want[f[0]] = f[1:]
	}
	for _, c := range evacuationCells() {
		stated, ok := want[c.container]
		if !ok {
			continue // no container: see below
		}
		if !slices.Equal(c.row.Steps, steps(t, stated[0])) || c.row.Odds.String() != stated[1] || c.row.Added {
			t.Errorf("%s × %s: got %s, %v, added %t, want %s", c.container, c.record, c.row.Action(), c.row.Odds, c.row.Added, stated)
		}
	}
	for l := range LRPSituation(LRPSituations) {
		if got, want := DecideEvacuation(NoContainer, l).Action(), DecideLRP(NoContainer, l).Action(); got != want {
			t.Errorf("no container × %v: got %s, and without evacuation %s", l, got, want)
		}
	}
}

func TestEveryRowHoldsWhatMustHold(t *testing.T) {
	has := func(r Row, steps ...Step) bool {
		return slices.ContainsFunc(r.Steps, func(s Step) bool { return slices.Contains(steps, s) })
	}
	sentences := []struct {
		text  string
		holds func(cell) bool
	}{
		{"a row says why", func(c cell) bool { return c.row.Reason != "" }},
		{"a row does nothing or one thing or one thing and then another", func(c cell) bool { return len(c.row.Steps) <= 2 }},
		{"odds are unstated only where the specification states none", func(c cell) bool {
			return c.row.Odds != lrp.Unstated || strings.Contains(c.container, "crashed") || has(c.row, EvacuateClaimedLRP, EvacuateStoppedLRP)
		}},
		{"the BBS is asked at most once, and before anything is done to the container", func(c cell) bool {
			return len(c.row.Steps) < 2 || !c.row.Steps[1].CallsBBS()
		}},
		{"nothing is done to a container that is not there", func(c cell) bool {
			return c.container != "no container" || !has(c.row, RunContainer, DeleteContainer, DeleteContainerUnlessKept)
		}},
		{"a container runs only from RESERVED", func(c cell) bool {
			return !has(c.row, RunContainer) || c.container == "RESERVED"
		}},
		{"a container runs only if the BBS has agreed that it is ours", func(c cell) bool {
			return !has(c.row, RunContainer) || c.row.Steps[0].CallsBBS() || strings.HasSuffix(c.record, "α")
		}},
		{"a COMPLETED container is always deleted", func(c cell) bool {
			return !strings.HasPrefix(c.container, "COMPLETED") || has(c.row, DeleteContainer)
		}},
		{"whether a container is kept is asked only of EvacuateRunning", func(c cell) bool {
			return has(c.row, DeleteContainerUnlessKept) == has(c.row, EvacuateRunningLRP)
		}},
	}
	lrpSentences := []struct {
		text  string
		holds func(cell) bool
	}{
		{"no record ever stops a RUNNING container", func(c cell) bool {
			return c.container != "RUNNING" || c.record != "none" || !has(c.row, DeleteContainer)
		}},
		{"a RUNNING container stops only for a RUNNING replacement", func(c cell) bool {
			return c.container != "RUNNING" || has(c.row, DeleteContainer) == (c.record == "RUNNING ω")
		}},
		{"a container that is not ours to run is deleted before it runs", func(c cell) bool {
			waiting := c.container == "RESERVED" || c.container == "INITIALIZING/CREATED"
			lost := strings.HasSuffix(c.record, "ω") || c.record == "CRASHED" || c.record == "none"
			return !waiting || !lost || has(c.row, DeleteContainer)
		}},
		{"RUNNING is said of RUNNING containers only", func(c cell) bool {
			return !has(c.row, StartLRP) || c.container == "RUNNING"
		}},
		{"CLAIMED is said only of containers that do not run yet", func(c cell) bool {
			return !has(c.row, ClaimLRP) || c.container == "RESERVED" || c.container == "INITIALIZING/CREATED"
		}},
		{"a crash is reported only of a container that crashed, and never of one that was told to stop", func(c cell) bool {
			return !has(c.row, CrashLRP) || c.container == "COMPLETED (crashed)"
		}},
		{"a crash is reported once", func(c cell) bool {
			return !has(c.row, CrashLRP) || c.record != "CRASHED" && c.record != "UNCLAIMED"
		}},
		{"records of others are left alone", func(c cell) bool {
			return !has(c.row, RemoveLRP, RemoveEvacuatingLRP, CrashLRP) || strings.HasSuffix(c.record, "α") || c.record == "none"
		}},
		{"our record stays while its container lives", func(c cell) bool {
			return !has(c.row, RemoveLRP) || c.container == "no container" || c.container == "COMPLETED (shutdown)"
		}},
		{"our record goes when its container is over", func(c cell) bool {
			over := c.container == "no container" || strings.HasPrefix(c.container, "COMPLETED")
			return !over || !strings.HasSuffix(c.record, "α") || has(c.row, RemoveLRP, RemoveEvacuatingLRP, CrashLRP)
		}},
		{"evacuating records are removed, not ordinary ones in their place", func(c cell) bool {
			return has(c.row, RemoveEvacuatingLRP) == (c.record == "evacuating α" && c.container != "RUNNING")
		}},
		{"a record that says what is the case is left alone", func(c cell) bool {
			settled := c.container == "RUNNING" && c.record == "RUNNING α" ||
				c.container == "INITIALIZING/CREATED" && c.record == "CLAIMED α"
			return !settled || len(c.row.Steps) == 0
		}},
		{"LRPs are not treated as tasks", func(c cell) bool {
			return !has(c.row, StartTask, CompleteTask, FailTask, RejectTask)
		}},
	}
	taskSentences := []struct {
		text  string
		holds func(cell) bool
	}{
		{"a task that is over or runs elsewhere is never started", func(c cell) bool {
			return !has(c.row, StartTask, RunContainer) || c.record == "PENDING"
		}},
		{"a task is tried again only if its work never began", func(c cell) bool {
			return !has(c.row, RejectTask) || c.container == "COMPLETED (retryable)" && c.record == "RUNNING α"
		}},
		{"work that is done is never left to be done again", func(c cell) bool {
			return c.container != "COMPLETED" || c.record != "PENDING" && c.record != "RUNNING α" || has(c.row, CompleteTask)
		}},
		{"only our own task, or one that waits for us, is completed", func(c cell) bool {
			return !has(c.row, CompleteTask, FailTask) || c.record == "RUNNING α" || c.record == "PENDING"
		}},
		{"a task runs here if and only if its container may live", func(c cell) bool {
			if c.container != "RESERVED" && c.container != "INITIALIZING/CREATED/RUNNING" {
				return true
			}
			return has(c.row, DeleteContainer) == (c.record != "PENDING" && c.record != "RUNNING α")
		}},
		{"a task whose container is gone has failed", func(c cell) bool {
			return has(c.row, FailTask) == (c.container == "no container" && c.record == "RUNNING α")
		}},
		{"tasks are not treated as LRPs", func(c cell) bool {
			return !slices.ContainsFunc(c.row.Steps, func(s Step) bool { return s >= ClaimLRP && s <= EvacuateCrashedLRP })
		}},
	}
	for _, s := range sentences {
		for _, c := range slices.Concat(lrpCells(), taskCells(), evacuationCells()) {
			if !s.holds(c) {
				t.Errorf("%s × %s: %s: %s", c.container, c.record, s.text, c.row.Action())
			}
		}
	}
	for _, s := range lrpSentences {
		for _, c := range lrpCells() {
			if !s.holds(c) {
				t.Errorf("LRP: %s × %s: %s: %s", c.container, c.record, s.text, c.row.Action())
			}
		}
	}
	for _, s := range taskSentences {
		for _, c := range taskCells() {
			if !s.holds(c) {
				t.Errorf("task: %s × %s: %s: %s", c.container, c.record, s.text, c.row.Action())
			}
		}
	}
}

func TestStepsAndSituationsHaveNames(t *testing.T) {
	for s := range endOfSteps {
		if s > 0 && (s.String() == "" || strings.HasPrefix(s.String(), "Step(")) {
			t.Errorf("step %d has no name", s)
		}
	}
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Step(0), "Step(0)"},
		{endOfSteps, fmt.Sprintf("Step(%d)", endOfSteps)},
		{ContainerShutdown, "COMPLETED (shutdown)"},
		{ContainerSituation(6), "ContainerSituation(6)"},
		{LRPEvacuatingAlpha, "evacuating α"},
		{LRPSituation(9), "LRPSituation(9)"},
		{TaskContainerRetryable, "COMPLETED (retryable)"},
		{TaskContainer(5), "TaskContainer(5)"},
		{TaskResolvingOmega, "RESOLVING ω"},
		{TaskSituation(8), "TaskSituation(8)"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestARefusalEndsAContainerUnlessItMayStillServe(t *testing.T) {
	for s := range endOfSteps {
		if s == 0 {
			continue
		}
		want := true
		switch s {
		case EvacuateRunningLRP, FailTask, RunContainer, DeleteContainer, DeleteContainerUnlessKept, StopContainer, AwaitRouters:
			want = false
		}
		if got := s.DeleteWhenRefused(); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
	}
}
