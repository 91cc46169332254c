//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// holdsPipe writes all the time, and then keeps its output locked: the kernel waits for data
// of a socket in which there is none.
var holdsPipe = fmt.Sprintf(`perl -MSocket -e 'unless (fork) { $| = 1; 1 while print "locked\n" } socketpair A, B, AF_UNIX, SOCK_STREAM, 0; select undef, undef, undef, .1; while (1) { syscall %d, fileno A, 0, 1, 0, 65536, 0 }'`, unix.SYS_SPLICE)

func TestAContainerThatLocksItsOutputIsEndedAndHoldsUpNoOther(t *testing.T) {
	f := newFixture(t)
	neighbour, _ := f.create(size(32))
	n := f.as("nobody", neighbour, "trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done")
	n.says("ready")
	guid, _ := f.create(size(64))
	hostile := f.as("nobody", guid, holdsPipe)
	hostile.says("locked")
	for range 20 {
		if r := f.as("nobody", neighbour, "echo works"); !r.end().Success() || r.stdout.String() != "works\n" {
			t.Errorf("a program of the neighbour says %q", r.stdout)
		}
	}
	if end := hostile.end(); !strings.Contains(end.String(), "kept the daemon from its output") || end.Signal != int(unix.SIGKILL) {
		t.Errorf("it ended as %+v, and not for what it does: %s", end, hostile.stderr)
	}
	// What begins while the others die may be ended with them.
	f.eventually("something runs in its container again", func() bool {
		r, err := f.try("nobody", guid, "echo works")
		return err == nil && r.end().Success()
	})
	hostile = f.as("nobody", guid, holdsPipe)
	hostile.says("locked")
	f.delete(guid)
}

// locked is the stage of a daemon with a container that keeps it from its output.
const locked = "locked"

func lockedDaemon() {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	b, err := New(Options{Dir: os.Getenv(daemonDir)})
	die(err)
	ctx := context.Background()
	_, err = b.Create(ctx, executor.ContainerSpec{GUID: "a", RootFS: "host:"})
	die(err)
	_, err = b.Start(ctx, "a", executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", holdsPipe}, User: "nobody", Stdout: loud{}})
	die(err)
	select {}
}

// loud hides that standard output is a file, which processes would get as it is.
type loud struct{}

func (loud) Write(p []byte) (int, error) { return os.Stdout.Write(p) }

func TestADaemonThatIsKeptFromOutputDiesWithItsContainersWhenItIsKilled(t *testing.T) {
	testenv.Root(t)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil { // for awaitOrphans
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	dir := filepath.Join(t.TempDir(), "cell")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonDir+"="+dir, daemonStage+"="+locked)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	output := bufio.NewReader(out)
	if line, err := output.ReadString('\n'); line != "locked\n" {
		t.Errorf("the output begins with %q, %v", line, err)
	}
	go io.Copy(io.Discard, output)
	waits := func() bool {
		states, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", cmd.Process.Pid))
		for _, name := range states {
			if stat, _ := os.ReadFile(name); strings.Contains(string(stat), ") D ") {
				return true
			}
		}
		return false
	}
	for began := time.Now(); !waits(); time.Sleep(time.Millisecond) { // between two looks
		if time.Since(began) > patience {
			t.Fatal("no thread of the daemon waits for its output")
		}
	}
	cmd.Process.Kill()
	go func() {
		cmd.Wait()
		close(dead)
	}()
	select {
	case <-dead:
	case <-time.After(patience):
		t.Fatal("the daemon does not die")
	}
	awaitOrphans(t)
	b := newBackend(t, Options{Dir: dir})
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
