package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/internal/testenv"
)

// deep makes a chain of directories below dir, with a file in the last one, as
// a tenant does: step by step.
func deep(t testing.TB, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(at)
		at = next
	}
	f, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	must(t, err)
	unix.Close(f)
	unix.Close(at)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// fewDescriptors lets this process open only a few more files than it has.
func fewDescriptors(t testing.TB, more uint64) {
	t.Helper()
	highest, err := unix.Open(".", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	unix.Close(highest)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(highest) + more, Max: old.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}

func TestATreeOfAnyShapeIsRemovedWithAFewDescriptors(t *testing.T) {
	shapes := map[string]func(dir string){
		"thousands deep": func(dir string) { deep(t, dir, 2000) },
		"chains beside each other": func(dir string) {
			for i := range 5 {
				must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
				deep(t, filepath.Join(dir, fmt.Sprint(i)), 300)
			}
		},
		"flat": func(dir string) {
			for i := range 5000 {
				must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
		},
		"wide and deep, with names that lifting would use": func(dir string) {
			for i := range 40 {
				must(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint(i), "a/b/c"), 0o755),
					os.WriteFile(filepath.Join(dir, fmt.Sprint(i), "a/b/c/file"), nil, 0o600),
					os.WriteFile(filepath.Join(dir, fmt.Sprintf("lifted-%d", i)), nil, 0o600),
					os.MkdirAll(filepath.Join(dir, fmt.Sprintf("lifted-%d", 40+i), "full"), 0o755))
			}
		},
		"a file":  func(dir string) { must(t, os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
		"nothing": func(dir string) { must(t, os.Remove(dir)) },
	}
	for name, build := range shapes {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for _, remove := range []func(dir string) error{
				func(dir string) error { return tenant.RemoveAll(context.Background(), dir) },
				func(dir string) error {
					root, err := tenant.OpenRoot(top)
					must(t, err)
					defer root.Close()
					return root.RemoveAll(context.Background(), filepath.Base(dir))
				},
			} {
				dir := filepath.Join(top, "tree")
				must(t, os.Mkdir(dir, 0o755))
				build(dir)
				t.Run("", func(t *testing.T) {
					fewDescriptors(t, 10)
					if err := remove(dir); err != nil {
						t.Error(err)
					}
				})
				if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it is still there: %v", err)
				}
			}
		})
	}
}

func TestARemovalFollowsNoLink(t *testing.T) {
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	must(t, os.WriteFile(filepath.Join(outside, "canary"), nil, 0o600), os.MkdirAll(filepath.Join(dir, "a/b"), 0o755),
		os.Symlink(outside, filepath.Join(dir, "a/b/out")), os.Symlink(outside, filepath.Join(dir, "lifted-1")))
	must(t, tenant.RemoveAll(context.Background(), dir))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(outside, link), tenant.RemoveAll(context.Background(), link))
	if _, err := os.Stat(filepath.Join(outside, "canary")); err != nil {
		t.Error(err)
	}
}

func TestARemovalNeverLeavesItsRoot(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "root")
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.MkdirAll(filepath.Join(outside, "canary/full"), 0o755),
		os.Symlink("..", filepath.Join(dir, "up")))
	root, err := tenant.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	for _, name := range []string{"..", ".", "", "a/..", "a/b/../../..", "up/canary", "a/../../canary", "a/"} {
		if err := root.RemoveAll(context.Background(), name); err == nil {
			t.Errorf("%q is removed", name)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "canary/full")); err != nil {
		t.Error(err)
	}
}

func TestARemovalEndsWithItsContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tenant.RemoveAll(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// locked is an environment variable: the tree that a copy of this process without
// rights removes.
const locked = "DIEGO_TEST_LOCKED"

func TestWhatAnOwnerHasLockedIsRemoved(t *testing.T) {
	if dir := os.Getenv(locked); dir != "" {
		must(t, tenant.RemoveAll(context.Background(), dir))
		return
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "tree")
	const somebody = 65534
	all := []string{"a/b/c/file", "d/e/f/file", "a/b/c", "a/b", "a", "d/e/f", "d/e", "d", "."}
	for _, name := range []string{"a/b/c", "d/e/f"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o755), os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o600))
	}
	child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	if os.Geteuid() == 0 {
		for _, name := range all {
			must(t, os.Lchown(filepath.Join(dir, name), somebody, somebody))
		}
		must(t, os.Chmod(parent, 0o777), os.Chmod(filepath.Dir(parent), 0o755))
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	}
	for _, name := range []string{"a/b/c", "a/b", "d/e", "d"} {
		must(t, os.Chmod(filepath.Join(dir, name), 0))
	}
	child.Env, child.Dir = append(os.Environ(), locked+"="+dir), "/"
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// immutable makes a file or directory such that root himself cannot change it,
// until the end of the test.
func immutable(t testing.TB, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root", "run the tests as root: only root makes files immutable")
	}
	f, err := os.Open(path)
	must(t, err)
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		testenv.Missing(t, "a file system with immutable files", err.Error())
	}
	const immutableFlag = 0x10
	must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|immutableFlag)))
	t.Cleanup(func() {
		must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)), f.Close())
	})
}

func TestRemovalsOfOneTreeAtTheSameTimeAllSucceed(t *testing.T) {
	dir := t.TempDir()
	for n := range 300 {
		path := filepath.Join(dir, fmt.Sprint(n))
		for i := range 5 {
			sub := filepath.Join(path, fmt.Sprint(i))
			must(t, os.MkdirAll(sub, 0o755), os.WriteFile(filepath.Join(sub, "file"), nil, 0o644))
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := tenant.RemoveAll(t.Context(), path); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func TestTheErrorOfARemovalIsShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	full := filepath.Join(dir, "full")
	must(t, os.MkdirAll(full, 0o755))
	for i := range 100 {
		name := filepath.Join(full, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 200)))
		must(t, os.WriteFile(name, nil, 0o600))
		immutable(t, name)
	}
	must(t, os.WriteFile(filepath.Join(full, "other"), nil, 0o600))
	err := tenant.RemoveAll(context.Background(), dir)
	if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "and 99 more") || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Lstat(filepath.Join(full, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it has not gone on after the failure")
	}
}

func TestATreeOfAnyDepthIsMeasuredWithAFewDescriptors(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/b/ten"), make([]byte, 10), 0o600),
		os.WriteFile(filepath.Join(dir, "five"), make([]byte, 5), 0o600), os.Symlink("/", filepath.Join(dir, "a/root")))
	const depth, wide = 500, 3000 // more than is read at once
	deep(t, filepath.Join(dir, "a"), depth)
	bottom, err := os.OpenFile(filepath.Join(dir, "a", strings.Repeat("d/", depth), "file"), os.O_WRONLY, 0)
	must(t, err, bottom.Truncate(7), bottom.Close())
	for i := range wide {
		at := filepath.Join(dir, "wide", fmt.Sprint(i))
		must(t, os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "one"), make([]byte, 1), 0o600))
	}
	fewDescriptors(t, 4)
	if got := tenant.Measure(context.Background(), dir, tenant.Content); got != 10+5+7+wide {
		t.Errorf("it weighs %d", got)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for path, want := range map[string]int64{dir: 0, filepath.Join(dir, "five"): 5, filepath.Join(dir, "none"): 0} {
		if got := tenant.Measure(ended, path, tenant.Content); got != want {
			t.Errorf("%s weighs %d", path, got)
		}
	}
}
