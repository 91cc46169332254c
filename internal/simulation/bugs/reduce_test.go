package bugs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/simulation"
)

// The history that shows a real fault of the past is reduced from a hundred faults
// to the few that it takes, told as a story, and printed as a record that passes
// without the bug.
func TestAFailureIsReducedToAStoryAndARecord(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name != "told-after-deletion" {
			continue
		}
		campaign, err := b.build(t.Context(), root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), campaign, "-scenario", "anything", "-cells", "models", "-seeds", "25", "-reduce", "5m").CombinedOutput()
		if err == nil {
			t.Fatalf("the bug was not caught:\n%s", out)
		}
		_, story, _ := strings.Cut(string(out), "The story:")
		for _, part := range []string{"commits Desire: task", "fault: the completion of task", "[callbacks]"} {
			if !strings.Contains(story, part) {
				t.Errorf("the story does not have %q:\n%s", part, out)
			}
		}
		_, text, _ := strings.Cut(story, "\n\nscenario ")
		r, err := simulation.ParseRecord("scenario " + text)
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		if n := len(r.History.Only); n > 10 {
			t.Errorf("it still has %d faults:\n%s", n, out)
		}
		if _, err := r.Scenario.Play(t.Context(), r.History, nil); err != nil {
			t.Errorf("without the bug: %v", err)
		}
		return
	}
	t.Fatal("the bug is not in the catalogue")
}
