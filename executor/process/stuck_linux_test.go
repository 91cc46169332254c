package process

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
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

func newLooker(proc string) *looker {
	return &looker{proc: proc, patience: 300 * time.Millisecond, stuck: make(map[string]*stuckFile)}
}

func (l *looker) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stuck)
}

func TestALookGoesOnWithoutAFileThatCannotBeRead(t *testing.T) {
	const first, second, sick = 4_000_000, 4_000_002, 4_000_001
	proc, release := fakeProc(t, []int{first, second}, []int{sick})
	l := newLooker(proc)
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
	proc, _ := fakeProc(t, nil, stuck)
	l := newLooker(proc)
	l.patience = time.Millisecond
	for range 3 {
		if _, err := l.take(); !errors.Is(err, errStuck) {
			t.Errorf("it says %v, want that too many files cannot be read", err)
		}
	}
	if n := l.waiting(); n > maxStuck {
		t.Errorf("%d files are waited for, want at most %d", n, maxStuck)
	}
}
