//go:build unix

package manager_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// sleeper is work that goes on until it is stopped.
func sleeper(edit ...func(*executor.RunInfo)) manager.Work {
	info := executor.RunInfo{
		RootFS: "host:", Env: []executor.EnvVar{{Name: "A", Value: "container"}, {Name: "B", Value: "container"}},
		Action: executor.Action{Run: &executor.RunAction{Path: "sleep", Args: []string{"1000"}, User: "root", Env: []executor.EnvVar{{Name: "B", Value: "process"}}}},
	}
	for _, e := range edit {
		e(&info)
	}
	return manager.Work{RunInfo: info}
}

func (h *host) running(guid string, edit ...func(*executor.RunInfo)) {
	h.t.Helper()
	if refused := h.Reserve(manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 1, DiskMB: 1}}); len(refused) > 0 {
		h.t.Fatal(refused[0].Err)
	}
	if err := h.Initialize(guid, sleeper(edit...)); err != nil {
		h.t.Fatal(err)
	}
	h.await(guid, executor.Running)
}

func shell(script string) executor.Program {
	return executor.Program{Command: []string{"sh", "-c", script}}
}

// A saying is a writer that says when a text was written.
type saying struct {
	text string
	said chan struct{}
	b    bytes.Buffer
}

func whenSaid(text string) *saying { return &saying{text: text, said: make(chan struct{})} }

func (s *saying) Write(p []byte) (int, error) {
	before := strings.Contains(s.b.String(), s.text)
	s.b.Write(p)
	if !before && strings.Contains(s.b.String(), s.text) {
		close(s.said)
	}
	return len(p), nil
}

func TestAProgramInAContainerHasWhatTheContainersProcessHas(t *testing.T) {
	h := newHost(t)
	h.running("c")
	var out, errs bytes.Buffer
	end, err := h.Exec(t.Context(), "c", shell("echo $A $B $INSTANCE_GUID; echo apart >&2; cat; exit 3"), executor.Streams{
		Stdin: strings.NewReader("in\x00put"), Stdout: &out, Stderr: &errs,
	})
	if err != nil || end.Status != 3 {
		t.Errorf("it ended with %v, %v", end, err)
	}
	if out.String() != "container process c\nin\x00put" || errs.String() != "apart\n" {
		t.Errorf("it says %q and %q", &out, &errs)
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if end, err := h.Exec(t.Context(), "c", shell("exit 0"), executor.Streams{}); err != nil || !end.Success() {
		t.Errorf("without streams it ended with %v, %v", end, err)
	}
}

func TestOfSeveralProcessesASessionIsLikeTheOneThatStays(t *testing.T) {
	run := func(path string, args ...string) executor.Action {
		return executor.Action{Run: &executor.RunAction{Path: path, Args: args, User: "root", Env: []executor.EnvVar{{Name: "B", Value: path}}}}
	}
	h := newHost(t)
	for guid, action := range map[string]executor.Action{
		"serial":      {Serial: &executor.SerialAction{Actions: []executor.Action{run("true"), run("sleep", "1000")}}},
		"codependent": {Codependent: &executor.CodependentAction{Actions: []executor.Action{run("sleep", "1000"), run("cat", "/dev/zero")}}},
		"timeout":     {Timeout: &executor.TimeoutAction{TimeoutMs: 1_000_000, Action: executor.Action{Try: &executor.TryAction{Action: run("sleep", "1000")}}}},
	} {
		h.running(guid, func(info *executor.RunInfo) { info.Action = action })
		var out bytes.Buffer
		if end, err := h.Exec(t.Context(), guid, shell("echo $B"), executor.Streams{Stdout: &out}); err != nil || out.String() != "sleep\n" {
			t.Errorf("%s: %v, %v, %q", guid, end, err, &out)
		}
	}
}

func TestAProgramEndsWithItsCallerAndWithItsContainer(t *testing.T) {
	const stubborn = "trap '' HUP TERM INT; echo ready; while :; do sleep 0.05; done"
	h := newHost(t)
	h.running("c")
	began := func(ctx context.Context, s executor.Streams) (done chan error, end *executor.Exit) {
		out := whenSaid("ready")
		s.Stdout, end, done = out, new(executor.Exit), make(chan error, 1)
		go func() {
			var err error
			*end, err = h.Exec(ctx, "c", shell(stubborn), s)
			done <- err
		}()
		<-out.said
		return done, end
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	done, _ := began(ctx, executor.Streams{})
	gone := errors.New("the caller has gone")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("after its caller has gone: %v", err)
	}

	control := make(chan executor.SessionControl)
	done, end := began(t.Context(), executor.Streams{Control: control})
	control <- executor.SessionControl{Signal: "NONE"}
	control <- executor.SessionControl{Signal: executor.SignalKill}
	if err := <-done; err != nil || end.Signal != 9 {
		t.Errorf("after a signal: %v, %v", end, err)
	}

	done, end = began(t.Context(), executor.Streams{})
	h.Delete("c")
	if err := <-done; err != nil || end.Signal != 9 {
		t.Errorf("after its container was deleted: %v, %v", end, err)
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestAFailureToWriteEndsTheProgram(t *testing.T) {
	h := newHost(t)
	h.running("c")
	in, out := io.Pipe()
	full := errors.New("the disk is full")
	in.CloseWithError(full)
	if _, err := h.Exec(t.Context(), "c", shell("while :; do echo more; done"), executor.Streams{Stdout: out}); !errors.Is(err, full) {
		t.Errorf("it ended with %v", err)
	}
}

func TestATerminalHasTheSizeOfTheCallers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Logf("on %s there are no terminals", runtime.GOOS)
		return
	}
	h := newHost(t)
	h.running("c")
	p := shell("trap 'stty size; exit 4' WINCH; echo $TERM; stty size; echo ready; while :; do sleep 0.05; done")
	p.Terminal, p.TerminalType = &executor.TerminalSize{Columns: 99, Rows: 33}, "xterm-test"
	control, out := make(chan executor.SessionControl, 1), whenSaid("ready")
	go func() {
		<-out.said
		control <- executor.SessionControl{Resize: &executor.TerminalSize{Columns: 80, Rows: 24}}
		close(control)
	}()
	end, err := h.Exec(t.Context(), "c", p, executor.Streams{Stdout: out, Control: control})
	if err != nil || end.Status != 4 {
		t.Errorf("it ended with %v, %v", end, err)
	}
	if got, want := strings.ReplaceAll(out.b.String(), "\r\n", "\n"), "xterm-test\n33 99\nready\n24 80\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestASessionInWhichNothingIsSentEnds(t *testing.T) {
	h := newHost(t, func(o *manager.Options) { o.SessionIdle = 50 * time.Millisecond })
	h.running("c")
	idle := func(what string, err error) {
		t.Helper()
		var typed *executor.SessionError
		if !errors.As(err, &typed) || !strings.Contains(typed.Why, "nothing was sent in either direction for 50ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := h.Exec(t.Context(), "c", shell("trap '' HUP TERM; while :; do sleep 1; done"), executor.Streams{})
	idle("a program that is quiet", err)
	silent, _ := io.Pipe()
	_, full := io.Pipe()
	idle("a copy that does not come", h.CopyIn(t.Context(), "c", "/x", silent))
	_, err = h.Exec(t.Context(), "c", shell("echo more"), executor.Streams{Stdout: full})
	idle("output that nobody takes", err)
	// The copy keeps its place as long as it goes on.
	if n := h.Sessions(); n != 1 {
		t.Errorf("%d sessions are left, and a copy goes on", n)
	}
	silent.Close()
	for h.Sessions() > 0 {
		runtime.Gosched()
	}
}

func TestSessionsThatCannotBeAreRefused(t *testing.T) {
	h := newHost(t, func(o *manager.Options) { o.Sessions, o.SessionsEach = 3, 2 })
	h.running("full")
	h.running("other")
	if refused := h.Reserve(manager.Reservation{GUID: "reserved"}); len(refused) > 0 {
		t.Fatal(refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended []chan error
	hold := func(guid string) {
		out, done := whenSaid("ready"), make(chan error, 1)
		go func() {
			_, err := h.Exec(ctx, guid, shell("echo ready; sleep 1000"), executor.Streams{Stdout: out})
			done <- err
		}()
		<-out.said
		ended = append(ended, done)
	}
	refused := func(guid, why string) {
		t.Helper()
		_, err := h.Exec(t.Context(), guid, shell("true"), executor.Streams{})
		var typed *executor.SessionError
		if !errors.As(err, &typed) || !strings.Contains(typed.Why, why) {
			t.Errorf("%s: %v, want %q", guid, err, why)
		}
	}
	hold("full")
	hold("full")
	refused("full", "it has 2 sessions")
	hold("other")
	refused("other", "the cell has 3 sessions")
	refused("reserved", "RESERVED")
	if err := h.CopyIn(t.Context(), "other", "/x", strings.NewReader("")); !errors.Is(err, executor.ErrNoSession) {
		t.Errorf("a copy: %v", err)
	}
	cancel()
	for _, done := range ended {
		<-done
	}
	if _, err := h.Exec(t.Context(), "full", shell("true"), executor.Streams{}); err != nil {
		t.Errorf("after the others have ended: %v", err)
	}
	if _, err := h.Exec(t.Context(), "nothing", shell("true"), executor.Streams{}); !errors.Is(err, manager.ErrNotFound) {
		t.Errorf("a container that is not there: %v", err)
	}
	if _, err := h.Exec(t.Context(), "full", executor.Program{}, executor.Streams{}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("no command: %v", err)
	}
	if err := h.CopyOut(t.Context(), "full", "relative", io.Discard); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("a relative path: %v", err)
	}

	none := newHost(t, func(o *manager.Options) { o.Sessions = -1 })
	none.running("c")
	if _, err := none.Exec(t.Context(), "c", shell("true"), executor.Streams{}); !errors.Is(err, executor.ErrNoSession) {
		t.Errorf("a cell without sessions: %v", err)
	}
	virtual := newCell(t)
	virtual.launch("c", sleeper())
	virtual.advance(0)
	if _, err := virtual.Exec(t.Context(), "c", shell("true"), executor.Streams{}); !errors.Is(err, executor.ErrNoSession) {
		t.Errorf("a backend without sessions: %v", err)
	}
}

func TestOneCallerHasAtMostAQuarterOfTheCellsSessions(t *testing.T) {
	h := newHost(t, func(o *manager.Options) { o.Sessions, o.SessionsEach = 7, 7 })
	h.running("c")
	ctx, cancel := context.WithCancel(t.Context())
	var ended []chan error
	hold := func(caller string) {
		t.Helper()
		visit, err := h.Enter("c", caller)
		if err != nil {
			t.Fatal(err)
		}
		out, done := whenSaid("ready"), make(chan error, 1)
		go func() {
			_, err := visit.Exec(ctx, shell("echo ready; sleep 1000"), executor.Streams{Stdout: out})
			done <- err
		}()
		<-out.said
		ended = append(ended, done)
	}
	hold("mallory")
	hold("mallory")
	var typed *executor.SessionError
	if _, err := h.Enter("c", "mallory"); !errors.As(err, &typed) || !strings.Contains(typed.Why, `"mallory" has 2 sessions on the cell, and one caller may have a quarter of the 7`) {
		t.Errorf("a third one of the same caller: %v", err)
	}
	hold("alice")
	for range 4 { // nobody knows whether they are one
		hold("")
	}
	if _, err := h.Enter("c", "alice"); !errors.As(err, &typed) || !strings.Contains(typed.Why, "the cell has 7 sessions") {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	for _, done := range ended {
		<-done
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if visit, err := h.Enter("c", "mallory"); err != nil {
		t.Errorf("after the others have ended: %v", err)
	} else if _, err := visit.Exec(t.Context(), shell("true"), executor.Streams{}); err != nil {
		t.Error(err)
	}
}

func TestEachUseOfAVisitGivesItsPlaceBack(t *testing.T) {
	h := newHost(t)
	h.running("c")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, use := range map[string]func(v *manager.Visit) error{
		"a program": func(v *manager.Visit) error {
			_, err := v.Exec(t.Context(), shell("true"), executor.Streams{})
			return err
		},
		"no program": func(v *manager.Visit) error {
			_, err := v.Exec(t.Context(), executor.Program{}, executor.Streams{})
			return err
		},
		"a program for nobody":   func(v *manager.Visit) error { _, err := v.Exec(ended, shell("true"), executor.Streams{}); return err },
		"a copy":                 func(v *manager.Visit) error { return v.CopyIn(t.Context(), "/there", oneFile("content")) },
		"a copy of a wrong name": func(v *manager.Visit) error { return v.CopyOut(t.Context(), "etc", io.Discard) },
		"a copy of nothing":      func(v *manager.Visit) error { return v.CopyOut(t.Context(), "/nothing", io.Discard) },
	} {
		visit, err := h.Enter("c", "alice")
		if err != nil {
			t.Fatal(err)
		}
		if n := h.Sessions(); n != 1 {
			t.Errorf("%s: while it lasts there are %d sessions", name, n)
		}
		err = use(visit)
		for h.Sessions() > 0 { // a copy that is given up ends later
			runtime.Gosched()
		}
		if ok := name == "a program" || name == "a copy"; ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller that gives up at once, again and again, takes no turn from the others.
func TestSessionsThatAreGivenUpKeepNobodyWaiting(t *testing.T) {
	h := newHost(t)
	h.running("c")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 120 {
		visit, err := h.Enter("c", "mallory")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := visit.Exec(ended, shell("true"), executor.Streams{}); err == nil {
			t.Fatal("it ran")
		}
	}
	if wait := h.BeginsIn(); wait > 20*time.Millisecond {
		t.Errorf("the next session begins in %v", wait)
	}
}

// oneFile is a tar stream.
func oneFile(content string) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o640, Size: int64(len(content))})
	io.WriteString(w, content)
	w.Close()
	return &b
}

func TestFilesAreCopiedIntoAContainerAndOut(t *testing.T) {
	h := newHost(t)
	h.running("c")
	content := bytes.Repeat([]byte("0123456789\x00\xff"), 1<<20)
	var out bytes.Buffer
	if err := h.CopyIn(t.Context(), "c", "/there", oneFile(string(content))); err != nil {
		t.Fatal(err)
	}
	if err := h.CopyOut(t.Context(), "c", "/there", &out); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(&out); ; {
		header, err := r.Next()
		if err != nil {
			break
		}
		names = append(names, header.Name)
		if got, _ := io.ReadAll(r); header.Typeflag == tar.TypeReg && !bytes.Equal(got, content) {
			t.Errorf("%s has %d other bytes", header.Name, len(got))
		}
	}
	if want := []string{"there"}; !slices.Equal(names, want) {
		t.Errorf("there is %q, want %q", names, want)
	}
	if err := h.CopyOut(t.Context(), "c", "/nothing", io.Discard); !errors.Is(err, executor.ErrNoFile) {
		t.Errorf("what is not there: %v", err)
	}
}

// A caller who sends nothing more, or takes nothing more, does not keep the disk of
// a container that is gone.
func TestACopyEndsWithItsContainer(t *testing.T) {
	h := newHost(t)
	for name, copying := range map[string]func(guid string) error{
		"in": func(guid string) error {
			silent, _ := io.Pipe()
			return h.CopyIn(t.Context(), guid, "/there", silent)
		},
		"out": func(guid string) error {
			_, full := io.Pipe()
			return h.CopyOut(t.Context(), guid, "/", full)
		},
	} {
		h.running(name)
		ended := make(chan error, 1)
		go func() { ended <- copying(name) }()
		for h.Sessions() == 0 {
			runtime.Gosched()
		}
		h.Delete(name)
		var refused *executor.SessionError
		if err := <-ended; !errors.As(err, &refused) || refused.GUID != name {
			t.Errorf("%s: it ended with %v", name, err)
		}
	}
}
