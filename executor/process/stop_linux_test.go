package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestContainersThatAreStoppedTogetherShareTheLooksAtTheHost(t *testing.T) {
	const cells, each = 4, 50
	ctx := t.Context()
	for _, test := range []struct {
		name string
		// stop gets the backend that has started a container and the next daemon's.
		stop func(own, next executor.ContainerBackend, guid string) error
	}{
		{"by the daemon that has started them", func(own, _ executor.ContainerBackend, guid string) error {
			return errors.Join(own.Signal(ctx, guid, executor.Kill), own.Delete(ctx, guid))
		}},
		{"by the next daemon", func(_, next executor.ContainerBackend, guid string) error {
			return next.Delete(ctx, guid)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var backends [cells][2]executor.ContainerBackend
			for i := range backends {
				dir := t.TempDir()
				backends[i] = [2]executor.ContainerBackend{newBackend(t, dir), newBackend(t, dir)}
				for n := range each {
					guid := fmt.Sprint("c", n)
					if _, err := backends[i][0].Create(ctx, executor.ContainerSpec{GUID: guid}); err != nil {
						t.Fatal(err)
					}
					if _, err := backends[i][0].Start(ctx, guid, executor.ProcessSpec{Path: "sleep", Args: []string{"1000"}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			var taken atomic.Int64
			defer process.Looks(func(look func() error) error {
				taken.Add(1)
				return look()
			})()
			var stopping sync.WaitGroup
			for _, b := range backends {
				for n := range each {
					stopping.Go(func() {
						if err := test.stop(b[0], b[1], fmt.Sprint("c", n)); err != nil {
							t.Error(err)
						}
					})
				}
			}
			stopping.Wait()
			// Each of them needs two looks at least: some 400 in all if they shared none.
			if n := taken.Load(); n > cells*each/2 {
				t.Errorf("%d containers took %d looks at the host", cells*each, n)
			} else {
				t.Logf("%d containers took %d looks at the host", cells*each, n)
			}
			for _, b := range backends {
				if guids, err := b[1].List(ctx); err != nil || len(guids) > 0 {
					t.Errorf("left behind: %q, %v", guids, err)
				}
			}
		})
	}
}

func TestNothingIsSaidToHaveStoppedWhileNobodyCanLook(t *testing.T) {
	ctx := t.Context()
	b := newBackend(t, t.TempDir())
	if _, err := b.Create(ctx, executor.ContainerSpec{GUID: "c"}); err != nil {
		t.Fatal(err)
	}
	blind := errors.New("too many open files")
	see := process.Looks(func(func() error) error { return blind })
	defer see()
	for _, stop := range []struct {
		name string
		by   func() error
	}{
		{"TERM", func() error { return b.Signal(ctx, "c", executor.Terminate) }},
		{"KILL", func() error { return b.Signal(ctx, "c", executor.Kill) }},
		{"Delete", func() error { return b.Delete(ctx, "c") }},
	} {
		if err := stop.by(); !errors.Is(err, blind) || !strings.Contains(err.Error(), `container "c"`) {
			t.Errorf("%s says %v", stop.name, err)
		}
	}
	if guids, err := b.List(ctx); err != nil || len(guids) != 1 {
		t.Errorf("it lists %q, %v, want the container that was not deleted", guids, err)
	}
	see()
	if err := b.Delete(ctx, "c"); err != nil {
		t.Error(err)
	}
}

func TestAChildThatClearedItsEnvironmentEndsWithItsContainer(t *testing.T) {
	for _, test := range []struct {
		name string
		stop []executor.Signal
	}{
		{"killed", []executor.Signal{executor.Kill}},
		{"asked to end, and then killed", []executor.Signal{executor.Terminate, executor.Kill}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, _ := newContainer(t, process.Options{})
			var out testenv.Output
			ended := make(chan executor.Exit, 1)
			if _, err := b.Start(t.Context(), "c", executor.ProcessSpec{
				Path: "/bin/sh", Args: []string{"-c", `env -i PATH="$PATH" setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`},
				Stdout: &out, Exited: func(e executor.Exit) { ended <- e },
			}); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(30 * time.Second); !strings.HasSuffix(out.String(), "\n"); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it does not start")
				}
			}
			pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range test.stop {
				if err := b.Signal(t.Context(), "c", s); err != nil {
					t.Fatal(err)
				}
				if s == executor.Terminate {
					<-ended // the parent, not the child
				}
			}
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !strings.Contains(string(stat), ") Z ") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("it outlives its container: %s", stat)
			}
		})
	}
}

func TestAChildThatClearedItsEnvironmentIsKnownAfterItsParentWasSignalled(t *testing.T) {
	for _, signal := range []executor.Signal{executor.Terminate, executor.Kill} {
		for _, child := range []string{"setsid sh", "sh"} { // in a session of its own, and in its parent's
			t.Run(fmt.Sprint(signal, " ", child), func(t *testing.T) {
				b, _ := newContainer(t, process.Options{})
				var out testenv.Output
				ended := make(chan executor.Exit, 1)
				p, err := b.Start(t.Context(), "c", executor.ProcessSpec{
					Path: "/bin/sh", Args: []string{"-mc", `env -i PATH="$PATH" ` + child + ` -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`},
					Stdout: &out, Exited: func(e executor.Exit) { ended <- e },
				})
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(waitFor(t, &out))
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Signal(signal); err != nil { // as a manager does with its steps
					t.Error(err)
				}
				<-ended
				if err := errors.Join(b.Signal(t.Context(), "c", executor.Kill), b.Delete(t.Context(), "c")); err != nil {
					t.Fatal(err)
				}
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err == nil && !strings.Contains(string(stat), ") Z ") {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					t.Errorf("it outlives its container: %s", stat)
				}
			})
		}
	}
}

// Each process starts the next one in a session of its own and ends.
func TestAProcessThatFleesFromSessionToSessionIsCaught(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	dir := t.TempDir()
	alive, goOn := filepath.Join(dir, "alive"), filepath.Join(dir, "go")
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(goOn) })
	ended := make(chan executor.Exit, 1)
	if _, err := b.Start(t.Context(), "c", executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", `eval "$NEXT"`},
		Env: []executor.EnvVar{
			{Name: "NEXT", Value: `[ -e "$GO" ] && { echo x > "$ALIVE"; setsid sh -c "$NEXT" & } > /dev/null 2>&1 < /dev/null`},
			{Name: "GO", Value: goOn}, {Name: "ALIVE", Value: alive},
		},
		Exited: func(e executor.Exit) { ended <- e },
	}); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := b.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("it outlives its container")
	}
}

func TestAContainerEndsAlthoughAProcessOfTheHostCannotBeLookedAt(t *testing.T) {
	var log testenv.Output
	b, _ := newContainer(t, process.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var out testenv.Output
	if _, err := b.Start(t.Context(), "c", executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", `setsid sh -c 'echo $$; exec sleep 1000' & wait`}, Stdout: &out,
	}); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(waitFor(t, &out))
	if err != nil {
		t.Fatal(err)
	}
	proc := t.TempDir() // of all processes of the host that there are now, and one more
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(name, filepath.Join(proc, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	sick := filepath.Join(proc, "0")
	stat, err := os.ReadFile("/proc/1/stat")
	if err := errors.Join(err, os.Mkdir(sick, 0o755), os.WriteFile(sick+"/stat", stat, 0o644), syscall.Mkfifo(sick+"/environ", 0o644)); err != nil {
		t.Fatal(err)
	}
	defer process.LookAt(proc)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := errors.Join(b.Signal(ctx, "c", executor.Kill), b.Delete(ctx, "c")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(text), ") Z ") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("it outlives its container: %s", text)
	}
	if said := log.String(); strings.Count(said, sick+"/environ") != 1 {
		t.Errorf("the log says, want one line about the file that cannot be read:\n%s", said)
	}
	if f, err := os.OpenFile(sick+"/environ", os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close() // ends the reading
	}
}

func TestASignalSaysWhatFollowsWhenNobodyCanLook(t *testing.T) {
	var log testenv.Output
	b, _ := newContainer(t, process.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ended := make(chan executor.Exit, 1)
	p, err := b.Start(t.Context(), "c", executor.ProcessSpec{Path: "sleep", Args: []string{"1000"}, Exited: func(e executor.Exit) { ended <- e }})
	if err != nil {
		t.Fatal(err)
	}
	see := process.Looks(func(func() error) error { return errors.New("too many open files") })
	defer see()
	for range 2 { // the second finds nothing to signal
		if err := p.Signal(executor.Kill); err != nil {
			t.Errorf("it was signalled, and the error is %v", err)
		}
		if ended != nil {
			<-ended
			ended = nil
		}
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "although nobody could look") || !strings.Contains(said, "too many open files") {
		t.Errorf("the log says, want one line:\n%s", said)
	}
}
