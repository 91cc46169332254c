package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/diegosdk/diego/examples/diegoctl/internal/terminal"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// does carries out a command line with an input.
func (f *fleet) does(stdin io.Reader, own terminal.Terminal, line ...string) ran {
	var out, errs bytes.Buffer
	p := f.process(&out, &errs)
	p.stdin, p.own = stdin, own
	code := run(context.Background(), line, p)
	return ran{out.String(), errs.String(), code}
}

// working is a fleet with one instance, web/0.
func working(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, 1)
	f.shows("cells", "cell-1  -     ready")
	spec := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(spec, []byte(`{"process_guid": "web", "domain": "examples", "instances": 1, "memory_mb": 32, "disk_mb": 64, "root_fs": "host:",
		"action": {"run": {"path": "/bin/sleep", "args": ["1000"], "user": "nobody", "env": [{"name": "GREETING", "value": "hello"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.ok("lrp create -f " + spec + " --wait --for 30s")
	return f
}

func TestACommandInAContainerIsLikeOneHere(t *testing.T) {
	f := working(t)
	input := strings.Repeat("0123456789\x00\xff\r\n\x1b[31m", 10<<20/19)
	for _, tt := range []struct {
		line         []string
		out, errs    string
		code         int
		input, reads bool
	}{
		{line: []string{"web/0", "--", "sh", "-c", "echo $GREETING $INSTANCE_INDEX; echo apart >&2; exit 7"}, out: "hello 0\n", errs: "apart\n", code: 7},
		{line: []string{"web", "--", "sh", "-c", "cat; kill -9 $$"}, code: 128 + 9},
		{line: []string{"-i", "web/0", "--", "cat"}, out: input},
		{line: []string{"web/0", "true"}},
		{line: []string{"web/0", "--", "/no/such/program"}, errs: "cannot execute the command", code: exitFailed},
		{line: []string{"web/1", "--", "true"}, errs: "web has no instance 1, only 0", code: exitNotFound},
		{line: []string{"web/x", "--", "true"}, errs: `the index of web is "x"`, code: exitUsage},
		{line: []string{"wep", "--", "true"}, errs: "did you mean web?", code: exitNotFound},
		{line: []string{"-it", "web/0", "--", "sh"}, errs: "--tty wants stdin to be a terminal", code: exitUsage},
		{line: []string{"web/0"}, errs: "COMMAND is missing", code: exitUsage},
	} {
		r := f.does(strings.NewReader(input), nil, append([]string{"exec"}, tt.line...)...)
		if r.code != tt.code || r.stdout != tt.out || !strings.Contains(r.stderr, tt.errs) || tt.errs == "" && r.stderr != "" {
			t.Errorf("%q exits with %d, want %d; it writes %d bytes, want %d, and says %q, want %q", tt.line, r.code, tt.code, len(r.stdout), len(tt.out), r.stderr, tt.errs)
		}
	}
}

func TestEachStreamThatIsATerminalShowsEscapesOfACommandAsText(t *testing.T) {
	f := working(t)
	const raw, visible = "\x1b]0;PWN\a", `\x1b]0;PWN\x07`
	for _, tt := range []struct {
		stdout, stderr   bool
		wantOut, wantErr string
	}{
		{false, false, raw, raw},
		{true, false, visible, raw},
		{false, true, raw, visible},
		{true, true, visible, visible},
	} {
		var out, errs bytes.Buffer
		p := f.process(&out, &errs)
		p.terminal, p.stderrTerminal = tt.stdout, tt.stderr
		if code := run(context.Background(), []string{"exec", "web/0", "--", "sh", "-c", `printf '\033]0;PWN\007'; printf '\033]0;PWN\007' >&2`}, p); code != 0 {
			t.Errorf("it exits with %d", code)
		}
		if out.String() != tt.wantOut || errs.String() != tt.wantErr {
			t.Errorf("with terminals %v and %v it writes %q and %q, want %q and %q", tt.stdout, tt.stderr, &out, &errs, tt.wantOut, tt.wantErr)
		}
	}
}

func TestANoteIsOneLineWithoutEscapes(t *testing.T) {
	var errs bytes.Buffer
	(&process{stderr: &errs}).note("waiting for %s", "x\x1b]0;PWN\a\n\u202ey")
	if got, want := errs.String(), "waiting for x ]0;PWN   y\n"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func TestAnInterruptReachesTheCommand(t *testing.T) {
	f := working(t)
	ctx, interrupt := context.WithCancel(context.Background())
	out := new(testenv.Output)
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"exec", "web/0", "--", "sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done"}, f.process(out, io.Discard))
	}()
	out.Await(t, "ready")
	interrupt()
	if code := <-ended; code != 5 {
		t.Errorf("it exits with %d", code)
	}
}

// A modelTerminal counts how often it is raw.
type modelTerminal struct {
	mu      sync.Mutex
	size    executor.TerminalSize
	changes chan os.Signal
	raw     int
}

func (m *modelTerminal) Raw() (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raw++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.raw--
	}, nil
}

func (m *modelTerminal) Size() (executor.TerminalSize, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size == (executor.TerminalSize{}) {
		return m.size, errors.New("nobody knows")
	}
	return m.size, nil
}

func (m *modelTerminal) Resized() (<-chan os.Signal, func()) { return m.changes, func() {} }

func (m *modelTerminal) resize(size executor.TerminalSize) {
	m.mu.Lock()
	m.size = size
	m.mu.Unlock()
	m.changes <- os.Interrupt // any signal
}

func TestACommandWithATerminalHasItsSizeAndGivesItBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Logf("on %s there are no terminals", runtime.GOOS)
		return
	}
	f := working(t)
	own := &modelTerminal{size: executor.TerminalSize{Columns: 99, Rows: 33}, changes: make(chan os.Signal, 1)}
	session := func(ctx context.Context, script string) (out *testenv.Output, keys io.Writer, ended chan int) {
		keyboard, keys := io.Pipe()
		out, ended = new(testenv.Output), make(chan int, 1)
		p := f.process(out, out)
		p.stdin, p.own = keyboard, own
		go func() { ended <- run(ctx, []string{"exec", "web/0", "-it", "--", "sh", "-c", script}, p) }()
		return out, keys, ended
	}
	givenBack := func(after string) {
		t.Helper()
		if own.raw != 0 {
			t.Errorf("after %s the terminal is still raw", after)
		}
	}

	out, keys, ended := session(context.Background(), "trap 'stty size' WINCH; trap 'exit 4' INT; stty size; while :; do sleep 0.05; done")
	out.Await(t, "33 99\r\n")
	own.resize(executor.TerminalSize{Columns: 80, Rows: 24})
	out.Await(t, "24 80\r\n")
	fmt.Fprint(keys, "\x03") // Ctrl-C is a key like any other here
	if code := <-ended; code != 4 {
		t.Errorf("it exits with %d", code)
	}
	givenBack("the end")

	ctx, end := context.WithCancel(context.Background())
	out, _, ended = session(ctx, "trap '' INT HUP TERM; echo ready; while :; do sleep 0.05; done")
	out.Await(t, "ready")
	end()
	if code := <-ended; code != exitInterrupted {
		t.Errorf("ended from outside, it exits with %d", code)
	}
	givenBack("an end from outside")

	out, _, ended = session(context.Background(), "trap '' INT HUP TERM; echo ready; while :; do sleep 0.05; done")
	out.Await(t, "ready")
	f.ok("lrp delete web")
	if code := <-ended; code != 128+9 {
		t.Errorf("after its instance was stopped, it exits with %d", code)
	}
	givenBack("the end of the instance")

	own.size = executor.TerminalSize{}
	f.shows("instances", "there is no instance")
	if r := f.does(nil, own, "exec", "web/0", "-it", "--", "sh"); r.code != exitNotFound {
		t.Errorf("without an instance: %+v", r)
	}
	givenBack("a refusal")
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	f, here := working(t), t.TempDir()
	content := bytes.Repeat([]byte("0123456789\x00\xff"), 10<<20/12)
	write := func(name string, content []byte) string {
		path := filepath.Join(here, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o640); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same := func(path string, want []byte) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v", path, len(got), err)
		}
	}
	large, back := write("large", content), filepath.Join(here, "back")
	write("tree/a/b", []byte("deep"))
	f.ok("exec web/0 mkdir data")
	f.ok("cp " + large + " web/0:/data/copy")
	if got := f.ok("cp web/0:/data/copy " + back + " -o json"); !strings.HasPrefix(got, `{"done":"copied",`) {
		t.Errorf("to programs it says %s", got)
	}
	same(back, content)
	f.ok("cp " + filepath.Join(here, "tree") + " web:/data")
	if err := os.Mkdir(filepath.Join(here, "into"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.ok("cp web:/data " + filepath.Join(here, "into"))
	same(filepath.Join(here, "into/data/tree/a/b"), []byte("deep"))
	same(filepath.Join(here, "into/data/copy"), content)

	for _, tt := range []struct {
		line, says string
		code       int
	}{
		{"cp web/0:/nothing " + back, "no such file", exitNotFound},
		{"cp " + filepath.Join(here, "nothing") + " web/0:/data/x", "no such file", exitFailed},
		{"cp " + large + " " + back, "INSTANCE:/PATH", exitUsage},
		{"cp web/0:/data web/0:/x", "INSTANCE:/PATH", exitUsage},
		{"cp web/0:/data " + filepath.Join(here, "into"), "", exitOK}, // once more
		{"cp " + filepath.Join(here, "into/data") + " web/0:/", "", exitOK},
		{"cp web/0:/data/tree " + back, "file already exists", exitFailed},
		{"cp " + large + " web/0:/data/tree/a/", "", exitOK},
		{"cp " + large + " web/0:/data/missing/", "no such file", exitNotFound},
		{"cp " + large + " web/0:/data/missing/x", "no such file", exitNotFound},
		{"cp web/0:/data/copy " + filepath.Join(here, "missing") + "/", "no such file", exitFailed},
		{"cp web/7:/data " + back, "web has no instance 7", exitNotFound},
	} {
		if r := f.run(tt.line); r.code != tt.code || !strings.Contains(r.stderr, tt.says) {
			t.Errorf("%s exits with %d and says %q", tt.line, r.code, r.stderr)
		}
	}
	same(back, content)
}
