//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// A session is a shell that a test talks to.
type session struct {
	executor.Session
	f    *fixture
	said *output
	exit chan executor.Exit
	all  chan struct{} // closed when nothing will be said any more
}

// session starts a shell. What it says is read unless the script is quiet.
func (f *fixture) session(user, guid, script string, edit ...func(*executor.SessionSpec)) *session {
	f.Helper()
	s := &session{f: f, said: &output{}, exit: make(chan executor.Exit, 1), all: make(chan struct{})}
	spec := executor.SessionSpec{ProcessSpec: executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", script}, User: user, Exited: func(e executor.Exit) { s.exit <- e },
	}}
	for _, e := range edit {
		e(&spec)
	}
	var err error
	if s.Session, err = f.StartSession(f.ctx, guid, spec); err != nil {
		f.Fatalf("StartSession %q: %v", script, err)
	}
	f.Cleanup(func() { s.Close() })
	go func() {
		defer close(s.all)
		io.Copy(s.said, s.Stdout())
	}()
	return s
}

func inTerminal(s *executor.SessionSpec) { s.Terminal = &executor.TerminalSize{Columns: 101, Rows: 37} }

func (s *session) says(text string) {
	s.f.Helper()
	s.f.eventually("the session says "+text, func() bool { return strings.Contains(s.said.String(), text) })
}

// end waits for the end of the process and of what it says.
func (s *session) end() executor.Exit {
	s.f.Helper()
	e := <-s.exit
	<-s.all
	return e
}

// identities are containers with ids of their own and with those of the host.
var identities = map[string]func(*Options){"own ids": func(*Options) {}, "shared ids": func(o *Options) { o.SharedIDs = true }}

func TestASessionHasWhatAProcessOfItsUserHas(t *testing.T) {
	const facts = `id; pwd; echo $A; ulimit -n; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; cat /proc/self/cgroup; readlink /proc/self/ns/*`
	for name, ids := range identities {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ids)
			guid, _ := f.create()
			for _, user := range []string{"root", "nobody"} {
				set := func(p *executor.ProcessSpec) {
					p.Dir, p.Env = "/tmp", []executor.EnvVar{{Name: "A", Value: "b"}}
				}
				plain := f.as(user, guid, facts, set)
				plain.end()
				for _, terminal := range []bool{false, true} {
					s := f.session(user, guid, facts, func(s *executor.SessionSpec) {
						set(&s.ProcessSpec)
						if terminal {
							inTerminal(s)
						}
					})
					if e := s.end(); !e.Success() {
						t.Errorf("%s: %v", user, e)
					}
					if got := strings.ReplaceAll(s.said.String(), "\r\n", "\n"); got != plain.stdout.String() {
						t.Errorf("%s, terminal %v: a session has\n%s\nand a process\n%s", user, terminal, got, plain.stdout)
					}
				}
			}
		})
	}
}

func TestASessionControlsATerminalOfItsContainer(t *testing.T) {
	for name, ids := range identities {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ids)
			guid, _ := f.create()
			s := f.session("nobody", guid, `trap 'stty size' WINCH; tty; ls -ln $(tty); echo x >/dev/tty; stty size
				echo ready; while :; do read line || continue; echo "got $line"; [ "$line" = quit ] && exit 9; done`, inTerminal) // a trap ends a read
			s.says("ready")
			if said := s.said.String(); !strings.Contains(said, "/dev/pts/") || !strings.Contains(said, "37 101") {
				t.Errorf("it says %q", said)
			}
			if err := s.Resize(executor.TerminalSize{Columns: 55, Rows: 22}); err != nil {
				t.Fatal(err)
			}
			io.WriteString(s.Stdin(), "one\n")
			s.says("got one")
			s.says("22 55")
			io.WriteString(s.Stdin(), "quit\n")
			if e := s.end(); e.Status != 9 {
				t.Errorf("it ended with %v", e)
			}

			interrupted := f.session("nobody", guid, `trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done`, inTerminal)
			interrupted.says("ready")
			io.WriteString(interrupted.Stdin(), "\x03")
			if e := interrupted.end(); e.Status != 4 || !strings.Contains(interrupted.said.String(), "caught") {
				t.Errorf("an interrupt on the terminal ended it with %v, %q", e, interrupted.said)
			}
		})
	}
}

func TestASessionWithoutATerminalKeepsItsStreamsApartAndClean(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	content := make([]byte, 10<<20)
	rand.Read(content)
	want := sha256.Sum256(content)
	var out, err bytes.Buffer
	exit := make(chan executor.Exit, 1)
	s, startErr := f.StartSession(f.ctx, guid, executor.SessionSpec{ProcessSpec: executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", "echo apart >&2; cat; exit 3"}, User: "nobody", Exited: func(e executor.Exit) { exit <- e },
	}})
	if startErr != nil {
		t.Fatal(startErr)
	}
	defer s.Close()
	go func() {
		s.Stdin().Write(content)
		s.Stdin().Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&err, s.Stderr())
	}()
	io.Copy(&out, s.Stdout())
	<-read
	if e := <-exit; e.Status != 3 {
		t.Errorf("it ended with %v", e)
	}
	if got := sha256.Sum256(out.Bytes()); got != want {
		t.Errorf("%d bytes came back, and others", out.Len())
	}
	if err.String() != "apart\n" {
		t.Errorf("stderr is %q", err.String())
	}
}

func TestSignalsReachASession(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	for signal, want := range map[executor.SessionSignal]executor.Exit{
		executor.SignalInterrupt: {Status: 12}, executor.SignalUser1: {Status: 13}, executor.SignalTerminate: {Signal: 15}, executor.SignalKill: {Signal: 9},
	} {
		s := f.session("nobody", guid, "trap 'exit 12' INT; trap 'exit 13' USR1; echo ready; while :; do sleep 0.05; done")
		s.says("ready")
		if err := s.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if e := s.end(); e != want {
			t.Errorf("%s: it ended with %+v, want %+v", signal, e, want)
		}
		if err := s.Signal(signal); err != nil {
			t.Errorf("%s after the end: %v", signal, err)
		}
	}
	s := f.session("nobody", guid, "sleep 1000")
	if err := s.Signal("NONE"); err == nil {
		t.Error("an unknown signal is accepted")
	}
}

// stubborn ignores what asks it to end, and so does its child in a session of its
// own, which holds the output.
const stubborn = `trap '' HUP TERM INT QUIT; setsid sh -c "trap '' HUP TERM; echo child; while :; do sleep 0.05; done" & echo ready; while :; do sleep 0.05; done`

func TestNothingOfASessionOutlivesIt(t *testing.T) {
	for name, terminal := range map[string]func(*executor.SessionSpec){"pipes": func(*executor.SessionSpec) {}, "terminal": inTerminal} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			guid, _ := f.create()
			c := f.containers[guid]
			f.session("nobody", guid, "exit 0", terminal).end()
			before := descriptors(t)
			alone := func() bool { return c.cgroup.PIDs() <= 1 }

			closed := f.session("nobody", guid, stubborn, terminal)
			closed.says("ready")
			closed.says("child")
			closed.Close()
			<-closed.exit
			<-closed.all
			f.eventually("nothing runs after Close", alone)

			left := f.session("nobody", guid, `setsid sh -c "trap '' HUP TERM; echo child; while :; do sleep 0.05; done" & sleep 0.2; exit 5`, terminal)
			if e := left.end(); e.Status != 5 {
				t.Errorf("it ended with %v", e)
			}
			f.eventually("nothing runs after the end", alone)
			left.Close()

			killed := f.session("nobody", guid, stubborn, terminal)
			killed.says("ready")
			if err := f.Backend.Signal(f.ctx, guid, executor.Kill); err != nil {
				t.Fatal(err)
			}
			if e := killed.end(); e.Signal != 9 {
				t.Errorf("it ended with %v", e)
			}
			killed.Close()
			f.eventually("all descriptors are closed", func() bool { return descriptors(t) <= before })

			deleted := f.session("nobody", guid, stubborn, terminal)
			deleted.says("ready")
			f.delete(guid)
			deleted.end()
			if n, err := deleted.Stdin().Write([]byte("x")); err == nil {
				t.Errorf("%d bytes were written to a container that is gone", n)
			}
		})
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestAProgramThatIsNotThereStartsNoSession(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	f.as("root", guid, "true").end()
	before := descriptors(t)
	for _, terminal := range []func(*executor.SessionSpec){func(*executor.SessionSpec) {}, inTerminal} {
		spec := executor.SessionSpec{ProcessSpec: executor.ProcessSpec{Path: "/no/such/program"}}
		terminal(&spec)
		if _, err := f.StartSession(f.ctx, guid, spec); !errors.Is(err, executor.ErrNoCommand) {
			t.Errorf("StartSession: %v", err)
		}
	}
	f.eventually("all descriptors are closed", func() bool { return descriptors(t) <= before })
}

func oneFile(name, content string) io.Reader {
	return bytes.NewReader(tarOf(entry{name: name, content: content, mode: 0o644}))
}

func TestFilesAreCopiedInTheRightsOfTheUser(t *testing.T) {
	for name, ids := range identities {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ids)
			guid, _ := f.create()
			f.as("root", guid, `umask 077; mkdir /tmp/of-root /tmp/of-root/open && chmod 777 /tmp/of-root/open && echo secret > /tmp/of-root/open/file && chmod 644 /tmp/of-root/open/file
				echo secret > /tmp/secret; mkdir -m 777 /tmp/open /tmp/open/there; echo known > /tmp/open/known; chmod 644 /tmp/open/known`).end()

			for _, tt := range []struct {
				user, to string
				want     error
			}{
				{"nobody", "/tmp/open/new", nil},
				{"nobody", "/tmp/open/there", nil}, // as /tmp/open/there/file
				{"nobody", "/tmp/open/there/", nil},
				{"nobody", "/tmp/open/deep/file", executor.ErrNoFile},
				{"nobody", "/tmp/open/known/file", executor.ErrNoFile},
				{"nobody", "/tmp/open/missing/", executor.ErrNoFile},
				{"nobody", "/tmp/open/new/", executor.ErrNoFile},
				{"nobody", "/tmp/of-root/file", fs.ErrPermission},
				{"nobody", "/tmp/of-root/open/file", fs.ErrPermission},
				{"nobody", "/etc/file", fs.ErrPermission},
				{"root", "/tmp/of-root/file", nil},
			} {
				if err := f.CopyIn(f.ctx, guid, tt.to, tt.user, oneFile("file", "content")); !errors.Is(err, tt.want) {
					t.Errorf("%s copies to %s: %v", tt.user, tt.to, err)
				}
			}
			r := f.as("root", guid, "stat -c '%U %n' /tmp/open/new /tmp/open/there/file; cat /tmp/open/there/file")
			r.end()
			if got, want := r.stdout.String(), "nobody /tmp/open/new\nnobody /tmp/open/there/file\ncontent"; got != want {
				t.Errorf("there is\n%s\n%s\nwant\n%s", got, r.stderr, want)
			}

			for _, tt := range []struct {
				user, from string
				want       error
			}{
				{"nobody", "/tmp/open/known", nil},
				{"nobody", "/tmp/secret", fs.ErrPermission},
				{"nobody", "/tmp/of-root/open/file", fs.ErrPermission},
				{"nobody", "/tmp/nothing", executor.ErrNoFile},
				{"root", "/tmp/secret", nil},
			} {
				stream, err := f.CopyOut(f.ctx, guid, tt.from, tt.user)
				if err == nil {
					_, err = io.Copy(io.Discard, stream)
					stream.Close()
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("%s copies %s: %v", tt.user, tt.from, err)
				}
			}
			if _, err := f.CopyOut(f.ctx, guid, "/tmp/open", "root"); err != nil {
				t.Errorf("a directory: %v", err)
			}
		})
	}
}

func TestAnArchiveThatIsCopiedHasOneFileOrDirectory(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	two := bytes.NewReader(tarOf(entry{name: "x/a", mode: 0o644}, entry{name: "y/b", mode: 0o644}))
	if err := f.CopyIn(f.ctx, guid, "/tmp/target", "root", two); !errors.Is(err, executor.ErrUnsafeArchive) {
		t.Errorf("two: %v", err)
	}
	if err := f.CopyIn(f.ctx, guid, "/tmp/target", "root", oneFile("../x", "a")); !errors.Is(err, executor.ErrUnsafeArchive) {
		t.Errorf("one that leads out: %v", err)
	}
}
