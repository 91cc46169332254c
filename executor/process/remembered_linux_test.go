package process

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A statLine is what /proc says of a process: when it started, and where its program
// and its environment lie.
func statLine(pid, started int, program string) string {
	n := strconv.Itoa(pid)
	return n + " (a) S 1 " + n + " " + n + " 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 " + strconv.Itoa(started) +
		" 0 5 0 0 0" + strings.Repeat(" 0", 22) + " " + program + " 0\n"
}

func write(t *testing.T, proc string, pid int, text, environ string) {
	t.Helper()
	dir := filepath.Join(proc, strconv.Itoa(pid))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/stat", []byte(text), 0o644), os.WriteFile(dir+"/environ", []byte(environ), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestAnEnvironmentIsRememberedForTheSameRunOfTheSameProgramOnly(t *testing.T) {
	const pid, other = 4_000_000, 4_000_001
	const mine, theirs = containerDirVar + "=/mine\x00", containerDirVar + "=/theirs\x00"
	for _, test := range []struct {
		name  string
		pid   int
		now   string
		known bool // the environment is not read again, though it is another one now
	}{
		{"the same run", pid, statLine(pid, 100, "7 9"), true},
		{"a later process with the number", pid, statLine(pid, 101, "7 9"), false},
		{"another program, executed since", pid, statLine(pid, 100, "8 9"), false},
		{"another environment of the program's length", pid, statLine(pid, 100, "7 10"), false},
		{"one that no longer shows where its program is", pid, statLine(pid, 100, "0 0"), false},
		{"a short line", pid, stat(pid), false},
		{"another number", other, statLine(other, 100, "7 9"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			proc := t.TempDir()
			write(t, proc, pid, statLine(pid, 100, "7 9"), mine)
			before, err := censusOf(proc, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(proc, strconv.Itoa(pid))); err != nil {
				t.Fatal(err)
			}
			write(t, proc, test.pid, test.now, theirs)
			now, err := censusOf(proc, before)
			if err != nil {
				t.Fatal(err)
			}
			want := "/theirs"
			if test.known {
				want = "/mine"
			}
			if len(now.marked) != 1 || !slices.Equal(now.marked[want], []int{0}) {
				t.Errorf("it has the marks %v, want %s", now.marked, want)
			}
		})
	}
}

func TestAnEnvironmentThatCouldNotBeReadIsReadAgain(t *testing.T) {
	const pid = 4_000_000
	proc := t.TempDir()
	write(t, proc, pid, statLine(pid, 100, "7 9"), "")
	environ := filepath.Join(proc, strconv.Itoa(pid), "environ")
	if err := os.Remove(environ); err != nil {
		t.Fatal(err)
	}
	before, err := censusOf(proc, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, proc, pid, statLine(pid, 100, "7 9"), containerDirVar+"=/mine\x00")
	now, err := censusOf(proc, before)
	if err != nil || len(now.marked["/mine"]) != 1 {
		t.Errorf("it has the marks %v, %v", now.marked, err)
	}
}

func TestWhatIsRememberedIsOfTheProcessesThatThereAre(t *testing.T) {
	const rounds, each = 50, 20
	proc := t.TempDir()
	l := newLooker(proc, lookPatience)
	environ := "A=" + strings.Repeat("x", 10<<10) + "\x00" + strings.Repeat(containerDirVar+"=/"+strings.Repeat("d", 200)+"\x00", 2*maxMarks)
	var first, last runtime.MemStats
	for round := range rounds {
		for i := range each {
			pid := 4_000_000 + round*each + i
			write(t, proc, pid, statLine(pid, 100, "7 9"), environ)
			if round > 0 {
				if err := os.RemoveAll(filepath.Join(proc, strconv.Itoa(pid-each))); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := l.take(); err != nil {
			t.Fatal(err)
		}
		if n := len(l.last.read); n != each {
			t.Fatalf("%d environments are remembered, want those of the %d processes", n, each)
		}
		runtime.GC()
		runtime.ReadMemStats(&last)
		if round == 0 {
			first = last
		}
	}
	for _, e := range l.last.read {
		if len(e.marks) != maxMarks {
			t.Errorf("%d marks of one environment are remembered, want %d", len(e.marks), maxMarks)
		}
	}
	if grown := int64(last.HeapAlloc) - int64(first.HeapAlloc); grown > 1<<20 {
		t.Errorf("the memory grew by %d bytes", grown)
	}
}
