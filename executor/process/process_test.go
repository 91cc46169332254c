//go:build unix

package process_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/internal/testenv"
)

func newContainer(t *testing.T, o process.Options, edit ...func(*executor.ContainerSpec)) (executor.ContainerBackend, executor.Endpoint) {
	t.Helper()
	o.Dir = t.TempDir()
	if err := os.Chmod(filepath.Dir(o.Dir), 0o755); err != nil { // other users are to reach it
		t.Fatal(err)
	}
	b, err := process.New(o)
	if err != nil {
		t.Fatal(err)
	}
	spec := executor.ContainerSpec{GUID: "c"}
	for _, e := range edit {
		e(&spec)
	}
	endpoint, err := b.Create(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Delete(context.Background(), "c"); err != nil {
			t.Error(err)
		}
	})
	return b, endpoint
}

// output runs a script to its end.
func output(t *testing.T, b executor.ContainerBackend, script string, edit ...func(*executor.ProcessSpec)) string {
	t.Helper()
	var out testenv.Output
	ended := make(chan executor.Exit, 1)
	spec := executor.ProcessSpec{Path: "sh", Args: []string{"-c", script}, User: "nobody", Stdout: &out, Stderr: &out,
		Exited: func(e executor.Exit) { ended <- e }}
	for _, e := range edit {
		e(&spec)
	}
	if _, err := b.Start(context.Background(), "c", spec); err != nil {
		t.Fatal(err)
	}
	<-ended
	return out.String()
}

func TestAChildThatMakesASessionOfItsOwnIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Logf("on %s such a child escapes, as the package says", runtime.GOOS)
		return
	}
	b, _ := newContainer(t, process.Options{})
	// The shell waits until the child has said its number.
	pid := strings.TrimSpace(output(t, b, "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done; cat pid"))
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatalf("the child says %q", pid)
	}
	if err := b.Delete(context.Background(), "c"); err != nil {
		t.Fatal(err)
	}
	if state, err := os.ReadFile(filepath.Join("/proc", pid, "stat")); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("the child still runs: %s", state)
	}
}

// Each process starts the next one and ends, so that nobody sees the same one
// twice.
func TestAProcessThatFleesIsCaught(t *testing.T) {
	b, _ := newContainer(t, process.Options{}, func(c *executor.ContainerSpec) {
		c.Files = []executor.File{{Path: "/comet", Content: "sh ./comet &\n"}}
	})
	output(t, b, "sh ./comet & sh ./comet &")
	if err := b.Delete(context.Background(), "c"); err != nil {
		t.Fatal(err)
	}
	if guids, err := b.List(context.Background()); err != nil || len(guids) != 0 {
		t.Errorf("left behind: %q, %v", guids, err)
	}
}

func TestAProcessFindsItsDirectoryAndItsHome(t *testing.T) {
	b, _ := newContainer(t, process.Options{}, func(c *executor.ContainerSpec) {
		c.Files = []executor.File{{Path: "/app/file", Content: "content"}}
	})
	got := output(t, b, `cat "$DIEGO_CONTAINER_DIR/app/file"; [ "$HOME" = "$DIEGO_CONTAINER_DIR" ] && [ "$PWD" = "$HOME" ] && echo " at home"`)
	if got != "content at home\n" {
		t.Errorf("it says %q", got)
	}
}

func TestWhatCannotBeExecutedSaysWhy(t *testing.T) {
	b, _ := newContainer(t, process.Options{}, func(c *executor.ContainerSpec) {
		c.Files = []executor.File{{Path: "/plain", Content: "text"}}
	})
	for _, path := range []string{"/plain", "/", "./plain", "/bin/sh/x", "no-such-command"} {
		_, err := b.Start(context.Background(), "c", executor.ProcessSpec{Path: path, User: "nobody"})
		if !errors.Is(err, executor.ErrNoCommand) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUsersAreThoseOfTheHostIfThatIsAskedFor(t *testing.T) {
	if os.Geteuid() != 0 {
		if _, err := process.New(process.Options{Dir: t.TempDir(), SwitchUser: true}); err == nil {
			t.Error("who is not root can switch users")
		}
		return
	}
	b, _ := newContainer(t, process.Options{SwitchUser: true})
	if got := output(t, b, "id -un; echo x > file && ls"); got != "nobody\nfile\n" {
		t.Errorf("it says %q", got)
	}
	_, err := b.Start(context.Background(), "c", executor.ProcessSpec{Path: "/bin/sh", User: "no-such-user"})
	if !errors.Is(err, executor.ErrNoUser) {
		t.Errorf("an unknown user: %v", err)
	}
}

func TestAPortThatIsTakenIsNotGivenOut(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := uint16(l.Addr().(*net.TCPAddr).Port)
	b, err := process.New(process.Options{Dir: t.TempDir(), FirstPort: taken, LastPort: taken})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	spec := executor.ContainerSpec{GUID: "c", Ports: []uint16{8080}}
	if _, err := b.Create(ctx, spec); !errors.Is(err, executor.ErrNoPort) {
		t.Errorf("a port that another program has: %v", err)
	}
	l.Close()
	if _, err := b.Create(ctx, spec); err != nil {
		t.Fatalf("a free port: %v", err)
	}
	spec.GUID = "d"
	if _, err := b.Create(ctx, spec); !errors.Is(err, executor.ErrNoPort) {
		t.Errorf("a port that another container has: %v", err)
	}
	if err := b.Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(ctx, spec); err != nil {
		t.Errorf("a port that was given back: %v", err)
	}
	b.Delete(ctx, "d")
}

// Nobody can tell whose it is, but whose container's.
func TestWhatHasLeftItsSessionEndsWithItsContainer(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	ctx := context.Background()
	count := func() int64 {
		m, err := b.Usage(ctx, "c")
		if err != nil {
			t.Fatal(err)
		}
		return m.PIDs
	}
	if count() == executor.Unknown { // a system that shows nothing of processes
		return
	}
	eventually := func(what string, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) { // between two looks
			if time.Now().After(deadline) {
				t.Fatalf("it has not happened that %s", what)
			}
		}
	}
	var out testenv.Output
	ended := make(chan executor.Exit, 1)
	p, err := b.Start(ctx, "c", executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", "setsid sh -c 'echo ready; exec sleep 1000' & wait"},
		Stdout: &out, Exited: func(e executor.Exit) { ended <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually("it has a session of its own", func() bool { return out.String() == "ready\n" })
	if err := p.Signal(executor.Kill); err != nil {
		t.Error(err)
	}
	<-ended
	if n := count(); n != 1 {
		t.Errorf("%d processes are left, want the one with a session of its own", n)
	}
	if err := b.Signal(ctx, "c", executor.Kill); err != nil {
		t.Error(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d processes have outlived their container", n)
	}
}

func TestADirectoryWithoutRightsIsRemoved(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	output(t, b, "mkdir -p a/b && touch a/b/c && chmod 0 a/b a")
	if err := b.Delete(context.Background(), "c"); err != nil {
		t.Fatal(err)
	}
	if guids, err := b.List(context.Background()); err != nil || len(guids) != 0 {
		t.Errorf("left behind: %q, %v", guids, err)
	}
}

func TestNothingIsListedWhenTheDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "containers")
	b, err := process.New(process.Options{Dir: dir})
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if guids, err := b.List(t.Context()); err != nil || len(guids) != 0 {
		t.Errorf("the containers are %q, %v", guids, err)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for _, o := range []process.Options{{}, {Dir: t.TempDir(), FirstPort: 2, LastPort: 1}} {
		if _, err := process.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestAGUIDThatIsAPathTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.Mkdir(victim, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := process.New(process.Options{Dir: filepath.Join(dir, "containers")})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := b.Delete(ctx, "../victim"); err != nil {
		t.Error(err)
	}
	if _, err := b.Create(ctx, executor.ContainerSpec{GUID: "../victim"}); err == nil {
		t.Error("it was created")
	}
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("the directory is gone: %v", err)
	}
}

func TestAContainerRunsABoundedNumberOfProcesses(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	ended := make(chan executor.Exit, 2*stdio.MaxProcesses)
	start := func() (executor.Process, error) {
		return b.Start(t.Context(), "c", executor.ProcessSpec{Path: "sleep", Args: []string{"1000"}, Stdout: io.Discard, Stderr: io.Discard,
			Exited: func(e executor.Exit) { ended <- e }})
	}
	var first executor.Process
	for i := range stdio.MaxProcesses {
		p, err := start()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = p
		}
	}
	if _, err := start(); !errors.Is(err, executor.ErrProcesses) || !strings.Contains(err.Error(), "128 of its processes") {
		t.Errorf("one more: %v", err)
	}
	if err := first.Signal(executor.Kill); err != nil {
		t.Fatal(err)
	}
	<-ended
	for {
		_, err := start()
		if err == nil {
			break
		}
		if !errors.Is(err, executor.ErrProcesses) { // its output is closed in a moment
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestASessionTalksToAPlainProcess(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	sessions := b.(executor.SessionBackend)
	exit := make(chan executor.Exit, 1)
	start := func(script string, size *executor.TerminalSize) executor.Session {
		t.Helper()
		s, err := sessions.StartSession(context.Background(), "c", executor.SessionSpec{Terminal: size, ProcessSpec: executor.ProcessSpec{
			Path: "sh", Args: []string{"-c", script}, Exited: func(e executor.Exit) { exit <- e },
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ends := func(s executor.Session, said string, want executor.Exit) {
		t.Helper()
		out, err := io.ReadAll(s.Stdout())
		if err != nil || strings.ReplaceAll(string(out), "\r\n", "\n") != said {
			t.Errorf("it says %q, %v", out, err)
		}
		if got := <-exit; got != want {
			t.Errorf("it ended with %v, want %v", got, want)
		}
	}

	s := start("echo apart >&2; cat; exit 3", nil)
	io.WriteString(s.Stdin(), "in\x00put\n")
	s.Stdin().Close()
	ends(s, "in\x00put\n", executor.Exit{Status: 3})
	if out, err := io.ReadAll(s.Stderr()); string(out) != "apart\n" || err != nil {
		t.Errorf("stderr is %q, %v", out, err)
	}

	s = start("echo ready; while :; do sleep 0.05; done", nil)
	io.ReadFull(s.Stdout(), make([]byte, len("ready\n")))
	if err := s.Signal(executor.SignalInterrupt); err != nil {
		t.Error(err)
	}
	ends(s, "", executor.Exit{Signal: 2})
	if err := s.Signal("NONE"); err == nil {
		t.Error("an unknown signal is accepted")
	}

	s = start("trap '' HUP TERM; sleep 1000", nil)
	s.Close()
	ends(s, "", executor.Exit{Signal: 9})

	s = start("trap '' HUP TERM; sleep 1000", nil)
	if err := b.Signal(context.Background(), "c", executor.Kill); err != nil {
		t.Error(err)
	}
	ends(s, "", executor.Exit{Signal: 9})

	if runtime.GOOS != "linux" {
		t.Logf("on %s there are no terminals, as the package says", runtime.GOOS)
		return
	}
	s = start("stty size; read line; stty size; exit 4", &executor.TerminalSize{Columns: 99, Rows: 33})
	io.ReadFull(s.Stdout(), make([]byte, len("33 99\r\n")))
	if err := s.Resize(executor.TerminalSize{Columns: 80, Rows: 24}); err != nil {
		t.Error(err)
	}
	io.WriteString(s.Stdin(), "go\n")
	ends(s, "go\n24 80\n", executor.Exit{Status: 4})
}

func TestFilesAreCopiedBetweenAPlainProcessAndItsCaller(t *testing.T) {
	b, _ := newContainer(t, process.Options{})
	sessions := b.(executor.SessionBackend)
	output(t, b, "mkdir -p a/b copy/of && echo content > a/b/file && mkdir -p there/a/b && echo old >there/a/old && touch plain")
	for to, want := range map[string]error{"/copy/of/a": nil, "/there": nil, "/missing/a": executor.ErrNoFile, "/missing/": executor.ErrNoFile, "/plain/": executor.ErrNoFile, "/plain": fs.ErrExist} {
		stream, err := sessions.CopyOut(context.Background(), "c", "/a", "nobody")
		if err != nil {
			t.Fatal(err)
		}
		if err := sessions.CopyIn(context.Background(), "c", to, "nobody", stream); !errors.Is(err, want) {
			t.Errorf("to %s: %v", to, err)
		}
		stream.Close()
	}
	if got := output(t, b, "cat copy/of/a/b/file there/a/b/file there/a/old; rm -r there/a/b/file && mkdir there/a/b/file"); got != "content\ncontent\nold\n" {
		t.Errorf("there is %q", got)
	}
	stream, err := sessions.CopyOut(context.Background(), "c", "/a", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := sessions.CopyIn(context.Background(), "c", "/there", "nobody", stream); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file over a directory: %v", err)
	}
	if _, err := sessions.CopyOut(context.Background(), "c", "/../../etc/passwd", "nobody"); !errors.Is(err, executor.ErrNoFile) {
		t.Errorf("out of the directory: %v", err)
	}
}
