//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
	"github.com/diegosdk/diego/internal/testenv"
)

var (
	doomedSeed   = flag.Uint64("libcontainer.seed", 0, "kill daemons at the moments of this seed")
	doomedRounds = flag.Int("libcontainer.rounds", 30, "how many daemons to kill while libcontainer works")
)

// doomed begins the stage of a doomedDaemon; the delay follows.
const doomed = "doomed "

// doomedGUIDs are what a doomedDaemon makes at once: while it forks for one of
// them, the child has the descriptors of the others for a moment.
var doomedGUIDs = []string{"a", "b"}

// doomedDaemon is a cell that makes containers and is killed some time after
// libcontainer has begun to run the first of them.
func doomedDaemon(delay string) {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	after, err := time.ParseDuration(delay)
	die(err)
	b, err := New(Options{Dir: os.Getenv(daemonDir)})
	die(err)
	var once sync.Once
	stage.Reached = func() {
		for _, guid := range doomedGUIDs {
			if exists(filepath.Join(b.states, guid)) { // Create is over, and Run is next
				once.Do(func() { time.AfterFunc(after, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }) })
			}
		}
	}
	for _, guid := range doomedGUIDs {
		go func() {
			_, err := b.Create(context.Background(), full(guid))
			die(err)
		}()
	}
	select {}
}

// Run takes about 25 ms. What it does by then is libcontainer's: processes are
// cloned, wait for each other, are put into cgroups and set limits, and mount.
func TestADaemonThatIsKilledWhileLibcontainerWorksLeavesNothing(t *testing.T) {
	testenv.Root(t)
	seed := *doomedSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -libcontainer.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	// Who loses his parent becomes our child: we see him, wherever he is.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	dir := filepath.Join(t.TempDir(), "cell")
	const longest = 30 * time.Millisecond
	rounds := *doomedRounds
	if testing.Short() {
		rounds = min(rounds, 8)
	}
	for range rounds {
		delay := time.Duration(random.Int64N(int64(longest)))
		t.Run("after "+delay.String(), func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), daemonDir+"="+dir, daemonStage+"="+doomed+delay.String())
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			err := cmd.Run()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the daemon ended by itself: %v: %s", err, &said)
			}
			awaitOrphans(t)
			f := newFixture(t, func(o *Options) { o.Dir = dir })
			_, stop := startManager(t, f.Backend, dir+"-cell")
			defer stop()
			table := []string{"table diego-" + f.id}
			f.eventually("all but the table is removed", func() bool { return cmp.Equal(traces(t, f.Backend), table) })
		})
	}
}

// awaitOrphans waits until no process has this one for its parent.
func awaitOrphans(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // between two looks
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err == unix.ECHILD:
			return
		case err != nil && err != unix.EINTR:
			t.Fatal(err)
		case pid == 0 && time.Now().After(deadline):
			t.Fatalf("processes have outlived their daemon: %q", children())
		}
	}
}

// children are the processes whose parent is this one.
func children() []string {
	var all []string
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range names {
		text, _ := os.ReadFile(name) // it may have ended
		if _, rest, ok := strings.Cut(string(text), ") "); ok && strings.HasPrefix(rest[1:], fmt.Sprintf(" %d ", os.Getpid())) {
			all = append(all, string(text))
		}
	}
	return all
}
