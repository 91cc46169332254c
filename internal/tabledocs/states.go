package tabledocs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

// An edge leads from one state to another by any of some commands.
type edge struct{ from, to, by string }

// outside stands for a record that is not there.
const outside = "[*]"

func statesPage() string {
	var b strings.Builder
	b.WriteString("# State machines\n\n" + generated)
	writeDiagram(&b, "ActualLRP", "Drawn from what `lrp.Step` does to one index when every command comes in every state that they lead to. "+
		"SUSPECT and EVACUATING are presences: the cell is missing, or shuts down. A record that goes back to UNCLAIMED is on no cell any more.", lrpEdges())
	writeDiagram(&b, "Task", "Drawn from `task.Table`; [task](task.md) says what is asked of each command.", taskEdges())
	writeDiagram(&b, "Container", "Drawn from `executor.Transitions`. A container may be deleted in any state.", containerEdges())
	writeDiagram(&b, "Rollout", rolloutIntro, rolloutEdges())
	return b.String()
}

func writeDiagram(b *strings.Builder, title, intro string, edges []edge) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```mermaid\nstateDiagram-v2\n", title, intro)
	slices.SortFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to), cmp.Compare(x.by, y.by))
	})
	edges = slices.Compact(edges)
	for i := 0; i < len(edges); {
		j := i
		var by []string
		for ; j < len(edges) && edges[j].from == edges[i].from && edges[j].to == edges[i].to; j++ {
			by = append(by, edges[j].by)
		}
		fmt.Fprintf(b, "    %s --> %s", edges[i].from, edges[i].to)
		if by[0] != "" {
			fmt.Fprintf(b, ": %s", strings.Join(by, ", "))
		}
		b.WriteString("\n")
		i = j
	}
	b.WriteString("```\n")
}

func taskEdges() (edges []edge) {
	node := func(s task.State) string {
		if s == task.Absent {
			return outside
		}
		return s.String()
	}
	for _, r := range task.Table() {
		if r.Next != r.State {
			edges = append(edges, edge{node(r.State), node(r.Next), r.Command})
		}
		if r.LastNext != r.Next {
			edges = append(edges, edge{node(r.State), node(r.LastNext), r.Command})
		}
	}
	return edges
}

func containerEdges() []edge {
	edges := []edge{{from: outside, to: executor.Reserved.String()}}
	for _, t := range executor.Transitions() {
		edges = append(edges, edge{from: t.From.String(), to: t.To.String()})
	}
	return append(edges, edge{from: executor.Completed.String(), to: outside})
}
