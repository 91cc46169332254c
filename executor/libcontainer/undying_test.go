//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// FIFREEZE and FITHAW, which package unix does not have.
const (
	freezeRequest = 0xc0045877
	thawRequest   = 0xc0045878
)

// hangingVolume mounts a file system that everybody may write to. Between hang and
// resume, a process that writes to it cannot be killed, as on a server that does not
// answer. A test defers resume: until then its containers cannot be deleted.
func hangingVolume(t *testing.T) (dir string, hang, resume func()) {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20))
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir}} {
		out, runErr := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err = errors.Join(err, runErr); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	request := func(number uint) {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(number), 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	hangs := false
	hang = func() { request(freezeRequest); hangs = true }
	resume = func() {
		if hangs {
			hangs = false
			request(thawRequest)
		}
	}
	return dir, hang, resume
}

// undying starts a process that cannot be killed while a volume hangs.
func (f *fixture) undying(guid string) {
	f.Helper()
	f.as("root", guid, "echo it writes; exec >/vol/file").says("it writes")
	f.eventually("it cannot be killed", func() bool {
		for pid := range strings.FieldsSeq(f.cgroupFile(guid, "pids/cgroup.procs", "cgroup.procs")) {
			text, _ := os.ReadFile("/proc/" + pid + "/stat") // it may have ended
			if strings.Contains(string(text), ") D ") {
				return true
			}
		}
		return false
	})
}

func TestADeletionEndsWithItsContextWhileAProcessCannotBeKilled(t *testing.T) {
	dir, hang, resume := hangingVolume(t)
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Mounts = []executor.Mount{{Source: dir, Target: "/vol", Writable: true}}
	})
	defer resume()
	hang()
	f.undying(guid)
	for i := range 2 {
		ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
		over := make(chan error, 1)
		go func() { over <- f.Delete(ctx, guid) }()
		select {
		case err := <-over:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("deletion %d: %v", i, err)
			}
		case <-time.After(patience / 6):
			t.Fatalf("deletion %d goes on without its context", i)
		}
		cancel()
	}
	resume()
	f.delete(guid)
}

// Who asks for what a container uses does not wait until it is removed: others are
// measured after it.
func TestNobodyWaitsForAContainerThatIsBeingDeleted(t *testing.T) {
	dir, hang, resume := hangingVolume(t)
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Mounts = []executor.Mount{{Source: dir, Target: "/vol", Writable: true}}
	})
	r := f.as("nobody", guid, idle)
	defer resume()
	hang()
	f.undying(guid)
	deleted := make(chan error, 1)
	go func() { deleted <- f.Delete(f.ctx, guid) }()
	f.eventually("it is being deleted", func() bool { return f.containers[guid].gone.Load() })
	over := make(chan string, 3)
	go func() { _, err := f.Usage(f.ctx, guid); over <- fmt.Sprint("Usage: ", err) }()
	go func() { _, err := f.try("nobody", guid, "true"); over <- fmt.Sprint("Start: ", err) }()
	go func() { over <- fmt.Sprint("Signal: ", r.Signal(executor.Kill)) }()
	for range cap(over) {
		select {
		case text := <-over:
			if !strings.Contains(text, "it is being deleted") && text != "Signal: <nil>" {
				t.Error(text)
			}
		case <-time.After(patience / 6):
			t.Error("something waits for the deletion")
		}
	}
	resume()
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestAContainerThatDoesNotEndWhenItsDaemonClosesHoldsUpNoOther(t *testing.T) {
	dir, hang, resume := hangingVolume(t)
	cell := filepath.Join(t.TempDir(), "cell")
	f := newFixture(t, func(o *Options) { o.Dir = cell })
	stuck, _ := f.create(func(c *executor.ContainerSpec) {
		c.Mounts = []executor.Mount{{Source: dir, Target: "/vol", Writable: true}}
	})
	var others []*run
	for range 3 {
		guid, _ := f.create()
		others = append(others, f.as("nobody", guid, idle))
	}
	defer resume()
	hang()
	f.undying(stuck)
	closed := make(chan error, 1)
	go func() { closed <- closeAll(f.ctx, slices.Collect(maps.Values(f.containers))) }()
	for _, r := range others {
		r.end()
	}
	resume()
	if err := errors.Join(<-closed, f.Close()); err != nil {
		t.Error(err)
	}
	newFixture(t, func(o *Options) { o.Dir = cell }) // which deletes what is left
}

// A process may hold up the start of another one of its user, which a signal to the
// container waits for.
func TestAStartThatIsHeldUpDoesNotHoldUpTheEndOfAll(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	c := f.containers[guid]
	f.as("nobody", guid, idle)
	c.life.RLock() // as a start does, which ends when its process is killed
	started := sync.OnceFunc(c.life.RUnlock)
	defer started() // else the container cannot be deleted
	over := make(chan error, 1)
	go func() { over <- f.Signal(f.ctx, guid, executor.Kill) }()
	f.eventually("all are killed", func() bool { return c.cgroup.PIDs() == 1 })
	select {
	case err := <-over:
		t.Errorf("it has not waited for the start: %v", err)
	default:
	}
	started()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
