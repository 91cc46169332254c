package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts/test-hosts runs the cell's unit; systemd alone can judge whether all
// of them are valid.
func TestTheUnitsOfSystemdAreValidAndStartTheDaemons(t *testing.T) {
	for _, name := range []string{"bbs", "auctioneer", "rep"} {
		unit := "diego-" + name + ".service"
		t.Run(unit, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("systemd", unit))
			if err != nil {
				t.Fatal(err)
			}
			command := "ExecStart=/usr/local/bin/" + name + " --config /etc/diego/" + name + ".json\n"
			if !strings.Contains(string(text), command) {
				t.Errorf("it has no line %q", command)
			}
			if delegated := strings.Contains(string(text), "Delegate=yes\n"); delegated != (name == "rep") {
				t.Errorf("does it own its cgroups: %v", delegated)
			}
			analyze, err := exec.LookPath("systemd-analyze")
			if err != nil {
				t.Log("this machine has no systemd to ask")
				return
			}
			// The program that it names has to be there.
			here := filepath.Join(t.TempDir(), unit)
			built := strings.ReplaceAll(string(text), "/usr/local/bin/", binaries+"/")
			if err := os.WriteFile(here, []byte(built), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(analyze, "verify", "--man=no", here).CombinedOutput(); err != nil || len(out) != 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
