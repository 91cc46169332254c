//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// patience bounds everything that must happen; nothing waits for it to pass. An
// emulated processor is slow.
const patience = 3 * time.Minute

// A fixture is a backend with which one test works.
type fixture struct {
	testing.TB
	*Backend
	ctx   context.Context
	count int
}

func newFixture(t testing.TB, edit ...func(*Options)) *fixture {
	t.Helper()
	testenv.Root(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	o := Options{Dir: filepath.Join(t.TempDir(), "cell")}
	for _, e := range edit {
		e(&o)
	}
	return &fixture{TB: t, Backend: newBackend(t, o), ctx: ctx}
}

func (f *fixture) spec(edit ...func(*executor.ContainerSpec)) executor.ContainerSpec {
	f.count++
	spec := executor.ContainerSpec{
		GUID: fmt.Sprintf("c-%d", f.count), RootFS: "host:", CPUWeight: executor.MaxCPUWeight,
		Resources: executor.Resources{MemoryMB: 128, MaxPIDs: 128},
	}
	for _, e := range edit {
		e(&spec)
	}
	return spec
}

// create makes a container, which is deleted at the end of the test.
func (f *fixture) create(edit ...func(*executor.ContainerSpec)) (string, executor.Endpoint) {
	f.Helper()
	spec := f.spec(edit...)
	endpoint, err := f.Create(f.ctx, spec)
	if err != nil {
		f.Fatalf("Create: %v", err)
	}
	return spec.GUID, endpoint
}

// cgroupFile reads a file of a container's cgroup, where each version has it: v1
// below a directory named after the controller.
func (f *fixture) cgroupFile(guid, v1, v2 string) string {
	f.Helper()
	dirs := f.containers[guid].cgroup.Dirs()
	path := filepath.Join(dirs[""], v2)
	if controller, name, _ := strings.Cut(v1, "/"); dirs[controller] != "" {
		path = filepath.Join(dirs[controller], name)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

func (f *fixture) delete(guid string) {
	f.Helper()
	if err := f.Delete(f.ctx, guid); err != nil {
		f.Errorf("Delete %s: %v", guid, err)
	}
}

// A run is a shell in a container.
type run struct {
	executor.Process
	f              *fixture
	stdout, stderr *output
	exit           chan executor.Exit
}

// as starts a shell as a user.
func (f *fixture) as(user, guid, script string, edit ...func(*executor.ProcessSpec)) *run {
	f.Helper()
	r, err := f.try(user, guid, script, edit...)
	if err != nil {
		f.Fatalf("Start %q: %v", script, err)
	}
	return r
}

func (f *fixture) try(user, guid, script string, edit ...func(*executor.ProcessSpec)) (*run, error) {
	r := &run{f: f, stdout: &output{}, stderr: &output{}, exit: make(chan executor.Exit, 1)}
	spec := executor.ProcessSpec{
		Path: "/bin/sh", Args: []string{"-c", script}, User: user, Stdout: r.stdout, Stderr: r.stderr,
		Exited: func(e executor.Exit) { r.exit <- e },
	}
	for _, e := range edit {
		e(&spec)
	}
	var err error
	r.Process, err = f.Start(f.ctx, guid, spec)
	return r, err
}

// end waits for the end.
func (r *run) end() executor.Exit {
	r.f.Helper()
	select {
	case e := <-r.exit:
		return e
	case <-time.After(patience):
		r.f.Fatalf("it has not ended; it said %q, %q", r.stdout, r.stderr)
		panic("unreachable")
	}
}

// says waits for an output.
func (r *run) says(text string) {
	r.f.Helper()
	r.f.eventually(fmt.Sprintf("it says %q", text), func() bool { return strings.Contains(r.stdout.String(), text) })
}

func (f *fixture) eventually(what string, condition func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) { // between two looks
		if time.Now().After(deadline) {
			f.Fatalf("it has not happened that %s", what)
		}
	}
}

// output collects what a process writes, up to a size.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	count  int64
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// hostFile writes a file that only the host has.
func (f *fixture) hostFile(name, content string, mode os.FileMode) string {
	f.Helper()
	path := filepath.Join(f.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		f.Fatal(err)
	}
	return path
}

// ownBinary is where a container has the test's own binary. TestMain says what
// it does there.
const ownBinary = "/test-binary"

func withOwnBinary(t testing.TB) func(*executor.ContainerSpec) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *executor.ContainerSpec) {
		c.Mounts = append(c.Mounts, executor.Mount{Source: self, Target: ownBinary})
	}
}
