package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func daemonsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/daemons.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheHelpOfEveryDaemonIsInTheDocuments(t *testing.T) {
	page := daemonsPage(t)
	for _, name := range []string{"bbs", "auctioneer", "rep"} {
		help, err := exec.Command(filepath.Join(binaries, name), "-h").Output()
		if err != nil {
			t.Fatal(err)
		}
		if section := "### " + name + "\n\n```\n" + string(help) + "```\n"; !strings.Contains(page, section) {
			t.Errorf("docs/daemons.md should have this:\n%s", section)
		}
	}
}

// The files of the layout are right but for the certificates, which are not
// here.
func TestTheSettingsInTheDocumentsAreAccepted(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^`/?[a-z/]*?([a-z]+)\\.json`[^\n]*\n\n```json\n(.*?)^```$").FindAllStringSubmatch(daemonsPage(t), -1)
	if len(blocks) != 3 {
		t.Fatalf("there are %d files", len(blocks))
	}
	for _, block := range blocks {
		name, settings := block[1], block[2]
		file := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		p := launch(t, name, "--config", file)
		if status := p.status(); status != 1 || !strings.Contains(p.text(), "tls_cert: open /etc/diego/") {
			t.Errorf("%s ends with status %d:\n%s", name, status, p.text())
		}
	}
}

func TestWrongSettingsAreToldAsInTheDocuments(t *testing.T) {
	page := daemonsPage(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bbs.json", []byte("{\n\"ledaer_ttl\": \"5s\",\n\"max_loss\": 2\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(filepath.Join(binaries, "bbs"), "--plain", "--config", "bbs.json", "--store-wait", "soon").CombinedOutput()
	if !strings.Contains(page, "```\n"+string(out)+"```\n") {
		t.Errorf("docs/daemons.md has not:\n%s", out)
	}
}
