package lrp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
)

func TestTheTableOfRolloutsIsThatWrittenByHand(t *testing.T) {
	text, err := os.ReadFile("testdata/rollout.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, turn := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "== "); ok {
			turn = name
			continue
		}
		active, cells, ok := strings.Cut(line, "  ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for i, cell := range strings.Fields(cells) {
			want[turn+" × "+active+" × "+lrp.RolloutOthers(i).String()] = cell
		}
	}
	if n := lrp.RolloutTurns * lrp.RolloutActives * lrp.RolloutOthersKinds; len(want) != n {
		t.Fatalf("the transcription has %d situations, want %d", len(want), n)
	}
	commands := map[lrp.Command]string{nil: "-", lrp.AdvanceRollout{}: "A", lrp.StopOvertaken{}: "S", lrp.FailRollout{}: "F"}
	counts := map[lrp.RolloutCount]string{lrp.CountsPending: "p", lrp.CountsInFlight: "f", lrp.CountsStalled: "s", lrp.CountsDone: "d"}
	waits := map[lrp.RolloutWait]string{
		lrp.WaitNothing: ".", lrp.WaitStart: "S", lrp.WaitRestart: "R", lrp.WaitHealthy: "H", lrp.WaitReady: "Y", lrp.WaitConfirmed: "C", lrp.WaitResumed: "P",
	}
	used := map[string]bool{}
	for turn := range lrp.RolloutTurn(lrp.RolloutTurns) {
		for active := range lrp.RolloutActive(lrp.RolloutActives) {
			for others := range lrp.RolloutOthers(lrp.RolloutOthersKinds) {
				row := lrp.RolloutRule(turn, active, others)
				key := turn.String() + " × " + active.String() + " × " + others.String()
				if got := commands[row.Command] + counts[row.Count] + waits[row.Wait]; got != want[key] {
					t.Errorf("%s: got %s, want %s", key, got, want[key])
				}
				used[row.Reason+row.Count.String()+waits[row.Wait]] = true
			}
		}
	}
	for _, row := range lrp.RolloutTable() {
		if row.Reason == "" || !used[row.Reason+row.Count.String()+waits[row.Wait]] {
			t.Errorf("no situation uses the row %+v, or it has no reason", row)
		}
	}
}
