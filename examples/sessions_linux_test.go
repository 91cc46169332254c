package examples_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/testenv"
)

// A worker works in containers with a diegoctl and a certificate of her own.
type worker struct {
	t        *testing.T
	diegoctl string
	flags    []string
}

// worker makes one, whose certificate has these units.
func (f *fleet) worker(diegoctl, name string, units ...string) worker {
	f.t.Helper()
	cert, key, err := f.c.authority.Issue(devcerts.Request{File: name, Name: name, Units: units, For: time.Hour})
	if err != nil {
		f.t.Fatal(err)
	}
	return worker{f.t, diegoctl, []string{"--bbs", f.bbs.URL, "--cert", cert, "--key", key, "--ca", f.c.authority.CA()}}
}

// does runs diegoctl with an input to its end.
func (w worker) does(stdin io.Reader, line ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	cmd := exec.CommandContext(within(w.t), w.diegoctl, append(slices.Clone(w.flags), line...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		w.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A running diegoctl.
type running struct {
	t     *testing.T
	ended chan int // its exit code
	testenv.Output
}

// says waits until it has said a text.
func (r *running) says(text string) { r.t.Helper(); r.Await(r.t, text) }

// ends waits for its end with an exit code.
func (r *running) ends(when string, code int) {
	r.t.Helper()
	got, _ := await(r.t, when+": it ends", r.ended)
	if got != code {
		r.t.Errorf("%s: it exits with %d, want %d, and says %q", when, got, code, r.String())
	}
}

// begins runs diegoctl, with what it writes in one, and with a terminal of 99 columns
// and 33 rows if there is a master for it.
func (w worker) begins(master *os.File, line ...string) *running {
	w.t.Helper()
	cmd := exec.CommandContext(within(w.t), w.diegoctl, append(slices.Clone(w.flags), line...)...)
	r := &running{t: w.t, ended: make(chan int, 1)}
	cmd.Stdout, cmd.Stderr = r, r
	if master != nil {
		var number, unlocked uint32
		control(w.t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
		control(w.t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
		resize(w.t, master, 99, 33)
		slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		defer slave.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		go io.Copy(r, master) // until the other end is closed, which is an error
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		r.ended <- cmd.ProcessState.ExitCode()
	}()
	return r
}

// control asks a terminal for something.
func control(t *testing.T, terminal *os.File, what uintptr, with unsafe.Pointer) {
	t.Helper()
	raw, err := terminal.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, what, uintptr(with)); errno != 0 {
			t.Fatal(errno)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func resize(t *testing.T, terminal *os.File, columns, rows uint16) {
	t.Helper()
	size := [4]uint16{rows, columns}
	control(t, terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// realCell adds a cell of real containers.
func (f *fleet) realCell(id string) {
	f.t.Helper()
	b, err := daemon.OpenBackend(f.t.Context(), daemon.BackendOptions{Kind: daemon.RealBackend, Dir: f.t.TempDir()})
	if err != nil {
		testenv.Missing(f.t, "a host for real containers", err.Error())
	}
	if err := b.Close(); err != nil {
		f.t.Fatal(err)
	}
	dir := f.t.TempDir()
	f.t.Cleanup(func() { empty(f.t, daemon.RealBackend, dir) }) // once the cell has ended, however it did
	f.cells[id] = start(f.t, "rep", append(f.c.issue(id, httpapi.CellRole), "--cell-id", id, "--dir", dir, "--bbs", f.bbs.URL,
		"--backend", "libcontainer", "--memory-mb", "1024", "--disk-mb", "2048", "--presence-ttl", "2s", "--sync-interval", "1s", "--self-test=false")...)
}

// left reports whether a process of this host runs with an argument.
func left(t *testing.T, argument string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		text, _ := os.ReadFile(name) // it may have ended meanwhile
		return slices.Contains(strings.Split(string(text), "\x00"), argument)
	})
}

func TestPeopleWorkInRealContainers(t *testing.T) {
	testenv.Root(t)
	here := t.TempDir()
	diegoctl := builtDiegoctl(t)
	f := newFleet(t)
	f.realCell("cell-1")
	for guid, domain := range map[string]string{"web": "apps", "blog": "apps", "bank": "money"} {
		l := sleeper(guid, 1)
		l.Domain, l.Definition.DiskMB = domain, 512
		if err := f.consumer.Desire(within(t), l); err != nil {
			t.Fatal(err)
		}
		f.awaitRunning(guid, 1)
	}
	alice := f.worker(diegoctl, "alice", "diego-consumer", "diego-exec", "diego-domain:apps")

	content := bytes.Repeat([]byte("0123456789\x00\xff\r\n\x1b\x04"), 100<<20/16)
	large, back := filepath.Join(here, "large"), filepath.Join(here, "back")
	if err := os.WriteFile(large, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		line      string
		stdin     bool
		out, says string
		code      int
	}{
		{line: "exec web/0 -- sh -c id\\ -un;echo\\ apart>&2;exit\\ 7", out: "nobody\n", says: "apart", code: 7},
		{line: "exec web -- sh -c kill\\ -9\\ $$", code: 128 + 9},
		{line: "exec web/0 -- sh -c kill\\ -TERM\\ $$", code: 128 + 15},
		{line: "exec -i web/0 -- cat", stdin: true, out: string(content)},
		{line: "exec web/0 -- cat", stdin: true},
		{line: "exec web/0 -- /no/such", says: "cannot execute the command", code: 1},
		{line: "exec bank/0 -- true", says: `of the domain "money", and the role exec holds only for the domains of its certificate`, code: 7},
		{line: "cp bank/0:/etc/passwd " + back, says: `of the domain "money"`, code: 7},
		{line: "cp " + large + " web/0:/tmp/"},
		{line: "exec web/0 -- stat -c %U\\ %s /tmp/large", out: fmt.Sprintf("nobody %d\n", len(content))},
		{line: "cp web/0:/tmp/large " + back},
		{line: "cp " + large + " web/0:/etc/", says: "permission denied", code: 1},
		{line: "cp " + large + " web/0:/tmp/missing/large", says: "no such file", code: 3},
	} {
		var stdin io.Reader
		if tt.stdin {
			stdin = bytes.NewReader(content)
		}
		var words []string
		for _, word := range strings.Split(strings.ReplaceAll(tt.line, "\\ ", "\x00"), " ") {
			words = append(words, strings.ReplaceAll(word, "\x00", " "))
		}
		out, errs, code := alice.does(stdin, words...)
		if code != tt.code || words[0] == "exec" && out != tt.out || !strings.Contains(errs, tt.says) || tt.says == "" && errs != "" {
			t.Errorf("%s exits with %d, want %d; it writes %d bytes, want %d, and says %q, want %q", tt.line, code, tt.code, len(out), len(tt.out), errs, tt.says)
		}
	}
	if got, err := os.ReadFile(back); err != nil || sha256.Sum256(got) != sha256.Sum256(content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	for _, units := range [][]string{{"diego-consumer", "diego-domain:apps"}, {"diego-consumer", "diego-log-reader", "diego-domain:apps"}} {
		if _, errs, code := f.worker(diegoctl, "bob", units...).does(nil, "exec", "web/0", "--", "true"); code != 7 || !strings.Contains(errs, "diego-exec, diego-operator is wanted") {
			t.Errorf("with %v, exec exits with %d and says %q", units, code, errs)
		}
	}

	// A terminal, whose size changes.
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	session := alice.begins(master, "exec", "-it", "web/0", "--", "sh", "-c", "trap 'stty size' WINCH; trap 'exit 4' INT; tty -s && stty size; while :; do sleep 0.05; done")
	session.says("33 99\r\n")
	resize(t, master, 80, 24)
	session.says("24 80\r\n")
	if _, err := master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	session.ends("after Ctrl-C", 4)

	// The log of events says who did what.
	eventually(t, "the timeline has all", func() (bool, error) {
		out, errs, code := alice.does(nil, "timeline", "web/0")
		for _, text := range []string{
			`alice ran sh -c "id -un;echo apart>&2;exit 7": exit status 7`, `alice ran sh -c "kill -9 $$": killed by signal 9`,
			"alice copied to /tmp/", "alice copied from /tmp/large", "alice copied to /etc/, and that failed: ", "alice ran /no/such, and the session failed: ",
		} {
			if !strings.Contains(out, text) {
				return false, fmt.Errorf("%d: %q is missing from %s%s", code, text, out, errs)
			}
		}
		return true, nil
	})
	if out, errs, code := alice.does(nil, "events", "--kind", "session_began", "--process", "bank"); code != 0 || out != "" {
		t.Errorf("of what was refused the events say %q %q (%d)", out, errs, code)
	}
	eventually(t, "the events have what was refused", func() (bool, error) {
		out, errs, code := alice.does(nil, "events", "--kind", "session_refused")
		for _, text := range []string{"alice was not allowed to run true: ", "alice was not allowed to copy from /etc/passwd: ", "bob was not allowed to run true: "} {
			if !strings.Contains(out, text) {
				return false, fmt.Errorf("%d: %q is missing from %s%s", code, text, out, errs)
			}
		}
		return true, nil
	})

	// An instance ends in the middle.
	long := func(guid, mark string) *running {
		t.Helper()
		r := alice.begins(nil, "exec", guid+"/0", "--", "sh", "-c", "trap '' HUP TERM INT; echo ready; while :; do sleep "+mark+"; done")
		r.says("ready")
		return r
	}
	session = long("web", "36001")
	if err := f.consumer.DeleteDeployment(within(t), "web"); err != nil {
		t.Fatal(err)
	}
	session.ends("its instance was stopped", 128+9)

	// The daemon dies in the middle.
	session = long("blog", "36002")
	eventually(t, "what runs in the container is found", func() (bool, error) { return left(t, "36002"), nil })
	f.cells["cell-1"].kill()
	session.ends("the cell was killed", 5)
	session.says("the connection was cut off")
	session.says("what ran in the container has ended with the session")
	eventually(t, "what ran in the container is gone", func() (bool, error) { return !left(t, "36002"), nil })
}

func TestASessionEndsWhenItsCellIsDrained(t *testing.T) {
	testenv.Root(t)
	diegoctl := builtDiegoctl(t)
	f := newFleet(t)
	f.realCell("cell-1")
	if err := f.consumer.Desire(within(t), sleeper("web", 1)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 1)
	alice := f.worker(diegoctl, "alice", "diego-operator")
	session := alice.begins(nil, "exec", "web/0", "--", "sh", "-c", "echo ready; exec sleep 36003")
	session.says("ready")
	if err := f.cells["cell-1"].cmd.Process.Signal(terminate); err != nil {
		t.Fatal(err)
	}
	f.cells["cell-1"].await("the cell evacuates")
	// There is no other cell yet, so the instance still runs, and people still work in it.
	if out, errs, code := alice.does(nil, "exec", "web/0", "--", "echo", "here"); code != 0 || out != "here\n" {
		t.Errorf("on a cell that is drained, exec exits with %d and says %q %q", code, out, errs)
	}
	f.add("cell-2")
	f.awaitRunning("web", 1, "cell-2")
	session.ends("its instance has moved", 128+9)
	if status := f.cells["cell-1"].status(); status != 0 {
		t.Errorf("the drained cell exits with %d", status)
	}
	eventually(t, "the timeline has the end", func() (bool, error) {
		out, _, _ := alice.does(nil, "timeline", "web/0")
		return strings.Contains(out, `alice ran sh -c "echo ready; exec sleep 36003": killed by signal`), nil
	})
}

// Its container ends with the cell, perhaps before the session. Either is said.
func TestASessionHearsWhyItEndsWhenItsCellStops(t *testing.T) {
	diegoctl := builtDiegoctl(t)
	f := newFleet(t)
	f.add("cell-1", "--drain=false")
	if err := f.consumer.Desire(within(t), sleeper("web", 1)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 1)
	alice := f.worker(diegoctl, "alice", "diego-operator")
	session := alice.begins(nil, "exec", "web/0", "--", "sh", "-c", "echo ready; exec sleep 36004")
	session.says("ready")
	if status := f.cells["cell-1"].terminate(); status != 0 {
		t.Errorf("the cell exits with %d", status)
	}
	if code, _ := await(t, "the session ends", session.ended); code == 4 {
		session.says("the server stops, so the session was ended")
	} else if code != 128+9 {
		t.Errorf("it exits with %d and says %q", code, session.String())
	}
	eventually(t, "the timeline has the end", func() (bool, error) {
		out, _, _ := alice.does(nil, "timeline", "web/0")
		return strings.Contains(out, `alice ran sh -c "echo ready; exec sleep 36004"`), nil
	})
}
