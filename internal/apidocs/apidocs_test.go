package apidocs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/diegosdk/diego/httpapi"
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

func TestEveryTypeHasItsComment(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^### ([a-z]+\.\w+)\n\n\|`).FindAllStringSubmatch(page, -1) {
		t.Errorf("%s has members and no comment: readDocs does not read its package", match[1])
	}
}

func TestEveryCallHasALineWithItsPath(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range httpapi.Calls() {
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

var (
	timeAsNumber = regexp.MustCompile(`"(since|at|deadline|\w+_(since|at))":\s*[0-9]+`)
	otherZone    = regexp.MustCompile(`"\d{4}-\d{2}-\d{2}T[0-9:.]+[^0-9:.Z"][^"]*"`)
	duration     = regexp.MustCompile("\\| `(\\w+)` \\| integer \\(nanoseconds\\)")
)

func TestTimesAreRFC3339InUTCAndDurationsSayTheirUnit(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []*regexp.Regexp{timeAsNumber, otherZone} {
		for _, found := range bad.FindAllString(page, -1) {
			t.Errorf("the page has a time as %s", found)
		}
	}
	for _, found := range duration.FindAllStringSubmatch(page, -1) {
		if !strings.HasSuffix(found[1], "_nanoseconds") {
			t.Errorf("the duration %s does not say its unit", found[1])
		}
	}
}
