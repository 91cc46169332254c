//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// A first process may die after libcontainer has let it go and before it says that it is
// ready. Nobody waits for it then.
func TestNobodyWaitsForAFirstProcessThatHasDiedBeforeItWasReady(t *testing.T) {
	f := newFixture(t)
	defer func() { stage.Reached = func() {} }()
	for range 10 {
		spec := f.spec()
		g, err := f.cgroups.Child(spec.GUID)
		if err != nil {
			t.Fatal(err)
		}
		stages := 0
		stage.Reached = func() {
			if g.PIDs() < 1 {
				return
			}
			if stages++; stages == 2 { // the first is before it is let go
				for _, text := range strings.Fields(f.cgroupFile(spec.GUID, "pids/cgroup.procs", "cgroup.procs")) {
					if pid, err := strconv.Atoi(text); err == nil {
						unix.Kill(pid, unix.SIGSTOP)
					}
				}
				time.AfterFunc(300*time.Millisecond, func() { g.Kill(f.ctx) })
			}
		}
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		_, err = f.Create(ctx, spec)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Create waits for what is dead: %v", err)
		}
		f.delete(spec.GUID)
	}
}

// Files are written before anything runs, and would replace what the container is shown.
func TestAFileDoesNotTakeThePlaceOfWhatAContainerNeeds(t *testing.T) {
	f := newFixture(t)
	for _, place := range []string{"/proc", "/sys/..//proc", "/sys", "/dev", "/", "/proc/1/comm", "/dev/null"} {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		spec := f.spec(func(s *executor.ContainerSpec) { s.Files = []executor.File{{Path: place, Content: "evil"}} })
		_, err := f.Create(ctx, spec)
		cancel()
		if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("a file at %q: the container needs its own ", place)) {
			t.Errorf("a file at %s: %v", place, err)
		}
		f.delete(spec.GUID)
	}
}
