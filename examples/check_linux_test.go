package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestARepChecksItsHostWithoutAnyOtherSetting(t *testing.T) {
	b, realErr := daemon.OpenBackend(t.Context(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: t.TempDir()})
	if realErr == nil {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(binaries, "rep"), "--check", "--log-format", "json", "--dir", t.TempDir())
	output, _ := cmd.Output() // its status is looked at
	var e daemon.Examination
	if err := json.Unmarshal(output, &e); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if e.RealContainers != (realErr == nil) || cmd.ProcessState.Success() != e.RealContainers {
		t.Errorf("exit status %d with %+v, and the backend says %v", cmd.ProcessState.ExitCode(), e, realErr)
	}
}

func TestARepThatIsNotRootSaysThatItsHostNeedsIt(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root", "run the tests as root")
	}
	if err := os.Chmod(binaries, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.Command(filepath.Join(binaries, "rep"), "--check")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, _ := cmd.Output()
	if status := cmd.ProcessState.ExitCode(); status != daemon.ExitFailed {
		t.Errorf("exit status %d, want %d", status, daemon.ExitFailed)
	}
	for _, want := range []string{"rights ", "fatal", "run as root", "this host cannot run real containers"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("it does not say %q:\n%s", want, output)
		}
	}
}
