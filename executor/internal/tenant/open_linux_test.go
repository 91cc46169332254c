package tenant_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

func openRoot(t testing.TB, dir string) *tenant.Root {
	t.Helper()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestOnlyFilesAndDirectoriesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("d/e"), 0o755), os.WriteFile(at("d/file"), []byte("here"), 0o644),
		os.Symlink("file", at("d/link")), os.Symlink("d/link", at("chain")), os.Symlink("d/e/../file", at("up")),
		os.Symlink("/etc/passwd", at("absolute")), os.Symlink("../../x", at("out")), os.Symlink("loop", at("loop")),
		os.Symlink("none", at("dangling")), syscall.Mkfifo(at("pipe"), 0o666), os.Symlink("pipe", at("to-pipe")))
	listener, err := net.Listen("unix", at("socket"))
	must(t, err)
	defer listener.Close()
	root := openRoot(t, dir)
	for name, want := range map[string]string{"d/file": "here", "d/link": "here", "chain": "here", "up": "here"} {
		f, err := root.Open(name, os.O_RDONLY)
		must(t, err)
		if content, err := io.ReadAll(f); string(content) != want || err != nil {
			t.Errorf("%s holds %q, %v", name, content, err)
		}
		f.Close()
	}
	for name, want := range map[string]string{
		"pipe": "but a pipe", "to-pipe": "but a pipe", "socket": "but a socket", "absolute": "escapes", "out": "escapes",
		"loop": "too many levels", "dangling": "no such file", "d/file/x": "not a directory",
	} {
		for _, flags := range []int{os.O_RDONLY, os.O_WRONLY | os.O_TRUNC} {
			if _, err := root.Open(name, flags); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if _, err := root.OpenRoot(name); err == nil {
			t.Errorf("%s is a root", name)
		}
	}
	if _, err := root.Open("d/link", os.O_RDONLY|tenant.NoFollow); !errors.Is(err, tenant.ErrKind) {
		t.Errorf("a link that must not be followed: %v", err)
	}
}

// Somebody who waits for the other end of a pipe would go on if it were opened.
func TestAPipeDoesNotNoticeThatItIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666))
	root := openRoot(t, dir)
	if _, err := root.Open("pipe", os.O_RDONLY); !errors.Is(err, tenant.ErrKind) {
		t.Errorf("it is opened: %v", err)
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, filepath.Join(dir, "pipe"), unix.IN_OPEN)
	must(t, err)
	root.Open("pipe", os.O_RDONLY)
	root.OpenRoot("pipe")
	if n, err := unix.Read(watch, make([]byte, 512)); err != unix.EAGAIN {
		t.Errorf("it was opened: %d bytes of events, %v", n, err)
	}
}

func TestWhatTheKernelMakesIsNotOpened(t *testing.T) {
	for _, name := range []string{"/proc/self/mounts", "/proc/self", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		root := openRoot(t, "/")
		if _, err := root.Open(name[1:], os.O_RDONLY); !errors.Is(err, tenant.ErrKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// leader is set in a process that leads a session and has no terminal.
const leader = "DIEGO_TEST_SESSION_LEADER"

func TestATerminalIsNotOpenedByTheLeaderOfASession(t *testing.T) {
	if number := os.Getenv(leader); number != "" {
		root := openRoot(t, "/dev/pts")
		_, err := root.Open(number, os.O_RDWR)
		_, rootErr := root.OpenRoot(number)
		stat, statErr := os.ReadFile("/proc/self/stat")
		must(t, statErr)
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if terminal := fields[4]; !errors.Is(err, tenant.ErrKind) || rootErr == nil || terminal != "0" {
			t.Errorf("the controlling terminal is %s after %v, %v", terminal, err, rootErr)
		}
		return
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", leader, number))
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
