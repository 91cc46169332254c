package backendtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

// patience bounds everything that must happen; nothing waits for it to pass. A
// test of the suite itself has less.
var patience = 2 * time.Minute

// A fixture is a backend in one case.
type fixture struct {
	*testing.T
	Subject
	backend executor.ContainerBackend
	ctx     context.Context
	guids   int
}

func newFixture(t *testing.T, s Subject) *fixture {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	return &fixture{T: t, Subject: s, backend: s.New(t), ctx: ctx}
}

// spec is a container with nothing special.
func (f *fixture) spec() executor.ContainerSpec {
	f.Helper()
	f.guids++
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	return executor.ContainerSpec{
		GUID: fmt.Sprintf("container-%d", f.guids), RootFS: f.RootFS, CPUWeight: executor.MaxCPUWeight,
		Resources: executor.Resources{MemoryMB: 256, DiskMB: 256, MaxPIDs: 256},
		Mounts:    []executor.Mount{{Source: exe, Target: helperDir + "/serve"}},
	}
}

// container makes a container and has it deleted at the end.
func (f *fixture) container(edit ...func(*executor.ContainerSpec)) (string, executor.Endpoint) {
	f.Helper()
	spec := f.spec()
	for _, e := range edit {
		e(&spec)
	}
	endpoint, err := f.backend.Create(f.ctx, spec)
	if err != nil {
		f.Fatalf("Create: %v", err)
	}
	f.Cleanup(func() { f.delete(spec.GUID) })
	return spec.GUID, endpoint
}

func (f *fixture) delete(guid string) {
	f.Helper()
	if err := f.backend.Delete(context.WithoutCancel(f.ctx), guid); err != nil {
		f.Errorf("Delete %s: %v", guid, err)
	}
}

func (f *fixture) list() []string {
	f.Helper()
	guids, err := f.backend.List(f.ctx)
	if err != nil {
		f.Fatalf("List: %v", err)
	}
	if !slices.IsSorted(guids) {
		f.Errorf("the list %q is not sorted", guids)
	}
	return guids
}

// A process is one that a case has started.
type process struct {
	executor.Process
	f              *fixture
	stdout, stderr *output

	mu    sync.Mutex
	exits []executor.Exit
}

// start runs a program.
func (f *fixture) start(guid string, program Program, edit ...func(*executor.ProcessSpec)) *process {
	f.Helper()
	p, err := f.tryStart(guid, program, edit...)
	if err != nil {
		f.Fatalf("Start %s: %v", program, err)
	}
	return p
}

func (f *fixture) tryStart(guid string, program Program, edit ...func(*executor.ProcessSpec)) (*process, error) {
	p := &process{f: f, stdout: &output{}, stderr: &output{}}
	spec := executor.ProcessSpec{
		User: f.User, Stdout: p.stdout, Stderr: p.stderr,
		Env: []executor.EnvVar{{Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}, {Name: serveVar, Value: serveValue(program)}},
		Exited: func(e executor.Exit) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.exits = append(p.exits, e)
		},
	}
	spec.Path, spec.Args = f.command(program)
	for _, e := range edit {
		e(&spec)
	}
	var err error
	p.Process, err = f.backend.Start(f.ctx, guid, spec)
	return p, err
}

// hold runs a program that says something, and returns a check that nothing of
// it is left. All its processes hold its output open, so that is known of every
// backend, also of one that cannot count processes, and after a restart. In
// virtual time nothing holds anything.
func (f *fixture) hold(guid string, program Program, says string) (p *process, mustBeGone func()) {
	f.Helper()
	if _, virtual := f.backend.(executor.Stepper); virtual {
		p = f.start(guid, program)
		p.mustSay(says)
		return p, func() {}
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.Fatal(err)
	}
	p = f.start(guid, program, func(s *executor.ProcessSpec) { s.Stdout = w })
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer r.Close()
		_, _ = io.Copy(p.stdout, r)
	}()
	p.mustSay(says)
	if err := w.Close(); err != nil {
		f.Error(err)
	}
	return p, func() {
		f.Helper()
		select {
		case <-gone:
		case <-time.After(patience):
			f.Errorf("%v later something of the program %q is still alive", patience, program)
		}
	}
}

func serveValue(p Program) string {
	if p == Serve {
		return "1"
	}
	return ""
}

// ended reports how the process ended, if it has.
func (p *process) ended() (executor.Exit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.exits) > 1 {
		p.f.Errorf("Exited was called %d times", len(p.exits))
	}
	if len(p.exits) == 0 {
		return executor.Exit{}, false
	}
	return p.exits[0], true
}

// exit waits for the end of the process.
func (p *process) exit() executor.Exit {
	p.f.Helper()
	var e executor.Exit
	p.f.eventually("the process ends", func() (ok bool) { e, ok = p.ended(); return ok })
	return e
}

func (p *process) mustExit(want executor.Exit) {
	p.f.Helper()
	if got := p.exit(); got != want {
		p.f.Errorf("the process ended with %v, want %v", got, want)
	}
}

func (p *process) mustSay(want string) {
	p.f.Helper()
	p.f.eventually(fmt.Sprintf("the process says %q", want), func() bool { return strings.Contains(p.stdout.String(), want) })
}

func (p *process) signal(s executor.Signal) {
	p.f.Helper()
	if err := p.Signal(s); err != nil {
		p.f.Errorf("Signal %v: %v", s, err)
	}
}

// eventually waits for a condition: in virtual time by going on to the
// next event, otherwise in real time.
func (f *fixture) eventually(what string, condition func() bool) {
	f.Helper()
	if s, ok := f.backend.(executor.Stepper); ok {
		for range 10_000 {
			if condition() {
				return
			}
			next, ok := s.Next()
			if !ok {
				break
			}
			s.Step(next)
		}
		if !condition() {
			f.Fatalf("in virtual time it never happens that %s", what)
		}
		return
	}
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			f.Fatalf("after %v it has not happened that %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond) // between two looks at a condition
	}
}

// hostFile is a file outside of all containers.
func (f *fixture) hostFile(name, content string) string {
	f.Helper()
	path := filepath.Join(f.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
	return path
}

// output collects what a process writes.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	count  int64
	closed bool // nothing may come any more
	late   bool // something did
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = o.late || o.closed
	o.count += int64(len(p))
	if o.buffer.Len() < 1<<20 {
		o.buffer.Write(p)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *output) bytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
