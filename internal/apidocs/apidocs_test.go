package apidocs

import (
	"os"
	"strings"
	"testing"

	"github.com/diegosdk/diego"
)

func TestTheDocumentationIsNotStale(t *testing.T) {
	want, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile("../../docs/api.md"); err != nil || string(have) != want {
		t.Errorf("docs/api.md is stale (%v): run go generate ./... and commit the result", err)
	}
}

func TestEveryCallHasALineWithItsPath(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range diego.Calls() {
		if !strings.Contains(page, "$"+strings.ToUpper(c.Service)+c.Path) || !strings.Contains(page, "### "+c.Name+"\n") {
			t.Errorf("%s is not documented", c.Name)
		}
		if c.Doc == "" || len(c.Roles) == 0 {
			t.Errorf("%s: nothing is said of it, or nobody may call it", c.Name)
		}
	}
}

func TestEveryMemberOfTheTypesIsExplainedOrPlain(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"### lrp.ActualLRP\n", "### lrp.DesiredLRP\n", "### task.Task\n", "### auction.CellState\n", "### storage.Event\n", "### executor.RunInfo\n"} {
		if !strings.Contains(page, name) {
			t.Errorf("the page lacks %s", name)
		}
	}
}
