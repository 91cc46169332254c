package tabledocs

import (
	"sync"

	"github.com/diegosdk/diego/internal/modelcheck"
)

const rolloutIntro = "Drawn from the histories of a rollout of two indices with a canary, `min_healthy` and `on_failure` PAUSE, which the model checker plays with the planner. " +
	"A state is what `waits_for` says of the first index that holds the rollout up; NOTHING is a rollout that goes on at once. " +
	"The outside is a process without a rollout. From every state but RESUMED, `PauseRollout` leads to RESUMED, and from every state `AbortRollout` leads outside: the definition before is active again."

var rolloutHistories = sync.OnceValue(modelcheck.Edges)

// rolloutEdges leaves out what the introduction says of every state.
func rolloutEdges() (edges []edge) {
	for _, e := range rolloutHistories() {
		if e.By != "AbortRollout" && e.By != "PauseRollout" {
			edges = append(edges, edge{waitNode(e.From), waitNode(e.To), e.By})
		}
	}
	return edges
}

func waitNode(wait string) string {
	if wait == "" {
		return outside
	}
	return wait
}
