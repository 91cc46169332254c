package process

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeProc is a directory like /proc. The environments of the stuck processes cannot be
// read until release is called.
func fakeProc(t *testing.T, healthy, stuck []int) (proc string, release func()) {
	t.Helper()
	proc = t.TempDir()
	var pipes []string
	for i, pid := range append(healthy, stuck...) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/stat", []byte(stat(pid)), 0o644)); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(dir+"/environ", []byte(containerDirVar+"=/c\x00"), 0o644)
		if i >= len(healthy) {
			err = errors.Join(os.Remove(dir+"/environ"), syscall.Mkfifo(dir+"/environ", 0o644))
			pipes = append(pipes, dir+"/environ")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	release = func() {
		for _, name := range pipes {
			// A pipe that nobody reads has no end to write to.
			if f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				f.Close()
			}
		}
	}
	t.Cleanup(release)
	return proc, release
}

// censusOf takes one census of a directory.
func censusOf(proc string, before *census) (*census, error) {
	l := newLooker(proc, lookPatience)
	l.last = before
	return l.take()
}

func (l *looker) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stuck)
}

func TestALookGoesOnWithoutAFileThatCannotBeRead(t *testing.T) {
	const first, second, sick = 4_000_000, 4_000_002, 4_000_001
	proc, release := fakeProc(t, []int{first, second}, []int{sick})
	l := newLooker(proc, lookPatience)
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	for range 3 {
		c, err := l.take()
		if err != nil {
			t.Fatal(err)
		}
		if len(c.all) != 3 || len(c.marked["/c"]) != 2 {
			t.Errorf("it found %d processes, %d of them by their environment, want 3 and 2", len(c.all), len(c.marked["/c"]))
		}
		if n := l.waiting(); n != 1 {
			t.Errorf("%d files are waited for, want 1", n)
		}
		c.tell(log)
	}
	if said := text.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "/4000001/environ") {
		t.Errorf("the log says, want one line about the file:\n%s", said)
	}
	for end := time.Now().Add(30 * time.Second); l.waiting() > 0; time.Sleep(time.Millisecond) {
		release()
		if time.Now().After(end) {
			t.Fatal("a file that was read at last is left out for ever")
		}
	}
}

func TestLooksWaitForFewFilesAtATime(t *testing.T) {
	var stuck []int
	for i := range maxStuck + 10 {
		stuck = append(stuck, 4_000_000+i)
	}
	proc, release := fakeProc(t, nil, stuck)
	l := newLooker(proc, 100*time.Millisecond)
	for range 3 {
		if _, err := l.take(); err == nil || !strings.Contains(err.Error(), "64 files") {
			t.Errorf("it says %v, want that too many files cannot be read", err)
		}
	}
	if n := l.waiting(); n != maxStuck {
		t.Errorf("%d files are waited for, want %d", n, maxStuck)
	}
	for end := time.Now().Add(30 * time.Second); l.waiting() > 0; time.Sleep(time.Millisecond) {
		release()
		if time.Now().After(end) {
			t.Fatal("files are waited for although they were read")
		}
	}
}

func TestALookIsSureIfItReadAllAndNothingBeganMeanwhile(t *testing.T) {
	for _, test := range []struct {
		name, load string
		stuck      []int
		want       bool
	}{
		{"nothing began", "0.1 0.2 0.3 1/2 77\n", nil, true},
		{"not known", "", nil, false},
		{"not Linux", "0.0 0.0 0.0 0/0 0\n", nil, false},
		{"an environment was left out", "0.1 0.2 0.3 1/2 77\n", []int{4_000_001}, false},
	} {
		proc, _ := fakeProc(t, []int{4_000_000}, test.stuck)
		if err := os.WriteFile(filepath.Join(proc, "loadavg"), []byte(test.load), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := newLooker(proc, 100*time.Millisecond).take()
		if err != nil || c.steady != test.want {
			t.Errorf("%s: %v, %v, want %v", test.name, c.steady, err, test.want)
		}
	}
	// The host's own, while processes begin without a pause.
	ended := make(chan struct{})
	forks := exec.Command("sh", "-c", "while :; do (:); done")
	if err := forks.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); _ = forks.Wait() }()
	defer func() { _ = forks.Process.Kill(); <-ended }()
	for end := time.Now().Add(30 * time.Second); ; {
		c, err := censusOf("/proc", nil)
		if err != nil {
			t.Fatal(err)
		}
		if !c.steady {
			break
		}
		if time.Now().After(end) {
			t.Fatal("all looks are sure")
		}
	}
}

func TestAContainerIsEmptyAfterEnoughLooks(t *testing.T) {
	for _, test := range []struct {
		all, ran bool
		want     int
	}{{true, false, 1}, {true, true, 2}, {false, false, 3}, {false, true, 3}} {
		looks := 1
		for !isEmpty(looks, test.all, test.ran) {
			looks++
		}
		if looks != test.want {
			t.Errorf("all %v, ran %v: after %d looks, want %d", test.all, test.ran, looks, test.want)
		}
	}
}
