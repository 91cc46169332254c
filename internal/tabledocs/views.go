package tabledocs

import (
	"fmt"
	"strings"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// A view shows a table in the form of an older or shorter one, as a matrix of
// records and containers. Where the two differ, the table holds.
type view struct {
	title, intro      string
	records, contains []string
	// cell is the table's row, or false where the older form has none.
	cell func(record, container int) (rep.Row, bool)
	// differs lists where the older form says something else.
	differs []difference
}

type difference struct {
	record, container string
	theirs            string
}

func views() []view { return []view{lrpAlternate(), lrpOlder(), taskAlternate()} }

var (
	lrpRecords    = upTo[rep.LRPSituation](int(rep.LRPCrashed) + 1)
	lrpContainers = []rep.ContainerSituation{
		rep.ContainerReserved, rep.ContainerStarting, rep.ContainerRunning,
		rep.ContainerShutdown, rep.ContainerCrashed, rep.NoContainer,
	}
	taskRecords    = upTo[rep.TaskSituation](rep.TaskSituations)
	taskContainers = []rep.TaskContainer{
		rep.TaskContainerReserved, rep.TaskContainerActive, rep.TaskContainerRetryable,
		rep.TaskContainerCompleted, rep.TaskContainerNone,
	}
)

func upTo[T ~uint8](n int) (all []T) {
	for v := range T(n) {
		all = append(all, v)
	}
	return all
}

func names[T fmt.Stringer](values []T) (names []string) {
	for _, v := range values {
		names = append(names, v.String())
	}
	return names
}

// lrpView is the table for LRPs without the rows that only the long form has.
func lrpView(title, intro string, differs []difference) view {
	return view{
		title: title, intro: intro, differs: differs,
		records: names(lrpRecords), contains: names(lrpContainers),
		cell: func(r, c int) (rep.Row, bool) {
			row := rep.DecideLRP(lrpContainers[c], lrpRecords[r])
			return row, !row.Added
		},
	}
}

func lrpAlternate() view {
	var differs []difference
	for _, l := range lrpRecords {
		differs = append(differs, difference{l.String(), rep.ContainerReserved.String(), "do nothing"})
	}
	return lrpView("LRPs, alternate view (000 §Harmonizing ActualLRPs)",
		"The alternate view leaves reservations alone, for any record. The long table claims and runs them; otherwise nothing would ever start.", differs)
}

func lrpOlder() view {
	var differs []difference
	for _, l := range lrpRecords {
		differs = append(differs, difference{l.String(), rep.ContainerReserved.String(), "do nothing"})
	}
	unclaim := "put the record back to UNCLAIMED and request a start"
	differs = append(differs,
		difference{rep.LRPRunningAlpha.String(), rep.ContainerStarting.String(), "do nothing"},
		difference{rep.LRPNone.String(), rep.ContainerShutdown.String(), "crash LRP, then delete container"},
		difference{rep.LRPClaimedAlpha.String(), rep.NoContainer.String(), unclaim},
		difference{rep.LRPRunningAlpha.String(), rep.NoContainer.String(), unclaim},
	)
	return lrpView("LRPs, the older table (001 §Harmonizing ActualLRPs)",
		"The older document leaves reservations alone, does not correct a record that runs ahead of its container, and takes an unknown container that stopped for a crash. "+
			"For a record without a container it names only one of the two outcomes of a removal: an index that is still desired is UNCLAIMED again in the same commit.", differs)
}

func taskAlternate() view {
	var differs []difference
	for _, t := range taskRecords {
		theirs := "do nothing"
		if t == rep.TaskRunningAlpha {
			theirs = "reject task"
		}
		differs = append(differs, difference{t.String(), rep.TaskContainerActive.String(), theirs})
	}
	differs = append(differs,
		difference{rep.TaskPending.String(), rep.TaskContainerRetryable.String(), "start task, then run container"},
		difference{rep.TaskRunningAlpha.String(), rep.TaskContainerRetryable.String(), "do nothing"},
	)
	return view{
		title: "Tasks, alternate view (000 §Harmonizing Tasks)",
		intro: "The alternate view has its second and third column in each other's place: it rejects tasks that run and runs tasks that are over. " +
			"Read the other way round it agrees with the long table but for two things: a container that ended is deleted, not left, and one that lives is not run a second time.",
		records: names(taskRecords), contains: names(taskContainers),
		cell: func(r, c int) (rep.Row, bool) {
			row := rep.DecideTask(taskContainers[c], taskRecords[r])
			return row, !row.Added || taskContainers[c] == rep.TaskContainerRetryable
		},
		differs: differs,
	}
}

// matrix is the view with a † where the older form says something else.
func (v *view) matrix() (head []string, rows [][]string) {
	differs := map[[2]string]bool{}
	for _, d := range v.differs {
		differs[[2]string{d.record, d.container}] = true
	}
	for r, record := range v.records {
		row := []string{record}
		for c, container := range v.contains {
			text := ""
			if rule, ok := v.cell(r, c); ok {
				text = rule.Action()
			}
			if differs[[2]string{record, container}] {
				text += " †"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return append([]string{"record"}, v.contains...), rows
}

func viewsPage() string {
	var b strings.Builder
	b.WriteString("# Older forms of the rep's tables\n\n" + generated +
		"\nThe specification has shorter and older forms of the rep's tables. Here the tables are shown in those forms. " +
		"Where a form says something else (†), the long table holds.\n")
	for _, v := range views() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", v.title, v.intro)
		head, rows := v.matrix()
		writeMarkdown(&b, head, rows)
		b.WriteString("\nWhat that form says otherwise:\n\n")
		for _, d := range v.differs {
			fmt.Fprintf(&b, "- %s × %s: %s\n", d.container, d.record, d.theirs)
		}
	}
	b.WriteString("\n## Evacuation, the table of targets (000 §Harmonizing During Evacuation)\n\n" +
		"Before its long table the section has two lines by which an index without an evacuating record always gets one. " +
		"They contradict these rows of the long table, which holds:\n\n")
	for o := range lrp.OrdinarySituation(lrp.OrdinarySituations) {
		if r := lrp.EvacuationRule(o, lrp.EvacuatingNone); !r.PutEvacuating {
			fmt.Fprintf(&b, "- %v × none: %s\n", o, r.Action())
		}
	}
	return b.String()
}
