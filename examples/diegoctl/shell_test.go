package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

// asProgram makes the test binary be diegoctl.
const asProgram = "DIEGOCTL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a directory with diegoctl in it.
func program(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	script := "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "diegoctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell runs a script where diegoctl is found, in a directory with one file.
func shell(t *testing.T, name, script string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		testenv.Missing(t, name, "install it")
	}
	dir := program(t)
	cmd := exec.Command(path, "-c", script)
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "my spec.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Nothing of the environment reaches diegoctl but what finds it, and no
	// server is there: port 1 refuses at once.
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "DIEGO_BBS=http://127.0.0.1:1",
		"GOCOVERDIR=" + t.TempDir()} // where a test binary that measures coverage wants to write
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestBashCompletesCommandLines(t *testing.T) {
	// offer LINE... prints what bash would offer for the last word. The first
	// two functions are what the package bash-completion and bash itself do.
	const script = `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
compopt() { :; }
source <(diegoctl completion bash --no-descriptions)
[[ $(complete -p diegoctl) == *__start_diegoctl* ]] || { echo "nothing is registered"; exit 1; }
offer() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMPREPLY=()
	__start_diegoctl
	local IFS='|'
	echo "${COMPREPLY[*]}"
}
offer diegoctl depl
offer diegoctl lrp sc
offer diegoctl deployment ""
offer diegoctl lrp scale --w
offer diegoctl instances --state CR
offer diegoctl completion ""
offer diegoctl lrp get ""
offer diegoctl nonsense ""
`
	want := strings.Join([]string{
		"deployment", "scale", "abort|activate|confirm|create|diff|history|list|pause|restart|resume|rollback|status|update", "--wait", "CRASHED", "bash|fish|powershell|zsh", "", "", "",
	}, "\n")
	if got := shell(t, "bash", script); got != want {
		t.Errorf("bash offers\n%s\nwant\n%s", got, want)
	}
}

// The other shells are not on every machine; where they are, they must
// understand their script.
func TestOtherShellsUnderstandTheirScripts(t *testing.T) {
	for name, check := range map[string]string{"zsh": "diegoctl completion zsh | zsh -n", "fish": "diegoctl completion fish | fish -n"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not here", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if got := shell(t, "bash", "set -o pipefail; "+check); got != "" {
				t.Errorf("it says %s", got)
			}
		})
	}
}

func TestTheProgramItselfAnswersAndExits(t *testing.T) {
	got := shell(t, "bash", `
diegoctl help lrp scale | head -1
diegoctl lrp list -timeout 30s 2>&1; echo $?
diegoctl lpr 2>&1; echo $?
diegoctl lrp list --timeout 30s >/dev/null 2>&1; echo $?
echo '{}' | diegoctl lrp create -f - 2>&1; echo $?
diegoctl version -o json | cut -c1-6
`)
	want := `Change the number of instances
diegoctl lrp list: there is no flag -timeout; long flags have two hyphens: --timeout
  usage: diegoctl lrp list [flags]
  diegoctl lrp list --help says more
2
diegoctl: there is no command "lpr"; did you mean "lrp"?
  diegoctl --help lists its commands
2
5
standard input:1:1: process_guid: want 1 to 255 letters, digits, - and _
standard input:1:1: domain: want 1 to 255 bytes of UTF-8 without NUL
standard input:1:1: root_fs: want a URL with a scheme
standard input:1:1: action: []: want exactly one of run, download, upload, timeout, try, emit_progress, parallel, serial and codependent
6
{"go":
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
