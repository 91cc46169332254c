package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stat is what /proc says of a process that leads a session.
func stat(pid int) string {
	n := strconv.Itoa(pid)
	return n + " (a) name) S 1 " + n + " " + n + " 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 100 0 5 0 0 0\n"
}

func TestACensusSkipsWhatHasEndedAndFailsForWhatItCannotRead(t *testing.T) {
	const pid = 4_000_000 // not ours
	tests := []struct {
		name  string
		files map[string]string // "" is a directory, of which nothing can be read
		want  int               // processes, or -1 for an error
	}{
		{"nobody", nil, 0},
		{"a process", map[string]string{"stat": stat(pid), "environ": "A=B\x00" + containerDirVar + "=/c\x00"}, 1},
		{"one that ended before its stat was read", map[string]string{"environ": "A=B\x00"}, 0},
		{"one that ended before its environment was read", map[string]string{"stat": stat(pid)}, 1},
		{"a stat that cannot be read", map[string]string{"stat": ""}, -1},
		{"a stat that makes no sense", map[string]string{"stat": "1 (init"}, -1},
		{"an environment that cannot be read", map[string]string{"stat": stat(pid), "environ": ""}, -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proc := t.TempDir()
			dir := filepath.Join(proc, strconv.Itoa(pid))
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				var err error
				if text == "" {
					err = os.Mkdir(path, 0o755)
				} else {
					err = os.WriteFile(path, []byte(text), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c, err := censusOf(proc, nil)
			switch {
			case test.want < 0 && err == nil:
				t.Errorf("it says nothing is wrong, and found %+v", c.all)
			case test.want >= 0 && (err != nil || len(c.all) != test.want):
				t.Errorf("it found %+v, %v, want %d", c, err, test.want)
			}
		})
	}
	if _, err := censusOf(filepath.Join(t.TempDir(), "missing"), nil); err == nil {
		t.Error("a host without /proc has no processes")
	}
}

func TestWhatLimitsThisProcessIsNotTakenForTheEndOfAnother(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOENT: true, syscall.ESRCH: true, syscall.EACCES: true, syscall.EPERM: true, // EPERM is hidepid=1
		syscall.EMFILE: false, syscall.ENFILE: false, syscall.ENOMEM: false, syscall.EIO: false, nil: false,
	} {
		if err != nil {
			err = &fs.PathError{Op: "open", Path: "/proc/1/stat", Err: err}
		}
		if got := hidden(err); got != want {
			t.Errorf("%v: a process is hidden: %v", err, got)
		}
	}
}

// The numbers are those of processes, sessions and parents.
func TestACensusFindsWhatBelongsToAContainer(t *testing.T) {
	c := &census{marked: map[string][]int{}, sessions: map[int][]int{}, children: map[int][]int{}, numbers: map[int]int{}}
	for _, p := range []struct {
		pid, session, parent int
		started, mark        string
		zombie               bool
	}{
		{pid: 10, session: 10, parent: 1, started: "a", mark: "/mine"},
		{pid: 11, session: 10, parent: 1, started: "b"},                // of a marked one's session
		{pid: 12, session: 12, parent: 11, started: "c"},               // a child in a session of its own
		{pid: 13, session: 13, parent: 12, started: "d", zombie: true}, // dead, but its child is not
		{pid: 14, session: 14, parent: 13, started: "e"},
		{pid: 20, session: 20, parent: 1, started: "f", mark: "/other"},
		{pid: 31, session: 30, parent: 1, started: "g"}, // of a leader's session
		{pid: 40, session: 40, parent: 1, started: "h"}, // has a leader's number
		{pid: 41, session: 40, parent: 40, started: "i"},
	} {
		at := len(c.all)
		c.all = append(c.all, member{pid: p.pid, parent: p.parent, session: p.session, zombie: p.zombie, started: p.started})
		c.numbers[p.pid] = at
		c.marked[p.mark] = append(c.marked[p.mark], at)
		c.sessions[p.session] = append(c.sessions[p.session], at)
		c.children[p.parent] = append(c.children[p.parent], at)
	}
	for _, test := range []struct {
		name    string
		leaders []leader
		before  []leader
		want    map[int]bool
	}{
		{"by its mark", nil, nil, map[int]bool{10: true, 11: true, 12: true, 14: true}},
		{"by a leader that has ended", []leader{{30, "x"}}, nil, map[int]bool{10: true, 11: true, 12: true, 14: true, 31: true}},
		{"not by a leader's number that is a stranger's now", []leader{{40, "y"}}, []leader{{20, "e"}}, map[int]bool{10: true, 11: true, 12: true, 14: true}},
		{"by a leader that lives", []leader{{40, "h"}}, nil, map[int]bool{10: true, 11: true, 12: true, 14: true, 40: true, 41: true}},
		{"by what was found before", nil, []leader{{40, "h"}}, map[int]bool{10: true, 11: true, 12: true, 14: true, 40: true, 41: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := c.of("/mine", test.leaders, test.before)
			for _, m := range found {
				if !test.want[m.pid] {
					t.Errorf("%d is none of its processes", m.pid)
				}
			}
			if len(found) != len(test.want) {
				t.Errorf("it found %d processes, want %d: %+v", len(found), len(test.want), found)
			}
		})
	}
}

func TestACensusNeedsMemoryForOneEnvironmentAtATime(t *testing.T) {
	const processes, size = 50, 1 << 20
	proc := t.TempDir()
	for i := range processes {
		pid := 4_000_000 + i
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		environ := "A=" + strings.Repeat("x", size) + "\x00" + containerDirVar + "=/c" + strconv.Itoa(i) + "\x00"
		for name, text := range map[string]string{"stat": stat(pid), "environ": environ} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := censusOf(proc, nil)
	runtime.ReadMemStats(&after)
	if err != nil || len(c.marked) != processes {
		t.Errorf("it found %d containers of %d: %v", len(c.marked), processes, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > processes*size/4 {
		t.Errorf("it took %d bytes", took)
	}
}

func TestOneEnvironmentMarksFewContainers(t *testing.T) {
	for _, test := range []struct {
		environ string
		want    int
	}{
		{"A=b\x00" + containerDirVar + "=/dir\x00C=d\x00", 1},
		{strings.Repeat(containerDirVar+"=/dir\x00", 1000), maxMarks},
		{containerDirVar + "=/" + strings.Repeat("x", maxPath) + "\x00", 0},
	} {
		if got := len(marks([]byte(test.environ))); got != test.want {
			t.Errorf("%.60q… has %d marks, want %d", test.environ, got, test.want)
		}
	}
}
