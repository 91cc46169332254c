//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/lrp"
)

func TestWhatIsWrongIsSaidWithWhatWouldBeRight(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	slip := file("slip.json", "{\n  \"process_guid\": \"app\",\n  \"instnaces\": 3\n}")
	half := file("half.json", "{\n  \"process_guid\": ")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"no cells", []string{"--cells", "0"}, daemon.ExitSettings, []string{"cells", "0", "1", "32"}},
		{"too many cells", []string{"--cells", "33"}, daemon.ExitSettings, []string{"cells", "33", "1", "32"}},
		{"an unknown backend", []string{"--backend", "docker"}, daemon.ExitSettings, []string{"backend", "docker", "libcontainer", "process"}},
		{"an unknown flag", []string{"-cell", "3"}, daemon.ExitSettings, []string{"-cell"}},
		{"an argument", []string{"web.json"}, daemon.ExitSettings, []string{"web.json"}},
		{"an address of others", []string{"--listen", "0.0.0.0:8889"}, daemon.ExitSettings, []string{"listen", "127.0.0.1:PORT"}},
		{"a port that is taken", []string{"--listen", taken(t)}, daemon.ExitFailed, []string{"another process listens there", "--listen"}},
		{"a file that is not there", []string{"--lrp", filepath.Join(dir, "nothing.json")}, daemon.ExitFailed, []string{"--lrp", "nothing.json", "no such file"}},
		{"a file with a slip", []string{"--lrp", slip}, daemon.ExitFailed, []string{"slip.json:3:3: instnaces", `did you mean "instances"?`}},
		{"half a file", []string{"--lrp", half}, daemon.ExitFailed, []string{"half.json:2:"}},
		{"a place where nothing can be written", []string{"--data", "/proc/here"}, daemon.ExitFailed, []string{"nothing can be kept in /proc/here", "--data"}},
		{"a file for a directory", []string{"--data", slip}, daemon.ExitFailed, []string{"nothing can be kept in", "not a directory", "--data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := command(t, append([]string{"--data", filepath.Join(dir, "data"), "--backend", "process"}, c.args...)...)
			output, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("exit status %d, want %d", got, c.status)
			}
			for _, want := range c.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("it does not say %q:\n%s", want, output)
				}
			}
		})
	}
}

func TestADirectoryBelongsToOneProcess(t *testing.T) {
	data := t.TempDir()
	args := []string{"--data", data, "--backend", "process", "--cells", "1", "--no-sample"}
	p := start(t, args...)
	p.wait("Nothing is desired yet")
	other := start(t, args...)
	other.wait(data+" is in use by process ", "stop that one or name another directory with --data")
	other.ends(daemon.ExitFailed)
	interrupt(t, p)
}

func TestANewVersionMustBeHealthyForAWhileUnlessTheFileSaysOtherwise(t *testing.T) {
	for policy, want := range map[string]lrp.RolloutPolicy{
		"": {MinHealthy: 10 * time.Second}, `"rollout_policy": {"canary": 1},`: {Canary: 1}, `"rollout_policy": {},`: {},
	} {
		path := filepath.Join(t.TempDir(), "web.json")
		text := `{"process_guid": "web", "domain": "apps", ` + policy + ` "root_fs": "host:", "action": {"run": {"path": "sleep", "user": "root"}}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := readLRP(path)
		if err != nil {
			t.Fatal(err)
		}
		if l.Rollout == nil || *l.Rollout != want {
			t.Errorf("with %s the policy is %+v, want %+v", policy, l.Rollout, want)
		}
	}
}
